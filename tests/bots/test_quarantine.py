"""A stored session that is broken in any way poisons nothing, is told, and loses not one byte."""

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from core.domain.ledger import Ledger
from core.errors import BrokenDataError
from storage import bundle
from storage.bundle_check import check
from storage.bundle_export import Request, export
from tests.bots import damage
from tests.bots.damage import Harm, of, without_snapshot
from tests.bots.life import KEY, eventually, until
from tests.bots.stored import StoredHouse, rows_of_bundle

OTHER = "agent:main:room:dm:8"
NOTICE = "could not be read"


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> StoredHouse:
    return StoredHouse(database_url, tmp_path / "data")


@pytest.fixture
def sqlite_house(sqlite_url: str, tmp_path: Path) -> StoredHouse:
    return StoredHouse(sqlite_url, tmp_path / "data")


def each(cases: dict[str, Harm]) -> Any:
    return pytest.mark.parametrize("harm", [pytest.param(h, id=name) for name, h in cases.items()])


async def talked(house: StoredHouse) -> None:
    """Ada (7) and Bo (8) each had one answer, and the service was stopped."""
    house.script.then("Hello Ada", "Hello Bo")
    async with house.opens():
        await house.room.hears("I am Ada")
        await house.room.sees("Hello Ada")
        await house.room.hears("I am Bo", user="8")
        await house.room.sees("Hello Bo")


async def left_open(house: StoredHouse) -> None:
    """As ``talked``, and then the service went away in the middle of Ada's next answer."""
    await talked(house)
    house.script.hold()
    async with house.opens():
        await house.room.hears("think hard")
        await until(lambda: len(house.script.requests) == 3)
    house.script.release()


async def another_life(house: StoredHouse, *, resumes: str = "", asks: str = "") -> None:
    """An open turn gets its answer, Ada asks, then Bo does; the service is ready all the time."""
    house.room.said.clear()
    requests = house.script.requests
    requests.clear()
    answers = [*[resumes] * bool(resumes), *["Ada again"] * bool(asks)]
    house.script.then(*answers, "Bo again")
    async with house.opens() as service:
        await until(lambda: not resumes or resumes in house.room.said)
        for text in filter(None, [asks]):
            await house.room.hears(text)
            await house.room.sees("Ada again")
        await house.room.hears("still there?", user="8")
        await house.room.sees("Bo again")
        await eventually(lambda: at_rest(house))
        ready, detail = await service.status.readiness()
        assert ready, detail
    assert "I am Bo" in str(requests[-1])


async def at_rest(house: StoredHouse) -> bool:
    return await house.store.backlog() == {}


async def quarantined(house: StoredHouse, rows: list[Any], snapshot: tuple[Any, ...]) -> None:
    """Every byte is still in the database, and in the one bundle there is."""
    (aside,) = [key for key in await house.keys() if ":aside:" in key]
    assert aside.startswith(f"{KEY}:aside:")
    assert await house.event_rows(aside) == rows
    assert await house.snapshot_row(aside) == snapshot
    (folder,) = await house.bundles()
    assert folder.name.endswith(aside.rpartition(":")[2])
    assert rows_of_bundle(folder) == rows
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    with pytest.raises(BrokenDataError):
        check(folder)


async def a_broken_log_is_told(house: StoredHouse, harm: Harm) -> None:
    await talked(house)
    snapshot = await house.keeps_early_snapshot(KEY)
    await house.damage(of(KEY, harm))
    rows = await house.event_rows(KEY)
    await another_life(house, asks="are you there?")
    notice, *answers = house.room.said
    assert NOTICE in notice
    assert answers == ["Ada again", "Bo again"]
    assert "I am Ada" not in str(house.script.requests[0])
    assert await house.asks(lambda store: store.ledger()) == {
        "room": Ledger(accepted=4, answered=4)
    }
    await quarantined(house, rows, snapshot)
    await another_life(house, asks="and now?")
    assert house.room.said == ["Ada again", "Bo again"]
    assert "are you there?" in str(house.script.requests[0])


async def a_broken_log_with_an_open_turn_is_told(house: StoredHouse, harm: Harm) -> None:
    await left_open(house)
    snapshot = await house.keeps_early_snapshot(KEY)
    await house.damage(of(KEY, harm))
    rows = await house.event_rows(KEY)
    await another_life(house)
    assert [NOTICE in text for text in house.room.said] == [True, False]
    assert house.room.said[1:] == ["Bo again"]
    ledger = await house.asks(lambda store: store.ledger())
    assert ledger == {"room": Ledger(accepted=4, answered=3, failed=1)}
    await quarantined(house, rows, snapshot)
    await another_life(house, asks="are you there?")
    assert house.room.said == ["Ada again", "Bo again"]


