"""Broken logs as bundles in a folder of their own, where a disk lasts; the truth stays in the
database."""

import asyncio
import os
import re
import shlex
from pathlib import Path

from core.domain.keys import key_of_aside
from core.errors import StorageError
from core.ports import Clock, RawLogs
from storage.bundle_export import Request, export

FOLDER = "quarantine"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 180
"""Of the 255 bytes that file systems allow."""


class QuarantineFolder:
    """``core.ports.Quarantine``."""

    def __init__(self, logs: RawLogs, folder: Path, clock: Clock) -> None:
        self._logs = logs
        self._folder = folder
        self._clock = clock

    async def keep(self, kept_as: str, why: str) -> str:
        target = self._folder / bundle_name(kept_as)
        request = Request(key=kept_as, target=target, at=self._clock.now(), why=why)
        try:
            found = await export(self._logs, request)
        except OSError as error:
            raise StorageError(f"{target} cannot be written: {error}") from error
        if found is None:
            raise StorageError(f"there is no log {kept_as}")
        return str(target)

    async def missing(self, kept: tuple[str, ...]) -> tuple[str, ...]:
        return await asyncio.to_thread(self._missing, kept)

    def _missing(self, kept: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one for one in kept if not os.path.lexists(self._folder / bundle_name(one)))


class LeftInDatabase:
    """``core.ports.Quarantine`` where no disk is promised: what was set aside stays where it is,
    and no copy is missing that nobody has asked for."""

    async def keep(self, kept_as: str, why: str) -> str:
        return f"none: `stillhere sessions export {shlex.quote(kept_as)} FOLDER` makes one"

    async def missing(self, kept: tuple[str, ...]) -> tuple[str, ...]:
        return ()


def bundle_name(kept_as: str) -> str:
    """A file's name for the key of a log that was set aside; its reference tells two apart."""
    key = key_of_aside(kept_as)
    reference = kept_as[len(key) :].rpartition(":")[2]
    return f"{_UNSAFE.sub('_', key)[:_LONGEST]}.{reference}"
