"""How many turns a second one process answers, and how many two of them together, with a model that
takes a second; and what they cost while nobody talks."""

import asyncio
import re
import time
from collections import Counter
from pathlib import Path

import msgspec

from benchmarks.rest import REST, Rest, at_rest
from benchmarks.services import DURABLE, Burden, Town, it_holds, town
from tests.postgres import running_postgres
from tests.standins.base import Call
from tests.standins.openai import COMPLETIONS
from tests.standins.telegram_user import User

THINKS = 1.0
"""Seconds that the model takes."""
PEOPLE_A_PLACE = 4
"""For each turn that one process may work on: two have always enough to do, and nobody is answered
more often than every two seconds."""
WARM = 3.0
"""Seconds of load, from when each process is seen at work, before it counts."""
PARTS_OF_A_SECOND = 4
NAMES = ("first", "second")
MARKED = re.compile(r"m(\d+)-\d+")
RACED = "turn taken up by another"


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """``turns`` are answered a second; ``calls`` are those of the busiest process to Telegram's
    methods, polls excepted, and ``raced`` the turns that another process was faster to take, a
    second. ``shares``: of the model's calls, a process each. ``burden`` is in cores."""

    turns: float
    calls: float
    raced: float
    shares: tuple[float, ...]
    burden: Burden


class Rates(msgspec.Struct, frozen=True):
    one: Rate
    two: Rate


class Replicas(msgspec.Struct, frozen=True, kw_only=True):
    """``rates`` by MAX_TURNS; ``rest`` of one process, and of two."""

    rates: dict[int, Rates]
    rest: tuple[Rest, Rest]


class Crowd:
    """People who each write the next message when the last one is answered."""

    def __init__(self, place: Town) -> None:
        self.answers = 0
        self._place = place
        self._people: dict[int, User] = {}
        self._written = Counter[int]()
        self._open: set[int] = set()
        self._talks = False
        self._since: Counter[tuple[str, str]] = Counter()
        place.telegram.after = self._hear
        place.model.before = self._think

    @property
    def waits(self) -> bool:
        return bool(self._open)

    def begin(self, first: int, count: int) -> None:
        """With ``count`` new people."""
        self._people = {
            number: self._place.telegram.user(number) for number in range(first, first + count)
        }
        self._talks = True
        for number in self._people:
            self._write(number)

    def end(self) -> None:
        """What is written is answered yet."""
        self._talks = False

    def calls(self) -> Counter[tuple[str, str]]:
        """By service and kind, so far."""
        with self._place.telegram.changes.lock:
            return self._since.copy()

    def _write(self, number: int) -> None:
        self._written[number] += 1
        self._open.add(number)
        self._people[number].says(f"m{number}-{self._written[number]}")

    def _hear(self, call: Call) -> None:
        """In the stand-in's thread."""
        if call.method == "getUpdates":
            return
        with self._place.telegram.changes.lock:
            self._since[call.who, "telegram"] += 1
        found = MARKED.search(str(call.params.get("text", "")))
        if call.method != "sendMessage" or found is None:
            return
        number = int(found[1])
        if number in self._open:
            self._open.discard(number)
            self.answers += 1
            if self._talks:
                self._write(number)

    async def _think(self, call: Call) -> None:
        """In the other stand-in's thread."""
        if call.method == COMPLETIONS:
            with self._place.telegram.changes.lock:
                self._since[call.params["key"], "model"] += 1
            await asyncio.sleep(THINKS)


async def measure(folder: Path, sizes: tuple[int, ...], seconds: float, rest: float) -> Replicas:
    """``seconds`` of each number of processes under load, ``rest`` of each with nothing to do."""
    rates: dict[int, Rates] = {}
    rests: list[Rest] = []
    with running_postgres(*DURABLE, *REST) as server:
        for most in sizes:
            async with town(folder, server) as place:
                crowd, found = Crowd(place), list[Rate]()
                for number, name in enumerate(NAMES):
                    await place.start(name, MAX_TURNS=str(most))
                    found.append(await _loaded(place, crowd, 1000 * (number + 1), most, seconds))
                    if most == sizes[0]:
                        rests.append(await at_rest(place, server, rest))
                rates[most] = Rates(*found)
    return Replicas(rates=rates, rest=(rests[0], rests[1]))


async def _loaded(place: Town, crowd: Crowd, first: int, most: int, seconds: float) -> Rate:
    names = [service.name for service in place.services]
    before = crowd.calls()
    crowd.begin(first, PEOPLE_A_PLACE * most)
    await it_holds(
        lambda: all((crowd.calls() - before)[name, "model"] > most / 2 for name in names),
        "each process answers",
    )
    await asyncio.sleep(min(WARM, seconds))
    began, answers, calls = time.monotonic(), crowd.answers, crowd.calls()
    burden, raced = place.burden(), _raced(place, names)
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    turns, done = (crowd.answers - answers) / took, crowd.calls() - calls
    used, races = place.burden().since(burden, took), _raced(place, names) - raced
    crowd.end()
    await it_holds(lambda: not crowd.waits, "everybody is answered")
    asked = [done[name, "model"] for name in names]
    return Rate(
        turns=turns,
        calls=max(done[name, "telegram"] for name in names) / took,
        raced=races / took,
        shares=tuple(count / max(1, sum(asked)) for count in asked),
        burden=used,
    )


def _raced(place: Town, names: list[str]) -> int:
    return sum(place.log_of(name).count(RACED) for name in names)
