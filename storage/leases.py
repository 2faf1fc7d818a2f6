"""Leases that are of no session, such as that of a bot's token; a row each, never a lock."""

from datetime import datetime

import sqlalchemy as sa

from core.ports import Lease
from storage.codec import clean, micros
from storage.engine import DialectName, insert
from storage.tables import leases


class Leases:
    """Built once for a dialect."""

    def __init__(self, dialect: DialectName) -> None:
        taking = insert(dialect, leases)
        new = taking.excluded
        self._take = taking.on_conflict_do_update(
            index_elements=[leases.c.name],
            set_={
                "owner": new.owner,
                "lease_until": new.lease_until,
                "epoch": leases.c.epoch + sa.case((leases.c.owner == new.owner, 0), else_=1),
            },
            where=sa.or_(leases.c.owner == new.owner, leases.c.lease_until <= sa.bindparam("now")),
        ).returning(leases.c.name)
        self._release = (
            sa.update(leases)
            .where(leases.c.name == sa.bindparam("of_name"), leases.c.owner == sa.bindparam("of"))
            .values(lease_until=0)
            .returning(leases.c.name)
        )

    def take(self, connection: sa.Connection, name: str, lease: Lease, now: datetime) -> bool:
        row = {
            "name": clean(name),
            "owner": lease.owner,
            "epoch": 1,
            "lease_until": micros(lease.until),
            "now": micros(now),
        }
        return connection.execute(self._take, row).first() is not None

    def release(self, connection: sa.Connection, name: str, owner: str) -> bool:
        """Whether it was the owner's."""
        row = {"of_name": clean(name), "of": owner}
        return connection.execute(self._release, row).first() is not None
