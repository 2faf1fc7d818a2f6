import asyncio
import json

import pytest
from msgspec.structs import replace

from core.domain.effects import RunTool
from core.domain.messages import ToolCall
from core.domain.policy import Policy
from core.domain.state import SessionState
from core.ports import Artifact, Tool
from core.runtime.toolbox import Toolbox
from core.tools import read_result
from tests.core.domain.samples import calls
from tests.core.domain.world import World
from tests.core.runtime.house import FakeTool
from tests.core.runtime.virtual import VirtualClock, in_virtual_time


def box() -> tuple[Toolbox, dict[str, FakeTool], SessionState]:
    world = World()
    world.says("hi")
    world.replies("", *calls("look", "pay"))
    tools = {"look": FakeTool("look", "read_only"), "pay": FakeTool("pay", "unsafe")}
    toolbox = Toolbox(tools, VirtualClock(), lambda: "id1", world.policy, kept)
    return toolbox, tools, world.state


async def kept(key: str, artifact_id: str) -> str | None:
    """Whatever is asked for is there."""
    return f"{artifact_id} of {key}"


def silent(text: str) -> None:
    """Nobody looks at the progress."""


@in_virtual_time
async def test_a_call_is_named_by_its_place() -> None:
    toolbox, tools, state = box()
    assert state.session

    await toolbox.run(state, RunTool(1, 1, ToolCall("c1", "look", "")), silent)

    assert list(tools["look"].started) == [f"{state.session.session_id}/1/1/c1"]


@in_virtual_time
async def test_a_call_of_any_length_of_name_has_a_short_place_of_its_own() -> None:
    toolbox, tools, state = box()
    thoughts = ["call_1__thought__" + letter * 30_000 for letter in "ab\ud800"]

    for name in thoughts:
        await toolbox.run(state, RunTool(1, 1, ToolCall(name, "look", "")), silent)

    places = list(tools["look"].started)
    assert len(places) == len(thoughts)
    assert max(map(len, places)) < 150


@in_virtual_time
async def test_a_tool_of_no_name_does_nothing_and_so_is_harmless() -> None:
    toolbox, _, _ = box()

    assert toolbox.effects(calls("pay", "nothing")) == ("unsafe", "read_only")


@pytest.mark.parametrize(
    ("window", "scale", "most"),
    [(24_000, 1.0, 12_000), (24_000, 2.0, 6_000), (8_000, 1.0, 4_000), (100, 1.0, 1_000)],
)
@in_virtual_time
async def test_a_result_takes_an_eighth_of_the_window_at_most(
    window: int, scale: float, most: int
) -> None:
    toolbox, tools, state = box()
    assert state.session
    tools["look"].result = "漢" * 10_000
    session = replace(state.session, window=window, scale=scale)
    call = RunTool(1, 1, ToolCall("c1", "look", ""))

    done = await toolbox.run(replace(state, session=session), call, silent)

    assert most - 20 <= len(done.text.encode()) <= most
    assert done.artifact == Artifact(f"{session.session_id}/1/1/c1", "漢" * 10_000)


@in_virtual_time
async def test_a_tool_reads_what_was_kept_of_its_own_conversation_alone() -> None:
    toolbox, tools, state = box()
    assert state.session
    own = state.session.session_id

    await toolbox.run(state, RunTool(1, 1, ToolCall("c1", "look", "")), silent)
    read = tools["look"].contexts[0].artifact

    assert await read(f"{own}/1/1/c9") == f"{own}/1/1/c9 of {state.key}"
    assert await read("20260505_143000_ffffffff/1/1/c9") is None
    assert await read(own) is None
    assert await read("") is None


@in_virtual_time
async def test_what_was_cut_is_read_on_and_never_cut_again() -> None:
    _, tools, state = box()
    assert state.session
    tools["look"].result = "".join(map(str, range(20_000)))
    whole: dict[str, str] = {}

    async def found(key: str, artifact_id: str) -> str | None:
        return whole.get(artifact_id)

    both: dict[str, Tool] = {**tools, "read_result": read_result.TOOL}
    toolbox = Toolbox(both, VirtualClock(), lambda: "id1", Policy(), found)
    cut = await toolbox.run(state, RunTool(1, 1, ToolCall("c1", "look", "")), silent)
    assert cut.artifact
    whole[cut.artifact.id] = cut.artifact.text
    name = cut.text.partition('id "')[2].partition('"')[0]
    wanted = json.dumps({"id": name, "offset": 50_000})
    piece = await toolbox.run(state, RunTool(1, 2, ToolCall("c2", "read_result", wanted)), silent)

    assert piece.artifact is None
    assert piece.text.partition("\n")[2] in cut.artifact.text[50_000:]
    assert 11_000 < len(piece.text) <= 12_000


@in_virtual_time
async def test_a_call_that_is_cancelled_is_cancelled() -> None:
    toolbox, tools, state = box()
    tools["look"].seconds = 30
    run = toolbox.run(state, RunTool(1, 1, ToolCall("c1", "look", "{}")), silent)
    task = asyncio.create_task(run)
    await asyncio.sleep(1)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
