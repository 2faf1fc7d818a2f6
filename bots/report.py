"""Tells the owner in their chat how the service is set up and what is missing, once, and again when
that has changed; it decides nothing."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from bots import findings
from bots.findings import Finding
from bots.ground import Ground
from bots.intakes import Intakes
from bots.model import chosen
from core.ports import Clock
from core.runtime.model_signs import ModelSigns
from core.runtime.owners_chat import OwnersChat
from core.runtime.retrying import insist

LOOKS = 60
LOOK_SECONDS = 0.5
"""Together how long a platform gets to tell who we are, or that it does not know us."""
SETUP = "setup"
MODEL = "model"
_BROKEN = "I cannot answer: {}"
_MENDED = ""

log = structlog.get_logger(__name__)


class Report:
    def __init__(
        self,
        ground: Ground,
        model: str,
        intakes: Intakes,
        signs: ModelSigns,
        chat: OwnersChat,
    ) -> None:
        """``model`` is the name of the one that answers."""
        self._ground = ground
        self._clock: Clock = ground.clock
        self._model = model
        self._intakes = intakes
        self._signs = signs
        self._chat = chat
        self._setup_wanted, self._model_wanted = asyncio.Event(), asyncio.Event()
        chat.subscribe(self._setup_wanted.set)
        signs.subscribe(self._model_wanted.set)

    async def run(self) -> None:
        """Until it is cancelled. What it wants to say may wait; nothing waits for it."""
        self._setup_wanted.set()
        await asyncio.gather(
            self._keep_at(self._setup_wanted, self._tell_setup),
            self._keep_at(self._model_wanted, self._tell_model),
        )

    async def _keep_at(self, wanted: asyncio.Event, tell: Callable[[], Awaitable[None]]) -> None:
        while True:
            await wanted.wait()
            wanted.clear()
            try:
                await tell()
            except Exception:
                log.exception("the owner is not told how it stands")

    async def _tell_setup(self) -> None:
        """What is wrong with the model is known late, or not at all before it is asked: it is a
        topic of its own, so that a start that does not know it yet changes nothing."""
        platform = await insist(self._clock, self._chat.platform)
        if not platform:
            return
        await self._settled(platform)
        found = self._found()
        about = "\n".join(one.sameness for one in found)
        trouble = self._signs.trouble
        text = findings.report((*found, *findings.of_trouble(trouble)), self._not_set_up())
        told = await insist(self._clock, lambda: self._chat.tell(SETUP, about, text))
        if told and trouble:
            await insist(self._clock, lambda: self._chat.tell(MODEL, trouble, ""))

    async def _tell_model(self) -> None:
        trouble = self._signs.trouble
        if trouble:
            said = "" if self._signs.told else _BROKEN.format(trouble)
            await insist(self._clock, lambda: self._chat.tell(MODEL, trouble, said))
        elif self._signs.answers:
            await insist(self._clock, lambda: self._chat.tell(MODEL, _MENDED, ""))

    async def _settled(self, platform: str) -> None:
        """Of several processes the one that takes the owner's messages tells: another one does not
        know how it stands with the platforms, until it takes over."""
        while self._intakes.stands_by(platform):
            await self._clock.sleep(LOOK_SECONDS)
        for _ in range(LOOKS):
            if all(one.ok or one.lasting for one in self._intakes.health().values()):
                return
            await self._clock.sleep(LOOK_SECONDS)

    def _found(self) -> list[Finding]:
        ground = self._ground
        choice = chosen(ground.settings, ground.environment)
        return [
            *(
                findings.of_platform(ground.platforms[name], health)
                for name, health in self._intakes.health().items()
            ),
            findings.of_model(self._model, choice),
            findings.of_database(ground.settings, ground.environment),
            findings.of_people(ground.settings),
            *findings.of_role(ground.settings),
        ]

    def _not_set_up(self) -> list[str]:
        return [name for name in self._ground.platforms if name not in self._intakes.health()]
