"""What holds for every tool of the package."""

from typing import Any

import pytest

import core.tools
from core.plugins import discover
from core.ports import Tool
from tests.core.tools.harness import Scene

TOOLS: dict[str, Tool] = discover(core.tools, "TOOL")


def test_each_is_named_as_its_file() -> None:
    assert {name: tool.spec.name for name, tool in TOOLS.items()} == {
        "count_slowly": "count_slowly",
        "now": "now",
        "read_result": "read_result",
        "remind_me": "remind_me",
    }


@pytest.mark.parametrize("name", TOOLS)
def test_its_schema_is_an_object_with_every_argument_described(name: str) -> None:
    schema = TOOLS[name].spec.parameters

    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert all(field["description"] for field in schema["properties"].values())
    assert all("type" in field for field in schema["properties"].values())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("now", {"zone": 5}),
        ("now", {"timezone": "UTC"}),
        ("remind_me", {}),
        ("remind_me", {"seconds": "soon", "text": "x"}),
        ("remind_me", {"seconds": [], "text": {}}),
        ("count_slowly", {"to": "many"}),
        ("count_slowly", {"to": 2.5}),
        ("count_slowly", {"to": None}),
        ("read_result", {}),
        ("read_result", {"id": "a", "offset": "the middle"}),
    ],
)
async def test_bad_arguments_are_answered_with_what_to_do(
    name: str, arguments: dict[str, Any]
) -> None:
    output = await TOOLS[name].run(arguments, Scene().context())

    assert output.failed
    assert output.events == ()
    assert "Call it again" in output.value


def test_only_the_demo_counts() -> None:
    assert [name for name, tool in TOOLS.items() if tool.demo_only] == ["count_slowly"]


def test_effects() -> None:
    assert {name: tool.effect for name, tool in TOOLS.items()} == {
        "count_slowly": "read_only",
        "now": "read_only",
        "read_result": "read_only",
        "remind_me": "idempotent",
    }
