"""The one place where Discord's errors become ours; past it no vendor's error exists."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Literal

import aiohttp
import discord

from bots.platforms.discord.client import TooManyError
from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError

Fault = Literal["refused", "slow down", "rejected", "unsent", "unknown"]
"""``refused`` is the token, ``rejected`` one call; ``unknown`` may have been carried out."""

REFUSED_SECONDS = 60.0
_BAD_TOKEN = 4004
"""https://docs.discord.com/developers/topics/opcodes-and-status-codes#gateway"""
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def fault_of(error: BaseException) -> Fault:
    """By class and code, never by text."""
    match error:
        case discord.LoginFailure(__cause__=discord.HTTPException() as cause):
            return fault_of(cause)
        case discord.ConnectionClosed(code=code):
            return "refused" if code == _BAD_TOKEN else "rejected"
        case discord.PrivilegedIntentsRequired():
            return "rejected"
        case TooManyError() | discord.RateLimited():
            return "slow down"
        case discord.HTTPException():
            return _fault_of_answer(error)
        case _ if isinstance(error, _UNSENT):
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
        case "unsent":
            return TransientError(text)
        case "rejected":
            return PermanentError(text)
        case "unknown":
            return UnknownOutcomeError(text)


def described(error: BaseException, redact: Callable[[str], str]) -> str:
    return redact(f"{type(error).__name__}: {error}")


def seconds_of(error: BaseException) -> float | None:
    match error:
        case TooManyError(retry_after=seconds) | discord.RateLimited(retry_after=seconds):
            return seconds
        case _:
            return None


def _fault_of_answer(error: discord.HTTPException) -> Fault:
    """An answer that is no JSON came from something in between, and is not Discord's word. A 404
    without a code of Discord's speaks of the address that was called."""
    kind = error.response.headers.get("Content-Type", "")
    if kind.partition(";")[0].strip() != "application/json":
        return "unknown"
    match error.status:
        case HTTPStatus.UNAUTHORIZED:
            return "refused"
        case HTTPStatus.NOT_FOUND if error.code == 0:
            return "unsent"
        case status if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return "rejected"
        case _:
            return "unknown"
