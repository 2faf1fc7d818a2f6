"""Events over HTTP: signature and age are looked at, and 200 is said to what is stored alone."""

import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from core.errors import StorageError
from tests.bots.platforms.slack.kit import CHANNEL, Bench, served
from tests.standins.slack import SlackStandIn
from tests.standins.slack_events import signed
from tests.standins.slack_user import User

BODY = b'{"type":"event_callback","event":{"type":"message"}}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def at(slack: SlackStandIn) -> AsyncIterator[tuple[Bench, str]]:
    async with served(slack) as (bench, url):
        await bench.adapter.start()
        await bench.is_well()
        slack.events.request_url = url
        yield bench, url


async def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers | JSON) as answer,
    ):
        return answer.status


async def test_messages_commands_and_presses_are_taken(at: tuple[Bench, str], ada: User) -> None:
    bench, _ = at
    ada.says("hello")
    ada.says_in(CHANNEL, "you there?", mention=True)
    ada.commands("stop")
    await bench.takes(3)
    await bench.slack.wait_for(lambda: len(bench.slack.events.taken) == 4)
    assert sorted(bench.inbox.texts) == ["/stop", "hello", "you there?"]
    assert bench.slack.events.posts == [200] * 4


async def test_half_an_emoji_is_taken_and_acknowledged(at: tuple[Bench, str], ada: User) -> None:
    bench, _ = at
    ada.says("cut \ud83d")
    (taken,) = await bench.takes()
    assert taken.text.startswith("cut ")
    await bench.slack.wait_for(lambda: bench.slack.events.taken)
    assert bench.slack.events.posts == [200]


async def test_what_is_not_stored_is_not_acknowledged(at: tuple[Bench, str], ada: User) -> None:
    bench, _ = at
    bench.slack.events.ack_seconds = 0.5
    bench.inbox.failures.append(StorageError("disk full"))
    ada.says("hello")
    await bench.takes()
    await bench.slack.wait_for(lambda: bench.slack.events.taken)
    assert bench.slack.events.posts == [500, 200]


async def test_the_address_is_verified(at: tuple[Bench, str]) -> None:
    bench, url = at
    assert await bench.slack.verify_url(url) == '{"challenge": "3eZbrw1a"}'
    assert bench.inbox.offered == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed(BODY, secret="another"),
        signed(b"another body"),
        signed(BODY, at=time.time() - 400),
        signed(BODY) | {"X-Slack-Request-Timestamp": "soon"},
        signed(BODY) | {"X-Slack-Signature": "v0=é"},
    ],
    ids=["no signature", "another secret", "another body", "old", "no time", "no text"],
)
async def test_what_slack_did_not_send_is_refused(
    at: tuple[Bench, str], headers: dict[str, str]
) -> None:
    bench, url = at
    assert await post(url, BODY, headers) == 401
    assert bench.inbox.offered == []


@pytest.mark.parametrize("body", [b'{"', b"[1]", b'payload={"', b"\xff\xfe"])
async def test_whatever_a_stranger_posts_is_refused(at: tuple[Bench, str], body: bytes) -> None:
    _, url = at
    assert await post(url, body, {}) == 401
    assert await post(url, body, signed(body, secret="another")) in (400, 401)


async def test_a_body_that_is_no_text_is_refused(at: tuple[Bench, str]) -> None:
    _, url = at
    assert await post(url, b"\xff\xfe", signed(b"\xff\xfe")) == 400


async def test_it_is_closed_until_it_is_started_and_after_it_is_stopped(
    slack: SlackStandIn, ada: User
) -> None:
    async with served(slack) as (bench, url):
        assert await post(url, BODY, signed(BODY)) == 503
        await bench.adapter.start()
        await bench.is_well()
        assert await post(url, BODY, signed(BODY)) == 200
        await bench.adapter.stop()
        assert await post(url, BODY, signed(BODY)) == 503
        ada.says("missed")
        await bench.adapter.start()
        await bench.is_well()
    assert slack.events.sockets == {}


async def test_a_refused_token_is_noticed_within_a_minute(at: tuple[Bench, str]) -> None:
    bench, _ = at
    bench.slack.refuse_token()
    bench.clock.pass_a_minute()
    await bench.says("refuses a token")
    assert not bench.adapter.health().ok


async def test_with_both_the_socket_is_used(slack: SlackStandIn, ada: User) -> None:
    bench = Bench(slack, SLACK_SIGNING_SECRET="s", SLACK_APP_TOKEN=slack.app_token)
    assert bench.adapter.routes == ()
    await bench.adapter.start()
    await bench.is_well()
    ada.says("hello")
    await bench.takes()
    await bench.adapter.close()
