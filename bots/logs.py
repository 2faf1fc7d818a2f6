"""How the process logs: one line an event, in plain text or JSON, and never a secret."""

import json
import logging
import re
from typing import TextIO
from urllib.parse import quote, quote_plus, unquote, urlsplit

import structlog
from structlog.typing import EventDict, Processor

HIDDEN = "***"
_NOISY = (
    "httpx",
    "httpcore",
    "apscheduler",
    "alembic",
    "litellm",
    "LiteLLM",
    "uvicorn",
)
"""HTTP libraries log whole URLs at INFO, tokens in them; a server tells its pid and its end."""
_REPETITIVE = ("apscheduler.scheduler",)
"""Warns each time that a job is not over when it is due again: so once a second and more, for as
long as the database does not answer, which is said elsewhere."""
_TALKATIVE = ("discord", "telegram")
"""Tell a lost connection, or a page of a proxy, with the whole traceback; what they raise then is
said by the adapter in a line."""
_SHORTEST_PASSWORD = 4
"""A shorter one is hidden only where it stands in a URL: it would be found in every word."""


class Redactor(logging.Formatter):
    """Renders a record by the inner formatter, then hides every secret in the finished text, in
    all the ways in which a text may have been written into it."""

    def __init__(self, inner: logging.Formatter, secrets: frozenset[str]) -> None:
        super().__init__()
        self._inner = inner
        forms = {form for secret in secrets for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def format(self, record: logging.LogRecord) -> str:
        text = self._inner.format(record)
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


def _forms(secret: str) -> set[str]:
    plain = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    plain |= {repr(form)[1:-1] for form in plain}
    return plain | {json.dumps(form)[1:-1] for form in plain}


def database_secrets(url: str) -> frozenset[str]:
    """The password of a database's URL, as it stands there and as it is meant."""
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return frozenset()
    if len(password) < _SHORTEST_PASSWORD:
        return frozenset({f":{password}@"} if password else ())
    return frozenset({password, unquote(password)})


def set_up_logs(level: str, form: str, secrets: frozenset[str], stream: TextIO) -> None:
    """From here on structlog and the standard library write to ``stream``."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(),
        _without_noise,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    inner = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Redactor(inner, secrets))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in _REPETITIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _without_noise(_: object, __: str, event: EventDict) -> EventDict:
    """What other libraries attach to their records for their own use."""
    for name in ("color_message", "litellm_redacted"):
        event.pop(name, None)
    return event
