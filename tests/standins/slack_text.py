"""Slack's rules for texts, blocks and metadata; it refuses what Slack would, and mends nothing.

Sources: docs.slack.dev/reference/block-kit/blocks/markdown-block, chat.postMessage, chat.update
(where a text of more than 4,000 bytes was seen refused), github.com/slackapi/bolt-js/issues/2509.
"""

from typing import Any

import msgspec

from tests.standins.slack_world import Json, refused

MOST_TEXT = 40_000
MOST_UPDATE_BYTES = 4_000
MOST_MARKDOWN = 12_000
MOST_ALL_BLOCKS = 13_200
MOST_BLOCKS = 50
MOST_ELEMENTS = 25
MOST_VALUE = 2_000
MOST_LABEL = 75
BLOCK_TYPES = frozenset({"markdown", "section", "divider", "actions", "context", "header"})


def checked_blocks(raw: Any) -> list[Json] | None:
    if raw is None:
        return None
    try:
        blocks = msgspec.convert(raw, list[Json])
    except msgspec.ValidationError as error:
        raise refused("invalid_blocks_format") from error
    if len(blocks) > MOST_BLOCKS:
        raise refused("invalid_blocks_format")
    for block in blocks:
        _check_block(block)
    markdown = sum(_length(block["text"]) for block in blocks if block["type"] == "markdown")
    if markdown > MOST_MARKDOWN:
        raise refused("invalid_blocks")
    if sum(_length(str(block)) for block in blocks) > MOST_ALL_BLOCKS and len(blocks) > 1:
        raise refused("msg_blocks_too_long")
    return blocks


def checked_markdown(text: Any) -> str:
    if not isinstance(text, str):
        raise refused("invalid_arguments")
    if _length(text) > MOST_MARKDOWN:
        raise refused("msg_too_long")
    return text


def checked_text(text: Any, *, update: bool = False) -> str:
    if not isinstance(text, str):
        raise refused("invalid_arguments")
    if update and len(text.encode()) > MOST_UPDATE_BYTES:
        raise refused("msg_too_long")
    return text[:MOST_TEXT]


def checked_metadata(metadata: Any) -> Json | None:
    match metadata:
        case None:
            return None
        case {"event_type": str(), "event_payload": dict()}:
            return {name: metadata[name] for name in ("event_type", "event_payload")}
        case _:
            raise refused("invalid_metadata_format")


def _check_block(block: Json) -> None:
    if block.get("type") not in BLOCK_TYPES:
        raise refused("invalid_blocks")
    if block["type"] == "markdown" and not block.get("text"):
        raise refused("invalid_blocks")
    if block["type"] == "actions":
        elements: list[Json] = block["elements"]
        ids = [element["action_id"] for element in elements]
        sound = all(_is_button(element) for element in elements)
        if not 0 < len(elements) <= MOST_ELEMENTS or len(set(ids)) < len(ids) or not sound:
            raise refused("invalid_blocks")


def _is_button(element: Json) -> bool:
    match element:
        case {"type": "button", "text": {"type": "plain_text", "text": str(label)}, "value": value}:
            return len(label) <= MOST_LABEL and len(str(value)) <= MOST_VALUE
        case _:
            return False


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
