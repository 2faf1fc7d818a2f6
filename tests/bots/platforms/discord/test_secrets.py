"""The token is in no line that is logged, whatever goes wrong."""

import asyncio
import logging

import pytest
from structlog.testing import capture_logs

from core.domain.keys import Address
from core.errors import StillhereError
from tests.bots.platforms.discord.kit import online
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User
from tests.standins.faults import BAD_GATEWAY, GARBAGE, Refuse, Reset

HALF = "stand-in"
# It logs whole payloads below that level; the service's own logging mutes it just so.
MUTED = "discord"


async def test_the_token_is_never_logged(
    place: DiscordStandIn,
    ada: User,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.CRITICAL, logger=MUTED)
    place.faults.next("get_me", BAD_GATEWAY, GARBAGE)
    told = Refuse(403, f"no commands for {place.token}", parameters={"code": 1})
    place.faults.next("put_commands", told)
    place.faults.next("gateway", Reset())
    here = Address(platform="discord", account="123456", chat=str(ada.dm))
    with capture_logs() as logs:
        async with online(place) as bench:
            await asyncio.to_thread(place.stop)
            await place.wait_for(lambda: not bench.adapter.health().ok)
            bench.clock.pass_a_minute()
            await bench.says("out of reach")
            place.start()
            await bench.is_well()
            place.revoke_token()
            with pytest.raises(StillhereError):
                await bench.adapter.channel.typing(here)
            health = bench.adapter.health()
    assert len(logs) >= 6
    shown = f"{logs} {caplog.text} {capsys.readouterr()} {health}"
    assert HALF not in shown
    assert "***" in shown
