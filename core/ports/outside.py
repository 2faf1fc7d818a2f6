"""The rest of the world: clock, models, tools; promises only."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec

from core.domain.events import Event
from core.domain.keys import Address
from core.domain.messages import (
    Attachment,
    EffectClass,
    ModelFailure,
    ModelReply,
    ModelRequest,
    RequestSize,
    ToolSpec,
)

OnText = Callable[[str], None]
"""Is given the whole text so far, again from the start when a call had to be repeated."""


class Clock(Protocol):
    def now(self) -> datetime: ...

    async def sleep(self, seconds: float) -> None: ...


class Model(Protocol):
    @property
    def name(self) -> str: ...

    async def measure(self, request: ModelRequest) -> RequestSize:
        """What it is by the model's own tokenizer, as far as that is known, and what the model
        takes; ``estimated`` is not its to say. It blocks nobody, and never raises."""
        ...

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        """A failure is a value, never an error. A reply is whole or there is none. Retries of its
        own included it ends within its time limit; cancelling it closes the connection."""
        ...


class Transcriber(Protocol):
    async def transcribe(self, data: bytes, attachment: Attachment) -> str:
        """What is said in it. Retries of its own included it ends within its time limit. Raises
        TransientError, PermanentError."""
        ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """``call_key`` names this call for ever; an idempotent tool hands it to its service.

    ``progress`` shows a line to the user while the tool runs, best effort. ``artifact`` reads the
    whole of a result of this conversation that was cut, None for any other; ``most`` is how many
    bytes of UTF-8 the model is shown of one.
    """

    key: str
    call_key: str
    address: Address
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]]
    progress: Callable[[str], None]
    artifact: Callable[[str], Awaitable[str | None]]
    most: int
    open_reminders: int = 0


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """``value`` is anything; it is made storable on its way in. ``events`` go into the same commit.

    ``failed`` marks a result that tells the model what was wrong with its call.
    """

    value: Any
    events: tuple[Event, ...] = ()
    failed: bool = False


class Tool(Protocol):
    """Never raises for bad arguments: it answers with ``failed``. ``timeout`` is in seconds."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effect(self) -> EffectClass: ...

    @property
    def timeout(self) -> float: ...

    @property
    def demo_only(self) -> bool: ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput: ...
