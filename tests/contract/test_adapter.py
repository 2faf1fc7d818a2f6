"""What every platform promises to its people, through its genuine SDK and with the whole service
behind it; a platform joins by its towns in ``TOWNS``."""

import re
from collections.abc import AsyncIterator
from itertools import count

import pytest
from structlog.testing import capture_logs

from core.domain.messages import ModelFailure
from core.domain.notices import STRANGER
from tests.contract import towns_console, towns_discord, towns_slack, towns_telegram
from tests.contract.house import House, until
from tests.contract.town import Opens, Town, needs

TOWNS: dict[str, Opens] = {
    **towns_telegram.TOWNS,
    **towns_slack.TOWNS,
    **towns_discord.TOWNS,
    **towns_console.TOWNS,
}

FAMILY = "👩\u200d👩\u200d👧\u200d👦"
TRY_AGAIN = ModelFailure(kind="try_again", detail="no answer")
LINE = "\n   "
WORD = re.compile(rf"(?:{FAMILY})?\d{{4}}§")


@pytest.fixture(params=TOWNS)
async def town(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Town]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    async with TOWNS[request.param]() as town:
        town.impatient(monkeypatch)
        yield town


@pytest.fixture
def house(town: Town) -> House:
    return House(town)


def long_answer() -> str:
    """10,000 characters and more of all that is hard to cut; its words are numbers with a mark."""
    numbers = count(1)

    def words(amount: int, around: str = "", between: str = " ") -> str:
        return between.join(f"{around}{next(numbers):04}§" for _ in range(amount))

    inner = f"```python\n{words(120, 'value = ')}\n```"
    chapters = [
        f"# The {words(1)} answer\n\n{words(150, 'word')}",
        f"````markdown\n{words(60)}\n{inner}\n{words(60, between=chr(10))}\n````",
        "\n".join(f"- {words(3, '**bold** ')}\n  - {words(3, '`code` ')}" for _ in range(20)),
        f"{words(150, '漢字かな交じり文', '。')}。",
        f"{words(80, FAMILY)}",
        f"1. {words(2)}\n\n   ```\n   {words(80, between=LINE)}\n   ```\n\n2. {words(2)}",
        f"> {words(100, '«', '» ')}",
        f"{words(150, 'so: ', ', ')}.",
    ]
    return "\n\n".join(chapters)


async def test_what_is_said_is_answered_once(town: Town, house: House) -> None:
    ada = town.person(1)
    async with house.lives():
        ada.says("hello")
        await house.hears(ada, "re: hello")
        ada.says("and now?")
        await house.hears(ada, "re: hello", "re: and now?")
    assert await house.outcomes() == {"answered": 2}


async def test_what_comes_again_is_answered_once(town: Town, house: House) -> None:
    needs(town, "redelivery")
    ada = town.person(1)
    house.script.hold()
    async with house.lives():
        ada.says("one")
        await house.asked()
        town.redeliver()
        town.redeliver()
        house.script.release()
        await house.hears(ada, "re: one")
        town.redeliver()
        ada.says("two")
        await house.hears(ada, "re: one", "re: two")
    async with house.lives():
        town.redeliver()
        ada.says("three")
        await house.hears(ada, "re: one", "re: two", "re: three")
    assert await house.outcomes() == {"answered": 3}


async def test_two_messages_at_once_are_both_answered(town: Town, house: House) -> None:
    ada = town.person(1)
    async with house.lives():
        ada.says("one")
        ada.says("two")
        await house.hears(ada, "re: one", "re: two")


async def test_nobody_waits_for_another_nor_sees_what_is_not_theirs(
    town: Town, house: House
) -> None:
    needs(town, "people")
    ada, bob = town.person(1), town.person(2)
    house.script.hold()
    async with house.lives():
        ada.says("I am Ada")
        bob.says("I am Bob")
        await house.asked(2)
        house.script.release()
        await house.hears(ada, "re: I am Ada")
        await house.hears(bob, "re: I am Bob")


