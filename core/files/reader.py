"""Reads what came with a message, so that a model can be shown it; a file that cannot be had
becomes a sentence, and never an error."""

import asyncio
import time
from collections.abc import Mapping

import structlog
from msgspec.structs import replace

from core.domain.messages import Attachment, Inbound, ModelRequest, ReadFile
from core.domain.values import clean
from core.errors import PermanentError, StorageError, TransientError, UnknownOutcomeError
from core.files.documents import PDF_SECONDS, cut, decoded, text_of_pdf
from core.files.kinds import Kind, kind_of, kind_of_bytes
from core.files.limits import Limits
from core.files.pictures import shrink
from core.files.threads import Blocking, in_thread
from core.ports import Channel, Clock, Files, Transcriber

TRIES = 3
FETCH_SECONDS = 60.0
"""For each try."""
PICTURE_SECONDS = 30.0
_TEXTS = ("text", "pdf", "speech", "untold")
LONGEST_PAUSE = 10.0
AT_ONCE = 4
"""Files in memory, of all sessions together; one of them is being opened."""

UNOPENED = "I broke off over it again and again, so it is left alone."
UNAVAILABLE = "It could not be downloaded."
NOT_GIVEN = "The platform does not hand it out: it is gone, or too large."
TOO_LARGE = "It is larger than the {most:.0f} MB that I take."
NOT_READABLE = "I cannot read files of this kind."
NO_SPEECH_MODEL = "I cannot hear it: no model for speech is set up (TRANSCRIBE_MODEL)."
NOT_UNDERSTOOD = "It could not be put into words."
NOTHING_SAID = "(nothing was said)"
BROKEN = "It cannot be read."

log = structlog.get_logger(__name__)


class FileReader:
    def __init__(  # noqa: PLR0913 (all of it from outside)
        self,
        channels: Mapping[str, Channel],
        files: Files,
        clock: Clock,
        limits: Limits,
        transcriber: Transcriber | None = None,
        blocking: Blocking = in_thread,
    ) -> None:
        """``blocking`` does what takes a while."""
        self._channels = channels
        self._files = files
        self._clock = clock
        self._limits = limits
        self._transcriber = transcriber
        self._blocking = blocking
        self._room = asyncio.Semaphore(AT_ONCE)
        self._desk = asyncio.Semaphore(1)

    async def read(self, inbound: Inbound, *, unopened: bool = False) -> tuple[ReadFile, ...]:
        """One for each attachment, in order. Raises StorageError."""
        channel = self._channels[inbound.address.platform]
        texts = sum(kind_of(attachment) in _TEXTS for attachment in inbound.attachments)
        share = self._limits.characters // max(texts, 1)
        found: list[ReadFile] = []
        for attachment in inbound.attachments:
            label = clean(", ".join(filter(None, (attachment.kind, attachment.name))))
            base = ReadFile(kind="refused", label=label, text=UNOPENED)
            one = base if unopened else await self._or_sentence(channel, attachment, base, share)
            found.append(one)
        return tuple(found)

    async def equipped(self, request: ModelRequest) -> ModelRequest:
        """With what its pictures look like. Raises StorageError."""
        shas = dict.fromkeys(picture.sha for picture in request.pictures)
        found = [(sha, await self._files.file(sha)) for sha in shas]
        return replace(request, files={sha: data for sha, data in found if data is not None})

    async def _or_sentence(
        self, channel: Channel, attachment: Attachment, base: ReadFile, share: int
    ) -> ReadFile:
        try:
            async with self._room:
                return await self._read(channel, attachment, base, share)
        except StorageError:
            raise
        except PermanentError as error:
            sentence = str(error)
            log.warning("attachment not read", file=attachment.kind, why=sentence)
        except Exception:
            log.exception("attachment not read", file=attachment.kind)
            sentence = BROKEN
        return replace(base, text=sentence)

    async def _read(
        self, channel: Channel, attachment: Attachment, base: ReadFile, share: int
    ) -> ReadFile:
        kind = kind_of(attachment)
        self._refuse(kind, attachment.size)
        data = await self._fetch(channel, attachment)
        if kind == "untold":
            kind = kind_of_bytes(data)
        self._refuse(kind, len(data))
        if kind == "picture":
            return await self._picture(data, base)
        text = await self._words(kind, data, attachment)
        return replace(base, kind="words", text=cut(text, share))

    def _refuse(self, kind: Kind, size: int) -> None:
        """Raises PermanentError with the sentence that the user hears."""
        most = self._limits.attachment_bytes
        if size > most:
            raise PermanentError(TOO_LARGE.format(most=most / 1_000_000))
        if kind == "other":
            raise PermanentError(NOT_READABLE)
        if kind == "speech" and self._transcriber is None:
            raise PermanentError(NO_SPEECH_MODEL)

    async def _fetch(self, channel: Channel, attachment: Attachment) -> bytes:
        for attempt in range(1, TRIES + 1):
            pause = 2.0 ** (attempt - 1)
            try:
                async with asyncio.timeout(FETCH_SECONDS):
                    return await channel.fetch(attachment, self._limits.attachment_bytes)
            except PermanentError as error:
                log.warning("attachment not handed out", error=str(error))
                raise PermanentError(NOT_GIVEN) from error
            except TransientError as error:
                pause = min(error.retry_after or pause, LONGEST_PAUSE)
                log.info("attachment not here yet", attempt=attempt, error=str(error))
            except (UnknownOutcomeError, TimeoutError) as error:
                log.info("attachment not here yet", attempt=attempt, error=str(error))
            if attempt < TRIES:
                await self._clock.sleep(pause)
        raise PermanentError(UNAVAILABLE)

    async def _picture(self, data: bytes, base: ReadFile) -> ReadFile:
        side, most = self._limits.picture_side, self._limits.picture_bytes
        async with self._desk:
            small = await self._blocking(lambda: shrink(data, side, most), PICTURE_SECONDS)
        sha = await self._files.keep_file(small)
        return replace(base, kind="picture", text="", sha=sha, mime="image/jpeg", size=len(small))

    async def _words(self, kind: Kind, data: bytes, attachment: Attachment) -> str:
        match kind:
            case "pdf":
                async with self._desk:
                    return await self._blocking(
                        lambda: text_of_pdf(data, time.monotonic), 2 * PDF_SECONDS
                    )
            case "speech":
                return await self._heard(data, attachment)
            case _:
                return decoded(data)

    async def _heard(self, data: bytes, attachment: Attachment) -> str:
        if self._transcriber is None:
            raise PermanentError(NO_SPEECH_MODEL)
        try:
            text = await self._transcriber.transcribe(data, attachment)
        except (TransientError, PermanentError) as error:
            log.warning("speech not understood", error=str(error))
            raise PermanentError(NOT_UNDERSTOOD) from error
        return clean(text).strip() or NOTHING_SAID
