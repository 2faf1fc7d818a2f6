import pytest

from core.domain.secrets import HIDDEN, redacted

LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z"
"""No real key, and none is written whole, so that nobody who looks for keys finds one here."""
HEX = "0123456789abcdef"


def key(*parts: str) -> str:
    return "".join(parts)


KEYS = {
    "openai": key("sk", "-proj-", LETTERS, "_", LETTERS),
    "openai of old": key("sk", "-", LETTERS, LETTERS[:20]),
    "anthropic": key("sk", "-ant-", "api03-", LETTERS, "-", LETTERS),
    "stripe": key("sk", "_live_", LETTERS),
    "stripe webhook": key("whsec", "_", LETTERS),
    "github": key("gh", "p_", LETTERS, "abcdefgh"),
    "github, fine-grained": key("github", "_pat_", LETTERS, "_", LETTERS),
    "gitlab": key("gl", "pat-", LETTERS[:20]),
    "slack": key("xox", "b-", "1234567890-", LETTERS),
    "slack app": key("xapp", "-1-A0-", LETTERS),
    "aws": key("AK", "IA", "ABCDEFGH23456789"),
    "google": key("AI", "za", LETTERS, "1234567"),
    "telegram": key("123456789", ":", "AA", LETTERS, "abcde"),
    "discord": key("MT", LETTERS[:22], ".", LETTERS[:6], ".", LETTERS),
    "sendgrid": key("SG", ".", LETTERS[:22], ".", LETTERS),
    "twilio": key("S", "K", HEX, HEX),
    "hugging face": key("h", "f_", LETTERS, "abcd"),
    "npm": key("np", "m_", LETTERS, "abcdefgh"),
    "pypi": key("py", "pi-", LETTERS, LETTERS),
    "groq": key("gs", "k_", LETTERS),
    "databricks": key("da", "pi", HEX, HEX),
    "a jwt": key("ey", "J", LETTERS, ".", LETTERS, ".", LETTERS),
}


@pytest.mark.parametrize("secret", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("said", ["use {} please", "({})", "`{}`", "KEY={}\nmore", "{}"])
def test_a_key_of_a_vendor_is_left_out(secret: str, said: str) -> None:
    shown = redacted(said.format(secret))

    assert HIDDEN in shown
    assert secret[6:] not in shown
    assert shown.replace(HIDDEN, "") == said.format("")


NAMED = {
    "my password is {}": "hunter2!",
    "password: {}": "hunter",
    "Passwort: {}": "geheim12",
    "DB_PASSWORD={}": "letmein",
    "export AWS_SECRET_ACCESS_KEY={}": LETTERS,
    'api_key = "{}"': "plainword",
    '{{"password": "{}", "user": "anna"}}': "correct horse battery",
    '{{\\"token\\": \\"{}\\"}}': "abcdefgh1",
    "client_secret='{}'": "s3cr3t-value",
    "Authorization: Bearer {}": "abc.def-123456",
    "Authorization: Basic {}": "YW5uYTpnZWhlaW0x",
    "postgres://{}@db/app": "anna:geheim",
    "redis://{}@db": ":geheim",
    "https://hooks.slack.com/services/{}": key("T0000", "/B0000/", LETTERS[:24]),
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----{}": "\nb3BlbnNzaC1rZXk\nabc",
}


@pytest.mark.parametrize(("said", "secret"), NAMED.items(), ids=NAMED.keys())
def test_what_is_named_a_secret_is_left_out(said: str, secret: str) -> None:
    shown = redacted(said.format(secret))

    assert HIDDEN in shown
    assert secret not in shown


ORDINARY = [
    "I forgot my password: please help me",
    "The password is wrong, and the token is gone.",
    "max_tokens: 1000, tokens: 12345, token_count=42",
    "tokenizer: cl100k_base",
    "The secret: be kind.",
    "My secretary: Anna Müller",
    "Meet me at 10:30 at https://example.org:8080/path?x=1",
    "commit 3c7a2920d5a050d8542ceea24c154b28e0735abc",
    "call me at +49 170 1234567",
    "anna@example.org",
    "123e4567-e89b-12d3-a456-426614174000",
    "sk-learn is a typo for scikit-learn",
    "api_key=os.environ['API_KEY']",
    "password=<your password>",
    "パスワードを忘れました",
    "key: value",
    "the bearer of this letter",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize("text", [f"password={LETTERS}", *KEYS.values()])
def test_what_is_left_out_once_is_not_left_out_again(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["a-", "password", "token ", "sk-", "eyJ", "://:", "M", "#", "1:"])
def test_no_text_takes_long(part: str) -> None:
    assert redacted(part * 20_000)
