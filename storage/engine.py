"""One database as the store sees it; all that differs between SQLite and PostgreSQL goes by here,
and nothing else does."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from core.errors import StillhereError, StorageError, UnstorableError
from core.ports import Hear, Platforms

T = TypeVar("T")
Work = Callable[[sa.Connection], T]
DialectName = Literal["sqlite", "postgresql"]


_OF_THE_DATA = ("22", "23", "54")
"""The classes of PostgreSQL's errors that are about what is to be stored, not about when: data,
constraints, limits. https://www.postgresql.org/docs/current/errcodes-appendix.html"""


class RefusedError(StorageError):
    """The database refused a statement; nothing of its transaction is stored."""


class Database(Protocol):
    """A transaction is a plain function of a connection. Every method raises StorageError."""

    @property
    def dialect(self) -> DialectName: ...

    @property
    def exclusive(self) -> bool:
        """Whether no other process can have it open for writing."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the operator should know of the address that was given."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where files may be kept beside it; None where a disk is not promised."""
        ...

    async def write(self, work: Work[T]) -> T:
        """In one transaction that is on disk when this returns; nothing is stored when it raises
        RefusedError, UnstorableError or an error of ``work`` itself. One call at a time."""
        ...

    async def read(self, work: Work[T]) -> T: ...

    async def listen(self, hear: Hear, sender: str) -> None:
        """As ``core.ports.Notifications.listen``, but for what ``sender`` sends."""
        ...

    async def alter(self, work: Work[T]) -> T:
        """As ``write``, for what may take long: an upgrade."""
        ...

    async def backup(self, tag: str) -> Path | None:
        """A verified copy beside the file, of mode 0600; None where there is no file."""
        ...

    async def close(self) -> None: ...


def transact(connection: sa.Connection, work: Work[T]) -> T:
    """Tells a refused statement (nothing is stored) from a commit that failed (nobody knows)."""
    with connection.begin():
        try:
            return work(connection)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            kind = UnstorableError if _is_of_the_data(error) else RefusedError
            raise kind(_short(error)) from error
        except SQLAlchemyError as error:
            # It never reached the database.
            raise RefusedError(_short(error)) from error


def _is_of_the_data(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None)
    if isinstance(state, str):
        return state.startswith(_OF_THE_DATA)
    return isinstance(error, IntegrityError | DataError)


@contextmanager
def storage_errors(*of_driver: type[Exception]) -> Generator[None]:
    """The one place where errors of drivers become ours."""
    try:
        yield
    except StillhereError:
        raise
    except (SQLAlchemyError, OSError, *of_driver) as error:
        raise StorageError(_short(error)) from error


def _short(error: Exception) -> str:
    """Without the statement and its parameters: they hold what people said."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return f"{type(cause).__name__}: {str(cause).partition(chr(10))[0][:200]}"


def insert(dialect: DialectName, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that knows ``on_conflict_do_update``."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def upsert(dialect: DialectName, table: sa.Table) -> sa.Insert:
    statement = insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    rest = {c.name: statement.excluded[c.name] for c in table.c if c.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=rest)


def json_rows(dialect: DialectName, name: str, *kinds: type[str] | type[int]) -> sa.SelectBase:
    """A list of lists, bound as JSON: one statement for any number of keys."""
    bound = sa.bindparam(name, type_=sa.Text)
    if dialect == "sqlite":
        item = sa.func.json_each(bound).table_valued("value")
        fields = [sa.func.json_extract(item.c.value, f"$[{place}]") for place in range(len(kinds))]
        return sa.select(*fields).select_from(item)
    json = sa.cast(bound, postgresql.JSONB)
    item = sa.func.jsonb_array_elements(json).table_valued(sa.column("value", postgresql.JSONB))
    types = {str: sa.Text, int: sa.BigInteger}
    return sa.select(
        *(sa.cast(item.c.value[place].astext, types[kind]) for place, kind in enumerate(kinds))
    ).select_from(item)


def json_list(rows: Iterable[Sequence[str | int]]) -> str:
    return msgspec.json.encode(list(rows)).decode()


def first_part(dialect: DialectName, column: sa.Column[str]) -> sa.ColumnElement[str]:
    """What stands before the first colon of a text that has one."""
    colon = (sa.func.instr if dialect == "sqlite" else sa.func.strpos)(column, ":")
    return sa.func.substr(column, 1, colon - 1, type_=sa.Text)


def of_platforms(
    column: sa.Column[str], place: str, platforms: Platforms
) -> sa.ColumnElement[bool]:
    """Rows whose text has the name of one of the platforms in that place, as ``{}``."""
    if platforms is None:
        return sa.true()
    return sa.or_(sa.false(), *(column.like(place.format(name)) for name in sorted(platforms)))
