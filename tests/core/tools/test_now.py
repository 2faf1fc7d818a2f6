import pytest

from core.tools.now import TOOL
from tests.core.tools.harness import Scene


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Tuesday, 2026-05-05 14:30:22 (UTC)"),
        ({"zone": None}, "Tuesday, 2026-05-05 14:30:22 (UTC)"),
        ({"zone": "Europe/Berlin"}, "Tuesday, 2026-05-05 16:30:22 (Europe/Berlin, UTC+02:00)"),
        ({"zone": " Asia/Kolkata "}, "Tuesday, 2026-05-05 20:00:22 (Asia/Kolkata, UTC+05:30)"),
    ],
)
async def test_the_time_of_the_clock_in_the_zone(arguments: dict[str, str], text: str) -> None:
    output = await TOOL.run(arguments, Scene().context())

    assert (output.value, output.failed) == (text, False)


@pytest.mark.parametrize("zone", ["Berlin", "America", "../../etc/passwd", "\0", "x" * 5000, "é"])
async def test_an_unknown_zone_is_answered_with_the_way_out(zone: str) -> None:
    output = await TOOL.run({"zone": zone}, Scene().context())

    assert output.failed
    assert "IANA" in output.value
