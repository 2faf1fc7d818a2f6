"""Turns that never end by themselves: found, given up in time, and said so; whoever died with one
lives on. Real processes; their clock is faster than ours, so that the waits are short."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.domain.keys import SessionKey
from storage.migrate import migrate
from tests.harness.kills import doubts
from tests.harness.lab import Lab, Place, Zygote, zygote
from tests.harness.scripted import (
    DIE,
    ENDLESS,
    JOB,
    JOB_STEPS,
    LEAP,
    SLOW,
    SLOW_TOOL,
    Script,
    echoed,
    newest,
)
from tests.standins.base import Call
from tests.standins.faults import Fault, Reset
from tests.standins.openai import COMPLETIONS
from tests.standins.telegram_user import User

ATTEMPTS = 5
RESUMES = 20
RATE = 20.0
"""The waits of 5, 30 and 60 seconds take 0.25, 1.5 and 3."""
PATIENCE = 150.0
FATAL = "what you hear kills you"
GIVEN_UP = "I could not finish this"
pytestmark = pytest.mark.timeout(400)


class Scene:
    """The lab with those who talk in it."""

    def __init__(self, lab: Lab, script: Script) -> None:
        self.lab = lab
        self.script = script
        self.ada, self.bea, self.cleo, self.dora = map(self._user, ("Ada", "Bea", "Cleo", "Dora"))

    def _user(self, name: str) -> User:
        return self.lab.telegram.user(ord(name[0]), name)

    def kills_when(self, fatal: Callable[[Call], bool]) -> None:
        """The process dies while it waits for the model's answer."""

        def struck(call: Call) -> Fault | None:
            if call.method != COMPLETIONS or not fatal(call):
                return None
            self.lab.kill()
            return Reset()

        self.lab.spoil = struck

    async def until(self, wanted: Callable[[], bool]) -> None:
        await self.lab.telegram.wait_for(wanted, PATIENCE)

    async def shows(self, user: User, beginning: str) -> None:
        await self.until(lambda: times(user, beginning) > 0)

    async def answers(self, user: User, said: str) -> None:
        await self.until(lambda: answered(user, said) > 0)

    async def rests(self) -> None:
        """A preview that is complete looks just like its answer: nothing is under way any more."""
        await self.lab.settled(PATIENCE)

    async def ends(self) -> None:
        await self.rests()
        await self.lab.down()

    def surplus(self, user: User) -> int:
        """How many messages may have come to her twice."""
        key = SessionKey(platform="telegram", chat_type="dm", chat=str(user.id))
        return doubts(self.lab.writes())[str(key)]

    def done(self, tool: str) -> list[str]:
        return [line for line in self.lab.effects if line.startswith(f"{tool} ")]


def answered(user: User, said: str) -> int:
    return sum(said in echoed(text) for text in user.bot_texts())


def times(user: User, beginning: str) -> int:
    return sum(text.startswith(beginning) for text in user.bot_texts())


def heard(call: Call) -> tuple[list[str], list[str]]:
    return newest(call.params["body"])


@pytest.fixture
async def forks() -> AsyncIterator[Zygote]:
    async with zygote() as ready:
        yield ready


@asynccontextmanager
async def scene(forks: Zygote, folder: Path, rate: float = 1.0) -> AsyncGenerator[Scene]:
    database = f"sqlite:///{folder}/stillhere.db"
    await migrate(database)
    lab = Lab(forks, Place(folder=folder, database=database, lease=2.0 * rate, rate=rate))
    script = Script()
    lab.model.respond = script
    async with lab:
        yield Scene(lab, script)


async def test_a_tool_that_kills_is_told_from_those_that_died_with_it(
    forks: Zygote, tmp_path: Path
) -> None:
    async with scene(forks, tmp_path, RATE) as play:
        lab = play.lab
        play.cleo.says(SLOW_TOOL)
        play.bea.says(SLOW)
        await play.until(lambda: len(play.done("charge")) == 1)
        play.ada.says(DIE)
        await play.until(lambda: lab.died == 1 + 3)
        play.dora.says("are you there")
        await play.answers(play.dora, "are you there")
        assert not times(play.ada, GIVEN_UP)
        await play.shows(play.ada, GIVEN_UP)
        await play.ends()

        assert len(play.done("die")) == lab.died == 1 + ATTEMPTS
        assert times(play.ada, GIVEN_UP) == 1
        told = next(text for text in play.ada.bot_texts() if text.startswith(GIVEN_UP))
        assert f"{ATTEMPTS} times" in told
        assert {"/resume", "/retry"} <= set(told.split())
        assert play.script.asked[SLOW] > 1, "Bea's turn did not die with Ada's"
        assert 1 <= answered(play.bea, SLOW) <= 1 + play.surplus(play.bea)
        assert 1 <= times(play.cleo, "Charged") <= 1 + play.surplus(play.cleo)
        assert len(play.done("charge")) <= 1
        assert 1 <= answered(play.dora, "are you there") <= 1 + play.surplus(play.dora)


