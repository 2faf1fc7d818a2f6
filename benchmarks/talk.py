"""A conversation as a service has it, without platforms and models; it measures nothing."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from msgspec.structs import replace

from core.domain import inputs as ask
from core.domain.decide import decide
from core.domain.events import Event
from core.domain.keys import Address, session_key
from core.domain.messages import (
    Attachment,
    Inbound,
    ModelReply,
    OutboxMessage,
    Part,
    ToolCall,
    Usage,
)
from core.domain.outputs import inbox_id
from core.domain.policy import Policy
from core.domain.state import SessionState
from core.ports import Channel, Commit, SessionStore, Stored
from core.runtime.commits import Extras
from core.runtime.holder import Holder
from core.runtime.sessions import Sessions
from storage.memory import MemoryStore

Kind = Literal["message", "call", "tool started", "tool finished", "answer"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The durable steps of a turn with one tool call, in their order."""
MESSAGES_A_TURN = 4
STEPS_A_TURN = len(KINDS)
EVENTS_A_TURN = 8
TEXT_LENGTH = (400, 1000)
PERSON = "ada"

_BEGIN = datetime(2026, 5, 5, 12, tzinfo=UTC)
_PAUSE = timedelta(seconds=1)
_PROSE = (
    "the and of to in that it is was for on are as with they at be this from have or by one had"
    " not but what all were when we there can an your which their said if will each about how up"
    " out them then many some so these would other into has more two like him time look write go"
    " see number way could people my than first water been call who now find long down day get"
    " come made may part naïve café über 東京 привет don't «quoted» `code` **bold**\n"
)
_BOOK = " ".join(random.Random(1).choices(_PROSE.split(" "), k=50_000))
"""Texts are cut out of it, so that making them costs next to nothing."""


class Ticks:
    """``core.ports.Clock``: a second passes whenever someone looks."""

    def __init__(self, begin: datetime = _BEGIN) -> None:
        self._now = begin

    def now(self) -> datetime:
        self._now += _PAUSE
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class PlainText:
    """``core.ports.Channel`` that shows a text as it is: rendering is not measured here."""

    def render(self, text: str) -> tuple[Part, ...]:
        return (Part(text=text, plain=text),)

    def preview(self, text: str) -> Part | None:
        return Part(text=text, plain=text)

    async def send(self, message: OutboxMessage) -> str:
        return message.id

    async def edit(self, address: Address, platform_id: str, part: Part) -> None: ...

    async def typing(self, address: Address) -> None: ...

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        return None

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        return b""


class Tape(MemoryStore):
    """Keeps the commits themselves, to be stored elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Commit] = []

    async def load(self, key: str) -> Stored:
        return Stored(None, ())

    async def commit(self, commit: Commit) -> int:
        self.commits.append(replace(commit, stream=None))
        return 0


def some_text(dice: random.Random) -> str:
    length = dice.randint(*TEXT_LENGTH)
    begin = dice.randrange(len(_BOOK) - length)
    return _BOOK[begin : begin + length]


def sessions_on(store: SessionStore, clock: Ticks) -> Sessions:
    channels: Mapping[str, Channel] = {"chat": PlainText()}
    return Sessions(store, channels, Policy(), clock, Holder("benchmark"))


class Talk:
    """One person's DM; ``turn`` is how many turns it has behind it."""

    def __init__(self, sessions: Sessions, clock: Ticks, person: str, turn: int = 0) -> None:
        self.payload = 0
        """Bytes of the texts of people, model and tools so far."""
        self._sessions = sessions
        self._clock = clock
        self._person = person
        self._turn = turn
        self._dice = random.Random(f"{person} {turn}")
        self._address = Address(platform="chat", account="bot", chat=person)
        self.key = str(session_key(self._address, person))

    async def step(self, kind: Kind) -> None:
        match kind:
            case "message":
                self._turn += 1
                await self._receive(self._text())
            case "call":
                arguments = f'{{"city": "{self._dice.randbytes(8).hex()}"}}'
                call = ToolCall(f"call_{self._turn}", "look_up", arguments)
                await self._reply(
                    1, ModelReply(text=self._text(), calls=(call,), usage=self._usage)
                )
            case "tool started":
                call_id = f"call_{self._turn}"
                await self._ask(
                    ask.StartTool(at=self._clock.now(), turn=self._turn, step=1, call_id=call_id)
                )
            case "tool finished":
                await self._finish(self._text())
            case "answer":
                await self._reply(2, ModelReply(text=self._text(), usage=self._usage))

    async def turns(self, count: int) -> None:
        for _ in range(count):
            for kind in KINDS:
                await self.step(kind)

    @property
    def _usage(self) -> Usage:
        return Usage(self._dice.randrange(1_000, 20_000), self._dice.randrange(50, 500), 0.0123)

    def _text(self) -> str:
        text = some_text(self._dice)
        self.payload += len(text.encode())
        return text

    async def _receive(self, text: str) -> None:
        inbound = Inbound(
            address=self._address,
            update_id=f"{self._person}.{self._turn}",
            user=self._person,
            text=text,
            sent_at=self._clock.now(),
            user_name="Ada",
            message_id=str(self._turn * 2),
        )

        def decision(state: SessionState, at: datetime) -> tuple[Event, ...]:
            return decide(state, ask.Receive(at=at, inbound=inbound), self._sessions.policy)

        await self._sessions.change(self.key, decision, Extras(inbox=inbox_id(inbound)))

    async def _reply(self, step: int, reply: ModelReply) -> None:
        effects = ("read_only",) * len(reply.calls)
        at = self._clock.now()
        await self._ask(ask.Reply(at=at, turn=self._turn, step=step, reply=reply, effects=effects))

    async def _finish(self, text: str) -> None:
        await self._ask(
            ask.FinishTool(
                at=self._clock.now(),
                turn=self._turn,
                step=1,
                call_id=f"call_{self._turn}",
                outcome="ok",
                text=text,
            )
        )

    async def _ask(self, wish: ask.Input) -> None:
        done = await self._sessions.ask(self.key, wish)
        assert done, f"{type(wish).__name__} was stale"


async def taped(turns: int, person: str = PERSON) -> tuple[list[Commit], int]:
    """The commits of a conversation, and the bytes of what was said in it."""
    tape, clock = Tape(), Ticks()
    talk = Talk(sessions_on(tape, clock), clock, person)
    await talk.turns(turns)
    return tape.commits, talk.payload
