"""What may still be spent today, looked up before a model is asked; it forbids nothing itself."""

from datetime import UTC, date

from core.domain.keys import platform_of, session_key
from core.domain.messages import Inbound
from core.domain.policy import Policy
from core.domain.spending import Bill, Limit, Meter, limits_of, reached
from core.domain.state import SessionState
from core.ports import Clock, Spending
from core.runtime.retrying import insist
from core.runtime.sessions import Sessions


class Budget:
    def __init__(self, spending: Spending, sessions: Sessions, clock: Clock) -> None:
        self._spending = spending
        self._sessions = sessions
        self._clock = clock

    async def meter(self, state: SessionState) -> Meter | None:
        """Of the one for whom a model would be asked now; nothing is looked up, and None is known,
        where there are no limits. It waits for the database."""
        if not limits_of(self._policy):
            return None
        platform, person = platform_of(state.key), state.spender
        return await insist(self._clock, lambda: self._meter(state.key, platform, person))

    def forbids(self, meter: Meter | None) -> Limit | None:
        """The limit that is reached."""
        return reached(meter, self._policy) if meter else None

    async def bill(self, inbound: Inbound, *, whole: bool) -> Bill:
        """``whole``: with who spent most today. Raises StorageError."""
        platform, person = inbound.address.platform, inbound.person
        key = str(session_key(inbound.address, inbound.user))
        meter = await self._meter(key, platform, person)
        first = meter.day.replace(day=1)
        return Bill(
            meter=meter,
            month=await self._spending.spent(platform, person, first, meter.day),
            most=await self._spending.spent_most(meter.day) if whole else (),
        )

    @property
    def _policy(self) -> Policy:
        return self._sessions.policy

    def _today(self) -> date:
        return self._clock.now().astimezone(UTC).date()

    async def _meter(self, key: str, platform: str, person: str) -> Meter:
        """What is decided and not yet written counts, too."""
        day = self._today()
        meter = await self._spending.meter(day, platform, person)
        for spent in self._sessions.unwritten(key):
            if (spent.day, spent.person) == (day, person):
                meter = meter.plus(spent.usage)
        return meter