async def test_what_is_asked_in_a_thread_is_answered_there_and_nowhere_else(town: Town) -> None:
    needs(town, "threads")
    house = House(town, "at home", "in the first", "in the second", "in the first again")
    ada, bob = town.person(1), town.person(2)
    async with house.lives():
        ada.says("word1")
        await house.hears(ada, "at home")
        ada.says_in(1, "word2")
        await house.hears_in(1, ada, "in the first")
        bob.says_in(2, "word3")
        await house.hears_in(2, bob, "in the second")
        bob.says_in(1, "word4")
        await house.hears_in(1, bob, "in the first", "in the first again")
        await house.hears_in(2, ada, "in the second")
        await house.hears(ada, "at home")
    views = [re.findall(r"word\d", str(asked.messages)) for asked in house.script.requests]
    assert views == [["word1"], ["word2"], ["word3"], ["word2", "word4"]]


async def test_a_long_answer_arrives_whole_and_in_order(town: Town) -> None:
    source = long_answer()
    house = House(town, source)
    ada = town.person(1)
    assert len(source) > 10_000
    async with house.lives():
        ada.says("tell me everything")
        await until(lambda: words_of(source)[-1] in "\n".join(ada.sees()), ada.sees)
        await house.settles()
    assert words_of("\n".join(ada.sees())) == words_of(source)
    assert await house.outcomes() == {"answered": 1}


async def test_an_edit_is_no_second_question(town: Town, house: House) -> None:
    needs(town, "edits")
    ada = town.person(1)
    async with house.lives():
        ada.says("helo")
        await house.hears(ada, "re: helo")
        ada.edits("hello")
        ada.says("next")
        await house.hears(ada, "re: helo", "re: next")
    assert len(house.script.requests) == 2


async def test_a_deletion_is_no_question(town: Town, house: House) -> None:
    needs(town, "deletions")
    ada = town.person(1)
    house.script.hold()
    async with house.lives():
        ada.says("hello")
        await house.asked()
        ada.deletes()
        house.script.release()
        await house.hears(ada, "re: hello")
        ada.says("next")
        await house.hears(ada, "re: hello", "re: next")
    assert len(house.script.requests) == 2


async def test_what_cannot_be_read_is_said_to_be_so(town: Town, house: House) -> None:
    needs(town, "unknown kinds")
    ada = town.person(1)
    async with house.lives():
        ada.sends_unknown()
        await until(ada.sees)
        await house.settles()
        ada.says("and now?")
        await until(lambda: len(ada.sees()) == 2, ada.sees)
    first, second = ada.sees()
    assert "cannot read" in first
    assert second == "re: and now?"


async def test_typing_is_shown_for_as_long_as_it_works_and_no_longer(
    town: Town, house: House
) -> None:
    needs(town, "typing")
    ada = town.person(1)
    house.script.hold()
    async with house.lives():
        ada.says("think hard")
        await until(lambda: town.typings() == 1)
        house.clock.passes(seconds=5)
        await until(lambda: town.typings() == 2)
        house.script.release()
        await house.hears(ada, "re: think hard")
        typed = town.typings()
        for _ in range(20):
            house.clock.passes(seconds=5)
            await house.clock.sleep(1)
    assert town.typings() == typed


async def test_a_refused_token_ends_it_with_one_line_and_no_further_call(
    town: Town, house: House
) -> None:
    needs(town, "tokens")
    ada = town.person(1)
    async with house.lives() as service:
        ada.says("hello")
        await house.hears(ada, "re: hello")
        with capture_logs() as logs:
            town.revoke()
            ada.says("still there?")
            await until(lambda: town.token_word in house.health(service).detail)
            assert house.health(service).lasting
            await house.clock.sleep(1)
            calls = town.calls()
            for _ in range(50):
                house.clock.minutes_pass()
                house.clock.passes(seconds=300)
                await house.clock.sleep(1)
        ready, detail = await service.status.readiness()
        assert town.calls() == calls
    assert not ready
    assert town.token_word in str(detail["platforms"])
    errors = [line for line in logs if line["log_level"] == "error"]
    assert [(line["event"], line["state"]) for line in errors] == [(town.platform.name, "refused")]
    assert ada.sees() == ["re: hello"]


async def test_another_instance_is_told_of_and_loses_nothing(town: Town, house: House) -> None:
    needs(town, "instances")
    ada = town.person(1)
    async with house.lives() as service, town.another():
        await until(lambda: town.other_instance_word in house.health(service).detail)
        ada.says("who hears me?")
    async with house.lives():
        await house.hears(ada, "re: who hears me?")


