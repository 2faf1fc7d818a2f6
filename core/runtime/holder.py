"""Who holds leases: this process, under a name that no other run of it has; it takes none."""

from datetime import datetime, timedelta

import msgspec

from core.ports import Lease

UNLIMITED = 1_000_000


class Holder(msgspec.Struct, frozen=True):
    """``seconds`` is how long a lease lasts; ``most`` how many sessions it runs at a time."""

    owner: str
    seconds: float = 15.0
    most: int = UNLIMITED

    def lease(self, now: datetime, *, held: bool = False) -> Lease:
        return Lease(self.owner, now + timedelta(seconds=self.seconds), held)
