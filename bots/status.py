"""How it stands with this process, for the host, the operator and Prometheus; it mends nothing."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import msgspec

from bots.intakes import Intakes
from bots.metrics import Kept, Reading
from core.errors import StorageError
from core.ports import Clock, Store
from core.runtime.model_signs import ModelSigns
from scheduler.audit import Audit

WRITE_SECONDS = 3.0
"""A host's own patience with a health check is seldom longer than five."""
MOST_ABANDONED = 1_000
"""Of which a scrape tells the number."""
SIGNS_FACT = "signs of "


class Status:
    """``life`` is where the process is in its own; ``turns`` counts its open ones by phase."""

    def __init__(  # noqa: PLR0913 (all of it from outside)
        self,
        store: Store,
        intakes: Intakes,
        audit: Audit,
        clock: Clock,
        model_signs: ModelSigns,
        turns: Callable[[], Mapping[str, int]],
    ) -> None:
        self.life: Literal["starting", "running", "stopping"] = "starting"
        self._store = store
        self._intakes = intakes
        self._audit = audit
        self._clock = clock
        self._model_signs = model_signs
        self._turns = turns

    async def reading(self) -> Reading:
        """What the database knows is left out when it does not answer soon."""
        ready, kept = False, None
        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(WRITE_SECONDS):
                ready, _ = await self.readiness()
                kept = await self._kept()
        health = self._intakes.health()
        return Reading(ready=ready, kept=kept, health=health, turns=self._turns())

    async def _kept(self) -> Kept:
        """Raises StorageError."""
        store, now = self._store, self._clock.now()
        since = await store.waiting_since()
        return Kept(
            ledger=self._audit.ledger,
            undelivered=await store.undelivered(),
            spent=await store.spent_in_all(),
            waits={name: max(0.0, (now - at).total_seconds()) for name, at in since.items()},
            abandoned=len(await store.abandoned(now, MOST_ABANDONED)),
        )

    async def readiness(self) -> tuple[bool, dict[str, Any]]:
        """Whether messages are taken and answered, and if not, why.

        A ledger that does not add up is shown as an alarm, and what is wrong with the model is
        shown, and neither makes it less ready: a host that restarts what is not ready, or sends it
        no more messages, would mend nothing by that.
        """
        database = await self._database_word()
        health = self._intakes.health()
        detail = {
            "state": self.life,
            "database": database,
            "model": self._model_signs.trouble or "ok",
            "platforms": {name: msgspec.to_builtins(one) for name, one in health.items()},
            "ledger": {
                name: {**one.numbers, "balanced": one.balanced}
                for name, one in self._audit.ledger.items()
            },
            "alarms": list(self._audit.alarms),
        }
        well = database == "ok" and all(one.ok for one in health.values())
        return self.life == "running" and well, detail

    async def _database_word(self) -> str:
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._store.set_fact("ready asked", self._clock.now().isoformat())
                await self._audit.look()
        except StorageError as error:
            return f"cannot be written: {error}"
        except TimeoutError:
            return f"cannot be written: no answer within {WRITE_SECONDS:.0f} s"
        return "ok"

    async def write_signs(self) -> None:
        """For ``doctor``, which runs in another process; who stands by knows nothing of it."""
        for name, health in self._intakes.health().items():
            if self._intakes.stands_by(name):
                continue
            signs = msgspec.json.encode(health).decode()
            with suppress(StorageError):
                await self._store.set_fact(SIGNS_FACT + name, signs)
