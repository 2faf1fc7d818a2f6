"""Runs errands while something goes wrong and tells what came of each; the service itself lives on
as the same process."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from storage.migrate import migrate
from tests.harness.checks import Screen, books, effects_of
from tests.harness.faults import (
    AFTER,
    ERRANDS,
    FAILED,
    POLL,
    POLLS,
    Errand,
    FaultCell,
    FaultResult,
    Outcome,
    cells_of,
)
from tests.harness.lab import Lab, Place, Zygote
from tests.harness.matrix import AT_A_TIME, CELL_SECONDS, LEASE, LOG_TAIL
from tests.harness.stage import Stage
from tests.standins.base import Call, StandIn
from tests.standins.faults import Fault, Refuse
from tests.standins.openai_reply import Reply

PATIENCE = 70.0
"""A poll that hangs is given up after 40 seconds: its answer may be long in coming."""
LOOK_SECONDS = 0.1
NOTICE_SECONDS = 10.0
READY = 200
SILENT = "has been silent"
MOST_LINES = 250
MOST_TRACEBACKS = 2
"""In the log of a run: what goes wrong for long is said now and then."""

Watched = list[tuple[int, str]]
"""Each answer of /readyz: its status, 0 for none, and its text."""


class Trouble:
    """Makes one call of a lab go wrong, as its cell wants it."""

    def __init__(self, lab: Lab, cell: FaultCell) -> None:
        self._over = asyncio.Event()
        self._lab = lab
        self._cell = cell
        self._loop = asyncio.get_running_loop()
        self.struck = False
        self._since = 0.0
        self._stream: Mapping[str, int] = cell.way.stream
        self._respond = lab.model.respond
        self._tasks: set[asyncio.Task[None]] = set()
        lab.spoil = self._spoil
        lab.model.respond = self._reply
        if cell.call == POLL and cell.way.fault is not None:
            lab.telegram.faults.at(POLL, cell.number, cell.way.fault)

    @property
    def _stand_in(self) -> StandIn:
        return self._lab.model if self._cell.at_model else self._lab.telegram

    async def begun(self) -> None:
        """A poll is counted by the stand-in itself, and may be under way for long."""
        if self._cell.call == POLL and not self.struck:
            await self._lab.telegram.wait_for(
                lambda: len(self._lab.telegram.calls_of(POLL)) > self._cell.number, PATIENCE
            )
            self._strike(self._lab.telegram.calls[-1].at)

    async def over(self) -> None:
        """A call that a run does not make, one edit less say, is not waited for."""
        if self.struck:
            await self._over.wait()

    def _spoil(self, call: Call) -> Fault | None:
        cell = self._cell
        if cell.call == POLL:
            return None
        if len(self._lab.calls[1]) == cell.number and not self.struck:
            self._strike(call.at)
            return cell.way.fault
        lasting = call.at < self._since + cell.way.lasting
        same = (call.method == cell.call) or not cell.at_model
        return cell.way.fault if self.struck and lasting and same else None

    def _strike(self, since: float) -> None:
        self.struck = True
        self._since = since
        self._loop.call_soon_threadsafe(self._follow)

    def _follow(self) -> None:
        task = self._loop.create_task(self._pass())
        self._tasks.add(task)

    async def _pass(self) -> None:
        way = self._cell.way
        if way.outage:
            await asyncio.to_thread(self._stand_in.stop)
            await asyncio.sleep(way.outage)
            await self._noticed()
            self._stand_in.start()
        await asyncio.sleep(way.lasting)
        self._over.set()

    async def _noticed(self) -> None:
        """A slow machine must not hide it that Telegram is away."""
        if not self._cell.at_model:
            await is_unready(self._lab, NOTICE_SECONDS)

    def _reply(self, request: dict[str, Any]) -> Reply | Refuse:
        reply = self._respond(request)
        if self.struck and self._stream and isinstance(reply, Reply):
            reply, self._stream = msgspec.structs.replace(reply, **self._stream), {}
        return reply


@asynccontextmanager
async def watching(lab: Lab) -> AsyncGenerator[Watched]:
    """What /readyz says meanwhile, again and again."""
    seen = Watched()

    async def look() -> None:
        while True:
            seen.append(await lab.readiness())
            await asyncio.sleep(LOOK_SECONDS)

    task = asyncio.create_task(look())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def is_ready(lab: Lab, patience: float = PATIENCE) -> None:
    async with asyncio.timeout(patience):
        while not _is_well(lab, await lab.readiness()):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


async def is_unready(lab: Lab, patience: float) -> None:
    """Or is not within that time, which what was seen tells."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while (await lab.readiness())[0] in (0, READY):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)


def _is_well(lab: Lab, answer: tuple[int, str]) -> bool:
    """On a clock that runs faster, a poll that waits for news looks like silence."""
    code, text = answer
    return code == READY or (lab.rate > 1 and SILENT in text)


def failed(stage: Stage) -> bool:
    return any(text.startswith(FAILED) for text in stage.town.bot_texts())


async def sees(stage: Stage, wanted: Callable[[], bool]) -> None:
    await stage.lab.telegram.wait_for(wanted, PATIENCE)


async def talk(stage: Stage, errand: Errand, over: Callable[[], Awaitable[object]]) -> bool:
    """True when she was told of a failure. What she says next is answered in any case."""
    stage.says(errand.text)
    await sees(stage, lambda: errand.done(stage) or failed(stage))
    await over()
    told = failed(stage) and not errand.done(stage)
    if told:
        stage.says("/retry")
        await sees(stage, lambda: errand.done(stage))
    stage.says(AFTER)
    await sees(stage, lambda: stage.answers(AFTER))
    await is_ready(stage.lab)
    await stage.lab.settled(PATIENCE)
    return told


