"""The documents and the code say the same, and what is to be found by its name is."""

import pkgutil
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace

from bots import platforms
from bots.app import Service
from bots.settings import Settings
from core import commands, tools
from core.commands.base import Command
from core.domain.fold import apply
from core.domain.messages import ModelReply, ToolCall
from core.domain.state import LEGAL, Phase, SessionState
from core.models.choice import DEFAULTS
from core.plugins import discover
from tests.bots.life import KEY, House, until

ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
EDGE = re.compile(r"^ *(\w+) --> (\w+) *: *(.+)$", re.MULTILINE)
ALWAYS_HEAD = "Always legal, whatever the phase: "
IN_A_SESSION_HEAD = "Legal while a session is open and not suspended: "
VENDORS = {*DEFAULTS, "OPENAI_API_BASE"}
OF_THE_SDK = {
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_SERVICE_NAME",
}
"""OpenTelemetry reads them itself."""
SPEAKS = re.compile(r"\.(?:send|edit|send_\w+|edit_\w+)\(")
OF_PLATFORMS = re.compile(r"telegram|slack|discord", re.IGNORECASE)


def variables() -> list[str]:
    text = (ROOT / ".env.example").read_text()
    return re.findall(r"^([A-Z_]+)=", text, re.MULTILINE)


def found(package: ModuleType, constant: str) -> dict[str, Any]:
    return discover(package, constant)


def files(package: ModuleType, *, but: tuple[str, ...] = ()) -> set[str]:
    return {module.name for module in pkgutil.iter_modules(package.__path__)} - set(but)


def test_the_example_names_every_variable_and_no_other() -> None:
    wanted = {name.upper() for name in Settings.model_fields}
    for platform in found(platforms, "PLATFORM").values():
        wanted |= {variable.name for variable in platform.variables}
    named = variables()
    assert set(named) == wanted | VENDORS | OF_THE_SDK
    assert len(named) == len(set(named))


def test_the_example_explains_every_variable_and_sets_none() -> None:
    text = (ROOT / ".env.example").read_text()
    assert re.findall(r"^[A-Z_]+=.+$", text, re.MULTILINE) == []
    bare = re.findall(r"(?:^|\n)\n([A-Z_]+)=", text)
    assert bare == []


def test_every_command_is_found_under_its_files_name() -> None:
    names = {name: command.name for name, command in found(commands, "COMMAND").items()}
    assert set(names) == files(commands, but=("base",))
    assert all(name == of_command for name, of_command in names.items())


def test_every_tool_is_found_under_its_files_name() -> None:
    names = {name: tool.spec.name for name, tool in found(tools, "TOOL").items()}
    assert set(names) == files(tools)
    assert all(name == of_tool for name, of_tool in names.items())


def test_every_platform_is_found_under_its_files_name() -> None:
    names = {name: platform.name for name, platform in found(platforms, "PLATFORM").items()}
    assert set(names) == files(platforms) - {"signs", "patience", "taker"}
    assert all(name == of_platform for name, of_platform in names.items())


def test_every_command_has_a_summary_and_stands_in_the_readme() -> None:
    known: dict[str, Command] = found(commands, "COMMAND")
    readme = (ROOT / "README.md").read_text()
    assert all(command.summary for command in known.values())
    assert [name for name in known if f"`/{name}" not in readme] == []


def test_no_platforms_name_stands_in_the_core() -> None:
    hits = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "core").rglob("*.py"))
        for line in path.read_text().splitlines()
        if OF_PLATFORMS.search(line)
    ]
    assert hits == []


def edges() -> dict[str, set[tuple[str, str]]]:
    """By the phase they leave: the event, and the phase they lead to."""
    drawn: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for start, end, labels in EDGE.findall(ARCHITECTURE.read_text()):
        drawn[start] |= {(label.strip(), end) for label in labels.split(",")}
    return drawn


def named_after(head: str) -> set[str]:
    text = ARCHITECTURE.read_text().replace("\n", " ")
    sentence = text.partition(head)[2].partition(". ")[0]
    return set(re.findall(r"`(\w+)`", sentence))


def always() -> set[str]:
    return named_after(ALWAYS_HEAD)


def also_legal(phase: Phase) -> set[str]:
    in_a_session = phase not in (Phase.CLOSED, Phase.SUSPENDED)
    return always() | (named_after(IN_A_SESSION_HEAD) if in_a_session else set())


def test_the_phase_diagram_is_the_table_of_legal_events() -> None:
    drawn = {phase: {event for event, _ in leaving} for phase, leaving in edges().items()}
    legal = {
        str(phase): {event.__name__ for event in events} - also_legal(phase)
        for phase, events in LEGAL.items()
    }
    assert drawn == legal
    for phase, events in LEGAL.items():
        assert also_legal(phase) <= {event.__name__ for event in events}


async def test_the_phase_diagram_leads_where_the_fold_does() -> None:
    """A life with much in it, walked through event by event."""
    house = House(
        "hello",
        ModelReply(text="", calls=(ToolCall("c1", "now", "{}"), ToolCall("c2", "now", "{}"))),
        "noon",
        "a new day",
        tools={"now": found(tools, "TOOL")["now"]},
        drain_seconds=0,
        idle_reset_minutes=60,
    )
    room = house.room
    service = Service(replace(house.ground))
    await service.start()
    await room.hears("hi")
    await room.sees("hello")
    await room.hears("what time is it?")
    await room.sees("noon")
    house.script.hold()
    await room.hears("think")
    await until(lambda: len(house.script.requests) == 4)
    await service.stop()
    async with house.lives():
        await until(lambda: len(house.script.requests) == 5)
        await room.hears("/stop")
        await room.sees("Stopped at step 1.")
        await room.hears("/resume")
        await room.sees("We are back")
        await room.hears("/new")
        await room.sees("A new conversation.")
        await room.hears("/resume")
        await room.sees("We are back", times=2)
        house.clock.passes(minutes=61)
        house.script.release()
        await room.hears("and now?")
        await room.sees("a new day")
    state, seen = SessionState(key=KEY), set[str]()
    for recorded in await house.store.events(KEY):
        after, name = apply(state, recorded), type(recorded.event).__name__
        step = (name, str(after.phase))
        assert name in always() or step in edges()[str(state.phase)], (state.phase, *step)
        seen.add(name)
        state = after
    assert len(seen - always()) >= 12


def test_nothing_is_sent_but_by_the_one_exit() -> None:
    """A channel is reached by ``delivery`` alone, and by the preview of what it will send."""
    speaking = {
        path.relative_to(ROOT).as_posix()
        for room in ("bots", "core", "scheduler", "storage")
        for path in (ROOT / room).rglob("*.py")
        if set(SPEAKS.findall(path.read_text()))
    }
    assert {name for name in speaking if not name.startswith("bots/platforms/")} == {
        "core/runtime/delivery.py",
        "core/runtime/preview.py",
    }


@pytest.mark.parametrize("path", [ARCHITECTURE, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_every_file_that_a_document_names_is_there(path: Path) -> None:
    named = re.findall(r"`((?:bots|core|storage|scheduler|tests|docs)/[\w./]+)`", path.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
