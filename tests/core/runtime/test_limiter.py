from datetime import datetime, timedelta

from msgspec.structs import replace

from core.ports import Pace, Paces
from core.runtime.limiter import Limiter
from tests.core.domain.samples import HOME
from tests.core.runtime.virtual import VirtualClock, in_virtual_time

OTHER = replace(HOME, chat="8")
PACES = {"chat": Paces(chat=Pace(1.0, 3), bot=Pace(0.1, 100), cosmetic_reserve=1)}


def limiter(bot: Pace = PACES["chat"].bot) -> Limiter:
    return Limiter(VirtualClock(), {"chat": replace(PACES["chat"], bot=bot)})


async def seconds(limits: Limiter, calls: int) -> float:
    clock = VirtualClock()
    began = clock.now()
    for _ in range(calls):
        await limits.acquire(HOME)
    return round((clock.now() - began).total_seconds(), 3)


@in_virtual_time
async def test_a_burst_is_free_and_then_one_call_a_second() -> None:
    assert await seconds(limiter(), 3) == 0
    assert await seconds(limiter(), 10) == 7


@in_virtual_time
async def test_a_rest_gives_the_burst_back() -> None:
    limits = limiter()
    await seconds(limits, 3)
    await VirtualClock().sleep(2)

    assert await seconds(limits, 2) == 0
    assert await seconds(limits, 1) == 1


@in_virtual_time
async def test_the_last_place_of_a_burst_is_kept_for_what_must_be_sent() -> None:
    limits = limiter()

    assert [limits.try_acquire(HOME) for _ in range(4)] == [True, True, False, False]
    assert await seconds(limits, 1) == 0


@in_virtual_time
async def test_chats_do_not_slow_each_other_but_the_bot_has_one_pace() -> None:
    limits = limiter()
    await seconds(limits, 3)
    assert limits.try_acquire(OTHER)

    crowded = limiter(bot=Pace(10.0, 1))
    assert crowded.try_acquire(OTHER)
    assert not crowded.try_acquire(HOME)
    assert await seconds(crowded, 1) == 10


@in_virtual_time
async def test_a_429_stops_its_chat_for_as_long_as_it_says() -> None:
    limits = limiter()
    limits.block(HOME, 30)
    limits.block(HOME, 5)

    assert limits.blocked_for(HOME) == 30
    assert not limits.try_acquire(HOME)
    assert limits.try_acquire(OTHER)
    assert await seconds(limits, 1) == 30
    assert limits.blocked_for(HOME) == 0


@in_virtual_time
async def test_a_platform_without_paces_of_its_own_has_the_default() -> None:
    limits = Limiter(VirtualClock())

    assert await seconds(limits, 4) == 1


class SetBack(VirtualClock):
    back = timedelta()

    def now(self) -> datetime:
        return super().now() - self.back


@in_virtual_time
async def test_nothing_waits_for_a_clock_that_was_set_back() -> None:
    clock = SetBack()
    limits = Limiter(clock, PACES)
    for _ in range(4):
        await limits.acquire(HOME)
    limits.block(HOME, 30)
    clock.back = timedelta(hours=2)

    assert limits.blocked_for(HOME) == 0
    assert await seconds(limits, 3) == 0
    assert await seconds(limits, 1) == 1


@in_virtual_time
async def test_a_clock_that_is_put_right_a_little_costs_no_more_than_a_burst() -> None:
    clock = SetBack()
    limits = Limiter(clock, PACES)
    for _ in range(3):
        await limits.acquire(HOME)
    for _ in range(5):
        clock.back += timedelta(seconds=2)
        assert await seconds(limits, 1) <= 3
