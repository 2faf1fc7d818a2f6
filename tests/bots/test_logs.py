"""What stands in the log, and what must never."""

import io
import json
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import structlog

from bots.logs import database_secrets, set_up_logs

TOKEN = "123456:AAF-secret_half"
ODD = 'pä"ss\\w rd/+&'
PASSWORD = "p%40ssword"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def logging_to(form: str, *, level: str = "INFO") -> io.StringIO:
    stream = io.StringIO()
    url = f"postgres://ada:{PASSWORD}@db.example.org/bot"
    set_up_logs(level, form, frozenset({TOKEN, ODD}) | database_secrets(url), stream)
    return stream


def _fail(text: str, cause: Exception | None) -> None:
    raise ValueError(text) from cause


@pytest.mark.parametrize("form", ["plain", "json"])
@pytest.mark.parametrize("secret", [TOKEN, ODD, PASSWORD, "p@ssword"])
def test_no_line_shows_a_secret(form: str, secret: str) -> None:
    stream = logging_to(form)
    ours, theirs = structlog.get_logger("ours"), logging.getLogger("theirs")
    ours.info("plain %s", secret, field=secret, url=f"https://api/bot{quote(secret)}/getMe")
    ours.info(f"in a sentence: {secret}", nested={"list": [secret], quote(secret, safe=""): 1})
    theirs.warning("GET %s", f"https://api.example.org/?key={quote(secret, safe='')}")
    try:
        _fail(secret, OSError(f"https://x:{secret}@y"))
    except ValueError:
        ours.exception("broken")
        theirs.exception("broken")
    text = stream.getvalue()
    assert "plain" in text
    assert text.count("ValueError") >= 2
    assert "***" in text
    as_written = (repr(secret)[1:-1], json.dumps(secret)[1:-1])
    for shown in (secret, quote(secret), quote(secret, safe=""), *as_written):
        assert shown not in text


def test_a_short_password_is_hidden_in_its_url_only() -> None:
    stream = io.StringIO()
    set_up_logs("INFO", "plain", database_secrets("postgres://ada:a@db/bot"), stream)
    structlog.get_logger("ours").info("cannot reach postgres://ada:a@db/bot")
    assert "cannot reach postgres://ada***db/bot" in stream.getvalue()


def test_an_address_that_cannot_be_read_has_no_password() -> None:
    assert database_secrets("postgres://[broken") == frozenset()


def test_json_is_one_object_a_line_whoever_speaks() -> None:
    stream = logging_to("json")
    structlog.get_logger("ours").warning("two\nlines", chat=7)
    logging.getLogger("theirs").error("old style %d", 3)
    try:
        _fail("boom", None)
    except ValueError:
        structlog.get_logger("ours").exception("broken")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["two\nlines", "old style 3", "broken"]
    assert [line["level"] for line in lines] == ["warning", "error", "error"]
    assert [line["logger"] for line in lines] == ["ours", "theirs", "ours"]
    assert all(line["timestamp"].endswith("Z") for line in lines)
    assert "ValueError: boom" in lines[2]["exception"]


def test_a_turns_lines_name_its_session_key_and_number() -> None:
    stream = logging_to("json")
    with structlog.contextvars.bound_contextvars(key="agent:main:x:dm:1", turn=3):
        structlog.get_logger("ours").info("model failed")
        logging.getLogger("theirs").warning("retrying")
    for line in stream.getvalue().splitlines():
        assert json.loads(line)["key"] == "agent:main:x:dm:1"
        assert json.loads(line)["turn"] == 3


def test_http_libraries_do_not_log_addresses_at_info() -> None:
    stream = logging_to("plain")
    logging.getLogger("httpx").info("HTTP Request: GET https://api/bot1:x/getMe")
    logging.getLogger("telegram.ext").info("polling")
    assert stream.getvalue() == ""


def test_the_level_is_the_operators() -> None:
    stream = logging_to("plain", level="ERROR")
    structlog.get_logger("ours").warning("not this")
    structlog.get_logger("ours").error("but this")
    assert "not this" not in stream.getvalue()
    assert "but this" in stream.getvalue()


def test_a_job_that_is_late_again_is_not_said_each_second() -> None:
    stream = logging_to("json")
    scheduler = logging.getLogger("apscheduler.scheduler")
    scheduler.warning("Execution of job skipped: maximum number of running instances reached")
    logging.getLogger("apscheduler.executors.default").error("Job raised an exception")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == [
        "Job raised an exception"
    ]