async def a_broken_snapshot_is_made_anew(house: StoredHouse, harm: Harm) -> None:
    await talked(house)
    sound = await house.snapshot_row(KEY)
    await house.damage(of(KEY, harm))
    assert await house.snapshot_row(KEY) != sound
    await another_life(house, asks="who am I?")
    assert house.room.said == ["Ada again", "Bo again"]
    assert "I am Ada" in str(house.script.requests[0])
    await made_anew(house)


async def a_broken_snapshot_of_an_open_turn_is_made_anew(house: StoredHouse, harm: Harm) -> None:
    await left_open(house)
    await house.damage(of(KEY, harm))
    await another_life(house, resumes="thought", asks="and?")
    assert house.room.said == ["thought", "Ada again", "Bo again"]
    assert "think hard" in str(house.script.requests[0])
    await made_anew(house)


async def made_anew(house: StoredHouse) -> None:
    assert sorted(await house.keys()) == [KEY, OTHER]
    assert not house.quarantine.exists()
    stored = await house.asks(lambda store: store.load(KEY))
    assert stored.snapshot is not None
    assert stored.log == ()
    target = house.quarantine.with_name("copy")
    request = Request(key=KEY, target=target, at=house.clock.now(), why="to look at")
    await house.asks(lambda store: export(store, request))
    assert bundle.state(json.loads((target / "snapshot.json").read_text())) == stored.snapshot
    check(target)


@each(damage.LOG)
async def test_a_broken_log(house: StoredHouse, harm: Harm) -> None:
    await a_broken_log_is_told(house, harm)


@each(damage.LOG_SQLITE)
async def test_a_log_that_only_sqlite_can_hold(sqlite_house: StoredHouse, harm: Harm) -> None:
    await a_broken_log_is_told(sqlite_house, harm)


@each(damage.LOG)
async def test_a_broken_log_of_an_open_turn(house: StoredHouse, harm: Harm) -> None:
    await a_broken_log_with_an_open_turn_is_told(house, harm)


@each(damage.LOG_SQLITE)
async def test_an_open_turns_log_that_only_sqlite_can_hold(
    sqlite_house: StoredHouse, harm: Harm
) -> None:
    await a_broken_log_with_an_open_turn_is_told(sqlite_house, harm)


@each(damage.SNAPSHOT)
async def test_a_broken_snapshot(house: StoredHouse, harm: Harm) -> None:
    await a_broken_snapshot_is_made_anew(house, harm)


@each(damage.SNAPSHOT_SQLITE)
async def test_a_snapshot_that_only_sqlite_can_hold(sqlite_house: StoredHouse, harm: Harm) -> None:
    await a_broken_snapshot_is_made_anew(sqlite_house, harm)


@each(damage.SNAPSHOT)
async def test_a_broken_snapshot_of_an_open_turn(house: StoredHouse, harm: Harm) -> None:
    await a_broken_snapshot_of_an_open_turn_is_made_anew(house, harm)


async def test_a_broken_beginning_is_noticed_when_it_is_needed(house: StoredHouse) -> None:
    """The snapshot stands for it as long as there is one."""
    await talked(house)
    await house.damage(of(KEY, damage.gone(1)))
    await another_life(house, asks="who am I?")
    assert house.room.said == ["Ada again", "Bo again"]
    assert "I am Ada" in str(house.script.requests[0])
    await house.damage(of(KEY, damage.no_snapshot))
    await another_life(house, asks="and now?")
    assert [NOTICE in text for text in house.room.said] == [True, False, False]


@each({"gone": damage.gone(2), "of another shape": damage.event(2, data=damage.OTHER_JSON)})
async def test_a_broken_text_behind_a_sound_snapshot_is_noticed_by_the_turn_that_needs_it(
    house: StoredHouse, harm: Harm
) -> None:
    await talked(house)
    await house.damage(of(KEY, harm))
    rows = await house.event_rows(KEY)
    house.room.said.clear()
    house.script.then("Ada again")
    async with house.opens() as service:
        await house.room.hears("who am I?")
        await house.room.sees(NOTICE)
        await house.room.hears("hello?")
        await house.room.sees("Ada again")
        ready, detail = await service.status.readiness()
        assert ready, detail
    assert len(house.room.said) == 2
    (aside,) = [key for key in await house.keys() if ":aside:" in key]
    assert (await house.event_rows(aside))[: len(rows)] == rows
    (folder,) = await house.bundles()
    assert rows_of_bundle(folder) == await house.event_rows(aside)
    ledger = await house.asks(lambda store: store.ledger())
    assert ledger == {"room": Ledger(accepted=4, answered=3, failed=1)}


