"""Who holds leases: this process, under a name that no other run of it has; it takes none."""

from datetime import datetime, timedelta

import msgspec

from core.ports import Lease


class Holder(msgspec.Struct, frozen=True):
    """``seconds`` is how long a lease lasts."""

    owner: str
    seconds: float = 15.0

    def lease(self, now: datetime) -> Lease:
        return Lease(self.owner, now + timedelta(seconds=self.seconds))
