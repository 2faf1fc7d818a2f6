"""What the adapter contract asks of a platform, as its people know it; it promises nothing itself.

A platform joins by a file ``towns_<name>.py`` with ``TOWNS``: by the name that a test's id shows,
what opens a town. ``test_adapter.py`` runs over all of them.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import pytest

from bots.platforms import Platform

Ability = Literal[
    "redelivery",
    "people",
    "threads",
    "edits",
    "deletions",
    "unknown kinds",
    "typing",
    "tokens",
    "instances",
    "outages",
    "nonsense",
    "silence",
    "restarts",
    "strangers",
    "buttons",
]


class Person(Protocol):
    """Who talks to the bot, in a private conversation unless a thread is named."""

    def says(self, text: str) -> None: ...

    def says_in(self, thread: int, text: str) -> None:
        """In that thread or topic, to the bot; the first word opens it. Threads are 1, 2, …"""
        ...

    def commands(self, name: str) -> None:
        """``stop``, ``help`` …, in the platform's own way."""
        ...

    def edits(self, text: str) -> None:
        """What was said last."""
        ...

    def deletes(self) -> None:
        """What was said last."""
        ...

    def sends_unknown(self) -> None:
        """A kind of message that the bot cannot read, with no words in it."""
        ...

    def presses(self, label: str) -> None:
        """The newest button with that label. Fails where there is none."""
        ...

    def sees(self) -> list[str]:
        """What the bot said in the private conversation, as it stands now, in order; a file's text
        where it sent one, and not what only this person's own act is answered with in passing."""
        ...

    def sees_in(self, thread: int) -> list[str]:
        """The same of a thread or topic."""
        ...


class Town(Protocol):
    """A platform's stand-in and all that may happen to it."""

    @property
    def platform(self) -> Platform: ...

    @property
    def lacks(self) -> Mapping[Ability, str]:
        """What the platform does not have, each with the reason, which the run shows."""
        ...

    @property
    def other_instance_word(self) -> str:
        """Is in the health's detail while another instance is there; "" where that is normal."""
        ...

    @property
    def token_word(self) -> str:
        """Is in the health's detail when the token is refused: the variable to look at."""
        ...

    @property
    def link(self) -> str:
        """Leads people to the bot, as the platform's own documentation has it; "" for none."""
        ...

    def environment(self, public_url: str) -> dict[str, str]:
        """The platform's variables, for a service that is reached at that address."""
        ...

    def person(self, number: int) -> Person:
        """The same one for the same number; 1, 2, …"""
        ...

    def redeliver(self) -> None:
        """The last update, press or message, once more."""
        ...

    def typings(self) -> int:
        """How often the bot has said that it is working."""
        ...

    def calls(self) -> int:
        """How many calls, of whatever kind, the platform has had."""
        ...

    def revoke(self) -> None:
        """The token is worth nothing from now on."""
        ...

    def impatient(self, patch: pytest.MonkeyPatch) -> None:
        """Shortens the pauses that are not the service's clock's, before it is built."""
        ...

    async def fall_silent(self) -> None:
        """Until the connection that brings messages stays open and brings nothing any more."""
        ...

    def talks_nonsense(self) -> None:
        """Its next answers, whatever is called, are none of its own."""
        ...

    def outage(self) -> AbstractAsyncContextManager[None]:
        """The platform is out of reach; its people can still write."""
        ...

    def another(self) -> AbstractAsyncContextManager[None]:
        """Another instance runs with the same token."""
        ...


Opens = Callable[[], AbstractAsyncContextManager[Town]]


def needs(town: Town, ability: Ability) -> None:
    """Skips the test, with the town's reason, where the platform lacks it."""
    if ability in town.lacks:
        pytest.skip(town.lacks[ability])