async def test_what_kills_while_the_model_is_asked_is_put_aside_and_can_be_brought_back(
    forks: Zygote, tmp_path: Path
) -> None:
    async with scene(forks, tmp_path, RATE) as play:
        lab = play.lab
        play.kills_when(lambda call: FATAL in heard(call)[0])
        play.bea.says(SLOW)
        await lab.model.wait_for(lambda: play.script.asked[SLOW], PATIENCE)
        play.ada.says(FATAL)
        await play.shows(play.ada, GIVEN_UP)
        await play.answers(play.bea, SLOW)
        assert lab.died == ATTEMPTS

        play.ada.says("hello again")
        await play.answers(play.ada, "hello again")
        await play.rests()
        assert FATAL not in str(lab.model.requests[-1]["messages"])
        lab.spoil = lambda call: None
        play.ada.says("/resume")
        await play.shows(play.ada, "We are back in the conversation")
        play.ada.says("/retry")
        await play.answers(play.ada, FATAL)
        await play.ends()

        assert times(play.ada, GIVEN_UP) == 1
        assert answered(play.ada, FATAL) == 1
        assert play.script.asked[SLOW] > 1, "Bea's turn did not die with Ada's"
        assert 1 <= answered(play.bea, SLOW) <= 1 + play.surplus(play.bea)
        assert lab.died == ATTEMPTS


async def test_a_job_that_gets_on_is_finished_through_ten_restarts(
    forks: Zygote, tmp_path: Path
) -> None:
    """Each kill comes when one more of its steps is stored, and the model is asked what is next."""
    async with scene(forks, tmp_path) as play:
        steps: set[int] = set()

        def first_time(call: Call) -> bool:
            done = len(heard(call)[1])
            new = done > 0 and done not in steps
            steps.add(done)
            return new

        play.kills_when(first_time)
        play.ada.says(JOB)
        await play.shows(play.ada, "The job is done.")
        await play.ends()

        assert play.lab.died == JOB_STEPS
        assert 1 <= times(play.ada, "The job is done.") <= 1 + play.surplus(play.ada)
        assert len(play.done("look")) == len(set(play.done("look"))) == JOB_STEPS
        assert not times(play.ada, GIVEN_UP)


@pytest.mark.matrix
async def test_a_job_that_gets_on_and_never_ends_is_given_up_after_twenty_resumes(
    forks: Zygote, tmp_path: Path
) -> None:
    async with scene(forks, tmp_path) as play:
        lab = play.lab
        play.kills_when(lambda _: lab.calls[lab.lives].count(COMPLETIONS) > 1)
        play.ada.says(ENDLESS)
        await play.shows(play.ada, GIVEN_UP)
        lab.spoil = lambda call: None
        play.ada.says("hello again")
        await play.answers(play.ada, "hello again")
        await play.ends()

        assert lab.died == len(set(play.done("look"))) == 1 + RESUMES
        assert len(play.done("look")) == 1 + RESUMES
        assert times(play.ada, GIVEN_UP) == 1
        told = next(text for text in play.ada.bot_texts() if text.startswith(GIVEN_UP))
        assert f"{RESUMES} times" in told
        assert "without getting any further" not in told


@pytest.mark.matrix
async def test_an_unsafe_tool_that_kills_each_time_it_is_called_anew_ends_with_the_resumes(
    forks: Zygote, tmp_path: Path
) -> None:
    """None of its calls is ever run again; each is a new one, which the model asks for."""
    async with scene(forks, tmp_path) as play:
        play.ada.says(LEAP)
        await play.shows(play.ada, GIVEN_UP)
        await play.ends()

        assert play.lab.died == len(set(play.done("leap"))) == 1 + RESUMES
        assert len(play.done("leap")) == 1 + RESUMES
        assert times(play.ada, GIVEN_UP) == 1
