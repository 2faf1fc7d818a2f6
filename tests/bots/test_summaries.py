"""Older turns become a summary in the real service, whenever it is stopped meanwhile."""

import asyncio

from core.domain.messages import ModelReply, ModelRequest, RequestSize
from core.models.scripted import ScriptedModel
from core.ports import OnText
from tests.bots.life import House, eventually

LONG = "word " * 700
PROMISED = "I have summed up"
FACT = "called Anna"


class Memory(ScriptedModel):
    """Says yes to everything; sums up only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.summaries = 0

    async def measure(self, request: ModelRequest) -> RequestSize:
        return RequestSize(counted=sum(len(m.text) for m in request.messages) // 4, window=4_000)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        if "keep the memory" not in request.messages[0].text:
            self.requests.append(request)
            return ModelReply(text="yes")
        self.summaries += 1
        await self.may.wait()
        return ModelReply(text=f"## Facts and preferences\n- {FACT}")


def talkative() -> tuple[House, Memory]:
    house = House(drain_seconds=0)
    house.script = memory = Memory()
    return house, memory


async def fills_up(house: House) -> None:
    for number in range(1, 5):
        await house.room.hears(f"{number}: {LONG}")
        await house.room.sees("yes", times=number)


async def test_the_older_part_is_summed_up_and_remembered() -> None:
    house, memory = talkative()
    memory.may.set()
    async with house.lives():
        await fills_up(house)
        await house.room.sees(PROMISED)
        await house.room.hears("who am I?")
        await house.room.sees("yes", times=5)

    shown = str(memory.requests[-1].messages)
    assert FACT in shown
    assert "1: word" not in shown


async def test_whoever_waits_for_all_to_be_done_waits_for_the_summary_too() -> None:
    house, memory = talkative()
    async with house.lives() as service:
        await fills_up(house)
        quiet = asyncio.create_task(service.quiet())
        await asyncio.sleep(0.2)
        assert not quiet.done()

        memory.may.set()
        await quiet

        assert "Compacted" in await house.events()


async def test_one_that_a_stop_broke_off_is_made_by_the_next_start() -> None:
    house, memory = talkative()
    async with house.lives():
        await fills_up(house)

        async def begun() -> bool:
            return memory.summaries == 1

        await eventually(begun)
    assert "Compacted" not in await house.events()
    memory.may.set()

    async with house.lives():
        await house.room.sees(PROMISED)

    assert memory.summaries == 2
