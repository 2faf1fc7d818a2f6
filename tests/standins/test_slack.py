"""The genuine Slack SDKs against the stand-in: what it takes, shows, brings and refuses."""

import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.standins.faults import BAD_GATEWAY, StoreThenCut, too_many
from tests.standins.slack import SlackStandIn
from tests.standins.slack_events import signed
from tests.standins.slack_user import User

CHANNEL = "C1"
METADATA = {"event_type": "stillhere", "event_payload": {"id": "k@1"}}
MARKDOWN = [{"type": "markdown", "text": "**hi**"}]


@pytest.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn() as slack:
        slack.channel(CHANNEL)
        slack.events.ack_seconds = 0.5
        yield slack


@pytest.fixture
def client(slack: SlackStandIn) -> Any:
    return AsyncWebClient(token=slack.bot_token, base_url=slack.api_url, retry_handlers=[])


@pytest.fixture
def ada(slack: SlackStandIn) -> User:
    return slack.user("U7", "Ada")


class Listener:
    """A Bolt app that writes down all that comes; it takes nothing while ``deaf``."""

    def __init__(self, slack: SlackStandIn, client: Any) -> None:
        self.heard: list[dict[str, Any]] = []
        self.deaf = False
        self.app: Any = AsyncApp(client=client, ignoring_self_events_enabled=False)
        self.app.use(self._hear)
        self.handler = AsyncSocketModeHandler(self.app, slack.app_token, ping_interval=0.2)

    async def _hear(self, body: dict[str, Any]) -> Any:
        if self.deaf:
            raise RuntimeError("deaf")
        self.heard.append(body)
        return BoltResponse(status=200)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [body["event"] for body in self.heard if "event" in body]


@pytest.fixture
async def listener(slack: SlackStandIn, client: Any) -> AsyncIterator[Listener]:
    listener = Listener(slack, client)
    await listener.handler.connect_async()
    await slack.wait_for(lambda: slack.events.sockets)
    yield listener
    await listener.handler.close_async()


def error_of(caught: Any) -> str:
    return caught.value.response["error"]


async def test_the_user_sees_what_the_bot_posts_and_updates(client: Any, ada: User) -> None:
    first = await client.chat_postMessage(channel=ada.dm, text="a &lt; b")
    sent = await client.chat_postMessage(channel=ada.dm, text="hi", blocks=MARKDOWN)
    await client.chat_update(channel=ada.dm, ts=first["ts"], text="changed")
    assert ada.bot_texts() == ["changed", "**hi**"]
    assert [message.ts for message in ada.chat] == [first["ts"], sent["ts"]]


async def test_an_update_keeps_the_blocks_that_it_does_not_name(client: Any, ada: User) -> None:
    sent = await client.chat_postMessage(channel=ada.dm, text="hi", blocks=MARKDOWN)
    await client.chat_update(channel=ada.dm, ts=sent["ts"], text="new")
    assert ada.bot_texts() == ["**hi**"]
    await client.chat_update(channel=ada.dm, ts=sent["ts"], text="new", blocks=[])
    assert ada.bot_texts() == ["new"]


async def test_metadata_is_found_in_the_history_when_asked_for(client: Any, ada: User) -> None:
    await client.chat_postMessage(channel=ada.dm, text="hi", metadata=METADATA)
    with_it = await client.conversations_history(channel=ada.dm, include_all_metadata=True)
    without = await client.conversations_history(channel=ada.dm)
    assert with_it["messages"][0]["metadata"] == METADATA
    assert "metadata" not in without["messages"][0]


async def test_history_comes_newest_first_in_pages(client: Any, ada: User) -> None:
    said = [ada.says(f"m{number}") for number in range(5)][-1]
    ada.says("in a thread", thread=said.ts)
    first = await client.conversations_history(channel=ada.dm, limit=2, oldest=ada.chat[0].ts)
    cursor = first["response_metadata"]["next_cursor"]
    second = await client.conversations_history(
        channel=ada.dm, limit=2, oldest=ada.chat[0].ts, cursor=cursor
    )
    texts = [message["text"] for page in (first, second) for message in page["messages"]]
    assert (texts, second["has_more"]) == (["m4", "m3", "m2", "m1"], False)
    replies = await client.conversations_replies(channel=ada.dm, ts=said.ts, oldest=said.ts)
    assert [message["text"] for message in replies["messages"]] == ["m4", "in a thread"]


