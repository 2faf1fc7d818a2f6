"""Reads on in a result that was cut; never one of another conversation."""

from typing import Annotated

import msgspec

from core.domain.values import TEXT_LIMIT, beginning
from core.ports import ToolContext, ToolOutput
from core.tools import FunctionTool, failed

LONGEST_ID = 300
"""Of any that there is."""


class ReadArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(description="As it stands where the result was cut.")]
    offset: Annotated[
        int, msgspec.Meta(description="How many characters to skip, from the very beginning.")
    ] = 0
    length: Annotated[
        int, msgspec.Meta(description="How many characters at most; fewer may come at once.")
    ] = TEXT_LIMIT


async def read_result(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    text = await context.artifact(arguments.id) if len(arguments.id) <= LONGEST_ID else None
    if text is None:
        return failed(
            f"There is no result with the id {arguments.id[:LONGEST_ID]!r}. Use one just as it "
            "stands where a result was cut."
        )
    if not 0 <= arguments.offset < len(text):
        return failed(f"It has {len(text)} characters: offset goes from 0 to {len(text) - 1}.")
    if arguments.length < 1:
        return failed("length has to be 1 or more.")
    return ToolOutput(value=_piece(text, arguments, context.most))


def _piece(text: str, arguments: ReadArguments, most: int) -> str:
    """Small enough to be shown whole, so that nothing of it is cut again."""
    start, wanted = arguments.offset, text[arguments.offset :][: arguments.length]
    longest = _head(len(text), len(text) - 1, len(text))
    piece = beginning(wanted, most - len(longest.encode()), TEXT_LIMIT - len(longest))
    return _head(start, start + len(piece), len(text)) + piece


def _head(start: int, end: int, size: int) -> str:
    rest = f"; read on with offset {end}" if end < size else "; this is its end"
    return f"[characters {start} to {end} of {size}{rest}]\n"


TOOL = FunctionTool(
    name="read_result",
    description="Reads a piece of a tool's result that was too long to be shown whole.",
    arguments=ReadArguments,
    act=read_result,
    effect="read_only",
    timeout=10.0,
)
