"""An account that does not add up is said once, is remembered, and is said to be over."""

from typing import Any, cast

from structlog.testing import capture_logs

from core.domain.ledger import Ledger
from core.errors import StorageError
from core.ports import Directory
from scheduler.audit import Audit

GOOD = Ledger(accepted=3, answered=2, pending=1)
BAD = Ledger(accepted=3, answered=2)


class Books:
    def __init__(self) -> None:
        self.pages: dict[str, Ledger] = {}
        self.away = False

    async def ledger(self) -> dict[str, Ledger]:
        if self.away:
            raise StorageError("gone")
        return self.pages


async def looked(audit: Audit) -> list[dict[str, Any]]:
    with capture_logs() as lines:
        await audit.look()
    return [dict(line) for line in lines]


async def test_it_is_silent_while_all_is_well() -> None:
    books = Books()
    audit = Audit(cast("Directory", books))
    assert await looked(audit) == []
    books.pages = {"slack": Ledger(), "telegram": GOOD}
    assert await looked(audit) == []
    assert audit.alarms == ()
    assert audit.ledger == books.pages


async def test_it_says_a_change_once_with_the_numbers() -> None:
    books = Books()
    audit = Audit(cast("Directory", books))
    books.pages = {"slack": GOOD, "telegram": BAD}
    (line,) = await looked(audit)
    assert (line["log_level"], line["platform"], line["missing"]) == ("error", "telegram", 1)
    assert {name: line[name] for name in BAD.numbers} == BAD.numbers
    assert await looked(audit) == []
    assert audit.alarms == ("telegram: UNEQUAL: 1 message is accounted for by nobody",)
    books.pages = {"slack": GOOD, "telegram": BAD + Ledger(accepted=1)}
    assert [line["missing"] for line in await looked(audit)] == [2]


async def test_it_says_when_it_is_over() -> None:
    books = Books()
    audit = Audit(cast("Directory", books))
    books.pages = {"telegram": BAD}
    await looked(audit)
    books.pages = {"telegram": GOOD}
    (line,) = await looked(audit)
    assert (line["log_level"], line["platform"]) == ("info", "telegram")
    assert audit.alarms == ()


async def test_a_database_that_is_away_changes_nothing() -> None:
    books = Books()
    audit = Audit(cast("Directory", books))
    books.pages = {"telegram": BAD}
    await looked(audit)
    books.away = True
    assert [line["log_level"] for line in await looked(audit)] == ["warning"]
    assert len(audit.alarms) == 1
    books.away = False
    assert await looked(audit) == []
