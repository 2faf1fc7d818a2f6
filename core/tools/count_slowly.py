"""A long tool to watch, stop and kill in the demo; never offered to another model."""

from typing import Annotated

import msgspec

from core.ports import ToolContext, ToolOutput
from core.tools import FunctionTool, failed

MOST = 100
PAUSE = 1.0


class CountArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    to: Annotated[int, msgspec.Meta(description=f"The last number, from 1 to {MOST}.")]


async def count_slowly(arguments: CountArguments, context: ToolContext) -> ToolOutput:
    if not 1 <= arguments.to <= MOST:
        return failed(f"I can count to a number from 1 to {MOST}, not to {arguments.to}.")
    for number in range(1, arguments.to + 1):
        await context.sleep(PAUSE)
        context.progress(f"counting: {number} of {arguments.to}")
    return ToolOutput(value=", ".join(map(str, range(1, arguments.to + 1))))


TOOL = FunctionTool(
    name="count_slowly",
    description="Counts from 1, one number a second, with progress.",
    arguments=CountArguments,
    act=count_slowly,
    effect="read_only",
    timeout=MOST * PAUSE * 1.5,
    demo_only=True,
)
