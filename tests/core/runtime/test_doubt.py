"""What nobody knows the end of: a message that may be out is asked about, said again where it is
not there, and holds up nobody but its chat."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from core.errors import PermanentError, TransientError, UnknownOutcomeError
from core.runtime import delivery
from tests.core.domain.samples import HOME
from tests.core.runtime.house import LEASE, Ground, passes, sends, service
from tests.core.runtime.virtual import in_virtual_time


@in_virtual_time
async def test_what_arrived_in_spite_of_an_error_is_not_sent_again() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    ground.chat.arrived = "m77"

    await process.hears("hi")
    await passes(10)

    assert sends(ground) == ["hello"]
    assert len(ground.chat.calls("lookup")) == 1


@in_virtual_time
async def test_what_cannot_be_found_is_sent_again() -> None:
    ground, process = await service("hello|more")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))

    await process.hears("hi")
    await passes(10)

    assert sends(ground) == ["hello", "hello", "more"]


@in_virtual_time
async def test_who_is_slow_to_say_what_arrived_holds_up_nobody_else() -> None:
    ground, process = await service("hello", "hello Bo")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    ground.chat.lookup_seconds = 500.0
    await process.hears("hi")
    await passes(3)

    await process.hears("I am Bo", address=replace(HOME, chat="8"), user="8")
    await passes(5)

    assert sends(ground) == ["hello", "hello Bo"]
    assert len(ground.chat.calls("lookup")) == 1


@in_virtual_time
async def test_a_platform_that_cannot_say_what_arrived_is_not_asked_each_second() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    ground.chat.lookup_faults.extend(TransientError("out of reach") for _ in range(3))

    await process.hears("hi")
    await passes(60)

    times = [at for at, _ in ground.chat.calls("lookup")]
    assert len(times) == 4
    assert min(later - sooner for sooner, later in pairwise(times)) >= 5.0
    assert sends(ground) == ["hello", "hello"]


@in_virtual_time
async def test_a_platform_that_will_never_say_what_arrived_ends_the_doubt() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    ground.chat.lookup_faults.extend(PermanentError("closed to us") for _ in range(100))

    await process.hears("hi")
    await passes(10)

    assert sends(ground) == ["hello", "hello"]


@in_virtual_time
async def test_a_death_in_a_send_is_looked_up_by_the_next_life() -> None:
    ground, process = await service("hello|more")
    ground.chat.seconds = 5
    await process.hears("hi")
    await passes(3)
    process.dies()
    ground.chat.arrived = "m1"
    ground.chat.seconds = 0
    await passes(LEASE)

    await ground.starts()
    await passes(5)

    assert sends(ground) == ["hello", "more"]


@in_virtual_time
async def test_of_two_processes_that_settle_the_same_doubt_one_sends_again() -> None:
    ground, first = await service("hello")
    ground.chat.seconds = 3
    await first.hears("hi")
    await passes(1)
    first.dies()
    await passes(LEASE)
    await ground.starts()
    second = await ground.starts()
    second.disk.slow["retry"] = 2.0

    await passes(60)

    assert sends(ground) == ["hello", "hello"], "the one that died in the act, and one more"


@in_virtual_time
async def test_a_message_that_may_be_there_too_often_already_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "LONGEST_PAUSE", 5.0)
    ground, process = await service("hello", "again")
    ground.chat.faults.extend([UnknownOutcomeError("no answer")] * (delivery.MOST_DOUBTS + 50))
    await process.hears("hi")
    await passes(6 * (delivery.MOST_DOUBTS + 50))
    assert sends(ground) == ["hello"] * delivery.MOST_DOUBTS
    assert await ground.store.backlog() == {"failed": 1}

    ground.chat.faults.clear()
    await process.hears("hi")
    await passes(10)
    assert ground.chat.texts == ["again"], "it does not hold up the chat for ever"


async def looked_up(ground: Ground) -> None:
    while not ground.chat.calls("lookup"):
        await passes(0.1)


@in_virtual_time
async def test_a_new_life_asks_once_more_before_it_says_again_what_was_in_doubt() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    began = ground.clock.now()
    await process.hears("hi")
    await looked_up(ground)
    process.dies()
    ground.chat.arrived = "m1"

    await ground.starts()
    await passes(5)

    assert sends(ground) == ["hello"]
    first, again = ground.chat.asked_since
    assert began <= first == again


@in_virtual_time
async def test_what_was_not_there_is_asked_about_once_more_after_a_long_pause() -> None:
    ground, process = await service("hello")
    failures = [TransientError("no route")] * 7
    ground.chat.faults.extend([*failures, UnknownOutcomeError("connection reset")])
    await process.hears("hi")
    await looked_up(ground)
    ground.chat.arrived = "m1"

    await passes(300)

    assert sends(ground) == ["hello"] * 8
    assert len(ground.chat.calls("lookup")) == 2


@in_virtual_time
async def test_a_stop_while_it_is_asked_once_more_loses_nothing() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    await process.hears("hi")
    await looked_up(ground)
    process.dies()
    ground.chat.lookup_seconds = 10
    second = await ground.starts()
    await passes(2)
    await second.stops(drain=1)

    assert await ground.store.backlog() == {"pending": 1}
    ground.chat.lookup_seconds = 0
    await ground.starts()
    await passes(5)
    assert ground.chat.texts == ["hello"]


@in_virtual_time
async def test_a_platform_that_cannot_say_it_once_more_is_asked_until_it_can() -> None:
    ground, process = await service("hello")
    ground.chat.faults.append(UnknownOutcomeError("connection reset"))
    await process.hears("hi")
    await looked_up(ground)
    process.dies()
    ground.chat.lookup_faults.extend(TransientError("out of reach") for _ in range(3))
    ground.chat.arrived = "m1"

    await ground.starts()
    await passes(60)

    assert sends(ground) == ["hello"]
    assert await ground.store.backlog() == {}


@in_virtual_time
async def test_those_that_nobody_can_tell_of_hide_no_other() -> None:
    crowd = [f"hello {n}" for n in range(120)]
    ground, process = await service(*crowd)
    ground.chat.faults.extend(UnknownOutcomeError("connection reset") for _ in crowd)
    ground.chat.lookup_faults.extend(TransientError("out of reach") for _ in range(1000))

    for n, _ in enumerate(crowd):
        await process.hears("hi", address=replace(HOME, chat=f"c{n}"), user=f"u{n}")
    await passes(30)

    assert {text for _, text in ground.chat.calls("lookup")} == set(crowd)
