"""The whole service behind Slack, as its people and Slack itself see it; nothing is faked but
Slack, the model and the clock's pauses."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.applications import Starlette

from bots.app import Service
from bots.ground import Ground
from bots.platforms.slack import PLATFORM
from bots.settings import Settings
from core.domain.ledger import Ledger
from core.domain.messages import ModelRequest, UserMessage
from core.models.scripted import ScriptedModel
from core.ports import Store
from storage.memory import MemoryStore
from tests.bots.platforms.slack.kit import CHANNEL, QuickClock
from tests.standins.faults import BAD_GATEWAY, SERVER_ERROR, Reset, StoreThenCut, too_many
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User

WAYS = ("socket", "http")
LINES = 60
ALL = frozenset({"*"})


def echo(request: ModelRequest) -> str:
    told = [message.text for message in request.messages if isinstance(message, UserMessage)]
    return f"re: {told[-1]}"


class Town:
    """What outlives a process. The model echoes, as many times as it is ever asked here."""

    def __init__(self, slack: SlackStandIn) -> None:
        self.slack = slack
        self.store: Store = MemoryStore()
        self.clock = QuickClock()
        self.script = ScriptedModel(*[echo] * LINES)
        with socket.create_server(("127.0.0.1", 0)) as found:
            self._place = found.getsockname()
        self.url = f"http://127.0.0.1:{self._place[1]}/slack/events"

    async def outcomes(self) -> dict[str, int]:
        ledger = (await self.store.ledger()).get("slack", Ledger())
        assert ledger.balanced, ledger
        return {name: n for name, n in ledger.numbers.items() if n and name != "accepted"}

    @asynccontextmanager
    async def lives(
        self, way: str = "socket", allowed: frozenset[str] = ALL
    ) -> AsyncGenerator[Service]:
        secrets = {
            "socket": {"SLACK_APP_TOKEN": self.slack.app_token},
            "http": {"SLACK_SIGNING_SECRET": self.slack.signing_secret},
        }
        tokens = {"SLACK_BOT_TOKEN": self.slack.bot_token, "SLACK_API_URL": self.slack.api_url}
        ground = Ground(
            settings=Settings(allowed_users=tuple(allowed), drain_seconds=1),
            environment=tokens | secrets[way],
            store=self.store,
            platforms={"slack": PLATFORM},
            clock=self.clock,
            model=self.script,
            tools={},
        )
        self.slack.events.request_url = self.url if way == "http" else ""
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
            await self.slack.wait_for(lambda: service.adapters["slack"].health().ok)
            yield service
        finally:
            await service.stop()
            server.should_exit = True
            await serving
            listener.close()


@pytest.fixture
def town(slack: SlackStandIn) -> Town:
    slack.events.ack_seconds = 1.0
    return Town(slack)


async def answered(ada: User, slack: SlackStandIn, *texts: str, channel: str = "") -> None:
    """All of them, each once, in order, and nothing else."""
    await slack.wait_for(lambda: texts[-1] in ada.bot_texts(channel), 20.0)
    assert ada.bot_texts(channel) == list(texts)


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_said_while_it_was_down_is_answered_in_order(
    town: Town, slack: SlackStandIn, ada: User, way: str
) -> None:
    async with town.lives(way):
        ada.says("one")
        await answered(ada, slack, "re: one")
    slack.events.ack_seconds = 0.02
    ada.says("two")
    ada.says("three")
    await slack.wait_for(lambda: len(slack.events.lost) == 2)
    slack.events.ack_seconds = 1.0
    async with town.lives(way):
        await slack.wait_for(lambda: len(ada.bot_texts()) >= 2)
        await slack.wait_for(lambda: "three" in ada.bot_texts()[-1])
    assert await town.outcomes() == {"answered": 3}
    assert ada.bot_texts()[0] == "re: one"


@pytest.mark.parametrize("way", WAYS)
async def test_what_comes_again_while_the_first_is_worked_on_is_answered_once(
    town: Town, slack: SlackStandIn, ada: User, way: str
) -> None:
    town.script.hold()
    async with town.lives(way):
        ada.says("one")
        await slack.wait_for(lambda: slack.events.taken and town.script.requests)
        first = slack.events.envelopes[0]
        for _ in range(2):
            slack.redeliver(first)
            await slack.wait_for(lambda: first.state == "taken")
        town.script.release()
        await answered(ada, slack, "re: one")
        slack.redeliver(first)
        ada.says("two")
        await answered(ada, slack, "re: one", "re: two")
    assert len(town.script.requests) == 2


async def test_a_mention_is_answered_once_and_in_its_thread(
    town: Town, slack: SlackStandIn, ada: User
) -> None:
    grace = slack.user("U8", "Grace")
    async with town.lives():
        root = ada.says_in(CHANNEL, "hello", mention=True)
        await slack.wait_for(lambda: ada.bot_texts(CHANNEL, root.ts))
        grace.says_in(CHANNEL, "and me?", thread=root.ts)
        await slack.wait_for(lambda: len(ada.bot_texts(CHANNEL, root.ts)) == 2)
        grace.says("privately")
        await slack.wait_for(lambda: grace.bot_texts())
    assert len(ada.bot_texts(CHANNEL)) == 2
    assert ["hello" in str(request) for request in town.script.requests] == [True, True, False]


async def test_threads_and_the_top_of_a_private_conversation_do_not_mix(
    town: Town, slack: SlackStandIn, ada: User
) -> None:
    async with town.lives():
        root = ada.says("top secret")
        await answered(ada, slack, "re: top secret")
        ada.says("in the thread", thread=root.ts)
        await slack.wait_for(lambda: len(ada.bot_texts()) == 2)
        assert ada.bot_texts(thread=root.ts) == ["re: in the thread"]
    assert "top secret" not in str(town.script.requests[1])


async def test_stop_is_heard_during_a_turn(town: Town, slack: SlackStandIn, ada: User) -> None:
    town.script.hold()
    async with town.lives():
        for stop in (lambda: ada.says("stop"), lambda: ada.commands("stop")):
            asked, seen = len(town.script.requests), len(ada.bot_texts())
            ada.says("think hard")
            await slack.wait_for(lambda asked=asked: len(town.script.requests) > asked)
            stop()
            await slack.wait_for(lambda seen=seen: len(ada.bot_texts()) > seen)
            assert "topped" in ada.bot_texts()[-1]
    assert await town.outcomes() == {"answered": 2, "discarded": 2}


async def test_a_stranger_is_told_so_and_moves_no_model(
    town: Town, slack: SlackStandIn, ada: User
) -> None:
    async with town.lives(allowed=frozenset({"slack:T1.U8"})):
        ada.says("let me in")
        await slack.wait_for(lambda: ada.bot_texts())
        grace = slack.user("U8", "Grace")
        grace.says("hello")
        await answered(grace, slack, "re: hello")
    assert len(town.script.requests) == 1


async def test_a_long_answer_comes_whole_and_in_order(
    town: Town, slack: SlackStandIn, ada: User
) -> None:
    lines = [f"    line{number} = 1  # 日本 👋" for number in range(1_200)]
    town.script = ScriptedModel("\n".join(["Look:", "", "```py", *lines, "```", "", "Done."]))
    async with town.lives():
        ada.says("code, please")
        await slack.wait_for(lambda: "Done." in "".join(ada.bot_texts()), 20.0)
    texts = ada.bot_texts()
    assert len(texts) > 1
    assert all(text.count("```") == 2 for text in texts)
    shown = [line for text in texts for line in text.splitlines() if "line" in line]
    assert shown == lines


async def test_through_faults_of_all_kinds_each_message_is_answered_once(
    town: Town, slack: SlackStandIn
) -> None:
    people = [slack.user(f"U{number}", f"Person {number}") for number in range(10, 20)]
    slack.faults.next("chat.postMessage", StoreThenCut(), Reset(), SERVER_ERROR, BAD_GATEWAY)
    slack.faults.next("chat.update", StoreThenCut(), Reset(), SERVER_ERROR, too_many(1))
    slack.faults.next("conversations.history", SERVER_ERROR, too_many(1), Reset())
    slack.faults.next("users.info", Reset(), SERVER_ERROR)
    async with town.lives():
        for person in people[:5]:
            person.says("hello")
        await slack.drop_sockets()
        for person in people[5:]:
            person.says("hello")
        await slack.wait_for(lambda: slack.events.sockets)
        await slack.refresh_sockets()
        for person in people:
            person.says("still there?")
        for person in people:
            await slack.wait_for(
                lambda person=person: "still there?" in "".join(person.bot_texts()), 60.0
            )
    for person in people:
        said = [text for text in person.bot_texts() if text.startswith("re: ")]
        assert len(said) == len(set(said)), said
    assert await town.outcomes() == {"answered": 20}


async def test_a_service_that_ends_in_mid_stream_finishes_the_same_message(
    town: Town, slack: SlackStandIn, ada: User
) -> None:
    root = ada.says("before its time")
    slack.events.ack_seconds = 0.02
    await slack.wait_for(lambda: slack.events.lost)
    slack.events.ack_seconds = 1.0
    async with town.lives():
        town.script.hold()
        ada.says("tell me", thread=root.ts)
        await slack.wait_for(lambda: town.script.requests)
    town.script.release()
    async with town.lives():
        await slack.wait_for(lambda: "re: tell me" in "".join(ada.bot_texts(thread=root.ts)), 20.0)
    assert await town.outcomes() == {"answered": 1}
    assert sum("re: tell me" in text for text in ada.bot_texts()) == 1
