"""A conversation of months: the model is asked what it takes, and knows what it was told early."""

import random
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from core.domain import events as ev
from core.domain.messages import Attachment, EffectClass, ToolSpec
from core.domain.summary import FACTS, INSTRUCTIONS
from core.models.litellm import LiteLLMModel, Options
from core.ports import ToolContext, ToolOutput
from tests.bots import life
from tests.bots.life import KEY, House, Room, until
from tests.core.files.made import picture
from tests.standins.openai import OpenAIStandIn
from tests.standins.openai_reply import Reply, ToolCall, text_of

WINDOW = 8_000
FACT = "My daughter is called Zoë and I always want metric units."
PINNED = "The safe is behind the third book."
STATION = "駅前の図書館は水曜日が休みです。"
ENGLISH = "and then we went on to the next town, since it was late. "
PICTURE_EVERY, LOOK_EVERY, LETTER_EVERY = 40, 3, 25


class Library:
    """A tool that finds much, in a script that costs much."""

    spec = ToolSpec("look", "looks it up", {"type": "object", "properties": {}})
    effect: EffectClass = "read_only"
    timeout = 10.0
    demo_only = False

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(value=STATION * 60)


class Friend:
    """Answers at some length, looks things up, and sums up what it was told of its user."""

    def __init__(self) -> None:
        self.chance = random.Random(5)
        self.summaries = 0

    def __call__(self, request: dict[str, Any]) -> Reply:
        messages = request["messages"]
        if sums_up(request):
            self.summaries += 1
            fact = f"- {FACT}" if FACT in text_of(messages[1]["content"]) else "- nothing"
            return Reply(text=f"## Goal\n- to talk\n\n## {FACTS}\n{fact}")
        last = messages[-1]
        if last["role"] == "user" and "look it up" in text_of(last["content"]):
            return Reply(tool_calls=(ToolCall("look"),) * self.chance.choice((1, 2)))
        words = self.chance.choice((ENGLISH, STATION)) * self.chance.randint(1, 12)
        return Reply(text=f"{words}<{said(messages)}>")


async def last_shown(ai: OpenAIStandIn) -> str:
    """What the model was shown for its last answer; a summary may be under way behind it."""

    def for_answers() -> list[dict[str, Any]]:
        return [request for request in ai.requests if not sums_up(request)]

    await until(lambda: bool(for_answers()))
    return "\n".join(text_of(m.get("content") or "") for m in for_answers()[-1]["messages"])


def sums_up(request: dict[str, Any]) -> bool:
    return text_of(request["messages"][0]["content"]) == INSTRUCTIONS


def said(messages: list[dict[str, Any]]) -> str:
    """The number of the newest message."""
    spoken = [text_of(m["content"]) for m in messages if m["role"] == "user"]
    return spoken[-1].rpartition("#")[2].partition(" ")[0]


class Letterbox(Room):
    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        return picture(colour=attachment.ref)


def message(number: int) -> tuple[str, dict[str, Any]]:
    if number % PICTURE_EVERY == 0:
        photo = Attachment(kind="photo", ref=("red", "green", "blue")[number % 3])
        return f"what is this? #{number} ", {"attachments": (photo,)}
    if number % LETTER_EVERY == 0:
        return f"a letter: {STATION * 40} #{number} ", {}
    look = "look it up, " if number % LOOK_EVERY == 0 else ""
    return f"{look}{ENGLISH * (number % 5)} #{number} ", {}


@pytest.mark.parametrize(
    "turns", [250, pytest.param(5_000, marks=[pytest.mark.matrix, pytest.mark.timeout(3600)])]
)
async def test_a_long_life_stays_small_legal_and_true(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setattr(life, "PATIENCE", 120.0)
    house, friend = House(tools={"look": Library()}), Friend()
    house.room = Letterbox()
    async with OpenAIStandIn(friend, window=WINDOW) as ai:
        options = Options(
            name="openai/test", api_base=f"{ai.url}/v1", window=WINDOW, sees=True, attempts=1
        )
        model = LiteLLMModel(options, house.clock.sleep, random.Random(1))
        await model.load()
        house.model = model
        async with house.lives():
            await house.room.hears(f"{FACT} #0 ")
            await house.room.sees("<0>")
            await house.room.hears(f"/pin {PINNED}")
            await house.room.sees("inned")
            for number in range(1, turns + 1):
                text, more = message(number)
                house.room.said.clear()
                ai.requests.clear()
                ai.calls.clear()
                await house.room.hears(text, **more)
                await house.room.sees(f"<{number}>")
            shown = await last_shown(ai)
        await model.close()
        assert ai.violations == []
        assert ai.too_long == []
    assert FACT in shown
    assert PINNED in shown
    log = [recorded.event for recorded in await house.store.events(KEY)]
    assert friend.summaries >= turns // 25, "it was never full"
    assert most_a_turn(log) == 1
    assert not [event for event in log if isinstance(event, ev.TurnFailed | ev.CompactionFailed)]
    assert set(await house.outcomes()) == {"answered"}


def most_a_turn(log: list[ev.Event]) -> int:
    """How many summaries were begun between one turn's start and the next one's, at most."""
    starts = [place for place, event in enumerate(log) if isinstance(event, ev.TurnStarted)]
    return max(
        sum(isinstance(event, ev.CompactionAttempted) for event in log[start:end])
        for start, end in pairwise([*starts, len(log)])
    )
