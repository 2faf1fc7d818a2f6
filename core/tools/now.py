"""Tells the model the time; never the machine's own, always the clock's it was given."""

from datetime import UTC, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

import msgspec

from core.ports import ToolContext, ToolOutput
from core.tools import FunctionTool, failed


class NowArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    zone: Annotated[
        str,
        msgspec.Meta(description="IANA time zone, for example Europe/Berlin. UTC if left out."),
    ] = ""


async def now(arguments: NowArguments, context: ToolContext) -> ToolOutput:
    zone = _zone(arguments.zone.strip())
    if zone is None:
        return failed(
            f"There is no time zone {arguments.zone!r}. Use an IANA name such as America/New_York, "
            "or leave zone out for UTC."
        )
    local = context.now().astimezone(zone)
    offset = f"{local:%z}"
    name = f"{zone}, UTC{offset[:3]}:{offset[3:5]}" if arguments.zone.strip() else "UTC"
    return ToolOutput(value=f"{local:%A, %Y-%m-%d %H:%M:%S} ({name})")


def _zone(name: str) -> tzinfo | None:
    if not name or name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


TOOL = FunctionTool(
    name="now",
    description="The current date, weekday and time.",
    arguments=NowArguments,
    act=now,
    effect="read_only",
    timeout=5.0,
)
