"""Files from a person's phone to the model's vendor, by the genuine SDKs on both sides."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bots.app import Service
from bots.clock import SystemClock
from bots.ground import Ground
from bots.platforms.telegram import PLATFORM
from bots.settings import Settings
from core.files.reader import NO_SPEECH_MODEL
from storage.store import SqlStore
from tests.core.files.made import pdf, picture
from tests.standins.faults import Refuse, StoreThenCut
from tests.standins.openai import COMPLETIONS, TRANSCRIPTIONS, OpenAIStandIn
from tests.standins.openai_reply import Reply, text_of
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_user import User

PATIENCE = 60.0
KEY = "sk-stand-in-0123456789"
NO_PICTURES = Refuse(400, "Invalid content type: image_url is not supported by this model.")


class Town:
    def __init__(self, tg: TelegramStandIn, ai: OpenAIStandIn, folder: Path) -> None:
        self.tg = tg
        self.ai = ai
        self.ada: User = tg.user(7, "Ada")
        self._folder = folder

    @asynccontextmanager
    async def lives(self, **settings: Any) -> AsyncGenerator[None]:
        given = Settings(
            allowed_users=("*",), model="openai/test", model_sees="yes", drain_seconds=1, **settings
        )
        store = await SqlStore.open(f"sqlite:///{self._folder}/stillhere.db")
        service = Service(
            Ground(
                settings=given,
                environment={
                    "TELEGRAM_BOT_TOKEN": self.tg.token,
                    "TELEGRAM_API_URL": self.tg.url,
                    "OPENAI_API_KEY": KEY,
                },
                store=store,
                platforms={"telegram": PLATFORM},
                clock=SystemClock(),
                tools={},
            )
        )
        await service.start()
        try:
            yield
        finally:
            await service.stop()
            await store.close()

    async def answers(self, many: int) -> list[str]:
        await self.tg.wait_for(lambda: self._answered() >= many, PATIENCE)
        return self.ada.bot_texts()

    def _answered(self) -> int:
        return sum(text.endswith(".") for text in self.ada.bot_texts())

    def content(self, number: int) -> Any:
        return self.ai.requests[number]["messages"][-1]["content"]


@pytest.fixture
async def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    async with TelegramStandIn() as tg, OpenAIStandIn(api_key=KEY) as ai:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_API_BASE", f"{ai.url}/v1")
        town = Town(tg, ai, tmp_path)
        ai.respond = lambda request: Reply(text="I see.")
        yield town
        assert ai.violations == []


async def test_a_photo_a_voice_message_and_a_pdf_reach_the_model(town: Town) -> None:
    town.ai.spoken = "buy milk"
    async with town.lives(transcribe_model="openai/whisper-1"):
        town.ada.sends_photo(picture((2_000, 1_000)), caption="what is it?")
        await town.answers(1)
        town.ada.sends_voice(b"OggS and more")
        await town.answers(2)
        town.ada.sends_document("deed.pdf", pdf("sold for a song"), mime_type="application/pdf")
        await town.answers(3)

    kinds = [part["type"] for part in town.content(0)]
    assert kinds == ["text", "image_url"]
    assert town.ai.heard == [b"OggS and more"]
    assert "buy milk" in text_of(town.content(1))
    assert "sold for a song" in text_of(town.content(2))
    earlier = town.ai.requests[2]["messages"][1]["content"]
    assert earlier == town.content(0), "the picture is still there, to the byte"


async def test_a_voice_message_without_a_model_for_speech_is_explained(town: Town) -> None:
    async with town.lives():
        town.ada.sends_voice()
        await town.answers(1)

    assert NO_SPEECH_MODEL in town.content(0)
    assert town.ai.calls_of(TRANSCRIPTIONS) == []


async def test_a_refused_picture_is_left_out_for_good(town: Town) -> None:
    async with town.lives():
        town.ai.faults.next(COMPLETIONS, NO_PICTURES)
        town.ada.sends_photo(picture(), caption="look")
        await town.answers(1)
        town.ada.says("and now?")
        await town.answers(2)

    contents = [message["content"] for r in town.ai.requests for message in r["messages"]]
    assert all(isinstance(content, str) for content in contents), "no picture goes out again"
    assert "left out" in town.content(0)


async def test_a_download_that_breaks_is_made_again(town: Town) -> None:
    town.tg.faults.next("getFile", StoreThenCut())
    town.tg.faults.next("file", StoreThenCut())
    async with town.lives():
        town.ada.sends_photo(picture())
        await town.answers(1)

    assert [part["type"] for part in town.content(0)] == ["text", "image_url"]
