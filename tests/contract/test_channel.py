"""What every platform's channel promises; a platform joins by a place in ``PLACES``."""

import asyncio
import itertools
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

import msgspec
import pytest

from bots.platforms import Adapter, Site, discord, slack, telegram
from core.domain.keys import Address
from core.domain.messages import Inbound, OutboxMessage, Part
from core.errors import PermanentError, TransientError, UnknownOutcomeError
from core.ports import Channel
from tests.bookmarks import no_bookmarks
from tests.contract.values import LONG_AGO
from tests.standins.base import StandIn
from tests.standins.discord import DiscordStandIn
from tests.standins.faults import BAD_GATEWAY, Fault, Refuse, Reset, StoreThenCut, too_many
from tests.standins.slack import SlackStandIn
from tests.standins.slack_world import slack_error
from tests.standins.telegram import TelegramStandIn

ANSWER = "Dear **Ada**,\n\n- `code` first\n- then <b>this</b> & that, 👋\n"
# What the platforms have in common of it, whatever they make of the rest.
WORDS = ("Ada", "code", "first", "<b>this</b> & that", "👋")


class Place(msgspec.Struct, kw_only=True):
    """A channel, where it may write, and what is seen there.

    ``sends`` and ``edits`` are the platform's methods; ``lost`` is its refusal for a chat that is
    gone, ``elsewhere`` the same channel at an address where nobody listens.
    """

    stand_in: StandIn
    channel: Channel
    address: Address
    seen: Callable[[], list[str]]
    sends: str
    edits: str
    lost: Refuse
    elsewhere: Channel
    numbers: Iterator[int] = msgspec.field(default_factory=itertools.count)

    def next_send(self, *faults: Fault) -> None:
        self.stand_in.faults.next(self.sends, *faults)

    async def say(self, part: Part) -> str:
        """Each in a row of its own."""
        return await self.channel.send(row(self.address, part, next(self.numbers)))


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 5, 5, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def row(address: Address, part: Part, number: int = 1) -> OutboxMessage:
    row_id = f"key@{number}#1"
    return OutboxMessage(id=row_id, key="key", address=address, kind="answer", part=part)


def plain(text: str) -> Part:
    return Part(text=text, plain=text)


def site() -> Site:
    async def accept(inbound: Inbound) -> None:
        raise AssertionError("nothing is taken here")

    return Site(accept=accept, clock=StillClock(), bookmarks=no_bookmarks, commands=())


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def at_telegram() -> AsyncGenerator[Place]:
    def adapter(url: str) -> Adapter:
        variables = {"TELEGRAM_BOT_TOKEN": tg.token, "TELEGRAM_API_URL": url}
        built = telegram.PLATFORM.build(variables, site())
        assert built is not None
        return built

    async with TelegramStandIn() as tg:
        ada = tg.user(7, "Ada")
        ada.says("hello")
        here, elsewhere = adapter(tg.url), adapter(unused_url())
        yield Place(
            stand_in=tg,
            channel=here.channel,
            address=Address(platform="telegram", account="123456", chat="7"),
            seen=ada.bot_texts,
            sends="sendMessage",
            edits="editMessageText",
            lost=Refuse(403, "Forbidden: bot was blocked by the user"),
            elsewhere=elsewhere.channel,
        )
        await here.close()
        await elsewhere.close()


@asynccontextmanager
async def at_slack() -> AsyncGenerator[Place]:
    """In a thread, where Slack shows most: streams and a status."""

    def adapter(url: str) -> Adapter:
        variables = {
            "SLACK_BOT_TOKEN": stand_in.bot_token,
            "SLACK_APP_TOKEN": stand_in.app_token,
            "SLACK_API_URL": f"{url}/api",
        }
        built = slack.PLATFORM.build(variables, site())
        assert built is not None
        return built

    async with SlackStandIn() as stand_in:
        ada = stand_in.user("U7", "Ada")
        root = ada.says("hello")
        here, elsewhere = adapter(stand_in.url), adapter(unused_url())
        address = Address(
            platform="slack", account="UBOT", workspace="T1", chat=ada.dm, thread=root.ts
        )
        yield Place(
            stand_in=stand_in,
            channel=here.channel,
            address=address,
            seen=ada.bot_texts,
            sends="chat.postMessage",
            edits="chat.update",
            lost=slack_error("channel_not_found"),
            elsewhere=elsewhere.channel,
        )
        await here.close()
        await elsewhere.close()


@asynccontextmanager
async def at_discord() -> AsyncGenerator[Place]:
    def adapter(url: str) -> Adapter:
        variables = {"DISCORD_BOT_TOKEN": place.token, "DISCORD_API_URL": url}
        built = discord.PLATFORM.build(variables, site())
        assert built is not None
        return built

    async with DiscordStandIn() as place:
        ada = place.user(7, "Ada")
        ada.says("hello")
        here, elsewhere = adapter(place.api_url), adapter(unused_url())
        yield Place(
            stand_in=place,
            channel=here.channel,
            address=Address(platform="discord", account="123456", chat=str(ada.dm)),
            seen=ada.bot_texts,
            sends="create_message",
            edits="edit_message",
            lost=Refuse(403, "Missing Access", parameters={"code": 50001}),
            elsewhere=elsewhere.channel,
        )
        await here.close()
        await elsewhere.close()


