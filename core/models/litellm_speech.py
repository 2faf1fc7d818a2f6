"""Speech to text by every vendor's model that litellm reaches; it keeps no recording."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from core.domain.messages import Attachment, ModelFailure
from core.errors import PermanentError, TransientError
from core.models.litellm_errors import failure_of
from core.models.litellm_load import load

Sleep = Callable[[float], Awaitable[None]]

LONGEST_WAIT = 20.0
_ENDINGS: Mapping[str, str] = {
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/mp4": "m4a",
    "audio/x-m4a": "m4a",
    "audio/aac": "m4a",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/webm": "webm",
    "audio/flac": "flac",
}
"""Vendors look at the name's ending to know what a recording is."""
_SAME = {"oga": "ogg", "opus": "ogg"}


class SpeechOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``total`` in seconds, with all tries. ``secrets`` are texts that no error may show."""

    name: str
    total: float = 180.0
    attempts: int = 3
    secrets: tuple[str, ...] = ()


class LiteLLMTranscriber:
    """``core.ports.Transcriber``."""

    def __init__(self, options: SpeechOptions, sleep: Sleep) -> None:
        self._options = options
        self._sleep = sleep
        self._loading = asyncio.Lock()
        self._litellm: Any = None

    async def transcribe(self, data: bytes, attachment: Attachment) -> str:
        async with self._loading:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(load)
        try:
            async with asyncio.timeout(self._options.total):
                return await self._persist(data, file_name(attachment))
        except TimeoutError as error:
            raise TransientError(f"nothing within {self._options.total:g} s") from error

    async def close(self) -> None:
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    async def _persist(self, data: bytes, name: str) -> str:
        for attempt in range(1, self._options.attempts):
            result = await self._attempt(data, name)
            if isinstance(result, str):
                return result
            wait = result.retry_after or 2.0 ** (attempt - 1)
            if result.kind != "try_again" or wait > LONGEST_WAIT:
                break
            await self._sleep(wait)
        else:
            result = await self._attempt(data, name)
        if isinstance(result, str):
            return result
        error = TransientError if result.kind == "try_again" else PermanentError
        raise error(result.detail)

    async def _attempt(self, data: bytes, name: str) -> str | ModelFailure:
        try:
            answer = await self._litellm.atranscription(
                model=self._options.name,
                file=(name, data),
                max_retries=0,
                timeout=self._options.total,
            )
            return str(answer.text or "")
        except Exception as error:  # noqa: BLE001 (vendors' clients raise what they like)
            return failure_of(self._litellm, error, self._redact)

    def _redact(self, text: str) -> str:
        for secret in filter(None, self._options.secrets):
            text = text.replace(secret, "***")
        return self._litellm._logging.redact_secrets(text)


def file_name(attachment: Attachment) -> str:
    ending = PurePosixPath(attachment.name).suffix.removeprefix(".").lower()
    mime = attachment.mime.partition(";")[0].strip().lower()
    return f"speech.{_ENDINGS.get(mime) or _SAME.get(ending, ending) or 'ogg'}"
