"""Where a message belongs and where it is answered; never asks which platform it is."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import quote, unquote

import msgspec

ChatType = Literal["dm", "group", "channel"]

MAIN_AGENT = "main"
_LABELS = ("thread", "user")
_HEX_DIGITS = 8
_ASIDE = re.compile(r":aside:\d{8}_\d{6}_\d{6}$")


class Address(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where to answer: taken from the message that is answered, never looked up again.

    ``account`` is the bot's own id on the platform, ``workspace`` the scope in which ``chat`` is
    unique (empty where ids are global), ``reply_to`` the platform's id of the message answered.
    """

    platform: str
    account: str
    chat: str
    chat_type: ChatType = "dm"
    workspace: str = ""
    thread: str = ""
    reply_to: str = ""

    @property
    def lane(self) -> str:
        """The chat in which messages keep their order and share the platform's limits."""
        return ":".join(
            _escape(part) for part in (self.platform, self.account, self.workspace, self.chat)
        )


class SessionKey(msgspec.Struct, frozen=True, kw_only=True):
    """The stable name of a conversation, the same after any restart.

    Its text is ``agent:<agent>:<platform>:<chat type>:<chat>[:thread:<id>][:user:<id>]``; every
    part is percent-escaped, a workspace stands before the chat with a dot between them.
    """

    agent: str = MAIN_AGENT
    platform: str
    chat_type: ChatType
    chat: str
    workspace: str = ""
    thread: str = ""
    user: str = ""

    def __str__(self) -> str:
        place = _escape(self.chat)
        if self.workspace:
            place = f"{_escape(self.workspace)}.{place}"
        parts = ["agent", _escape(self.agent), _escape(self.platform), self.chat_type, place]
        for label, value in zip(_LABELS, (self.thread, self.user), strict=True):
            if value:
                parts += [label, _escape(value)]
        return ":".join(parts)

    @classmethod
    def parse(cls, text: str) -> "SessionKey":
        """Raises ValueError for a text that no key has."""
        head, *rest = text.split(":")
        if head != "agent" or len(rest) < 4 or len(rest) % 2:
            raise ValueError(f"not a session key: {text!r}")
        agent, platform, chat_type, place, *pairs = rest
        workspace, dot, chat = place.rpartition(".")
        labelled = dict(zip(pairs[::2], pairs[1::2], strict=True))
        key = cls(
            agent=_unescape(agent),
            platform=_unescape(platform),
            chat_type=_chat_type(chat_type),
            chat=_unescape(chat if dot else place),
            workspace=_unescape(workspace),
            thread=_unescape(labelled.get("thread", "")),
            user=_unescape(labelled.get("user", "")),
        )
        if str(key) != text:
            raise ValueError(f"not a session key: {text!r}")
        return key


class TurnId(msgspec.Struct, frozen=True):
    """Which turn it is, for ever: its session's id and its number."""

    session: str
    number: int


def session_key(address: Address, user: str, agent: str = MAIN_AGENT) -> SessionKey:
    """The key of a message: one a person in a DM, one a chat or thread elsewhere."""
    return SessionKey(
        agent=agent,
        platform=address.platform,
        chat_type=address.chat_type,
        chat=user if address.chat_type == "dm" else address.chat,
        workspace=address.workspace,
        thread=address.thread,
    )


def platform_of(key: str) -> str:
    """The platform of a session key's text, also of one that was set aside; "" if it has none."""
    return _unescape("".join(key.split(":")[2:3]))


def platform_of_lane(lane: str) -> str:
    return _unescape(lane.partition(":")[0])


def aside_name(at: datetime) -> str:
    """The end of the key under which a log is set aside then; what the person is told to ask for.
    It starts the ids of that log's outbox, too, which no living session's can start with."""
    return f"{at.astimezone(UTC):%Y%m%d_%H%M%S_%f}"


def aside_key(key: str, at: datetime) -> str:
    """Where a log that is set aside goes."""
    return f"{key}:aside:{aside_name(at)}"


def key_of_aside(key: str) -> str:
    """The key that a log had before it was set aside."""
    return _ASIDE.sub("", key)


def session_id(key: str, seq: int, at: datetime) -> str:
    """The name of the run that opens at ``seq``: UTC time and 8 hex digits.

    The digits come from the key and the sequence number, so that deciding twice gives one name.
    """
    digest = hashlib.sha256(f"{seq}@{key}".encode(errors="surrogatepass")).hexdigest()
    return f"{at.astimezone(UTC):%Y%m%d_%H%M%S}_{digest[:_HEX_DIGITS]}"


def _escape(part: str) -> str:
    return quote(part, safe="", errors="surrogatepass").replace(".", "%2E")


def _unescape(part: str) -> str:
    return unquote(part, errors="surrogatepass")


def _chat_type(text: str) -> ChatType:
    match text:
        case "dm" | "group" | "channel":
            return text
        case _:
            raise ValueError(f"not a chat type: {text!r}")