async def test_a_stream_grows_and_is_closed_before_it_is_updated(client: Any, ada: User) -> None:
    asked = ada.says("tell me")
    sent = await client.chat_startStream(channel=ada.dm, thread_ts=asked.ts, markdown_text="one")
    await client.chat_appendStream(channel=ada.dm, ts=sent["ts"], markdown_text=" two")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_update(channel=ada.dm, ts=sent["ts"], text="new")
    assert error_of(caught) == "streaming_state_conflict"
    await client.chat_stopStream(channel=ada.dm, ts=sent["ts"])
    assert ada.bot_texts() == ["one two"]
    with pytest.raises(SlackApiError) as caught:
        await client.chat_appendStream(channel=ada.dm, ts=sent["ts"], markdown_text="x")
    assert error_of(caught) == "message_not_in_streaming_state"


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"channel": "C404", "text": "x"}, "channel_not_found"),
        ({"channel": CHANNEL}, "no_text"),
        (
            {"channel": CHANNEL, "blocks": [{"type": "markdown", "text": "x" * 12_001}]},
            "invalid_blocks",
        ),
        (
            {"channel": CHANNEL, "text": "x", "metadata": {"event_type": 1}},
            "invalid_metadata_format",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:The top-level `text`:UserWarning")
async def test_it_refuses_a_post(client: Any, named: dict[str, Any], error: str) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(**named)
    assert error_of(caught) == error


async def test_it_refuses_an_update_with_a_long_text(client: Any) -> None:
    sent = await client.chat_postMessage(channel=CHANNEL, text="x" * 40_000)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_update(channel=CHANNEL, ts=sent["ts"], text="é" * 2_001)
    assert error_of(caught) == "msg_too_long"


async def test_tokens_are_looked_at(slack: SlackStandIn, client: Any) -> None:
    me = await client.auth_test()
    assert (me["team_id"], me["user_id"]) == ("T1", "UBOT")
    slack.refuse_token("account_inactive")
    with pytest.raises(SlackApiError) as caught:
        await client.auth_test()
    assert error_of(caught) == "account_inactive"
    with pytest.raises(SlackApiError) as caught:
        await client.apps_connections_open(app_token="xapp-other")
    assert error_of(caught) == "invalid_auth"


async def test_what_was_not_granted_is_refused(slack: SlackStandIn, client: Any) -> None:
    slack.scopes = frozenset({"chat:write"})
    await client.chat_postMessage(channel=CHANNEL, text="x")
    with pytest.raises(SlackApiError) as caught:
        await client.conversations_history(channel=CHANNEL)
    assert error_of(caught) == "missing_scope"


async def test_faults_come_as_slack_words_them(slack: SlackStandIn, client: Any, ada: User) -> None:
    slack.faults.next("chat.postMessage", too_many(7), BAD_GATEWAY, StoreThenCut())
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=ada.dm, text="x")
    assert error_of(caught) == "ratelimited"
    answer: Any = caught.value
    assert answer.response.headers["Retry-After"] == "7"
    with pytest.raises((SlackApiError, AttributeError)):
        await client.chat_postMessage(channel=ada.dm, text="x")
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=ada.dm, text="stored")
    assert ada.bot_texts() == ["stored"]


async def test_a_file_is_given_to_the_bot_alone(
    slack: SlackStandIn, client: Any, ada: User
) -> None:
    file = ada.sends_file(data=b"hello").files[0]
    told = await client.files_info(file=file.id)
    url = told["file"]["url_private"]
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {slack.bot_token}"}
        async with session.get(url, headers=headers) as answer:
            assert await answer.read() == b"hello"
        async with session.get(url) as answer:
            assert answer.content_type == "text/html"


async def test_a_mention_comes_twice_and_a_message_once(
    slack: SlackStandIn, listener: Listener, ada: User
) -> None:
    ada.says("a < b")
    ada.says_in(CHANNEL, "you there?", mention=True)
    await slack.wait_for(lambda: len(listener.events) == 3)
    kinds = sorted((event["type"], event["text"]) for event in listener.events)
    assert kinds == [
        ("app_mention", "<@UBOT> you there?"),
        ("message", "<@UBOT> you there?"),
        ("message", "a &lt; b"),
    ]
    assert slack.events.lost == []


async def test_edits_deletions_clicks_and_commands_are_told(
    slack: SlackStandIn, client: Any, listener: Listener, ada: User
) -> None:
    said = ada.says("helo")
    ada.edits(said.ts, "hello")
    ada.deletes(said.ts)
    button = {
        "type": "button",
        "action_id": "b0",
        "value": "/retry",
        "text": {"type": "plain_text", "text": "Again"},
    }
    blocks = [*MARKDOWN, {"type": "actions", "elements": [button]}]
    sent = await client.chat_postMessage(channel=ada.dm, text="x", blocks=blocks)
    ada.clicks(sent["ts"], "/retry")
    ada.commands("stop")
    await slack.wait_for(lambda: len(slack.events.taken) == 6)
    subtypes = {event.get("subtype") for event in listener.events}
    assert subtypes == {None, "message_changed", "message_deleted"}
    assert [body["actions"][0]["value"] for body in listener.heard if "actions" in body] == [
        "/retry"
    ]
    assert [body["text"] for body in listener.heard if "command" in body] == ["stop"]


async def test_what_is_not_taken_comes_again_and_then_is_lost(
    slack: SlackStandIn, listener: Listener, ada: User, caplog: pytest.LogCaptureFixture
) -> None:
    slack.events.ack_seconds = 0.1
    listener.deaf = True
    ada.says("first")
    await slack.wait_for(lambda: slack.events.envelopes[0].deliveries == 2)
    listener.deaf = False
    await slack.wait_for(lambda: slack.events.taken)
    listener.deaf = True
    ada.says("second")
    await slack.wait_for(lambda: slack.events.lost)
    assert slack.events.envelopes[1].deliveries == 4
    assert [message.text for message in ada.chat] == ["first", "second"]
    assert "deaf" in caplog.text


async def test_without_a_socket_events_are_lost(slack: SlackStandIn, ada: User) -> None:
    slack.events.ack_seconds = 0.02
    ada.says("anyone?")
    await slack.wait_for(lambda: slack.events.lost)


async def test_a_socket_is_replaced_after_a_drop_and_when_slack_asks(
    slack: SlackStandIn, listener: Listener, ada: User
) -> None:
    await slack.drop_sockets()
    await slack.wait_for(lambda: 2 in slack.events.sockets)
    await slack.refresh_sockets()
    await slack.wait_for(lambda: 3 in slack.events.sockets)
    ada.says("still there?")
    await slack.wait_for(lambda: listener.events)


async def test_a_silent_socket_answers_no_ping(
    slack: SlackStandIn, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    slack.events.fall_silent()
    await slack.wait_for(lambda: 2 in slack.events.sockets)
    del caplog, listener


def test_a_signature_is_slacks() -> None:
    headers = signed(b"body", at=time.time(), secret="s")
    assert headers["X-Slack-Signature"].startswith("v0=")
    assert signed(b"body", at=1, secret="s") != signed(b"other", at=1, secret="s")