async def test_an_outage_loses_nothing_and_doubles_nothing(town: Town, house: House) -> None:
    needs(town, "outages")
    ada = town.person(1)
    house.script.hold()
    async with house.lives() as service:
        ada.says("before")
        await house.asked()
        async with town.outage():
            house.script.release()
            await until(lambda: not house.health(service).ok)
            ada.says("meanwhile")
        await house.hears(ada, "re: before", "re: meanwhile")
        await until(lambda: house.health(service).ok)


async def test_once_connected_it_is_known_where_people_find_it(town: Town, house: House) -> None:
    async with house.lives() as service:
        await until(lambda: house.health(service).ok)
        found = house.health(service)
    assert found.link == town.link
    assert bool(found.name) == bool(town.link)


async def test_answers_that_are_none_of_its_own_leave_no_one_deaf(town: Town, house: House) -> None:
    needs(town, "nonsense")
    ada = town.person(1)
    town.talks_nonsense()
    async with house.lives():
        ada.says("hello")
        await house.hears(ada, "re: hello")


async def test_a_connection_that_is_dead_is_noticed_and_replaced(town: Town, house: House) -> None:
    needs(town, "silence")
    ada = town.person(1)
    async with house.lives():
        ada.says("one")
        await house.hears(ada, "re: one")
        await town.fall_silent()
        ada.says("two")
        await house.hears(ada, "re: one", "re: two")


async def test_started_and_stopped_twice_over_it_hears_everything_once(
    town: Town, house: House
) -> None:
    needs(town, "restarts")
    ada = town.person(1)
    async with house.lives() as service:
        adapter = house.adapter(service)
        await adapter.start()
        ada.says("one")
        await house.hears(ada, "re: one")
        for _ in range(2):
            await adapter.start()
            await adapter.start()
            await adapter.stop()
            await adapter.stop()
        ada.says("two")
        for _ in range(10):
            await house.clock.sleep(1)
        assert len(house.script.requests) == 1
        await adapter.start()
        await adapter.start()
        await house.hears(ada, "re: one", "re: two")
    assert await house.outcomes() == {"answered": 2}


async def test_commands_do_not_wait_behind_an_answer(town: Town, house: House) -> None:
    ada = town.person(1)
    house.script.hold()
    async with house.lives():
        ada.says("think hard")
        await house.asked()
        ada.commands("status")
        await until(lambda: len(ada.sees()) == 1, ada.sees)
        ada.commands("stop")
        await until(lambda: len(ada.sees()) == 2, ada.sees)
        house.script.release()
        ada.says("something else")
        await until(lambda: len(ada.sees()) == 3, ada.sees)
        await house.settles()
        status, stopped, answer = ada.sees()
    assert "turn 1, step 1" in status
    assert "/resume" in stopped
    assert answer == "re: something else"


async def test_a_stranger_is_told_so_and_the_model_is_not_asked(town: Town) -> None:
    needs(town, "strangers")
    house = House(town, allowed_users=())
    eve = town.person(1)
    async with house.lives():
        eve.says("hello")
        await until(eve.sees)
        await house.settles()
        eve.commands("status")
        await house.settles()
    assert {plain(text) for text in eve.sees()} == {plain(STRANGER)}
    assert house.script.requests == []


async def test_a_press_counts_each_time_but_not_when_it_comes_again(town: Town) -> None:
    needs(town, "buttons")
    house = House(town, TRY_AGAIN, TRY_AGAIN, "at last", "at last, again")
    ada = town.person(1)
    async with house.lives():
        ada.says("hello")
        await until(ada.sees)
        ada.presses("Try again")
        await house.asked(2)
        await house.settles()
        town.redeliver()
        ada.says("next")
        await until(lambda: "at last" in ada.sees(), ada.sees)
        ada.presses("Try again")
        await until(lambda: "at last, again" in ada.sees(), ada.sees)
        await house.settles()
    assert len(house.script.requests) == 4


def words_of(text: str) -> list[str]:
    """In order, each once: a long answer's beginning, or a table's head, may be shown again."""
    return list(dict.fromkeys(WORD.findall(text)))


def plain(text: str) -> str:
    return re.sub(r"\W+", " ", text)
