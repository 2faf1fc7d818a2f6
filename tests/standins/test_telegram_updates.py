"""The genuine Telegram SDK as a poller and as a webhook: each update until it is confirmed."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from telegram import Bot, Update
from telegram.error import BadRequest, Conflict, TelegramError
from telegram.ext import Updater

from tests.standins.telegram import TelegramStandIn
from tests.standins.test_telegram import GROUP, sdk_bot

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
async def tg() -> AsyncIterator[TelegramStandIn]:
    async with TelegramStandIn() as tg:
        yield tg


@pytest.fixture
async def bot(tg: TelegramStandIn) -> AsyncIterator[Bot]:
    async with sdk_bot(tg) as bot:
        yield bot


class Service:
    """Takes webhook posts; answers with the next of `statuses`, then 200."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.took: list[tuple[str, int]] = []
        self.url = ""

    async def __aenter__(self) -> "Service":
        app = web.Application()
        app.router.add_post("/hook", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        update = Update.de_json(await request.json())
        self.took.append((request.headers.get(SECRET_HEADER, ""), update.update_id))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)


async def test_a_long_poll_waits_for_the_message(tg: TelegramStandIn, bot: Bot) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=10))
    await tg.wait_for(lambda: tg.calls_of("getUpdates"))
    said = tg.user(7, "Ada").says("/new please")
    (update,) = await poll
    assert update.update_id == said.update_id
    assert update.message is not None
    assert (update.message.text, update.message.chat.type) == ("/new please", "private")
    assert update.message.parse_entities() == {update.message.entities[0]: "/new"}
    assert update.effective_user is not None
    assert update.effective_user.first_name == "Ada"


async def test_a_poll_ends_empty_after_its_timeout(bot: Bot) -> None:
    assert await bot.get_updates(timeout=1) == ()


async def test_an_update_stays_until_the_offset_confirms_it(tg: TelegramStandIn, bot: Bot) -> None:
    first, second = (tg.user(7).says(text).update_id or 0 for text in ("one", "two"))
    for _ in range(2):
        assert [u.update_id for u in await bot.get_updates()] == [first, second]
    assert tg.updates.confirmed == set()
    assert [u.update_id for u in await bot.get_updates(offset=second)] == [second]
    assert (tg.updates.confirmed, tg.updates.pending) == ({first}, [second])


async def test_a_confirmed_update_can_come_once_more(tg: TelegramStandIn, bot: Bot) -> None:
    said = tg.user(7).says("one").update_id or 0
    assert len(await bot.get_updates()) == 1
    assert await bot.get_updates(offset=said + 1) == ()
    tg.redeliver(said)
    assert [u.update_id for u in await bot.get_updates(offset=said + 1)] == [said]
    assert await bot.get_updates(offset=said + 1) == ()


async def test_a_second_poller_ends_the_earlier_one(tg: TelegramStandIn, bot: Bot) -> None:
    earlier = asyncio.create_task(bot.get_updates(timeout=10))
    await tg.wait_for(lambda: tg.calls_of("getUpdates"))
    async with sdk_bot(tg) as other:
        later = asyncio.create_task(other.get_updates(timeout=10))
        with pytest.raises(Conflict, match="terminated by other getUpdates"):
            await earlier
        tg.user(7).says("hello")
        assert len(await later) == 1
    assert len(tg.updates.conflicts) == 1


async def test_callers_with_addresses_of_their_own_are_told_apart(tg: TelegramStandIn) -> None:
    async with Bot(tg.token, base_url=f"{tg.url_for('old')}/bot") as old:
        earlier = asyncio.create_task(old.get_updates(timeout=10))
        await tg.wait_for(lambda: tg.updates.poller == "old")
        async with Bot(tg.token, base_url=f"{tg.url_for('new')}/bot") as new:
            await new.get_updates(timeout=0)
            with pytest.raises(Conflict):
                await earlier
    assert [(one.who, one.by) for one in tg.updates.conflicts] == [("old", "new")]


async def test_a_poller_that_died_is_no_conflict(tg: TelegramStandIn, bot: Bot) -> None:
    dead = asyncio.create_task(bot.get_updates(timeout=10))
    await tg.wait_for(lambda: tg.calls_of("getUpdates"))
    dead.cancel()
    await tg.wait_for(lambda: tg.calls_of("getUpdates")[0].cancelled)
    said = tg.user(7).says("hello")
    assert [u.update_id for u in await bot.get_updates(timeout=10)] == [said.update_id]
    assert not tg.updates.conflicts


