"""What reaches the chat, in which order and how often, whatever the platform does."""

import asyncio
from itertools import pairwise

import pytest
from msgspec.structs import replace

from core.errors import PermanentError, StorageError, TransientError, UnknownOutcomeError
from core.runtime import delivery
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME
from tests.core.runtime.house import KEY, LEASE, Ground, passes, sends, service, spoil
from tests.core.runtime.virtual import in_virtual_time


@in_virtual_time
async def test_the_parts_of_an_answer_come_in_order_and_each_once() -> None:
    ground, process = await service("one|two|three", "four")
    ground.chat.seconds = 2

    await process.hears("hi")
    await process.hears("more")
    await passes(30)

    assert ground.chat.texts == ["one", "two", "three", "four"]
    assert sends(ground) == ["one", "two", "three", "four"]


@in_virtual_time
async def test_a_part_that_fails_holds_up_those_behind_it() -> None:
    ground, process = await service("one|two")
    ground.chat.faults.append(TransientError("no route"))

    await process.hears("hi")
    await passes(10)

    assert sends(ground) == ["one", "one", "two"]
    assert ground.chat.texts == ["one", "two"]


@in_virtual_time
async def test_a_slow_chat_does_not_hold_up_another() -> None:
    ground, process = await service("to the slow", "to the quick")
    ground.chat.faults.extend([TransientError("429", retry_after=60), None])

    await process.hears("hi")
    await passes(1)
    await process.hears("hi", address=replace(HOME, chat="8"), user="8")
    await passes(2)

    assert ground.chat.texts == ["to the quick"]
    await passes(60)
    assert ground.chat.texts == ["to the quick", "to the slow"]


@in_virtual_time
async def test_a_429_is_in_the_row_and_survives_a_death() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(TransientError("429", retry_after=300))
    await process.hears("hi")
    await passes(2)
    process.dies()

    await ground.starts()
    await passes(290)
    assert sends(ground) == ["hello"]
    await passes(15)

    assert sends(ground) == ["hello", "hello"]
    assert ground.chat.texts == ["hello"]


@in_virtual_time
async def test_a_blocked_chat_frees_its_row_for_as_long() -> None:
    ground, process = await service("hello")
    process.limiter.block(HOME, 600)

    await process.hears("hi")
    await passes(599)
    assert sends(ground) == []
    await passes(3)

    assert sends(ground) == ["hello"]


class Away(MemoryStore):
    """Out of reach until a time of the loop."""

    back_at = 0.0

    async def _turn(self) -> None:
        await super()._turn()
        if asyncio.get_running_loop().time() < self.back_at:
            raise StorageError("the database is away")


@pytest.mark.parametrize("seconds", [20, 40, 200])
@in_virtual_time
async def test_a_message_that_was_sent_while_the_database_was_away_is_not_sent_again(
    seconds: float,
) -> None:
    ground = Ground("hello")
    ground.store = store = Away()
    process = await ground.starts()
    ground.chat.seconds = 1
    await process.hears("hi")
    await passes(0.5)
    assert sends(ground) == ["hello"]

    store.back_at = asyncio.get_running_loop().time() + seconds
    await passes(seconds + 300)

    assert sends(ground) == ["hello"]
    assert await ground.store.backlog() == {}


@in_virtual_time
async def test_a_crowd_that_has_to_wait_for_the_pace_is_told_once() -> None:
    crowd = range(1000, 1600)
    ground = Ground()
    ground.chat.seconds = 0.2
    process = await ground.starts()

    for user in crowd:
        await process.hears("/help", user=f"{user}", address=replace(HOME, chat=f"{user}"))
    await passes(len(crowd) / 30 + 2 * LEASE)

    assert len(crowd) / 30 > LEASE, "the last of them has to wait for longer than a claim lasts"
    assert len(sends(ground)) == len(crowd)
    assert await ground.store.backlog() == {}
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(ground.chat.calls("send"))]
    longest = 1.0 + ground.chat.seconds + 0.1
    assert max(gaps) < longest, "nobody pauses while others wait, but for a look at the outbox"


@in_virtual_time
async def test_a_row_whose_chat_is_blocked_while_it_waits_is_put_back() -> None:
    group = replace(HOME, chat="77", chat_type="group")
    ground = Ground("a|b|c|d|e")
    process = await ground.starts()
    await process.hears("hi", address=group)
    await passes(3)
    assert ground.chat.texts == ["a", "b"]

    process.limiter.block(group, 3 * LEASE)
    await passes(4 * LEASE)

    assert sends(ground) == ["a", "b", "c", "d", "e"]


@in_virtual_time
async def test_an_answer_whose_conversation_is_set_aside_while_it_is_sent_comes_once() -> None:
    ground, process = await service("hello", "a new one")
    ground.chat.seconds = 3
    await process.hears("hi")
    await passes(1)
    spoil(ground)

    second = await ground.starts()
    await second.hears("are you there?")
    await passes(60)

    assert ground.chat.texts[0] == "hello"
    assert "could not be read" in ground.chat.texts[1]
    assert ground.chat.texts[2:] == ["a new one"]


