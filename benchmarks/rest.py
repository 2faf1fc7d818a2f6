"""What services cost their database and their machine while nobody talks."""

import asyncio
import re
import time
from collections import Counter

import msgspec

from benchmarks.services import Town
from tests.postgres import PostgresServer

REST = ("log_line_prefix=<%d> ",)
SETTLE = 3.0
"""Seconds after the last answer before anything counts."""
TOLD = 1.5
"""Seconds after which the server's counters have what was done: it writes them down each second."""
SAID = re.compile(r"^<(\S+)> LOG:  (?:execute [^:]*|statement): (.*)", re.MULTILINE)
AROUND = ("BEGIN", "COMMIT", "ROLLBACK", ";")
"""What stands around a query; «;» is how it is looked whether a connection is alive."""
_TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{}'"


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A minute: of transactions, of queries within them, and of queries by how they begin.
    ``cores`` used by all services, and by PostgreSQL; ``memory`` of each service in MiB."""

    transactions: float
    queries: float
    kinds: dict[str, float]
    cores: tuple[float, float]
    memory: tuple[float, ...]


async def at_rest(place: Town, server: PostgresServer, seconds: float) -> Rest:
    await asyncio.sleep(min(SETTLE, seconds))
    await server.execute("ALTER SYSTEM SET log_statement = 'all'")
    await server.execute("SELECT pg_reload_conf()")
    await asyncio.sleep(TOLD)
    begun, before, logged = time.monotonic(), await _transactions(place), server.log.stat().st_size
    burden = place.burden()
    await asyncio.sleep(seconds)
    after, took = await _transactions(place), time.monotonic() - begun
    used = place.burden().since(burden, took)
    kinds = _queries(server.log.read_bytes()[logged:].decode(errors="replace"), place.database)
    await server.execute("ALTER SYSTEM RESET log_statement")
    await server.execute("SELECT pg_reload_conf()")
    minutes = took / 60
    return Rest(
        transactions=(after - before) / minutes,
        queries=sum(kinds.values()) / minutes,
        kinds={what: count / minutes for what, count in kinds.most_common()},
        cores=(used.services, used.database),
        memory=tuple(service.memory for service in place.services),
    )


async def _transactions(place: Town) -> int:
    """Asked for from another database, so that it does not count itself."""
    ((count,),) = await place.rows(_TRANSACTIONS.format(place.database), "postgres")
    return int(str(count))


def _queries(log: str, database: str) -> Counter[str]:
    said = [text for name, text in SAID.findall(log) if name == database]
    return Counter(text[:60] for text in said if not text.startswith(AROUND))
