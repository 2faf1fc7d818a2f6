"""The service as it is, on a store that kills the process at a chosen write; it fakes nothing."""

import asyncio
import faulthandler
import gc
import importlib
import os
import random
import signal
import ssl
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
from httpx._transports import default as httpx_transport
from msgspec.structs import replace

from bots.cli.common import open_store, prepare
from bots.ground import Ground
from bots.process import run_on
from bots.web import bind
from core.models.litellm import LiteLLMModel, Options
from core.models.litellm_load import load
from core.ports import Claimed, Store
from storage.store import SqlStore
from tests.harness.kills import Kill, Write
from tests.harness.tools import TOOLS, note
from tests.harness.towns import platform_of

WRITES = (
    *("commit", "set_aside", "clear"),
    *("claim", "sent", "retry", "give_up", "unknown", "open_preview"),
)
"""The renewal of leases and the facts of the service (its claim code, signs of life) are left out:
nothing that a user sees hangs on them."""
LITELLM_POOL = "litellm.litellm_core_utils.thread_pool_executor"
HALT = ".halt"


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """``trace`` is a file that gets a line a write. At its ``kill`` the process gets the signal
    ``by``. Before the ``halt``-th write (0: never) it
    stands still until the file beside it, ``HALT``, is taken away. ``lease`` and
    ``silence`` (of the model) are in seconds of the service's clock, which runs ``rate`` times as
    fast as ours since ``epoch``."""

    environment: dict[str, str]
    log: str
    trace: str
    platform: str = "telegram"
    kill: Kill | None = None
    by: int = signal.SIGKILL
    halt: int = 0
    lease: float = 2.0
    silence: float = 3.0
    rate: float = 1.0
    renew_every: float | None = None
    epoch: datetime = datetime(2026, 1, 1, tzinfo=UTC)


class RatedClock:
    """``core.ports.Clock``: real time, or a faster one that is the same in each life."""

    def __init__(self, rate: float, epoch: datetime) -> None:
        self._rate = rate
        self._epoch = epoch

    def now(self) -> datetime:
        since = (datetime.now(UTC) - self._epoch).total_seconds()
        return self._epoch + timedelta(seconds=since * self._rate)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._rate)


class KillingStore:
    """Counts what is written, and dies, or stands still, at the chosen place: before the write, or
    after it and before anyone hears of it."""

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
                return self._claimed(await write(*args, **kwargs))
            passing = Write(name, _row_of(name, args))
            number = self._passes(passing)
            try:
                result = await write(*args, **kwargs)
            finally:
                self._dies_if(number, after=True)
            if name != "open_preview" or result[0] != "opened":
                self._note(replace(passing, done=True))
            return result

        return counted

    def _claimed(self, rows: tuple[Claimed, ...]) -> tuple[Claimed, ...]:
        """Looking at an empty outbox is no write. An edit that is made twice is made once."""
        for row in rows:
            number = self._passes(Write("claim", "" if row.preview_id else row.message.id))
            self._dies_if(number, after=True)
        return rows

    def _passes(self, write: Write) -> int:
        self._count += 1
        number = self._count
        if number == self._birth.halt:
            _stand_still(Path(self._birth.trace).with_suffix(HALT))
        self._note(write)
        self._dies_if(number, after=False)
        return number

    def _note(self, write: Write) -> None:
        with suppress(OSError):
            stamped = replace(write, at=time.time())
            note(self._birth.trace, msgspec.json.encode(stamped).decode())

    def _dies_if(self, number: int, *, after: bool) -> None:
        kill = self._birth.kill
        if kill is not None and (number, after) == (kill.number, kill.after):
            os.kill(os.getpid(), self._birth.by)


def _stand_still(flag: Path) -> None:
    flag.touch()
    while flag.exists():
        time.sleep(0.002)


def _row_of(name: str, args: tuple[Any, ...]) -> str:
    match name:
        case "commit" | "set_aside" | "clear":
            return ""
        case "open_preview":
            return args[0].id
        case _:
            return args[0].message.id


def warm_up() -> None:
    """What each life would take most of its time for: litellm and its first call, and reading the
    certificates, which nothing on 127.0.0.1 asks for."""
    load()
    context = httpx.create_ssl_context()

    def made_before(**_: Any) -> ssl.SSLContext:
        return context

    httpx_transport.create_ssl_context = made_before  # pyright: ignore[reportPrivateImportUsage]
    gc.collect()
    gc.freeze()


def _forget_threads() -> None:
    """The threads that litellm had before the fork are gone, and its pool does not know it."""
    pool: Any = importlib.import_module(LITELLM_POOL).executor
    pool._threads = set()
    pool._idle_semaphore = threading.Semaphore(0)


def live(birth: Birth) -> int:
    """The exit code of one life of the service."""
    _forget_threads()
    faulthandler.register(signal.SIGUSR1)
    os.environ.clear()
    os.environ.update(birth.environment)
    platform = platform_of(birth.platform)
    settings = prepare({platform.name: platform}, sys.stderr)
    clock = RatedClock(birth.rate, birth.epoch)

    def ground_of(store: SqlStore) -> Ground:
        options = Options(
            name=settings.model,
            window=settings.context_window,
            silence=birth.silence,
            total=60.0,
            sees=settings.sees,
        )
        return Ground(
            settings=settings,
            environment=birth.environment,
            store=cast(Store, KillingStore(cast(Store, store), birth)),
            platforms={platform.name: platform},
            clock=clock,
            model=LiteLLMModel(options, clock.sleep, random.Random()),
            tools=TOOLS,
            lease=birth.lease,
            renew_every=birth.renew_every,
        )

    async def run() -> None:
        with bind(settings.port) as listener:
            port = str(listener.getsockname()[1])
            Path(birth.trace).with_suffix(".port").write_text(port, encoding="utf-8")
            await run_on(lambda: open_store(settings), ground_of, listener)

    asyncio.run(run())
    return 0
