"""The whole service behind Telegram, as its user and Telegram itself see it; nothing is faked but
Telegram, the model and the clock's pauses."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from structlog.testing import capture_logs

from bots.app import Service
from bots.ground import Ground
from bots.platforms.telegram import PLATFORM
from bots.platforms.telegram.settings import Settings as Telegram
from bots.platforms.telegram.webhook import SECRET_HEADER
from bots.settings import Settings
from core.domain.ledger import Ledger
from core.domain.messages import ModelRequest, UserMessage
from core.files.reader import NO_SPEECH_MODEL, NOT_GIVEN
from core.models.scripted import ScriptedModel
from core.ports import Store
from storage.memory import MemoryStore
from tests.bots.platforms.telegram.kit import QuickClock
from tests.core.files.made import picture
from tests.standins.faults import Refuse
from tests.standins.telegram import TOKEN, TelegramStandIn
from tests.standins.telegram_user import User

KNOWN = Telegram(token=TOKEN)
HEADERS = {SECRET_HEADER: KNOWN.webhook_secret}
MODES = ("polling", "webhook")
LINES = 20


def echo(request: ModelRequest) -> str:
    told = [message.text for message in request.messages if isinstance(message, UserMessage)]
    return f"re: {told[-1]}"


class SlowStore:
    """Once closed, a commit waits for ``gate``; ``waiting`` counts those that do."""

    def __init__(self) -> None:
        self._real = MemoryStore()
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def commit(self, *args: Any) -> int:
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        return await self._real.commit(*args)


class Town:
    """What outlives a process. The model echoes, as many times as it is ever asked here."""

    def __init__(self, tg: TelegramStandIn) -> None:
        self.tg = tg
        self.slow = SlowStore()
        self.clock = QuickClock()
        self.script = ScriptedModel(*[echo] * LINES)
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._place = found.getsockname()
        self.url = f"http://127.0.0.1:{self._place[1]}"

    @property
    def hook(self) -> str:
        return self.url + KNOWN.webhook_path

    async def outcomes(self) -> dict[str, int]:
        ledger = (await self.slow.ledger()).get("telegram", Ledger())
        assert ledger.balanced, ledger
        return {name: n for name, n in ledger.numbers.items() if n and name != "accepted"}

    @asynccontextmanager
    async def lives(self, mode: str) -> AsyncGenerator[Service]:
        ground = Ground(
            settings=Settings(allowed_users=("*",), drain_seconds=1, public_url=self.url),
            environment={
                "TELEGRAM_BOT_TOKEN": self.tg.token,
                "TELEGRAM_API_URL": self.tg.url,
                "TELEGRAM_MODE": mode,
            },
            store=cast("Store", self.slow),
            platforms={"telegram": PLATFORM},
            clock=self.clock,
            model=self.script,
            tools={},
        )
        service = Service(ground)
        routes = [route for adapter in service.adapters.values() for route in adapter.routes]
        config = uvicorn.Config(
            Starlette(routes=routes), log_config=None, lifespan="off", ws="none"
        )
        server = uvicorn.Server(config)
        listener = socket.create_server(self._place)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await service.start()
        try:
            yield service
        finally:
            await service.stop()
            server.should_exit = True
            await serving
            listener.close()

    async def posts(self, update: dict[str, Any]) -> int:
        async with httpx.AsyncClient() as client:
            return (await client.post(self.hook, json=update, headers=HEADERS)).status_code


@pytest.fixture
def town(tg: TelegramStandIn) -> Town:
    return Town(tg)


def update(number: int, text: str) -> dict[str, Any]:
    ada = {"id": 7, "is_bot": False, "first_name": "Ada"}
    chat = {"id": 7, "type": "private"}
    said = {"message_id": number, "date": 1, "chat": chat, "from": ada, "text": text}
    return {"update_id": number, "message": said}


async def answered(ada: User, tg: TelegramStandIn, *texts: str) -> None:
    """All of them, each once, in order, and nothing else."""
    await tg.wait_for(lambda: len(ada.bot_texts()) >= len(texts) and texts[-1] in ada.bot_texts())
    assert ada.bot_texts() == list(texts)


@pytest.mark.parametrize("mode", MODES)
async def test_what_was_said_while_it_was_down_is_answered_in_order(
    town: Town, tg: TelegramStandIn, ada: User, mode: str
) -> None:
    async with town.lives(mode):
        ada.says("one")
        await answered(ada, tg, "re: one")
    ada.says("two")
    ada.says("three")
    async with town.lives(mode):
        await answered(ada, tg, "re: one", "re: two", "re: three")
    assert await town.outcomes() == {"answered": 3}


@pytest.mark.parametrize("mode", MODES)
async def test_what_comes_again_while_the_first_is_worked_on_is_answered_once(
    town: Town, tg: TelegramStandIn, ada: User, mode: str
) -> None:
    town.script.hold()
    async with town.lives(mode):
        said = ada.says("one")
        await tg.wait_for(lambda: said.update_id in tg.updates.confirmed and town.script.requests)
        tg.redeliver(said.update_id or 0)
        tg.redeliver(said.update_id or 0)
        await tg.wait_for(lambda: not tg.updates.pending)
        town.script.release()
        await answered(ada, tg, "re: one")
        tg.redeliver(said.update_id or 0)
        ada.says("two")
        await answered(ada, tg, "re: one", "re: two")
    async with town.lives(mode):
        tg.redeliver(said.update_id or 0)
        ada.says("three")
        await answered(ada, tg, "re: one", "re: two", "re: three")
    assert len(town.script.requests) == 3


async def test_an_answer_to_a_post_that_comes_too_late_doubles_nothing(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    ada.says("hello")
    async with town.lives("webhook"):
        await answered(ada, tg, "re: hello")
        town.slow.gate.clear()
        late = asyncio.create_task(town.posts(update(5, "slow")))
        await tg.wait_for(lambda: town.slow.waiting)
        late.cancel()
        again = asyncio.gather(*(town.posts(update(5, "slow")) for _ in range(3)))
        town.slow.gate.set()
        assert await again == [200, 200, 200]
        await answered(ada, tg, "re: hello", "re: slow")
    assert len(town.script.requests) == 2
    assert await town.outcomes() == {"answered": 2}


async def test_a_file_is_answered_and_is_nothing_to_stumble_over_later(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    async with town.lives("polling"):
        ada.sends_photo(b"\xff" * 1_000_000)
        await tg.wait_for(lambda: len(ada.bot_texts()) == 1)
        ada.sends_voice()
        await tg.wait_for(lambda: len(ada.bot_texts()) == 2)
        ada.sends_document("deed\ud83d\x00.pdf", caption="read this")
        await tg.wait_for(lambda: len(ada.bot_texts()) == 3)
    async with town.lives("polling"):
        ada.says("and now?")
        await tg.wait_for(lambda: len(ada.bot_texts()) == 4)
    broken, voice, document, now = ada.bot_texts()
    assert "not read; tell the user why: It cannot be opened as a picture." in broken
    assert NO_SPEECH_MODEL in voice
    assert "read this" in document
    assert "\nnotes\n" in document
    assert now == "re: and now?"
    asked = str(town.script.requests[3])
    assert len(asked) < 1_500
    assert [name for name in tg.chats.files if name in asked] == []


async def test_a_text_with_a_file_that_is_too_large_is_answered_and_the_file_explained(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    tg.chats.largest_file = 1_000
    async with town.lives("polling"):
        ada.sends_document("notes.txt", b"long" * 1_000, caption="read this")
        await tg.wait_for(lambda: ada.bot_texts())
    assert "read this" in ada.bot_texts()[0]
    assert NOT_GIVEN in ada.bot_texts()[0]
    assert tg.calls_of("file") == []
    assert await town.outcomes() == {"answered": 1}


async def test_a_photo_is_seen_by_the_model(town: Town, tg: TelegramStandIn, ada: User) -> None:
    async with town.lives("polling"):
        ada.sends_photo(picture(), caption="what is it?")
        await tg.wait_for(lambda: ada.bot_texts())
    request = town.script.requests[0]
    assert [shown.mime for shown in request.pictures] == ["image/jpeg"]
    assert len(request.files) == 1
    assert ada.bot_texts() == ["re: what is it?\n[picture: photo]"]


@pytest.mark.parametrize("mode", MODES)
async def test_an_album_is_answered_as_one_message(
    town: Town, tg: TelegramStandIn, ada: User, mode: str
) -> None:
    colours = ("red", "green", "blue")
    async with town.lives(mode):
        ada.sends_album(*(picture(colour=colour) for colour in colours), caption="my flags")
        await tg.wait_for(lambda: ada.bot_texts())
    async with town.lives(mode):
        ada.says("thanks")
        await tg.wait_for(lambda: "re: thanks" in ada.bot_texts())
    assert len(ada.bot_texts()) == 2
    assert "my flags" in ada.bot_texts()[0]
    assert len(town.script.requests[-1].files) == len(colours)
    assert await town.outcomes() == {"answered": 4}


async def test_a_photo_that_came_while_it_was_down_is_seen_too(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    async with town.lives("polling"):
        pass
    ada.sends_photo(picture())
    async with town.lives("polling"):
        await tg.wait_for(lambda: ada.bot_texts())
    assert len(town.script.requests[0].pictures) == 1


async def test_a_part_that_telegram_never_takes_costs_no_other(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    long = " ".join(f"word{n}" for n in range(1_200))
    async with town.lives("polling"):
        await tg.wait_for(lambda: tg.calls_of("getUpdates"))
        tg.faults.at("sendMessage", 2, Refuse(400, "Bad Request: message is too long"))
        with capture_logs() as logs:
            ada.says(long)
            await tg.wait_for(lambda: "word1199" in "".join(ada.bot_texts()))
            ada.says("still there?")
            await tg.wait_for(lambda: "re: still there?" in ada.bot_texts())
    given_up = [line for line in logs if line["event"] == "message given up"]
    assert len(given_up) == 1
    assert "essage is too long" in given_up[0]["error"]


async def test_a_revoked_token_is_left_alone_by_all_that_speaks(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    async with town.lives("polling") as service:
        town.script.hold()
        ada.says("think hard")
        await tg.wait_for(lambda: town.script.requests)
        tg.revoke_token()
        await tg.wait_for(lambda: service.adapters["telegram"].health().detail.startswith("Teleg"))
        refused = len(tg.calls)
        town.script.release()
        for _ in range(50):
            await town.clock.sleep(30)
        assert len(tg.calls) <= refused + 1
        ready, detail = await service.status.readiness()
    assert not ready
    assert "TELEGRAM_BOT_TOKEN" in detail["platforms"]["telegram"]["detail"]


async def test_the_words_of_an_error_are_not_its_code(
    town: Town, tg: TelegramStandIn, ada: User
) -> None:
    words = "see 401 Unauthorized, 409 Conflict"
    async with town.lives("polling") as service:
        tg.faults.next("sendChatAction", Refuse(400, f"Bad Request: {words}"))
        tg.faults.next("getUpdates", Refuse(409, f"Conflict: {words}"), Refuse(500, words))
        tg.faults.next("sendMessage", Refuse(429, words, retry_after=1), Refuse(500, words))
        ada.says("hello")
        await answered(ada, tg, "re: hello")
        await tg.wait_for(lambda: service.adapters["telegram"].health().ok)
