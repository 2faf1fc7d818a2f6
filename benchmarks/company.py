"""Whom the service talks with where all of it runs: a person, a model and a tool that cost next to
nothing; it measures nothing."""

import random
from collections.abc import Mapping
from itertools import count
from typing import Any

from starlette.routing import Route

from benchmarks.talk import PERSON, PlainText, some_text
from bots.platforms import Adapter, Health, Platform, Site, Variable
from core.domain.keys import Address
from core.domain.messages import (
    EffectClass,
    Inbound,
    ModelReply,
    ModelRequest,
    RequestSize,
    SystemMessage,
    ToolCall,
    ToolSpec,
    Usage,
    UserMessage,
)
from core.domain.sections import FACTS
from core.domain.summary import INSTRUCTIONS
from core.ports import OnText, Pace, Paces, ToolContext, ToolOutput

LOOK = "look it up"
CHAT = "chat"
_AT_ONCE = Pace(0.0, 1000)
_CHARACTERS_A_TOKEN = 4
_FACT_LENGTH = 60


class Mouth:
    """``bots.platforms.Adapter`` of one person, who is always there."""

    def __init__(self, dice: random.Random) -> None:
        self.channel = PlainText()
        self.routes: tuple[Route, ...] = ()
        self.intake = ""
        self._dice = dice
        self._ids = count(1)
        self._site: Site | None = None

    @property
    def platform(self) -> Platform:
        return Platform(
            name=CHAT,
            variables=(Variable(name="NONE", help="needs nothing"),),
            build=self._build,
            paces=Paces(chat=_AT_ONCE, bot=_AT_ONCE),
        )

    async def say(self, *, look: bool) -> None:
        assert self._site is not None
        number = next(self._ids)
        inbound = Inbound(
            address=Address(platform=CHAT, account="bot", chat=PERSON),
            update_id=str(number),
            user=PERSON,
            text=f"{some_text(self._dice)} {LOOK if look else 'go on'}",
            sent_at=self._site.clock.now(),
            user_name="Ada",
            message_id=str(number),
        )
        await self._site.accept(inbound)

    def _build(self, values: Mapping[str, str], site: Site) -> Adapter | None:
        self._site = site
        return self

    async def open(self) -> None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def close(self) -> None: ...

    def health(self) -> Health:
        return Health(ok=True, detail="here")

    async def check(self) -> Health:
        return self.health()


class Friend:
    """``core.ports.Model`` that answers at once, looks up what it is asked to, and notes a new fact
    in each summary, so that summaries become as long as they may."""

    name = "friend"

    def __init__(self, dice: random.Random, window: int) -> None:
        self._dice = dice
        self._window = window
        self._calls = count(1)

    async def measure(self, request: ModelRequest) -> RequestSize:
        overhead = _tokens(request.messages[0].text)
        return RequestSize(counted=_counted(request), overhead=overhead, window=self._window)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        text, calls = some_text(self._dice), ()
        last = request.messages[-1]
        if request.messages[0] == SystemMessage(INSTRUCTIONS):
            text = f"## Goal\n- to talk\n\n## {FACTS}\n- {' '.join(text[:_FACT_LENGTH].split())}"
        elif isinstance(last, UserMessage) and last.text.endswith(LOOK):
            calls = (ToolCall(f"call_{next(self._calls)}", Library.spec.name, "{}"),)
        return ModelReply(
            text=text, calls=calls, usage=Usage(_counted(request), _tokens(text)), model=self.name
        )


class Library:
    """``core.ports.Tool``."""

    spec = ToolSpec("look_up", "looks it up", {"type": "object", "properties": {}})
    effect: EffectClass = "read_only"
    timeout = 10.0
    demo_only = False

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(value=some_text(self._dice))


def _counted(request: ModelRequest) -> int:
    return sum(_tokens(message.text) for message in request.messages)


def _tokens(text: str) -> int:
    return len(text) // _CHARACTERS_A_TOKEN + 1
