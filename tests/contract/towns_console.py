"""The console's town for the adapter contract: a pipe in, and what is printed; one person."""

import asyncio
import io
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from bots.platforms import Platform
from bots.platforms.console import SPEAKER, platform
from tests.contract.town import Ability, Opens

LACKS: dict[Ability, str] = {
    "redelivery": "each line that is typed is a new one",
    "people": "whoever sits at the terminal is the only one",
    "threads": "a terminal has one conversation",
    "edits": "a line that was typed stays",
    "deletions": "a line that was typed stays",
    "unknown kinds": "there are lines and nothing else",
    "typing": "the answer in the making stands over the prompt",
    "tokens": "there is no token",
    "instances": "two terminals are two conversations' ends, each with a process of its own",
    "outages": "the terminal is there as long as the process",
    "nonsense": "there is nothing between the terminal and us",
    "silence": "there is no connection that could be dead",
    "restarts": "the end of the terminal is the end of the service",
    "strangers": "the machine vouches for whoever sits at it",
    "buttons": "the sentence above says what to type",
}


class ConsolePerson:
    def __init__(self, pipe: int, screen: io.StringIO) -> None:
        self._pipe = pipe
        self._screen = screen

    def says(self, text: str) -> None:
        os.write(self._pipe, f"{text}\n".encode())

    def commands(self, name: str) -> None:
        self.says(f"/{name}")

    def sees(self) -> list[str]:
        said = self._screen.getvalue().split(f"{SPEAKER} ")
        return [text.rstrip("\n") for text in said[1:]]

    def says_in(self, thread: int, text: str) -> None:
        raise NotImplementedError

    def edits(self, text: str) -> None:
        raise NotImplementedError

    def deletes(self) -> None:
        raise NotImplementedError

    def sends_unknown(self) -> None:
        raise NotImplementedError

    def presses(self, label: str) -> None:
        raise NotImplementedError

    def sees_in(self, thread: int) -> list[str]:
        raise NotImplementedError


class ConsoleTown:
    lacks: Mapping[Ability, str] = LACKS
    other_instance_word = ""
    token_word = ""
    link = ""

    def __init__(self, ada: ConsolePerson, takes_over: Callable[[], None]) -> None:
        self.platform: Platform = platform(asyncio.Event())
        self._ada = ada
        self._takes_over = takes_over

    def environment(self, public_url: str) -> dict[str, str]:
        """Only now: pytest puts its own screen there when a test's body begins."""
        self._takes_over()
        return {}

    def person(self, number: int) -> ConsolePerson:
        assert number == 1
        return self._ada

    def impatient(self, patch: pytest.MonkeyPatch) -> None:
        """There is no pause."""

    def calls(self) -> int:
        return 0

    def redeliver(self) -> None:
        raise NotImplementedError

    def typings(self) -> int:
        raise NotImplementedError

    def revoke(self) -> None:
        raise NotImplementedError

    async def fall_silent(self) -> None:
        raise NotImplementedError

    def talks_nonsense(self) -> None:
        raise NotImplementedError

    def outage(self) -> AbstractAsyncContextManager[None]:
        raise NotImplementedError

    def another(self) -> AbstractAsyncContextManager[None]:
        raise NotImplementedError


@asynccontextmanager
async def opens() -> AsyncGenerator[ConsoleTown]:
    reading, writing = os.pipe()
    screen = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(reading) as stdin:

        def take_over() -> None:
            patch.setattr(sys, "stdin", stdin)
            patch.setattr(sys, "stdout", screen)

        yield ConsoleTown(ConsolePerson(writing, screen), take_over)
    os.close(writing)


TOWNS: dict[str, Opens] = {"console": opens}
