"""Of a message in doubt: it is there once in the end, however long nobody knew."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from bots.platforms.discord.channel import DiscordChannel
from core.domain.keys import Address
from core.errors import UnknownOutcomeError
from core.runtime.delivery import Delivery
from core.runtime.holder import Holder
from core.runtime.limiter import Limiter
from tests.bots.platforms.discord.kit import Bench
from tests.bots.platforms.discord.test_channel import here_of, plain, row
from tests.contract.values import commit, said
from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User
from tests.standins.faults import SERVER_ERROR, Fault, StoreThenCut

KEY = "agent:main:discord:dm:7"


def at_work(bench: Bench) -> DiscordChannel:
    channel = bench.adapter.channel
    assert isinstance(channel, DiscordChannel)
    return channel


async def fails(bench: Bench, here: Address, fault: Fault) -> None:
    bench.place.faults.next("create_message", fault)
    with pytest.raises(UnknownOutcomeError):
        await at_work(bench).send(row(plain("once"), here))


async def test_a_reminder_that_reads_like_an_older_one_is_said(place: DiscordStandIn) -> None:
    """Two of them, which one message asked for. The second never arrived."""
    place.chats.seconds_ago = 3600
    here = here_of(place.user(7, "Ada"))
    place.chats.seconds_ago = 1800
    bench = Bench(place)
    first = await at_work(bench).send(row(plain("drink water"), here, 1))
    await bench.adapter.close()
    place.chats.seconds_ago = 0
    after = Bench(place)
    now = after.clock.now()
    second = row(plain("drink water"), here, 2)
    assert await at_work(after).lookup(second, now - timedelta(minutes=10)) is None
    half_an_hour_ago = now - timedelta(minutes=29)
    assert await at_work(after).lookup(second, half_an_hour_ago) == first
    await after.adapter.close()


async def test_an_answer_in_a_previews_place_is_as_old_as_the_preview(
    place: DiscordStandIn,
) -> None:
    place.chats.seconds_ago = 1800
    here = here_of(place.user(7, "Ada"))
    bench = Bench(place)
    shown = await at_work(bench).send(row(plain("all of"), here))
    await at_work(bench).edit(here, shown, plain("all of it"))
    await bench.adapter.close()
    after = Bench(place)
    promised = after.clock.now() - timedelta(minutes=10)
    answer = replace(row(plain("all of it"), here, 2), edits="k@1")
    assert await at_work(after).lookup(answer, promised) == shown
    await after.adapter.close()


async def test_a_message_that_cannot_be_read_hides_no_other(place: DiscordStandIn) -> None:
    place.chats.seconds_ago = 600
    ada = place.user(7, "Ada")
    here = here_of(ada)
    bench = Bench(place)
    sent = await at_work(bench).send(row(plain("hello"), here))
    ada.sends_kind(text="strange", attachments=[{"id": "1"}], content=None)
    await bench.adapter.close()
    after = Bench(place)
    promised = after.clock.now() - timedelta(minutes=10)
    assert await at_work(after).lookup(row(plain("hello"), here), promised) == sent
    await after.adapter.close()


async def test_it_is_the_first_try_that_discord_remembers_for_a_while(
    place: DiscordStandIn, ada: User
) -> None:
    here, bench = here_of(ada), Bench(place)
    promised = bench.clock.now()
    await fails(bench, here, StoreThenCut())
    bench.clock.ahead += timedelta(seconds=100)
    assert await at_work(bench).lookup(row(plain("once"), here), promised) is None
    await fails(bench, here, SERVER_ERROR)
    bench.clock.ahead += timedelta(seconds=100)
    (shown,) = [message for message in ada.chat if message.from_bot]
    assert await at_work(bench).lookup(row(plain("once"), here), promised) == str(shown.id)
    await bench.adapter.close()


async def test_of_a_try_of_another_process_its_promise_counts(
    place: DiscordStandIn, ada: User
) -> None:
    here, before = here_of(ada), Bench(place)
    promised = before.clock.now()
    await fails(before, here, StoreThenCut())
    await before.adapter.close()
    after = Bench(place)
    after.clock.ahead += timedelta(seconds=100)
    assert await at_work(after).lookup(row(plain("once"), here), promised) is None
    await fails(after, here, SERVER_ERROR)
    after.clock.ahead += timedelta(seconds=100)
    (shown,) = [message for message in ada.chat if message.from_bot]
    assert await at_work(after).lookup(row(plain("once"), here), promised) == str(shown.id)
    await after.adapter.close()


async def test_what_was_said_long_ago_is_not_kept_in_memory(
    place: DiscordStandIn, ada: User
) -> None:
    bench, here = Bench(place), here_of(ada)
    for number in range(5):
        await at_work(bench).send(row(plain("hi"), here, number))
        bench.clock.ahead += timedelta(hours=1)
    assert len(at_work(bench)._tried) == 1  # pyright: ignore[reportPrivateUsage]
    await bench.adapter.close()


async def promises(bench: Bench, here: Address) -> None:
    message = replace(row(plain("hello"), here), key=KEY)
    made = commit(message.key, 0, said(), outbox=(message,), at=bench.clock.now())
    await bench.store.commit(made)


async def delivers(bench: Bench) -> None:
    """All that is due, as a process does that looks for the first time."""
    clock, channels = bench.clock, {"discord": bench.adapter.channel}
    await Delivery(bench.store, channels, Limiter(clock), clock, Holder("me", 30)).drain(5)


async def test_a_send_in_doubt_after_a_long_outage_is_said_once(
    place: DiscordStandIn, ada: User
) -> None:
    """Discord stores the last of many tries and breaks off; when it is tried again, minutes later,
    it has forgotten the number."""
    bench = Bench(place)
    await promises(bench, here_of(ada))
    place.faults.next("create_message", SERVER_ERROR, SERVER_ERROR, StoreThenCut())
    for _ in range(5):
        await delivers(bench)
        bench.clock.ahead += timedelta(minutes=5, seconds=1)
        place.methods.forget_nonces()
    await bench.adapter.close()
    assert ada.bot_texts() == ["hello"]
    assert await bench.store.backlog() == {}


async def test_a_send_in_doubt_and_then_a_stop_of_ten_minutes_is_said_once(
    place: DiscordStandIn, ada: User
) -> None:
    before = Bench(place)
    await promises(before, here_of(ada))
    place.faults.next("create_message", StoreThenCut())
    await delivers(before)
    assert await before.store.backlog() == {"pending": 1}
    await before.adapter.close()
    place.methods.forget_nonces()
    after = Bench(place, before.store)
    after.clock.ahead += timedelta(minutes=10)
    await delivers(after)
    await after.adapter.close()
    assert ada.bot_texts() == ["hello"]
    assert await after.store.backlog() == {}
