"""Telegram, Slack and Discord at once in one process, through a storm: whatever the platforms
refuse, cut and drop, each message of each person is answered, once and in order."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from tests.e2e.hosted import Service, service
from tests.harness.scripted import Script, echoed
from tests.standins.base import Call, StandIn
from tests.standins.discord import DiscordStandIn
from tests.standins.faults import (
    BAD_GATEWAY,
    SERVER_ERROR,
    Fault,
    Reset,
    StoreThenCut,
    too_many,
)
from tests.standins.openai import OpenAIStandIn
from tests.standins.slack import SlackStandIn
from tests.standins.telegram import TelegramStandIn

PEOPLE = 20
"""On each platform."""
PATIENCE = 120.0
"""Seconds that she waits for an answer: a 429 in the storm holds up a whole platform."""
FAULTS: tuple[Fault, ...] = (too_many(1), too_many(2), SERVER_ERROR, BAD_GATEWAY, Reset())
SPOILT = 0.15
"""Of all calls to a platform."""
DROP_SECONDS = (2.0, 5.0)
pytestmark = pytest.mark.timeout(400)


class Person(Protocol):
    def says(self, text: str) -> object: ...
    def bot_texts(self) -> list[str]: ...


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One platform with its people. ``drops`` cuts what brings its messages; ``faults`` are those
    by which nothing may double there."""

    name: str
    stand_in: StandIn
    environment: Mapping[str, str]
    people: Sequence[Person]
    drops: Callable[[], object]
    faults: tuple[Fault, ...]


class Polls:
    """Cuts the poll that is under way when it would be answered; its updates come again."""

    def __init__(self, place: StandIn) -> None:
        self._place = place
        self._cut = 0
        place.after = self._cuts

    def drops(self) -> None:
        polls = self._place.calls_of("getUpdates")
        self._cut = polls[-1].number if polls[-1].outcome == "open" else 0

    def _cuts(self, call: Call) -> Fault | None:
        return Reset() if call.number == self._cut else None


@asynccontextmanager
async def telegram() -> AsyncGenerator[Side]:
    """An answer that was stored and cut off may come twice here, since nobody can be asked: it is
    not in the storm."""
    async with TelegramStandIn() as place:
        yield Side(
            name="telegram",
            stand_in=place,
            environment={"TELEGRAM_BOT_TOKEN": place.token, "TELEGRAM_API_URL": place.url},
            people=[place.user(100 + n, f"P{n}") for n in range(PEOPLE)],
            drops=Polls(place).drops,
            faults=FAULTS,
        )


@asynccontextmanager
async def slack() -> AsyncGenerator[Side]:
    async with SlackStandIn() as place:
        yield Side(
            name="slack",
            stand_in=place,
            environment={
                "SLACK_BOT_TOKEN": place.bot_token,
                "SLACK_APP_TOKEN": place.app_token,
                "SLACK_API_URL": place.api_url,
            },
            people=[place.user(f"U{n}", f"P{n}") for n in range(PEOPLE)],
            drops=place.drop_sockets,
            faults=(*FAULTS, StoreThenCut()),
        )


@asynccontextmanager
async def discord() -> AsyncGenerator[Side]:
    async with DiscordStandIn() as place:
        yield Side(
            name="discord",
            stand_in=place,
            environment={
                "DISCORD_BOT_TOKEN": place.token,
                "DISCORD_API_URL": place.api_url,
                "DISCORD_GATEWAY_URL": place.gateway_url,
            },
            people=[place.user(100 + n, f"P{n}") for n in range(PEOPLE)],
            drops=place.gateway.aborts,
            faults=(*FAULTS, StoreThenCut()),
        )


