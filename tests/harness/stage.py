"""What a scenario is made of, and what it acts on: one person who only looks at her screen."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from tests.core.files.made import picture
from tests.harness.lab import Lab
from tests.harness.scripted import (
    echoed,
    newest,
)

PATIENCE = 90.0
CHARGED = ("Charged once.", "Charged, I think.")
STOPPED = "Stopped at step"
NOTHING_RUNS = "Nothing is running."
NEW = "A new conversation."
QUIET = "(It was quiet here for a while"
BACK = "We are back in the conversation"
TAKEN = "(Stopped at step"
"""What the notice of a turn that gave way to a new message begins with."""
PICKED_UP = "(I was interrupted; picking up at step"
UNREADABLE = "(Our earlier conversation could not be read."
PUT_ASIDE = "I could not finish this: it broke off 5 times"
SUMMING_UP = "I sum up"
SUMMED_UP = "(I have summed up"
KNOWN = "Your name is Ada, summed_up=True."
WAITS = "(The model's rate limit is reached"
HANGING = "Thinking about it for ever"
SEEING = "Let me see."


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What must be on the screen in the end. ``answered`` are messages, each in one answer;
    ``said`` are beginnings of messages, one each; of a group in ``one_of`` one. ``may`` may stay,
    once each. ``given_up`` are messages whose turn may have given way to a later one: each has an
    answer or a notice."""

    answered: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    may: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    charges: int = 0
    """How many there may be at most; exactly so many when the answer is sure of it."""
    deaths: int = 0
    """How often the turn may have killed the process at most: once after the model's reply, which
    is progress, and in five attempts without."""


class Stage:
    """What a scenario acts on, and what was sent in it."""

    def __init__(self, lab: Lab, patience: float = PATIENCE) -> None:
        """``patience`` in seconds, for everything that she waits for."""
        self.lab = lab
        self.patience = patience
        self.town = lab.town
        self.sent = 0

    def says(self, text: str) -> None:
        self.sent += 1
        self.town.says(text)

    def sends(self, text: str, *colours: str) -> None:
        """A picture, or several as one."""
        self.sent += self.town.sends(text, *(picture(colour=colour) for colour in colours))

    def answers(self, said: str) -> bool:
        return any(said in echoed(text) for text in self.town.bot_texts())

    async def read(self, said: str) -> None:
        """Her message is answered, and no answer is in the making any more."""
        await self.sees(lambda: self.answers(said))

    async def shown(self, *beginnings: str) -> None:
        await self.sees(lambda: any(t.startswith(beginnings) for t in self.town.bot_texts()))

    async def sees(self, wanted: Callable[[], bool]) -> None:
        """A preview that is complete looks just like its answer: so she waits for quiet, too."""
        await self.town.stand_in.wait_for(wanted, self.patience)
        await self.lab.settled(self.patience)

    async def model_hears(self, said: str) -> None:
        requests = self.lab.model.requests
        await self.lab.model.wait_for(
            lambda: any(said in newest(request)[0] for request in requests), self.patience
        )

    async def charging(self) -> None:
        """A charge is made, or the turn is over by now."""
        await self.town.stand_in.wait_for(
            lambda: bool(self.lab.effects) or self._over(), self.patience
        )

    def _over(self) -> bool:
        return any(text.startswith(CHARGED) for text in self.town.bot_texts())


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """``rate`` is how fast the service's clock runs. ``twice``: killed a second time in the middle
    of recovery, too; ``lags``: there is something that a durability grade may write later."""

    name: str
    about: str
    play: Callable[[Stage], Awaitable[None]]
    wishes: Wishes
    environment: Mapping[str, str] = {}
    rate: float = 1.0
    webhook: bool = False
    twice: bool = False
    lags: bool = False
