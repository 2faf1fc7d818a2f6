"""What each refusal of Slack's, and each broken connection, means."""

import socket
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from bots.platforms.slack.faults import fault_of
from core.errors import PermanentError, StillhereError, TransientError, UnknownOutcomeError
from core.ports import Channel
from tests.bots.platforms.slack.kit import Bench, here, plain, row
from tests.standins.faults import (
    BAD_GATEWAY,
    GARBAGE,
    SERVER_ERROR,
    Fault,
    Raw,
    Refuse,
    Reset,
    StoreThenCut,
    too_many,
)
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import User
from tests.standins.slack_world import slack_error

POST = "chat.postMessage"


def sends(channel: Channel) -> Awaitable[object]:
    return channel.send(row(plain("hi"), here()))


def types(channel: Channel) -> Awaitable[object]:
    return channel.typing(here(thread="1.0"))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Reset(), UnknownOutcomeError),
        (StoreThenCut(), UnknownOutcomeError),
        (SERVER_ERROR, UnknownOutcomeError),
        (BAD_GATEWAY, UnknownOutcomeError),
        (GARBAGE, UnknownOutcomeError),
        (Raw(200, "{}", "application/json"), UnknownOutcomeError),
        (Raw(200, '{"ok": true}', "application/json"), UnknownOutcomeError),
        (Raw(200, "[1]", "application/json"), UnknownOutcomeError),
        (Raw(200, "invalid_auth", "text/plain"), UnknownOutcomeError),
        (Raw(403, "<html>invalid_auth"), UnknownOutcomeError),
        (Raw(401, "<html>"), UnknownOutcomeError),
        (
            Raw(503, '{"ok": false, "error": "is_archived"}', "application/json"),
            UnknownOutcomeError,
        ),
        (slack_error("fatal_error"), UnknownOutcomeError),
        (slack_error("internal_error"), UnknownOutcomeError),
        (slack_error("channel_not_found"), PermanentError),
        (slack_error("is_archived"), PermanentError),
        (slack_error("not_in_channel"), PermanentError),
        (slack_error("msg_too_long"), PermanentError),
        (slack_error("a_word_that_is_new"), PermanentError),
        (slack_error("team_added_to_org"), TransientError),
        (slack_error("ratelimited"), TransientError),
        (Raw(429, "slow down"), TransientError),
        (slack_error("invalid_auth"), TransientError),
    ],
    ids=lambda value: getattr(value, "text", "") or getattr(value, "body", "")[:20] or None,
)
async def test_a_fault_is(
    bench: Bench, ada: User, fault: Fault, error: type[StillhereError]
) -> None:
    bench.slack.faults.next(POST, fault)
    with pytest.raises(StillhereError) as caught:
        await sends(bench.channel)
    assert type(caught.value) is error
    assert len(bench.slack.calls) == 1


async def test_too_many_says_how_long(bench: Bench) -> None:
    bench.slack.faults.next(POST, too_many(17))
    with pytest.raises(TransientError) as caught:
        await sends(bench.channel)
    assert caught.value.retry_after == 17.0


async def test_an_error_names_the_scope_that_is_needed(bench: Bench) -> None:
    bench.slack.scopes = frozenset()
    with pytest.raises(PermanentError, match="the scope chat:write"):
        await sends(bench.channel)


async def test_a_connection_that_never_was_sent_nothing(slack: SlackStandIn) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
    bench = Bench(slack, SLACK_API_URL=nobody)
    for call in (sends, types):
        with pytest.raises(TransientError):
            await call(bench.channel)
    await bench.adapter.close()


@pytest.mark.parametrize("call", [sends, types])
async def test_a_refused_token_is_not_hammered(
    bench: Bench, call: Callable[[Channel], Awaitable[object]]
) -> None:
    bench.slack.refuse_token("account_inactive")
    for _ in range(3):
        with pytest.raises(TransientError) as caught:
            await call(bench.channel)
        assert caught.value.retry_after == 60.0
    assert len(bench.slack.calls) == 1
    health = bench.adapter.health()
    assert (health.ok, "account_inactive" in health.detail) == (False, True)


async def test_a_word_in_a_text_is_no_code(bench: Bench, ada: User) -> None:
    """FIELD S6: another fault whose text holds the code of a refused token."""
    bench.slack.faults.next(
        POST, Refuse(200, "channel_not_found", parameters={"x": "invalid_auth"})
    )
    with pytest.raises(PermanentError):
        await sends(bench.channel)
    await sends(bench.channel)
    assert ada.bot_texts() == ["hi"]


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (TimeoutError(), "unknown"),
        (ConnectionResetError(), "unknown"),
        (KeyError("ts"), "unknown"),
        (aiohttp.ConnectionTimeoutError(), "unsent"),
        (aiohttp.InvalidURL("x"), "unsent"),
    ],
)
def test_other_errors_are(error: Exception, fault: str) -> None:
    assert fault_of(error) == fault