async def test_a_reminder_of_a_broken_session_is_told_and_does_not_ring_for_ever(
    house: StoredHouse,
) -> None:
    await talked(house)
    await house.damage(of(KEY, without_snapshot(damage.gone(3))))
    house.room.said.clear()
    house.clock.passes(hours=25)
    async with house.opens():
        await house.room.sees(NOTICE)
        await eventually(lambda: nothing_due(house))
    assert len([key for key in await house.keys() if key.startswith(KEY)]) == 2


async def nothing_due(house: StoredHouse) -> bool:
    return not await house.store.due(house.clock.now())


async def test_a_debt_in_words_keeps_nobody_from_an_answer_and_is_mended_by_the_next(
    sqlite_house: StoredHouse,
) -> None:
    await talked(sqlite_house)
    await sqlite_house.damage(of(KEY, damage.stream(owed="much")))
    await another_life(sqlite_house, asks="who am I?")
    assert sqlite_house.room.said == ["Ada again", "Bo again"]
    ledger = await sqlite_house.asks(lambda store: store.ledger())
    assert ledger == {"room": Ledger(accepted=4, answered=4)}


async def test_a_bundle_that_cannot_be_written_hinders_nobody(sqlite_house: StoredHouse) -> None:
    await talked(sqlite_house)
    sqlite_house.quarantine.parent.mkdir(exist_ok=True)
    sqlite_house.quarantine.write_text("a file is in the way")
    await sqlite_house.damage(of(KEY, without_snapshot(damage.gone(3))))
    with capture_logs() as lines:
        await another_life(sqlite_house, asks="are you there?")
    assert [NOTICE in text for text in sqlite_house.room.said] == [True, False, False]
    (line,) = [line for line in lines if line["event"] == "no bundle of it"]
    assert line["log_level"] == "error"
    assert str(sqlite_house.quarantine) in line["error"]


async def test_the_log_says_where_the_bundle_is(sqlite_house: StoredHouse) -> None:
    await talked(sqlite_house)
    await sqlite_house.damage(of(KEY, without_snapshot(damage.gone(3))))
    with capture_logs() as lines:
        await another_life(sqlite_house, asks="are you there?")
    (line,) = [line for line in lines if line["event"] == "quarantined"]
    (folder,) = sqlite_house.quarantine.iterdir()
    assert line["bundle"] == str(folder)


@pytest.mark.postgres
async def test_where_no_disk_is_promised_the_log_says_how_to_get_the_bundle(
    postgres_url: str, tmp_path: Path
) -> None:
    house = StoredHouse(postgres_url, tmp_path / "data")
    await talked(house)
    await house.damage(of(KEY, without_snapshot(damage.gone(3))))
    with capture_logs() as lines:
        await another_life(house, asks="are you there?")
        await another_life(house, asks="and now?")
    (line,) = [line for line in lines if line["event"] == "quarantined"]
    assert f"stillhere sessions export {line['kept_as']} FOLDER" in line["bundle"]
    assert not (tmp_path / "data").exists()


async def test_a_bundle_that_was_never_written_is_written_at_the_next_start(
    sqlite_house: StoredHouse,
) -> None:
    """The process was killed between the move and the copy."""
    await talked(sqlite_house)
    await sqlite_house.damage(of(KEY, without_snapshot(damage.gone(3))))
    rows = await sqlite_house.event_rows(KEY)
    await another_life(sqlite_house, asks="are you there?")
    (folder,) = sqlite_house.quarantine.iterdir()
    shutil.rmtree(folder)
    async with sqlite_house.opens():
        await until(folder.exists)
    assert rows_of_bundle(folder) == rows
    written = (folder / "meta.json").stat()
    async with sqlite_house.opens():
        pass
    assert (folder / "meta.json").stat() == written


async def test_a_message_that_comes_again_to_a_broken_session_is_taken_once(
    house: StoredHouse,
) -> None:
    await talked(house)
    await house.damage(of(KEY, without_snapshot(damage.gone(3))))
    house.room.said.clear()
    async with house.opens():
        await house.room.hears_again(1, "I am Ada")
        await house.room.sees(NOTICE)
    assert len(house.room.said) == 1
