"""The service as it is, on a store that kills the process at a chosen write; it fakes nothing."""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec

from bots.app import Ground
from bots.cli.common import prepare
from bots.clock import SystemClock
from bots.platforms.telegram import PLATFORM
from bots.process import open_store, serve
from bots.web import bind
from core.ports import Store, Tool, ToolContext, ToolOutput
from core.tools import FunctionTool

WRITES = ("commit", "claim", "sent", "retry", "give_up", "unknown", "open_preview")
LEDGER = "LEDGER"


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """``kill_at`` counts the writes of this process from 1; 0 for none. ``trace`` is a file that
    gets a line a write."""

    environment: dict[str, str]
    log: str
    trace: str
    kill_at: int = 0
    kill_after: bool = False
    lease: float = 2.0


class NoArguments(msgspec.Struct, frozen=True):
    pass


class NoteArguments(msgspec.Struct, frozen=True):
    what: Annotated[str, msgspec.Meta(description="What to pay for.")]


async def look(arguments: NoArguments, context: ToolContext) -> ToolOutput:
    await context.sleep(0.05)
    return ToolOutput(value="all quiet")


async def charge(arguments: NoteArguments, context: ToolContext) -> ToolOutput:
    """The effect is a line in a file that the test reads: it must never stand there twice."""
    await context.sleep(0.05)
    _note(os.environ[LEDGER], f"{arguments.what} {context.call_key}")
    await context.sleep(0.05)
    return ToolOutput(value="charged")


TOOLS: dict[str, Tool] = {
    "look": FunctionTool(
        name="look",
        description="Looks.",
        arguments=NoArguments,
        act=look,
        effect="read_only",
        timeout=10,
    ),
    "charge": FunctionTool(
        name="charge",
        description="Charges.",
        arguments=NoteArguments,
        act=charge,
        effect="unsafe",
        timeout=10,
    ),
}


def _note(path: str, line: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


class KillingStore:
    """Counts what is written, and dies at the chosen place: before the write, or after it and
    before anyone hears of it."""

    def __init__(self, store: Store, birth: Birth) -> None:
        self._store = store
        self._birth = birth
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._counted(name, found) if name in WRITES else found

    def _counted(
        self, name: str, write: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **kwargs: Any) -> Any:
            if name == "claim":
                claimed = await write(*args, **kwargs)
                if claimed:
                    self._note(name, after=False)
                    self._note(name, after=True)
                return claimed
            self._note(name, after=False)
            try:
                return await write(*args, **kwargs)
            finally:
                self._note(name, after=True)

        return counted

    def _note(self, name: str, *, after: bool) -> None:
        if not after:
            self._count += 1
            _note(self._birth.trace, f"{self._count} {name}")
        if self._count == self._birth.kill_at and after == self._birth.kill_after:
            os.kill(os.getpid(), signal.SIGKILL)


def warm_up() -> None:
    """Imports only: a first call would start threads, and threads do not survive a fork."""
    os.environ["LITELLM_OFFLINE_MODE"] = "true"
    importlib.import_module("litellm")


def live(birth: Birth) -> int:
    """The exit code of one life of the service."""
    os.environ.clear()
    os.environ.update(birth.environment)
    settings = prepare({PLATFORM.name: PLATFORM}, sys.stderr)

    async def run() -> None:
        with bind(settings.port) as listener:
            port_file = Path(birth.trace).with_suffix(".port")
            port_file.write_text(str(listener.getsockname()[1]), encoding="utf-8")
            store = await open_store(settings.database)
            ground = Ground(
                settings=settings,
                environment=birth.environment,
                store=cast(Store, KillingStore(cast(Store, store), birth)),
                platforms={PLATFORM.name: PLATFORM},
                clock=SystemClock(),
                tools=TOOLS,
                lease=birth.lease,
            )
            await serve(ground, listener, asyncio.Event())
            await store.close()

    asyncio.run(run())
    return 0
