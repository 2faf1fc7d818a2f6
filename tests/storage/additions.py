"""What a revision takes away from programs of the one before; it looks at the database only."""

from typing import Any

import msgspec
import sqlalchemy as sa

Names = frozenset[tuple[str, ...]]


class Table(msgspec.Struct, frozen=True):
    columns: dict[str, dict[str, Any]]
    key: tuple[str, ...]
    unique: Names
    """Of constraints and indexes alike: the columns, and where it holds for some rows, that."""
    other: frozenset[str]
    """Foreign keys and checks."""


Schema = dict[str, Table]


def schema(connection: sa.Connection) -> Schema:
    look = sa.inspect(connection)
    return {
        name: _table(look, name) for name in look.get_table_names() if name != "alembic_version"
    }


def _table(look: sa.Inspector, name: str) -> Table:
    unique = {tuple(one["column_names"]) for one in look.get_unique_constraints(name)}
    for index in look.get_indexes(name):
        if index["unique"]:
            where = [str(v) for k, v in index.get("dialect_options", {}).items() if "where" in k]
            unique.add((*(column or "" for column in index["column_names"]), *where))
    foreign = {f"{one['constrained_columns']} of {one}" for one in look.get_foreign_keys(name)}
    checks = {str(one) for one in look.get_check_constraints(name)}
    return Table(
        {
            column["name"]: {
                "type": str(column["type"]),
                "nullable": column["nullable"],
                "default": column["default"],
            }
            for column in look.get_columns(name)
        },
        tuple(look.get_pk_constraint(name)["constrained_columns"]),
        frozenset(unique),
        frozenset(foreign | checks),
    )


def taken_away(before: Schema, after: Schema) -> list[str]:
    """What programs that know ``before`` would miss, or be refused, one a line."""
    found = [f"table {name} is gone" for name in before.keys() - after.keys()]
    for name in before.keys() & after.keys():
        found += [f"table {name}: {one}" for one in _of_table(before[name], after[name])]
    return sorted(found)


def _of_table(before: Table, after: Table) -> list[str]:
    old, new = before.columns, after.columns
    found = [f"column {name} is gone" for name in old.keys() - new.keys()]
    found += [
        f"column {name} is required and has no default"
        for name in new.keys() - old.keys()
        if not new[name]["nullable"] and new[name]["default"] is None
    ]
    for name in old.keys() & new.keys():
        found += [
            f"the {what} of column {name} was {old[name][what]} and is {new[name][what]}"
            for what in ("type", "default")
            if old[name][what] != new[name][what]
        ]
        if old[name]["nullable"] and not new[name]["nullable"]:
            found.append(f"column {name} may be empty no longer")
    if before.key != after.key:
        found.append(f"the key was {before.key} and is {after.key}")
    found += [f"{one} is unique now" for one in after.unique - before.unique]
    found += [f"{one} is unique no longer" for one in before.unique - after.unique]
    found += [f"there is a new condition: {one}" for one in after.other - before.other]
    return found
