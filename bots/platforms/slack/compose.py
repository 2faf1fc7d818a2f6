"""Makes of a part what Slack's calls want; pure."""

import html
from collections.abc import Mapping
from itertools import accumulate, takewhile
from typing import Any

from core.domain.keys import Address
from core.domain.messages import Button, OutboxMessage, Part

EVENT_TYPE = "stillhere"
EDITED = "edited"
MOST_FALLBACK = 3_800
"""Bytes of what a notification shows; `chat.update` was seen to refuse 4,000."""
MOST_TEXT = 39_000
"""Of a text without a block, which Slack cuts at 40,000 characters."""
MOST_LABEL = 75
MOST_BUTTONS = 25


def post(message: OutboxMessage) -> dict[str, Any]:
    """``link_names`` and previews of links are off: the text is a model's."""
    return {
        **place(message.address),
        **content(message.part),
        "metadata": metadata(message.id),
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def place(address: Address) -> dict[str, Any]:
    thread = {"thread_ts": address.thread} if address.thread else {}
    return {"channel": address.chat} | thread


def content(part: Part) -> dict[str, Any]:
    """``text`` is what notifications show, and decides whom a message calls."""
    blocks: list[dict[str, Any]] = [{"type": "markdown", "text": part.text}]
    if part.buttons:
        buttons = enumerate(part.buttons[:MOST_BUTTONS])
        blocks.append({"type": "actions", "elements": [_button(n, b) for n, b in buttons]})
    return {"text": escaped(part.plain, MOST_FALLBACK), "blocks": blocks}


def edited(part: Part, mark: str) -> dict[str, Any]:
    """A preview keeps its mark. What we said without one is a stream that nobody ended."""
    named = {} if stream_of(part) is not None else {"metadata": metadata(mark)}
    return {**content(part), **named}


def plain_content(part: Part) -> dict[str, Any]:
    """For blocks that were refused."""
    return {"text": escaped(part.plain, MOST_TEXT), "blocks": []}


def metadata(outbox_id: str) -> dict[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"id": outbox_id}}


def is_of(message: Mapping[str, Any], outbox_id: str) -> bool:
    return message.get("metadata") == metadata(outbox_id)


def stream_of(part: Part) -> str | None:
    """What a stream shows of a preview; None of anything else."""
    match part.markup:
        case {"stream": str(text)}:
            return text
        case _:
            return None


def escaped(text: str, most: int) -> str:
    """At most so many bytes, and no half character or entity at the end."""
    pieces = [html.escape(character, quote=False) for character in text]
    sizes = accumulate(len(piece.encode()) for piece in pieces)
    return "".join(pieces[: sum(1 for _ in takewhile(lambda size: size <= most, sizes))])


def _button(number: int, button: Button) -> dict[str, Any]:
    return {
        "type": "button",
        "action_id": f"{EVENT_TYPE}:{number}",
        "text": {"type": "plain_text", "text": button.label[:MOST_LABEL]},
        "value": button.says,
    }
