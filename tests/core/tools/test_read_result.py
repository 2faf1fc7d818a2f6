"""What was cut can be read on to its end."""

import re
from typing import Any

import pytest

from core.domain.values import TEXT_LIMIT, capped, is_small
from core.tools.read_result import TOOL
from tests.core.tools.harness import Scene

NAME = "20260505_143022_a1b2c3d4/1/1/c9"


def scene(text: str) -> Scene:
    scene = Scene()
    scene.artifacts[NAME] = text
    return scene


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, "[characters 0 to 6 of 6; this is its end]\nabcdef"),
        ({"offset": 2, "length": 3}, "[characters 2 to 5 of 6; read on with offset 5]\ncde"),
        ({"offset": "4", "length": 99}, "[characters 4 to 6 of 6; this is its end]\nef"),
    ],
)
async def test_a_piece_says_where_it_stands(arguments: dict[str, Any], shown: str) -> None:
    output = await TOOL.run({"id": NAME} | arguments, scene("abcdef").context())

    assert (output.value, output.failed) == (shown, False)


@pytest.mark.parametrize("script", ["x", "漢", "😀x"])
@pytest.mark.parametrize("most", [1_000, 12_000, 64_000])
async def test_reading_on_from_the_cut_gives_the_whole(script: str, most: int) -> None:
    text = "".join(f"{number} {script * 9} " for number in range(3_000))
    cut = capped(text, NAME, most)
    found = re.search(r'read_result with id "(.+)" and offset (\d+)', cut)
    assert found
    read, offset = text[: int(found[2])], int(found[2])

    while offset < len(text):
        output = await TOOL.run({"id": found[1], "offset": offset}, scene(text).context(most=most))
        head, _, piece = output.value.partition("\n")
        assert is_small(output.value, most), "it would be cut again"
        assert head.startswith(f"[characters {offset} to {offset + len(piece)} of {len(text)};")
        read += piece
        offset += len(piece)

    assert read == text


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ({"id": "20260505_143022_ffffffff/1/1/c9"}, "no result with the id"),
        ({"id": "x" * 100_000}, "no result with the id"),
        ({"id": NAME, "offset": 6}, "from 0 to 5"),
        ({"id": NAME, "offset": -1}, "from 0 to 5"),
        ({"id": NAME, "length": 0}, "1 or more"),
    ],
)
async def test_what_is_not_there_is_said(arguments: dict[str, Any], hint: str) -> None:
    output = await TOOL.run(arguments, scene("abcdef").context())

    assert output.failed
    assert hint in output.value
    assert len(output.value) < TEXT_LIMIT / 10
