"""The token is in no line that is logged, whatever goes wrong."""

import asyncio
import logging

import pytest
from structlog.testing import capture_logs

from core.domain.keys import Address
from core.errors import StillhereError
from tests.bots.platforms.telegram.kit import polling
from tests.standins.faults import BAD_GATEWAY, GARBAGE, Refuse, Reset
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_updates import OTHER_POLLER

HERE = Address(platform="telegram", account="123456", chat="7")
HALF = "stand-in-token"
# They log whole addresses below that level; the service's own logging mutes them just so.
MUTED = ("httpx", "httpcore", "telegram")


async def test_the_token_is_never_logged(
    tg: TelegramStandIn,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in MUTED:
        caplog.set_level(logging.WARNING, logger=name)
    tg.faults.next("getMe", BAD_GATEWAY, GARBAGE)
    tg.faults.next("setMyCommands", Refuse(400, f"no method at /bot{tg.token}/setMyCommands"))
    tg.faults.next("getUpdates", Refuse(409, OTHER_POLLER), Reset(), GARBAGE)
    tg.updates.add("message", {"message_id": 1, "chat": "not a chat"})
    with capture_logs() as logs:
        async with polling(tg) as bench:
            await bench.is_well()
            await asyncio.to_thread(tg.stop)
            await bench.says("out of reach")
            tg.start()
            await bench.is_well()
            tg.revoke_token()
            with pytest.raises(StillhereError):
                await bench.adapter.channel.typing(HERE)
            health = bench.adapter.health()
    assert len(logs) >= 8
    shown = f"{logs} {caplog.text} {capsys.readouterr()} {health}"
    assert HALF not in shown
    assert "***" in shown
