"""The doctor names the processes that serve, and one that has lost who starts it again."""

import os
import socket
from contextlib import AbstractAsyncContextManager

import msgspec

from bots.cli.processes import process_findings
from bots.roster import FACT, Line, listed, new_line
from bots.supervisor import Starter
from core.errors import StorageError
from storage.memory import MemoryStore
from tests.core.runtime.virtual import VirtualClock, in_virtual_time

SYSTEMD = Starter(name="systemd (stillhere.service)", supervised=True)
SHELL = Starter(name="a shell in a terminal", supervised=False)
ELSEWHERE = "another-machine"
HOUR = 3600.0


class Place:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore()

    def line(self, by: Starter, pid: int, role: str = "all", host: str = ELSEWHERE) -> Line:
        line = new_line(by, pid, role, "0006", self.clock.now())
        return msgspec.structs.replace(line, host=host)

    def serving(
        self, by: Starter, pid: int = 11, role: str = "all", host: str = ELSEWHERE
    ) -> AbstractAsyncContextManager[None]:
        return listed(self.store, self.clock, self.line(by, pid, role, host))

    async def killed(self, by: Starter, pid: int = 11, host: str = ELSEWHERE) -> None:
        """It served for an hour, and what it would write at its end is not written."""
        async with self.serving(by, pid, host=host):
            await self.clock.sleep(HOUR)
            there = await self.store.facts(FACT)
        for name, value in there.items():
            await self.store.set_fact(name, value)

    async def says(self) -> list[tuple[bool, str]]:
        found = await process_findings(self.store, self.clock.now())
        assert {one.thing for one in found} == {"process"}
        return [(one.well, one.text) for one in found]


@in_virtual_time
async def test_each_process_has_its_line() -> None:
    place = Place()
    async with place.serving(SYSTEMD, 11, "intake"), place.serving(SYSTEMD, 12, "worker"):
        await place.clock.sleep(HOUR)
        intake, worker = await place.says()
    assert intake[0]
    assert worker[0]
    assert intake[1].startswith("intake, pid 11 on another-machine, version ")
    assert intake[1].endswith(
        "data 0006, serves since 2026-05-05 14:30 UTC, started by systemd (stillhere.service)"
    )
    assert worker[1].startswith("worker, pid 12 on another-machine")


@in_virtual_time
async def test_one_without_a_supervisor_is_told_what_would_start_it_again() -> None:
    place = Place()
    async with place.serving(SHELL):
        [(well, text)] = await place.says()
    assert well
    assert "started by a shell in a terminal: nothing starts it again; systemd, " in text


@in_virtual_time
async def test_one_that_lost_its_supervisor_is_seen() -> None:
    place = Place()
    async with place.serving(SYSTEMD, 11):
        await place.clock.sleep(HOUR)
    async with place.serving(SHELL, 12):
        await place.clock.sleep(HOUR)
        [(well, text)] = await place.says()
        assert not well
        assert "pid 12" in text
        assert "started by a shell in a terminal; before, on 2026-05-05" in text
        assert "by systemd (stillhere.service), which does not watch over this one" in text
    async with place.serving(SYSTEMD, 13):
        [(well, text)] = await place.says()
        assert (well, "pid 13" in text) == (True, True)


@in_virtual_time
async def test_one_that_was_stopped_has_nothing_wrong() -> None:
    place = Place()
    assert await place.says() == [(True, "none has been started by `stillhere run` lately")]
    async with place.serving(SYSTEMD):
        await place.clock.sleep(HOUR)
    [(well, text)] = await place.says()
    assert well
    assert text.endswith("started by systemd (stillhere.service), stopped 2026-05-05 15:30 UTC")


@in_virtual_time
async def test_one_that_was_killed_and_not_started_again_is_seen() -> None:
    place = Place()
    await place.killed(SYSTEMD)
    [(well, text)] = await place.says()
    assert (well, "serves since" in text) == (True, True), "it may be there still"
    await place.clock.sleep(200)
    [(well, text)] = await place.says()
    assert not well
    assert "not seen since 2026-05-05 15:29 UTC; it was not stopped: look why systemd" in text


@in_virtual_time
async def test_on_the_same_machine_that_is_seen_at_once() -> None:
    place = Place()
    gone = _pid_of_nobody()
    await place.killed(SHELL, gone, socket.gethostname())
    [(well, text)] = await place.says()
    assert not well
    assert text.endswith("it was not stopped: start it again")


def _pid_of_nobody() -> int:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    return pid


@in_virtual_time
async def test_lines_of_those_long_gone_are_forgotten() -> None:
    place = Place()
    for pid in range(3):
        async with place.serving(SYSTEMD, pid):
            await place.clock.sleep(HOUR)
    await place.clock.sleep(49 * HOUR)
    async with place.serving(SYSTEMD, 9):
        assert len(await place.store.facts(FACT)) == 1


@in_virtual_time
async def test_a_database_that_does_not_answer_does_not_stop_it() -> None:
    place = Place()

    class Silent(MemoryStore):
        async def set_fact(self, name: str, value: str) -> None:
            raise StorageError("no answer")

    async with listed(Silent(), place.clock, place.line(SYSTEMD, 1)):
        await place.clock.sleep(HOUR)


@in_virtual_time
async def test_a_line_that_another_version_wrote_otherwise_is_passed_over() -> None:
    place = Place()
    await place.store.set_fact(f"{FACT}x", '{"pid": "eleven"}')
    async with place.serving(SYSTEMD):
        assert len(await place.says()) == 1
