"""How large a request is by a model's own tokenizer and what the model takes; it asks nobody.

Each message is counted once, however often it is sent again.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from core.domain.entries import TOKENS_A_PICTURE
from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelRequest,
    RequestSize,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from core.domain.policy import Policy
from core.models.litellm_wire import tools_of

UNKNOWN_WINDOW = Policy().context_window
"""Tokens that a model is taken to take that nobody knows."""
ROOM_FOR_ANSWER = 8_192
"""Tokens; litellm does not tell whose window holds the answer too, so it always has its room."""
SHARE_FOR_ANSWER = 4
"""Of a small window the answer has no more than this part."""
TOKENS_A_MESSAGE = 4
"""What holds a message in its place: its role and its ends."""
MOST_KEPT = 20_000
_ASKS_ITS_SERVER = ("ollama/", "ollama_chat/")
"""Models of which litellm asks a server how large they are."""


class Counter:
    """For one model; may be used from several threads."""

    def __init__(self, litellm: ModuleType, name: str, window: int, *, sees: bool) -> None:
        self._litellm: Any = litellm
        self._name = name
        self._window = window
        self._a_picture = TOKENS_A_PICTURE if sees else 0
        self._known: OrderedDict[bytes, int] = OrderedDict()
        self._lock = threading.Lock()

    def size(self, request: ModelRequest) -> RequestSize:
        tools = json.dumps(tools_of(request.tools)) if request.tools else ""
        overhead = self._count(tools)
        shown = 0
        for message in request.messages:
            if isinstance(message, SystemMessage):
                overhead += self._of(message)
            else:
                shown += self._of(message)
        return RequestSize(counted=overhead + shown, overhead=overhead, window=self._window)

    def _of(self, message: ChatMessage) -> int:
        pictures = message.pictures if isinstance(message, UserMessage) else ()
        tokens = self._count(_text_of(message)) + TOKENS_A_MESSAGE
        return tokens + len(pictures) * self._a_picture

    def _count(self, text: str) -> int:
        if not text:
            return 0
        data = text.encode(errors="replace")
        digest = hashlib.blake2b(data, digest_size=16).digest()
        with self._lock:
            known = self._known.get(digest)
            if known is not None:
                self._known.move_to_end(digest)
                return known
        tokens = int(self._litellm.token_counter(model=self._name, text=data.decode()))
        with self._lock:
            self._known[digest] = tokens
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)
        return tokens


def window_of(litellm: ModuleType, name: str, fallbacks: tuple[str, ...]) -> int:
    """The smallest that is known of them. A fallback that nobody knows makes it no smaller: the
    model's own window would be lost to one that is seldom asked."""
    found = [_takes(litellm, fallback) for fallback in fallbacks]
    return min([_takes(litellm, name) or UNKNOWN_WINDOW, *filter(None, found)])


def _takes(litellm: ModuleType, name: str) -> int:
    """0 for a model that litellm does not know."""
    info = _info(litellm, name)
    takes, answers = _number(info, "max_input_tokens"), _number(info, "max_output_tokens")
    takes = takes or _number(info, "max_tokens")
    room = min(answers or ROOM_FOR_ANSWER, ROOM_FOR_ANSWER, takes // SHARE_FOR_ANSWER)
    return takes - room


def _info(litellm: ModuleType, name: str) -> Mapping[str, Any]:
    try:
        if name.startswith(_ASKS_ITS_SERVER):
            return litellm.model_cost.get(name) or {}
        return litellm.get_model_info(name)
    except Exception:  # noqa: BLE001 (what is not known has no type of its own)
        return {}


def _number(info: Mapping[str, Any], name: str) -> int:
    """litellm's list has texts in it, too, and a price list that was put in its place anything."""
    value = info.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _text_of(message: ChatMessage) -> str:
    match message:
        case AssistantMessage(text, calls):
            return "\n".join([text, *(f"{c.id} {c.name} {c.arguments}" for c in calls)])
        case ToolMessage(call_id, name, text):
            return f"{call_id} {name}\n{text}"
        case SystemMessage(text) | UserMessage(text):
            return text
