"""What looks like a password or a key is not carried on; pure, and no promise that it finds all."""

import re

HIDDEN = "[secret left out]"

_KEYS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"\b(?:sk|pk|rk)-(?=[\w-]{0,60}\d)[\w-]{16,}",
    r"\b(?:sk|pk|rk)_(?:live|test)_\w{10,}|\bwhsec_[\w+/=]{16,}",
    r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bgl[a-z]{2,5}-[\w-]{16,}",
    r"\bxox[abeoprs]-[\w-]{10,}|\bxapp-[\w-]{10,}",
    r"(?<=\.com/services/)[\w/]{20,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}",
    r"\b\d{8,10}:[\w-]{35}\b",
    r"\b[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}",
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}|\bSK[0-9a-f]{32}\b",
    r"\b(?:hf|npm|gsk|r8|ntn|nvapi|dckr_pat|lin_api|shpat|dop_v1|sbp|figd)[_-]"
    r"(?=[\w-]{0,60}\d)[\w-]{20,}",
    r"\bpypi-[\w-]{40,}|\bxai-(?=[\w-]{0,60}\d)\w{20,}|\bdapi[0-9a-f]{32}",
    r"(?<=://)[^\s/:@]*:[^\s/@]+(?=@)",
    r"(?i:(?<=\bbearer )|(?<=\bbasic ))(?=[\w.~+/-]{0,60}\d)[\w.~+/-]{12,}=*",
)
_KEY = re.compile("|".join(f"(?:{key})" for key in _KEYS))
_NAME = (
    r"[\w-]{0,40}(?:password|passwd|passphrase|passwort|pwd|secret|token|"
    r"(?:api|access|account|private|secret|auth|encryption)[ _-]?key)"
    r"\d{0,2}(?:[_-][\w-]{0,40})?(?!\w)"
)
_NAMED = re.compile(
    rf"""(?ix)
    \b(?P<name>{_NAME.replace(" ", chr(92) + " ")}
        (?:\\?["'])? (?P<mark>\s*[:=]\s* | \s+is\s+))
    (?: (?P<quote>\\?["'`]) (?P<quoted>[^"'`\\\n]{{4,}}) (?P=quote)
      | (?P<value>[^\s"'`,;&]{{4,}}) (?P<last>\s*$)? )
    """,
    re.MULTILINE,
)
_PLAIN = re.compile(
    r"[^\W\d_]?[^\W\d_A-Z]*[.,!?:)]*|[\d.,]{1,6}|[<\[{(*].*|[A-Za-z_.]+[\[(].*|\.{3}|…"
)
"""A word, a small number or code, or what stands in a secret's place."""


def redacted(text: str) -> str:
    """Keys of known vendors, private keys, logins in addresses, and whatever is named a secret."""
    return _NAMED.sub(_hidden, _KEY.sub(HIDDEN, text))


def _hidden(found: re.Match[str]) -> str:
    """Prose speaks of tokens and passwords, too: a plain word counts as one only where nothing
    else can be meant, behind «=» or alone on its line."""
    quoted, value, name = found["quoted"], found["value"], found["name"]
    if quoted is not None:
        return f"{name}{found['quote']}{HIDDEN}{found['quote']}"
    of_a_password = re.search(r"pass|pwd", name, re.IGNORECASE) is not None
    alone = "=" in found["mark"] or (":" in found["mark"] and found["last"] is not None)
    if _PLAIN.fullmatch(value) and not (of_a_password and alone and value.isalnum()):
        return found[0]
    return f"{name}{HIDDEN}{found['last'] or ''}"