PLACES: dict[str, Callable[[], AbstractAsyncContextManager[Place]]] = {
    "telegram": at_telegram,
    "slack": at_slack,
    "discord": at_discord,
}


@pytest.fixture(params=PLACES)
async def place(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    async with PLACES[request.param]() as place:
        yield place


async def test_what_is_rendered_is_accepted_and_loses_no_word(place: Place) -> None:
    for part in place.channel.render(ANSWER):
        await place.say(part)
    shown = "\n".join(place.seen())
    assert [word for word in WORDS if word not in shown] == []


async def test_a_long_answer_comes_in_order(place: Place) -> None:
    words = [f"word{number}" for number in range(1500)]
    parts = place.channel.render(" ".join(words))
    for part in parts:
        await place.say(part)
    assert len(parts) > 1
    assert " ".join(place.seen()).split() == words


@pytest.mark.parametrize("text", ["", " \n\t", "\x00", "```", "**", "\ud800", "<!channel>"])
async def test_rendering_never_fails(place: Place, text: str) -> None:
    for part in (*place.channel.render(text), place.channel.preview(text)):
        assert part is None or part.plain.strip()


async def test_nothing_to_see_is_no_part(place: Place) -> None:
    assert (place.channel.render(" \n"), place.channel.preview(" \n")) == ((), None)


async def test_a_preview_becomes_the_answer_in_its_place(place: Place) -> None:
    preview = place.channel.preview("Dear **Ad")
    assert preview is not None
    shown = await place.say(preview)
    await place.channel.edit(place.address, shown, plain("Dear Ada"))
    assert place.seen() == ["Dear Ada"]


async def test_an_edit_that_changes_nothing_is_a_success(place: Place) -> None:
    shown = await place.say(plain("done"))
    for _ in range(2):
        await place.channel.edit(place.address, shown, plain("done"))
    assert place.seen() == ["done"]


async def test_ids_tell_messages_apart(place: Place) -> None:
    one, other = await place.say(plain("same")), await place.say(plain("same"))
    await place.channel.edit(place.address, one, plain("changed"))
    assert place.seen() == ["changed", "same"]
    assert one != other


async def test_typing_shows_no_message(place: Place) -> None:
    await place.channel.typing(place.address)
    assert place.seen() == []


async def test_a_platform_out_of_reach_was_sent_nothing(place: Place) -> None:
    message = row(place.address, plain("hello"))
    with pytest.raises(TransientError):
        await place.elsewhere.send(message)
    with pytest.raises(TransientError):
        await place.elsewhere.edit(place.address, "1", message.part)
    with pytest.raises(TransientError):
        await place.elsewhere.typing(place.address)


@pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
async def test_too_many_proves_that_nothing_was_sent_and_says_how_long(place: Place) -> None:
    place.next_send(too_many(17))
    with pytest.raises(TransientError) as caught:
        await place.say(plain("hello"))
    assert caught.value.retry_after == 17
    assert place.seen() == []


async def test_a_chat_that_is_gone_is_gone_for_good(place: Place) -> None:
    place.next_send(place.lost)
    with pytest.raises(PermanentError):
        await place.say(plain("hello"))
    assert place.seen() == []


@pytest.mark.parametrize(
    ("fault", "seen"),
    [(StoreThenCut(), ["hello"]), (Reset(), []), (BAD_GATEWAY, [])],
    ids=["stored, then cut", "cut", "a proxy's page"],
)
async def test_what_may_have_arrived_is_said_to_be_unknown_and_not_repeated(
    place: Place, fault: Fault, seen: list[str]
) -> None:
    place.next_send(fault)
    with pytest.raises(UnknownOutcomeError):
        await place.say(plain("hello"))
    assert place.seen() == seen
    assert len(place.stand_in.calls_of(place.sends)) == 1


async def test_an_edit_may_be_repeated_after_a_cut(place: Place) -> None:
    shown = await place.say(plain("Dear"))
    place.stand_in.faults.next(place.edits, StoreThenCut())
    with pytest.raises(UnknownOutcomeError):
        await place.channel.edit(place.address, shown, plain("Dear Ada"))
    await place.channel.edit(place.address, shown, plain("Dear Ada"))
    assert place.seen() == ["Dear Ada"]


async def test_a_doubtful_send_is_looked_up_or_has_to_be_repeated(place: Place) -> None:
    shown = await place.say(plain("hello"))
    assert await place.channel.lookup(row(place.address, plain("hello"), 0), LONG_AGO) in (
        None,
        shown,
    )
