"""What is said, by people, models and tools; plain values that the log can hold."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from core.domain.keys import Address, TurnId

EffectClass = Literal["read_only", "idempotent", "unsafe"]
ToolOutcome = Literal["ok", "error", "timeout", "unknown", "cancelled"]
FileResult = Literal["picture", "words", "refused"]
OutboxKind = Literal["answer", "notice", "preview"]


LONGEST_QUOTE = 4_000
QUOTE_SHOWN = 500
"""Characters of a quotation that the model sees: it mostly saw the message itself."""


class Attachment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that came with a message, by reference. ``size`` is in bytes, -1 when not told."""

    kind: str
    ref: str
    name: str = ""
    mime: str = ""
    size: int = -1


class ReadFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an attachment. ``text`` is what it says, or why it could not be read; a
    picture is kept under ``sha``, as models are shown it: ``mime`` and ``size`` are of that."""

    kind: FileResult
    label: str
    text: str = ""
    sha: str = ""
    mime: str = ""
    size: int = -1


class Inbound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a person, as a platform adapter took it.

    ``update_id`` is unique within platform and account for as long as the platform may repeat it;
    ``trusted`` says that the platform itself proves this to be the operator (the terminal);
    ``album`` is the same for messages that a person sent as one; ``quote`` is the text of the
    message that this one replies to, or shares.
    """

    address: Address
    update_id: str
    user: str
    text: str
    sent_at: datetime
    user_name: str = ""
    message_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    trusted: bool = False
    album: str = ""
    quote: str = ""

    @property
    def person(self) -> str:
        """The sender's id where it is unique: within a workspace it carries that."""
        workspace = self.address.workspace
        return f"{workspace}.{self.user}" if workspace else self.user

    @property
    def quote_shown(self) -> str:
        start = self.quote[:QUOTE_SHOWN]
        return start + " …" if len(self.quote) > QUOTE_SHOWN else start


class ToolCall(msgspec.Struct, frozen=True):
    """``arguments`` is the JSON object's text just as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens as the provider counts them, ``cached`` among those of the ``prompt``; ``cost`` in US
    dollars."""

    prompt: int = 0
    completion: int = 0
    cost: float = 0.0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    @property
    def credible(self) -> "Usage":
        """Vendors report what they like, less than nothing and no number at all included; a session
        whose sum is below zero would not be believed any more."""
        cost = self.cost if 0.0 < self.cost < float("inf") else 0.0
        prompt = max(self.prompt, 0)
        return Usage(prompt, max(self.completion, 0), cost, min(max(self.cached, 0), prompt))

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cost + other.cost,
            self.cached + other.cached,
        )


class RequestSize(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a request was taken for before it was sent, in tokens; 0 where it is not known.

    ``estimated`` is the sum over the entries that it showed, as the state has them; ``counted`` is
    the whole by the model's tokenizer, ``overhead`` that of the system prompt and the tools.
    ``window`` is what the model takes at most, room for its answer left out.
    """

    estimated: int = 0
    counted: int = 0
    overhead: int = 0
    window: int = 0


class SystemMessage(msgspec.Struct, frozen=True, tag="system"):
    text: str


class Picture(msgspec.Struct, frozen=True):
    """By reference; the request's ``files`` hold what it looks like."""

    sha: str
    mime: str
    label: str


class UserMessage(msgspec.Struct, frozen=True, tag="user", omit_defaults=True):
    text: str
    pictures: tuple[Picture, ...] = ()


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant"):
    text: str
    calls: tuple[ToolCall, ...] = ()


class ToolMessage(msgspec.Struct, frozen=True, tag="tool"):
    call_id: str
    name: str
    text: str


ChatMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class ToolSpec(msgspec.Struct, frozen=True):
    """What the model is told of a tool; ``parameters`` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """All that one model call needs; a legal conversation whatever the log holds. ``files`` are the
    bytes of its pictures by hash; one that is not there is gone."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    files: Mapping[str, bytes] = {}

    @property
    def pictures(self) -> tuple[Picture, ...]:
        users = (message for message in self.messages if isinstance(message, UserMessage))
        return tuple(picture for message in users for picture in message.pictures)


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that arrived whole. ``cut`` says that the output limit ended it."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    cut: bool = False


FailureKind = Literal["try_again", "never", "too_long", "refused"]


class ModelFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A call that gave no reply. ``detail`` is for the log only; ``retry_after`` in seconds.

    ``remedy`` is what whoever runs the service can do, in our words; empty where that is nothing.
    """

    kind: FailureKind
    detail: str
    retry_after: float | None = None
    remedy: str = ""


class Button(msgspec.Struct, frozen=True):
    """Under a message: whoever presses it says ``says``, as if it were typed."""

    label: str
    says: str


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message as a platform accepts it.

    ``plain`` says the same without markup, for a refused parse; ``markup`` is JSON that only the
    platform's own renderer and sender understand.
    """

    text: str
    plain: str
    markup: Any = None
    buttons: tuple[Button, ...] = ()


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One promised message. ``id`` comes from the event that made it, so it cannot double.

    ``edits`` is the id of the preview row whose message this one replaces, where it was sent;
    ``turn`` is the one that it comes from, if any.
    """

    id: str
    key: str
    address: Address
    kind: OutboxKind
    part: Part
    edits: str = ""
    turn: TurnId | None = None