async def test_only_what_was_asked_for_comes(tg: TelegramStandIn, bot: Bot) -> None:
    ada = tg.user(7)
    await bot.get_updates(allowed_updates=["message"])
    said = ada.says("hello")
    assert ada.edits(said.id, "hello there").update_id is None
    assert len(await bot.get_updates()) == 1
    await bot.get_updates(allowed_updates=["message", "edited_message"])
    ada.edits(said.id, "hello again")
    edited = (await bot.get_updates())[-1].edited_message
    assert edited is not None
    assert (edited.message_id, edited.text) == (said.id, "hello again")


async def test_in_a_group_the_bot_hears_what_is_for_it(tg: TelegramStandIn, bot: Bot) -> None:
    ada = tg.user(7)
    tg.group(GROUP)
    ada.says_in(GROUP, "nice weather")
    named = ada.says_in(GROUP, "what time is it", mention=True)
    answer = await bot.send_message(GROUP, "noon")
    replied = ada.says_in(GROUP, "sure?", reply_to=answer.message_id)
    commanded = ada.says_in(GROUP, "/stop")
    updates = await bot.get_updates()
    assert [u.message and u.message.message_id for u in updates] == [
        named.id,
        replied.id,
        commanded.id,
    ]
    reply = updates[1].message
    assert reply is not None
    assert reply.reply_to_message is not None
    assert reply.reply_to_message.text == "noon"
    assert (reply.message_thread_id, reply.is_topic_message) == (answer.message_id, None)
    with pytest.raises(BadRequest, match="thread not found"):
        await bot.send_message(GROUP, "a reply is no topic", message_thread_id=answer.message_id)
    assert len(ada.sees(GROUP)) == 5


async def test_the_sdks_own_updater_polls_and_stops(tg: TelegramStandIn, bot: Bot) -> None:
    took: asyncio.Queue[object] = asyncio.Queue()
    errors: list[TelegramError] = []
    async with Updater(bot, took) as updater:
        await updater.start_polling(error_callback=errors.append)
        said = tg.user(7).says("hello")
        update = await asyncio.wait_for(took.get(), 5)
        await updater.stop()
    assert isinstance(update, Update)
    assert update.update_id == said.update_id
    assert (errors, tg.updates.pending) == ([], [])


async def test_a_webhook_gets_each_update_until_it_takes_it(tg: TelegramStandIn, bot: Bot) -> None:
    async with Service(500, 503) as service:
        await bot.set_webhook(service.url, secret_token="s3cret")
        said = [tg.user(7).says(text).update_id or 0 for text in ("one", "two")]
        await tg.wait_for(lambda: tg.updates.confirmed == set(said))
        assert service.took == [("s3cret", said[0])] * 3 + [("s3cret", said[1])]
        tg.redeliver(said[0])
        await tg.wait_for(lambda: len(service.took) == 5)
        assert service.took[-1] == ("s3cret", said[0])
    assert [status for _, status in tg.updates.posts] == [500, 503, 200, 200, 200]


async def test_a_webhook_that_is_down_loses_nothing(tg: TelegramStandIn, bot: Bot) -> None:
    service = Service()
    async with service:
        await bot.set_webhook(service.url)
    said = tg.user(7).says("one").update_id
    await tg.wait_for(lambda: tg.updates.posts)
    info = await bot.get_webhook_info()
    assert (info.url, info.pending_update_count) == (service.url, 1)
    assert "Wrong response" in (info.last_error_message or "")
    async with Service() as again:
        await bot.set_webhook(again.url)
        await tg.wait_for(lambda: again.took)
        assert again.took == [("", said)]


async def test_a_webhook_and_a_poller_exclude_each_other(tg: TelegramStandIn, bot: Bot) -> None:
    poll = asyncio.create_task(bot.get_updates(timeout=10))
    await tg.wait_for(lambda: tg.calls_of("getUpdates"))
    await bot.set_webhook("http://127.0.0.1:9/hook")
    with pytest.raises(Conflict, match="setWebhook"):
        await poll
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates()
    tg.user(7).says("hello")
    await bot.delete_webhook()
    assert len(await bot.get_updates()) == 1
