"""The webhook through the genuine SDK: 200 for what is stored, and for nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from bots.platforms.telegram.settings import Settings
from bots.platforms.telegram.webhook import SECRET_HEADER
from core.domain.keys import Address
from core.domain.messages import OutboxMessage, Part
from core.domain.values import clean
from core.errors import PermanentError, StorageError, TransientError
from tests.bots.platforms.telegram.kit import Bench, served
from tests.standins.faults import BAD_GATEWAY, Refuse
from tests.standins.telegram import TOKEN, TelegramStandIn
from tests.standins.telegram_updates import Webhook
from tests.standins.telegram_user import User

KNOWN = Settings(token=TOKEN)
HERE = Address(platform="telegram", account="123456", chat="7")
RIGHT = {SECRET_HEADER: KNOWN.webhook_secret}


class Hook:
    def __init__(self, bench: Bench, url: str) -> None:
        self.bench = bench
        self.url = url + KNOWN.webhook_path

    async def post(self, body: str | bytes, headers: dict[str, str]) -> int:
        async with httpx.AsyncClient() as client:
            return (await client.post(self.url, content=body, headers=headers)).status_code


def message(text: str) -> dict[str, Any]:
    ada = {"id": 7, "is_bot": False, "first_name": "Ada"}
    chat = {"id": 7, "type": "private"}
    return {"message_id": 1, "date": 1, "chat": chat, "from": ada, "text": text}


@pytest.fixture
async def closed(tg: TelegramStandIn) -> AsyncIterator[Hook]:
    """Served, but not started."""

    def make(url: str) -> Bench:
        return Bench(tg, url + "/", TELEGRAM_MODE="webhook")

    async with served(make) as (bench, url):
        yield Hook(bench, url)


@pytest.fixture
async def hook(closed: Hook) -> Hook:
    await closed.bench.adapter.start()
    await closed.bench.is_well()
    return closed


async def test_a_dm_comes_through_the_webhook(hook: Hook, tg: TelegramStandIn, ada: User) -> None:
    said = ada.says("hello")
    (taken,) = await hook.bench.takes()
    assert (taken.user, taken.text, taken.update_id) == ("7", "hello", str(said.update_id))
    await tg.wait_for(lambda: tg.updates.confirmed == {said.update_id})
    assert tg.updates.posts == [(said.update_id, 200)]


async def test_messages_that_waited_are_kept_when_it_is_set(
    closed: Hook, tg: TelegramStandIn, ada: User
) -> None:
    ada.says("before you came")
    await closed.bench.adapter.start()
    await closed.bench.takes()
    (call,) = tg.calls_of("setWebhook")
    assert call.params["allowed_updates"] == ["message", "callback_query"]
    assert call.params["url"] == closed.url
    assert not call.params["drop_pending_updates"]


@pytest.mark.parametrize("headers", [{}, {SECRET_HEADER: "guess"}, {SECRET_HEADER: "\xe9"}])
async def test_without_the_secret_nothing_is_taken(hook: Hook, headers: dict[str, str]) -> None:
    body = '{"update_id": 1}'
    async with httpx.AsyncClient() as client:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        response = await client.post(hook.url, content=body, headers=raw)
    assert response.status_code == 403
    assert hook.bench.inbox.offered == []


async def test_what_cannot_be_stored_is_refused_and_comes_again(
    hook: Hook, tg: TelegramStandIn, ada: User
) -> None:
    bench = hook.bench
    bench.inbox.failing = StorageError("disk full")
    said = ada.says("hold this")
    await tg.wait_for(lambda: tg.updates.posts)
    assert tg.updates.posts[0] == (said.update_id, 500)
    await bench.says("disk full")
    bench.inbox.failing = None
    (taken,) = await bench.takes()
    await tg.wait_for(lambda: not tg.updates.pending)
    assert taken.text == "hold this"
    await bench.is_well()


async def test_a_body_that_is_no_update_is_not_taken(hook: Hook) -> None:
    assert [await hook.post(body, RIGHT) for body in ("", "{", "[]")] == [400, 400, 400]
    assert await hook.post('{"update_id": 5, "message": {"date": "never"}}', RIGHT) == 200
    assert hook.bench.inbox.offered == []


@pytest.mark.parametrize("half", [b"\\ud83d", b"\xf0\x9f"], ids=["escaped", "raw"])
async def test_half_an_emoji_does_not_stop_an_update(hook: Hook, ada: User, half: bytes) -> None:
    ada.says("whole")
    await hook.bench.takes()
    body = json.dumps({"update_id": 5, "message": message("half HERE")}).encode()
    assert await hook.post(body.replace(b"HERE", half), RIGHT) == 200
    (_, taken) = await hook.bench.takes(2)
    assert clean(taken.text) == "half \ufffd"


async def test_before_the_start_and_after_the_stop_telegram_keeps_its_messages(
    closed: Hook, tg: TelegramStandIn, ada: User
) -> None:
    assert await closed.post('{"update_id": 1}', RIGHT) == 503
    await closed.bench.adapter.start()
    await closed.bench.is_well()
    await closed.bench.adapter.stop()
    assert tg.updates.webhook is not None
    said = ada.says("in between")
    await tg.wait_for(lambda: tg.updates.posts)
    assert tg.updates.posts[0] == (said.update_id, 503)
    await closed.bench.adapter.start()
    await closed.bench.takes()


async def test_nothing_is_taken_before_the_bot_knows_its_name(
    closed: Hook, tg: TelegramStandIn, ada: User
) -> None:
    tg.faults.always("getMe", BAD_GATEWAY)
    tg.updates.set_webhook({"url": closed.url, "secret_token": KNOWN.webhook_secret})
    await closed.bench.adapter.start()
    ada.says("hello")
    await tg.wait_for(lambda: tg.updates.posts)
    assert closed.bench.inbox.offered == []
    tg.faults.clear()
    await closed.bench.takes()


async def test_a_webhook_that_was_taken_away_is_no_health(hook: Hook, tg: TelegramStandIn) -> None:
    tg.updates.delete_webhook({})
    hook.bench.clock.pass_a_minute()
    await hook.bench.says("another instance")
    assert len(tg.calls_of("setWebhook")) == 1
    assert not hook.bench.adapter.health().ok


async def test_what_does_not_get_out_is_no_health_until_telegram_answers(
    hook: Hook, tg: TelegramStandIn
) -> None:
    channel = hook.bench.adapter.channel
    part = Part(text="hi", plain="hi")
    message = OutboxMessage(id="k@1", key="k", address=HERE, kind="answer", part=part)
    await asyncio.to_thread(tg.stop)
    with pytest.raises(TransientError):
        await channel.send(message)
    assert "out of reach" in hook.bench.adapter.health().detail

    tg.start()
    with pytest.raises(PermanentError, match="Chat not found"):
        await channel.send(message)
    assert hook.bench.adapter.health().ok


async def test_posts_that_do_not_arrive_are_no_health(
    hook: Hook, tg: TelegramStandIn, ada: User
) -> None:
    ours = tg.updates.webhook
    tg.updates.webhook = Webhook(hook.url, "another secret")
    ada.says("hello")
    await tg.wait_for(lambda: tg.updates.last_error)
    hook.bench.clock.pass_a_minute()
    await hook.bench.says("cannot deliver")
    tg.updates.webhook = ours
    await hook.bench.takes()
    await hook.bench.is_well()


async def test_an_address_that_telegram_does_not_like_is_told(
    closed: Hook, tg: TelegramStandIn
) -> None:
    bad = Refuse(400, "Bad Request: bad webhook: HTTPS url must be provided for webhook")
    tg.faults.always("setWebhook", bad)
    await closed.bench.adapter.start()
    await closed.bench.says("https url must be provided")
    tg.faults.clear()
    await closed.bench.is_well()


async def test_a_token_that_was_refused_elsewhere_is_not_asked_about_again(
    hook: Hook, tg: TelegramStandIn
) -> None:
    tg.revoke_token()
    with pytest.raises(TransientError):
        await hook.bench.adapter.channel.typing(HERE)
    calls = len(tg.calls)
    for _ in range(5):
        hook.bench.clock.pass_a_minute()
        await hook.bench.clock.sleep(1)
    assert len(tg.calls) == calls
    assert not hook.bench.adapter.health().ok
