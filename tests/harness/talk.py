"""The scenario of one DM, as its user lives it; whatever dies, she only looks at her screen."""

import time
from collections import Counter
from collections.abc import Callable

from tests.harness.lab import Cell, Lab
from tests.harness.scripted import FIRST, HANG, TOOLS, newest
from tests.standins.telegram_user import User

PATIENCE = 40.0
HELLO = "hello"
DOWN = "are you there"
AFTER = "a new start"
CHARGED = ("Charged once.", "Charged, I think.")
STOPPED = "Stopped at step"
BACK = "We are back in the conversation"


def echo(said: str) -> str:
    return f"You wrote {said} and I read it well"


class Talk:
    """``stop_seconds`` is how long ``/stop`` took to be answered while the model hung."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.ada: User = lab.telegram.user(7, "Ada")
        self.stop_seconds = 0.0
        self.exit_codes: list[int | None] = []

    async def run(self) -> None:
        lab, ada = self.lab, self.ada
        first = ada.says(HELLO)
        await self._sees(lambda text: text == echo(HELLO))
        lab.telegram.redeliver(first.update_id or 0)
        ada.says(TOOLS)
        await self._sees(lambda text: text in CHARGED)
        self.exit_codes.append(await lab.down())
        ada.says(DOWN)
        await lab.up()
        await self._sees(lambda text: text == echo(DOWN))
        await self._stop_a_hanging_turn()
        ada.says(AFTER)
        await self._sees(lambda text: text == echo(AFTER))
        ada.says("/resume")
        await self._sees(lambda text: text.startswith(BACK))
        ada.says(FIRST)
        await self._sees(lambda text: text == f"You said: {HELLO}")
        self.exit_codes.append(await lab.down())

    async def _stop_a_hanging_turn(self) -> None:
        lab, ada = self.lab, self.ada
        ada.says(HANG)
        await lab.model.wait_for(
            lambda: any(newest(request)[0] == HANG for request in lab.model.requests), PATIENCE
        )
        began = time.monotonic()
        ada.says("/stop")
        await self._sees(lambda text: text.startswith(STOPPED))
        self.stop_seconds = time.monotonic() - began

    async def _sees(self, wanted: Callable[[str], bool]) -> None:
        """On her screen; and then she waits until no answer is in the making: a preview that is
        complete looks just like its answer."""
        await self.lab.telegram.wait_for(
            lambda: any(wanted(text) for text in self.ada.bot_texts()), PATIENCE
        )
        await self.lab.quiet(PATIENCE)


def faults_of(talk: Talk, cell: Cell) -> list[str]:
    """What a user could complain of; [] when all promises held."""
    texts = talk.ada.bot_texts()
    names = (echo(HELLO), echo(DOWN), echo(AFTER), STOPPED, BACK, f"You said: {HELLO}", "Charged")
    counts = Counter(next((n for n in names if text.startswith(n)), text) for text in texts)
    found = [f"{name!r} never came" for name in names if not counts[name]]
    strays = [text for text in texts if not text.startswith(names)]
    doubles = sum(counts[name] - 1 for name in names if counts[name])
    partial = [s for s in strays if not any(n.startswith(s) for n in (*names, *PARTIALS))]
    found += [f"{text!r} came out of nowhere" for text in partial]
    extra = doubles + len(strays) - _hung_previews(strays)
    allowed = 1 if may_double(talk.lab, cell) else 0
    if extra > allowed:
        found.append(f"{extra} messages too many, {allowed} allowed: {texts}")
    if len(talk.lab.effects) > 1:
        found.append(f"the effect was repeated: {talk.lab.effects}")
    if talk.lab.model.violations:
        found.append(f"illegal requests: {talk.lab.model.violations}")
    return found


PARTIALS = ("Thinking about it for ever and ever", "Let me see.")


def _hung_previews(strays: list[str]) -> int:
    """The preview of the turn that was stopped stays, once."""
    return min(1, sum(PARTIALS[0].startswith(text) for text in strays))


def may_double(lab: Lab, cell: Cell) -> bool:
    """Telegram cannot be asked whether a new message arrived: a kill between the claim of a row and
    the note of what became of it may cost one double, and nothing else may."""
    writes = lab.writes(cell.life) if lab.died else []
    if cell.kind == "write" and not cell.after:
        writes = writes[:-1]
    begun = sum(name in ("claim", "open_preview") for name in writes)
    ended = sum(name in ("sent", "retry", "give_up", "unknown") for name in writes)
    return begun > ended