async def complaints(
    stage: Stage, errand: Errand, allowed: int, *, told: bool = False
) -> tuple[list[str], int]:
    """And how many messages there are too many. Who was told of a failure and said /retry has asked
    anew: the effect may be there once more, and the answer to /retry says so."""
    lab, texts = stage.lab, stage.town.bot_texts()
    screen = Screen(texts, errand.wishes, restarts=lab.restarts)
    found = [*screen.missing, *screen.strange]
    if screen.extra > allowed:
        short = [text[:60] for text in texts]
        found.append(f"{screen.extra} messages too many, {allowed} allowed: {short}")
    wishes = msgspec.structs.replace(errand.wishes, charges=errand.wishes.charges + told)
    found += effects_of(stage, wishes, texts)
    if lab.model.violations:
        found.append(f"illegal requests: {lab.model.violations}")
    found += await books(stage)
    if lab.codes != [0]:
        found.append(f"it ended with {lab.codes}")
    return found + _noise(lab.log()), screen.extra


def _noise(log: str) -> list[str]:
    lines, traces = log.count("\n"), log.count("Traceback (most recent call last)")
    found = [f"{lines} lines of log"] if lines > MOST_LINES else []
    return found + ([f"{traces} tracebacks in the log"] if traces > MOST_TRACEBACKS else [])


class FaultRunner:
    """Of one errand, over the calls that it makes. ``base`` is a SQLite file that has its tables,
    to be copied."""

    def __init__(self, zygote: Zygote, folder: Path, base: Path, errand: Errand) -> None:
        self._zygote = zygote
        self._folder = folder
        self._base = base
        self._errand = errand
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._number = 0

    async def cells(self) -> list[FaultCell]:
        """Of the calls up to the answer, in a run without a fault."""
        calls: list[str] = []
        async with await self._lab(1.0) as lab:
            stage = Stage(lab)
            await is_ready(lab)

            async def note() -> None:
                await lab.settled(PATIENCE)
                calls.extend(lab.calls[1])

            await talk(stage, self._errand, note)
            await lab.down()
            found, _ = await complaints(stage, self._errand, 0)
        assert not found, (found, lab.log()[-LOG_TAIL:])
        return cells_of(calls, 0 if self._errand.webhook else POLLS)

    async def run(self, cells: Sequence[FaultCell]) -> list[FaultResult]:
        async def one(cell: FaultCell) -> FaultResult:
            async with self._places:
                return await self._run(cell)

        return await asyncio.gather(*map(one, cells))

    async def _lab(self, rate: float) -> Lab:
        self._number += 1
        folder = self._folder / f"{self._errand.name}{self._number}"
        await asyncio.to_thread(folder.mkdir, parents=True)
        copy = await asyncio.to_thread(shutil.copy, self._base, folder / "stillhere.db")
        place = Place(
            folder=folder,
            database=f"sqlite:///{copy}",
            environment=dict(self._errand.environment),
            lease=LEASE * rate,
            rate=rate,
            webhook=self._errand.webhook,
        )
        return Lab(self._zygote, place)

    async def _run(self, cell: FaultCell) -> FaultResult:
        lab = await self._lab(cell.way.rate)
        trouble = Trouble(lab, cell)
        began = asyncio.get_running_loop().time()
        found, seen, told, extra = list[str](), Watched(), False, 0
        async with lab:
            stage = Stage(lab)
            try:
                async with asyncio.timeout(CELL_SECONDS), watching(lab) as seen:
                    task = asyncio.create_task(trouble.begun())
                    await is_ready(lab)
                    told = await talk(stage, self._errand, trouble.over)
                    await task
                    await trouble.over()
                    await is_ready(lab)
                await lab.down()
            except (AssertionError, TimeoutError) as error:
                found.append(f"not finished: {error!r}"[:1500])
            more, extra = await complaints(stage, self._errand, cell.may_double, told=told)
            found += [*more, *_of_readiness(cell, seen, struck=trouble.struck)]
            log = lab.log()
        if not found:
            await asyncio.to_thread(shutil.rmtree, lab.folder, ignore_errors=True)
        return FaultResult(
            scenario=self._errand.name,
            call=f"{cell.number} {cell.call}",
            fault=cell.way.name,
            outcome=outcome_of(found, told, extra) if trouble.struck or found else "not reached",
            faults=[*found, log[-LOG_TAIL:]] if found else [],
            said=unready(seen),
            seconds=asyncio.get_running_loop().time() - began,
        )


def unready(seen: Watched) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for code, text in seen if code not in (0, READY)))


def _of_readiness(cell: FaultCell, seen: Watched, *, struck: bool) -> list[str]:
    """Once it was ready, a model that is away leaves it so; Telegram that is away does not."""
    first = next((n for n, (code, _) in enumerate(seen) if code == READY), len(seen))
    later = [
        text for text in unready(seen[first:]) if SILENT not in text and "no answer" not in text
    ]
    if cell.at_model and later:
        return [f"the model was away, and it was unready: {later}"]
    outage = cell.way.outage and not cell.at_model and struck
    if outage and not any("out of reach" in text for text in unready(seen)):
        return [f"Telegram was away, and nobody said so: {unready(seen)}"]
    return []


def outcome_of(found: list[str], told: bool, extra: int) -> Outcome:
    if found:
        return "red"
    if extra:
        return "doubled"
    return "said to have failed" if told else "answered"


async def run_faults(zygote: Zygote, folder: Path) -> list[FaultResult]:
    """Every fault of every outside call, of all errands."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    base = folder / "base.db"
    await migrate(f"sqlite:///{base}")
    results: list[FaultResult] = []
    for errand in ERRANDS:
        runner = FaultRunner(zygote, folder, base, errand)
        results += await runner.run(await runner.cells())
    return results
