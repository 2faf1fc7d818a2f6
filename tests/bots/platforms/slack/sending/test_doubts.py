"""What is found of a message in doubt, and what it costs to look."""

from datetime import timedelta

import msgspec
import pytest

from core.domain.messages import OutboxMessage
from core.errors import TransientError, UnknownOutcomeError
from core.ports import Channel
from tests.bots.platforms.slack.kit import Bench, here, plain, previewed, row
from tests.contract.values import LONG_AGO
from tests.standins.faults import (
    BAD_GATEWAY,
    Fault,
    Reset,
    StoreThenCut,
    too_many,
)
from tests.standins.slack_user import User

POST = "chat.postMessage"


@pytest.mark.parametrize("is_thread", [True, False], ids=["streamed", "posted"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "cut"])
async def test_a_preview_in_doubt_becomes_the_answer(
    bench: Bench, ada: User, is_thread: bool, is_killed: bool
) -> None:
    """Whether its process was killed before it knew, or the answer to it was cut."""
    address = here(ada.dm, ada.chat[0].ts if is_thread else "")
    part = previewed(bench.channel, "Let")
    preview = OutboxMessage(id="k:p", key="k", address=address, kind="preview", part=part)
    bench.slack.faults.next("chat.startStream" if is_thread else POST, StoreThenCut())
    with pytest.raises(UnknownOutcomeError):
        await bench.channel.send(preview)
    later = Bench(bench.slack) if is_killed else bench
    answer = msgspec.structs.replace(row(plain("Let me see"), address), edits="k:p")
    ts = await later.channel.send(answer)
    assert (ada.bot_texts(), ada.chat[-1].ts) == (["Let me see"], ts)
    assert await later.channel.lookup(answer, LONG_AGO) == ts
    again = msgspec.structs.replace(row(plain("And"), address, "k@2"), edits="k:other")
    await later.channel.send(again)
    assert ada.bot_texts() == ["Let me see", "And"]
    await later.adapter.close()


async def test_an_answer_that_was_said_is_never_taken_for_a_preview_in_doubt(
    bench: Bench, channel: Channel, ada: User
) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(previewed(channel, "One"), address))
    bench.slack.ends_streams()
    await channel.edit(address, ts, previewed(channel, "One, "))
    await channel.edit(address, ts, plain("One, two"))
    await channel.send(msgspec.structs.replace(row(plain("Three"), address), edits="k:p"))
    assert ada.bot_texts() == ["One, two", "Three"]


async def test_a_look_for_a_preview_costs_an_answer_nothing(
    bench: Bench, channel: Channel, ada: User
) -> None:
    answer = msgspec.structs.replace(row(plain("hi"), here()), edits="k:p")
    bench.slack.faults.next("conversations.history", too_many(17))
    await channel.send(answer)
    assert ada.bot_texts() == ["hi"]
    bench.clock.ahead = timedelta(hours=1)
    await channel.send(answer)
    assert len(bench.slack.calls_of("conversations.history")) == 1


async def test_a_send_in_doubt_is_found_by_its_id(channel: Channel, ada: User) -> None:
    for number in range(150):
        await channel.send(row(plain(f"m{number}"), here(), f"k@{number}"))
    found = [await channel.lookup(row(plain("?"), here(), f"k@{n}"), LONG_AGO) for n in (0, 149)]
    assert found == [ada.chat[1].ts, ada.chat[150].ts]
    assert await channel.lookup(row(plain("?"), here(), "k@150"), LONG_AGO) is None


@pytest.mark.parametrize("is_thread", [True, False], ids=["in a thread", "at the top"])
async def test_a_send_in_doubt_is_found_after_days(
    bench: Bench, ada: User, is_thread: bool
) -> None:
    """Killed before it knew that an answer had arrived, and started again after the weekend."""
    message = row(plain("hi"), here(ada.dm, ada.chat[0].ts if is_thread else ""))
    promised = bench.clock.now()
    sent = await bench.channel.send(message)
    bench.slack.world.ahead = timedelta(days=3).total_seconds()
    later = Bench(bench.slack)
    later.clock.ahead = timedelta(days=3)
    assert await later.channel.lookup(message, promised) == sent
    await later.adapter.close()


async def test_a_preview_of_a_process_that_was_killed_is_found_after_days(
    bench: Bench, ada: User
) -> None:
    part = previewed(bench.channel, "Let")
    await bench.channel.send(
        OutboxMessage(id="k:p", key="k", address=here(), kind="preview", part=part)
    )
    bench.slack.world.ahead = timedelta(days=3).total_seconds()
    later = Bench(bench.slack)
    assert (await later.adapter.check()).ok
    await later.channel.send(msgspec.structs.replace(row(plain("Let me"), here()), edits="k:p"))
    assert ada.bot_texts() == ["Let me"]
    await later.adapter.close()


async def test_nothing_is_read_of_the_time_before_a_message_was_promised(
    bench: Bench, channel: Channel, ada: User
) -> None:
    for number in range(150):
        await channel.send(row(plain(f"m{number}"), here(), f"k@{number}"))
    bench.slack.world.ahead = timedelta(hours=1).total_seconds()
    bench.clock.ahead = timedelta(hours=1)
    promised = bench.clock.now()
    sent = await channel.send(row(plain("hi"), here()))
    assert await channel.lookup(row(plain("hi"), here()), promised) == sent
    assert await channel.lookup(row(plain("?"), here(), "k@?"), promised) is None
    assert len(bench.slack.calls_of("conversations.history")) == 2


async def test_a_send_in_doubt_is_found_in_its_thread(channel: Channel, ada: User) -> None:
    address = here(ada.dm, ada.chat[0].ts)
    ts = await channel.send(row(plain("in the thread"), address, "k@1"))
    assert await channel.lookup(row(plain("?"), address, "k@1"), LONG_AGO) == ts
    assert await channel.lookup(row(plain("?"), here(), "k@1"), LONG_AGO) is None


@pytest.mark.parametrize("fault", [StoreThenCut(), Reset()], ids=["stored", "not stored"])
async def test_a_cut_send_ends_as_one_message(
    bench: Bench, channel: Channel, ada: User, fault: Fault
) -> None:
    bench.slack.faults.next(POST, fault)
    message = row(plain("hi"), here())
    with pytest.raises(UnknownOutcomeError):
        await channel.send(message)
    if await channel.lookup(message, LONG_AGO) is None:
        await channel.send(message)
    assert ada.bot_texts() == ["hi"]


async def test_a_history_that_is_kept_from_us_does_not_hold_up_an_answer(
    bench: Bench, channel: Channel
) -> None:
    bench.slack.scopes = frozenset({"chat:write"})
    assert await channel.lookup(row(plain("hi"), here()), LONG_AGO) is None


async def test_a_look_that_fails_settles_nothing(bench: Bench, channel: Channel) -> None:
    bench.slack.faults.next("conversations.history", too_many(17), BAD_GATEWAY)
    with pytest.raises(TransientError):
        await channel.lookup(row(plain("hi"), here()), LONG_AGO)
    with pytest.raises(UnknownOutcomeError):
        await channel.lookup(row(plain("hi"), here()), LONG_AGO)
