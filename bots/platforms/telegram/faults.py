"""The one place where Telegram's errors become ours; past it no vendor's error exists."""

from collections.abc import Callable
from datetime import timedelta
from typing import Literal

import httpx
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from bots.platforms.telegram.client import NotFoundError
from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError

Fault = Literal["refused", "conflict", "slow down", "moved", "rejected", "unsent", "unknown"]
"""``refused`` is the token, ``rejected`` one call; ``unknown`` may have been carried out."""

REFUSED_SECONDS = 60.0
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_NOT_MODIFIED = "message is not modified"
"""Telegram has no code for it. https://core.telegram.org/bots/api#making-requests, and
``MESSAGE_NOT_MODIFIED`` in Client.cpp of github.com/tdlib/telegram-bot-api."""


def fault_of(error: Exception) -> Fault:
    """By class, never by text. The SDK chains the error of an unreadable answer to that of its
    status: such an answer came from something in between, and is not Telegram's word."""
    if isinstance(error.__cause__, TelegramError):
        return "unknown"
    match error:
        case InvalidToken():
            return "refused"
        case Conflict():
            return "conflict"
        case RetryAfter():
            return "slow down"
        case ChatMigrated():
            return "moved"
        case Forbidden() | BadRequest():
            return "rejected"
        case NotFoundError():
            return "unsent"
        case NetworkError(__cause__=cause) if isinstance(cause, _UNSENT):
            return "unsent"
        case _:
            return "unknown"


def translated(error: Exception, redact: Callable[[str], str]) -> StillhereError:
    text = described(error, redact)
    match fault_of(error):
        case "refused":
            return TransientError(text, REFUSED_SECONDS)
        case "slow down":
            return TransientError(text, seconds_of(error))
        case "conflict" | "unsent":
            return TransientError(text)
        case "moved" | "rejected":
            return PermanentError(text)
        case "unknown":
            return UnknownOutcomeError(text)


def described(error: Exception, redact: Callable[[str], str]) -> str:
    return redact(f"{type(error).__name__}: {error}")


def seconds_of(error: Exception) -> float | None:
    """The SDK gives an int or a timedelta, as the process's environment wants it."""
    if not isinstance(error, RetryAfter):
        return None
    wait = error.retry_after
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def is_rejected(error: Exception) -> bool:
    return isinstance(error, BadRequest) and fault_of(error) == "rejected"


def is_not_modified(error: Exception) -> bool:
    return is_rejected(error) and str(error).casefold().startswith(_NOT_MODIFIED)
