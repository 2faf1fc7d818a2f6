"""What the agent can do in end-to-end tests; each effect is a line in a file that a test reads."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Annotated

import msgspec

from core.ports import Tool, ToolContext, ToolOutput
from core.tools import FunctionTool
from core.tools.remind_me import TOOL as REMIND_ME

LEDGER = "LEDGER"
"""The variable that names the file. A line is «tool what key-of-the-call»."""
PAUSE = 0.05


class NoArguments(msgspec.Struct, frozen=True):
    pass


class ChargeArguments(msgspec.Struct, frozen=True):
    what: Annotated[str, msgspec.Meta(description="What to pay for.")]
    seconds: Annotated[float, msgspec.Meta(description="How long it takes.")] = PAUSE


def note(path: str, line: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


async def look(arguments: NoArguments, context: ToolContext) -> ToolOutput:
    note(os.environ[LEDGER], f"look - {context.call_key}")
    await asyncio.sleep(PAUSE)
    return ToolOutput(value="all quiet")


async def charge(arguments: ChargeArguments, context: ToolContext) -> ToolOutput:
    await asyncio.sleep(PAUSE)
    note(os.environ[LEDGER], f"charge {arguments.what} {context.call_key}")
    await asyncio.sleep(arguments.seconds)
    return ToolOutput(value="charged")


async def die(arguments: NoArguments, context: ToolContext) -> ToolOutput:
    """As a tool does that takes all memory: the whole process goes."""
    note(os.environ[LEDGER], f"die - {context.call_key}")
    os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(60)
    return ToolOutput(value="not dead")


async def leap(arguments: NoArguments, context: ToolContext) -> ToolOutput:
    """As ``die``, where nobody may know whether it did something before."""
    note(os.environ[LEDGER], f"leap - {context.call_key}")
    os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(60)
    return ToolOutput(value="landed")


TOOLS: dict[str, Tool] = {
    "look": FunctionTool(
        name="look",
        description="Looks.",
        arguments=NoArguments,
        act=look,
        effect="read_only",
        timeout=10,
    ),
    "charge": FunctionTool(
        name="charge",
        description="Charges.",
        arguments=ChargeArguments,
        act=charge,
        effect="unsafe",
        timeout=10,
    ),
    "die": FunctionTool(
        name="die",
        description="Does not come back.",
        arguments=NoArguments,
        act=die,
        effect="idempotent",
        timeout=10,
    ),
    "leap": FunctionTool(
        name="leap",
        description="Does not come back, and may have done anything.",
        arguments=NoArguments,
        act=leap,
        effect="unsafe",
        timeout=10,
    ),
    "remind_me": REMIND_ME,
}