class Storm:
    """``spoilt`` are calls, ``dropped`` connections, by platform."""

    def __init__(self, sides: Sequence[Side], seed: int = 1) -> None:
        self._sides = sides
        self._dice = random.Random(seed)
        self.blowing = False
        self.over = False
        self.spoilt: dict[str, int] = {side.name: 0 for side in sides}
        self.dropped: dict[str, int] = {side.name: 0 for side in sides}
        for side in sides:
            side.stand_in.before = self._spoils(side)

    async def blows(self, seconds: float) -> None:
        self.blowing = True
        try:
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                for side in self._sides:
                    group.create_task(self._drops(side))
        except TimeoutError:
            self.blowing, self.over = False, True

    async def _drops(self, side: Side) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(*DROP_SECONDS))
            result = side.drops()
            if asyncio.iscoroutine(result):
                await result
            self.dropped[side.name] += 1

    def _spoils(self, side: Side) -> Callable[[Call], Fault | None]:
        dice = random.Random(side.name)

        def spoil(call: Call) -> Fault | None:
            if not self.blowing or dice.random() >= SPOILT:
                return None
            self.spoilt[side.name] += 1
            return dice.choice(side.faults)

        return spoil


class Talk:
    """What one person said, and how long she waited for each answer, in seconds."""

    def __init__(self, side: Side, number: int) -> None:
        self.platform = side.name
        self._person = side.people[number]
        self._prefix = f"{side.name}{number}n"
        self._dice = random.Random(self._prefix)
        self.said: list[str] = []
        self.waits: list[float] = []

    async def goes_on(self, storm: Storm) -> None:
        """Each after the answer to the last."""
        while not storm.over:
            await asyncio.sleep(self._dice.uniform(0.5, 3.0))
            self.said.append(f"{self._prefix}{len(self.said)}")
            began = time.monotonic()
            self._person.says(self.said[-1])
            while self.said[-1] not in self.answered:
                assert time.monotonic() - began < PATIENCE, self
                await asyncio.sleep(0.1)
            self.waits.append(time.monotonic() - began)

    @property
    def answered(self) -> list[str]:
        return [one for text in self._person.bot_texts() for one in echoed(text)]

    @property
    def is_right(self) -> bool:
        """Nothing but one answer each."""
        return self.answered == self.said and len(self._person.bot_texts()) == len(self.said)

    def __repr__(self) -> str:
        return f"{self._prefix} said {self.said}, saw {self._person.bot_texts()}"


@pytest.fixture
async def sides() -> AsyncGenerator[list[Side]]:
    async with AsyncExitStack() as stack:
        opened = (telegram(), slack(), discord())
        yield [await stack.enter_async_context(one) for one in opened]


@pytest.mark.parametrize("seconds", [12, pytest.param(60, marks=pytest.mark.matrix)])
async def test_all_are_answered_and_none_twice(
    seconds: float, sides: list[Side], tmp_path: Path
) -> None:
    async with OpenAIStandIn(Script()) as model:
        variables = {
            "MODEL": "openai/test",
            "OPENAI_API_KEY": "sk-stand-in-key",
            "OPENAI_API_BASE": f"{model.url}/v1",
            "ALLOWED_USERS": "*",
        }
        for side in sides:
            variables |= side.environment
        async with service(tmp_path, **variables) as only:
            await only.is_up()
            storm = Storm(sides)
            talks = [Talk(side, number) for side in sides for number in range(PEOPLE)]
            async with asyncio.TaskGroup() as group:
                for talk in talks:
                    group.create_task(talk.goes_on(storm))
                await until_someone_is_answered(talks)
                await storm.blows(seconds)
            await only.is_up()
            ledger = await settled(only)
            assert await only.ends(signal.SIGTERM) == 0
    wrong = [talk for talk in talks if not talk.is_right]
    assert not wrong, wrong
    for side in sides:
        assert storm.spoilt[side.name] > seconds / 2, storm.spoilt
        assert storm.dropped[side.name] > seconds / 8, storm.dropped
        said = sum(len(talk.said) for talk in talks if talk.platform == side.name)
        assert ledger[side.name]["answered"] == ledger[side.name]["accepted"] == said
    assert "Traceback" not in only.log


async def until_someone_is_answered(talks: Sequence[Talk]) -> None:
    """The first answer of a process takes seconds more than all others."""
    while not any(talk.waits for talk in talks):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def settled(only: Service) -> dict[str, Any]:
    """The ledger, once nothing is pending in it."""
    while True:
        _, detail = await only.ready()
        ledger = detail["ledger"]
        if not any(one["pending"] for one in ledger.values()):
            return ledger
        await asyncio.sleep(0.2)
