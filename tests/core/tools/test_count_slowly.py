import pytest

from core.tools.count_slowly import TOOL
from tests.core.tools.harness import START, Scene


async def test_one_number_a_second_with_progress() -> None:
    scene = Scene()

    output = await TOOL.run({"to": 3}, scene.context())

    assert output.value == "1, 2, 3"
    assert (scene.time - START).total_seconds() == 3.0
    assert scene.progress == ["counting: 1 of 3", "counting: 2 of 3", "counting: 3 of 3"]


async def test_the_longest_count_fits_into_the_time_limit() -> None:
    scene = Scene()

    output = await TOOL.run({"to": 100}, scene.context())

    assert not output.failed
    assert (scene.time - START).total_seconds() < TOOL.timeout


@pytest.mark.parametrize("to", [0, -1, 101])
async def test_other_numbers_are_refused_at_once(to: int) -> None:
    scene = Scene()

    output = await TOOL.run({"to": to}, scene.context())

    assert output.failed
    assert "from 1 to 100" in output.value
    assert scene.time == START
