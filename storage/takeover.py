"""What a dead process left claimed, in a database that one process at a time may open."""

import sqlalchemy as sa

from storage.tables import leases, outbox, streams

_LEASES = (
    sa.update(streams).where(streams.c.open_turn, streams.c.lease_until > 0).values(lease_until=0)
)
_CLAIMS = sa.update(outbox).where(outbox.c.holds, outbox.c.state == "sending").values(lease_until=0)
_NAMED = sa.update(leases).where(leases.c.lease_until > 0).values(lease_until=0)


def end_leases(connection: sa.Connection) -> None:
    """Who opens the database alone need not wait for the leases of one that is gone."""
    connection.execute(_LEASES)
    connection.execute(_CLAIMS)
    connection.execute(_NAMED)