@in_virtual_time
async def test_what_the_platform_refuses_for_good_does_not_hold_up_the_rest() -> None:
    ground, process = await service("bad|good")
    ground.chat.faults.append(PermanentError("message is malformed"))

    await process.hears("hi")
    await passes(5)

    assert ground.chat.texts == ["good"]
    assert await ground.store.backlog() == {"failed": 1}


@in_virtual_time
async def test_pauses_between_tries_grow_to_five_minutes() -> None:
    ground, process = await service("hello")
    ground.chat.faults.extend([TransientError("down")] * 11)

    await process.hears("hi")
    await passes(3_000)

    times = [at for at, _ in ground.chat.calls("send")]
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == pytest.approx([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300], abs=1.1)
    assert ground.chat.texts == ["hello"]


@in_virtual_time
async def test_a_sent_row_that_the_database_could_not_mark_is_not_sent_again() -> None:
    ground, process = await service("hello")
    ground.chat.seconds = 1
    await process.hears("hi")
    await passes(0.5)
    broken = Breaking(ground, calls=3)

    await passes(30)

    assert broken.left == 0
    assert sends(ground) == ["hello"]
    assert await ground.store.backlog() == {}


@in_virtual_time
async def test_a_platform_that_is_not_set_up_for_a_while_keeps_its_messages() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(TransientError("429", retry_after=60))
    await process.hears("hi")
    await passes(5)
    process.dies()

    ground.platform_set_up = False
    bare = await ground.starts()
    await passes(600)
    assert await ground.store.backlog() == {"pending": 1}
    bare.dies()
    ground.platform_set_up = True
    await ground.starts()
    await passes(100)

    assert ground.chat.texts == ["hello"]


@in_virtual_time
async def test_a_clean_stop_flushes_what_can_be_sent() -> None:
    ground, process = await service("hello")
    ground.chat.seconds = 3
    await process.hears("hi")
    await passes(0.5)

    await process.stops()

    assert ground.chat.texts == ["hello"]
    assert await ground.store.backlog() == {}


@in_virtual_time
async def test_a_degenerate_answer_has_an_end_and_says_so() -> None:
    ground, process = await service("|".join(f"part {n}" for n in range(500)))

    await process.hears("hi")
    await passes(100)

    assert len(ground.chat.texts) == 40
    assert "far too long" in ground.chat.texts[-1]


@in_virtual_time
async def test_an_answer_without_words_is_said_to_be_one() -> None:
    ground, process = await service("|")

    await process.hears("hi")
    await passes(5)

    assert "no text" in ground.chat.texts[0]


@in_virtual_time
async def test_an_outbox_that_cannot_be_read_is_looked_at_again() -> None:
    ground, process = await service("hello")
    broken = Breaking(ground, calls=3, name="claim")
    await process.hears("hi")

    await passes(10)

    assert broken.left == 0
    assert ground.chat.texts == ["hello"]
    assert KEY not in await ground.store.abandoned(ground.clock.now())


class Breaking:
    """Makes the coming calls of one method of the store fail."""

    def __init__(self, ground: Ground, calls: int, name: str = "sent") -> None:
        self.left = calls
        self._real = getattr(ground.store, name)
        setattr(ground.store, name, self._call)

    async def _call(self, *args: object, **named: object) -> object:
        if self.left:
            self.left -= 1
            raise StorageError("the disk is full")
        return await self._real(*args, **named)


@in_virtual_time
async def test_a_bug_in_one_channel_does_not_end_the_only_exit() -> None:
    ground, process = await service("one", "two")
    ground.chat.faults.append(RuntimeError("a bug"))  # pyright: ignore[reportArgumentType]

    await process.hears("hi")
    await passes(60)
    await process.hears("more")
    await passes(60)

    assert ground.chat.texts[-1] == "two"


@pytest.mark.parametrize("retry_after", [None, 7.0])
@in_virtual_time
async def test_what_is_proved_not_to_be_out_is_never_given_up(
    retry_after: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "LONGEST_PAUSE", 5.0)
    ground, process = await service("at last")
    faults = delivery.MOST_DOUBTS + 50
    ground.chat.faults.extend(TransientError("refused", retry_after) for _ in range(faults))
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))

    await process.hears("hi")
    await passes(faults * (retry_after or 6) + 60)

    assert ground.chat.texts == ["at last"]


@in_virtual_time
async def test_a_wait_for_a_place_is_no_failure() -> None:
    ground, process = await service("hello")
    process.limiter.block(HOME, 5)
    await process.hears("hi")
    for _ in range(12):
        process.limiter.block(HOME, 5)
        await passes(5)
    ground.chat.faults.append(TransientError("connection refused"))

    await passes(10)

    assert ground.chat.texts == ["hello"]
