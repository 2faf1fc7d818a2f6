"""The dashboard, the alerts and the table of metrics name what the code tells, and nothing else."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bots.counters import Counters
from bots.metrics import Kept, Reading, exposition
from bots.platforms import Health
from core.domain.keys import TurnId
from core.domain.ledger import Ledger
from core.domain.messages import Usage
from core.ports import Span, TurnEnd

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/monitoring.md"
DASHBOARD = ROOT / "docs/grafana/stillhere.json"
AT = datetime(2026, 5, 5, tzinfo=UTC)
OF_THE_SCRAPE = {"job", "instance", "le"}
"""Labels that Prometheus itself adds, or that a histogram has."""
FUNCTIONS = {
    *("absent", "count", "deriv", "histogram_quantile", "increase", "max", "min", "rate", "sum"),
    *("time", "vector"),
}
WORDS = {"by", "offset", "or"}

Names = dict[str, set[str]]


def told() -> Names:
    """Every sample's name with its labels, of a process to which everything has happened."""
    counters = Counters()
    counters.serve(("telegram",))
    for kind in ("step", "model", "tool", "commit", "send", "transaction"):
        counters.done(Span(kind=kind, name="read", outcome="sent"), AT, 1.0)
    counters.ended(
        TurnEnd(
            turn=TurnId("s", 1),
            platform="telegram",
            outcome="answered",
            started_at=AT,
            ended_at=AT,
            steps=1,
            resumes=0,
        )
    )
    ledger = {"telegram": Ledger(accepted=1, answered=1)}
    kept = Kept(ledger=ledger, undelivered={}, spent={"telegram": Usage(1, 1, 1.0)})
    health = {"telegram": Health(ok=True, detail="", last_inbound=AT)}
    reading = Reading(ready=True, kept=kept, health=health)
    text = (exposition(reading) + counters.exposition()).decode()
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def expressions() -> list[str]:
    board: dict[str, Any] = json.loads(DASHBOARD.read_text())
    of_panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    return [*of_panels, *re.findall(r"^\s+expr: (.+)$", PAGE.read_text(), re.MULTILINE)]


def faults(expression: str, known: Names) -> Iterator[str]:
    """What of an expression of Prometheus' the code does not tell."""
    rest = re.sub(r"\[[^\]]*\]", "", expression)
    labels = {label for _, label in re.findall(r"([{,])\s*(\w+)\s*(?==|!)", rest)}
    for group in re.findall(r"\bby \(([^)]*)\)", rest):
        labels |= {label.strip() for label in group.split(",")}
    rest = re.sub(r'\{(?:[^{}"]|"[^"]*")*\}', "", rest)
    rest = re.sub(r"\bby \([^)]*\)", "", rest)
    called = set(re.findall(r"\b([a-z_]\w*)\s*\(", rest))
    words = set(re.findall(r"(?<![\w.])[a-z_]\w*", rest)) - called - WORDS
    yield from (f"function {name}" for name in called - FUNCTIONS - WORDS)
    yield from (f"metric {name}" for name in words - known.keys())
    has = {label for name in words & known.keys() for label in known[name]}
    yield from (f"label {label}" for label in labels - has - OF_THE_SCRAPE)
    if not words:
        yield "no metric"


def test_every_expression_asks_for_what_is_told() -> None:
    known, asked = told(), expressions()
    assert len(asked) > 35
    assert {one: found for one in asked if (found := list(faults(one, known)))} == {}


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("sum(stillhere_redy)", "metric stillhere_redy"),
        ("sum(stillhere_sends)", "metric stillhere_sends"),
        ("sum(stillhere_turn_seconds)", "metric stillhere_turn_seconds"),
        ('stillhere_outbox{satte="failed"}', "label satte"),
        ("max by (chat) (stillhere_outbox)", "label chat"),
        ("avrg(stillhere_ready[5m])", "function avrg"),
        ("vector(0)", "no metric"),
    ],
)
def test_an_expression_that_asks_for_nothing_is_found(expression: str, fault: str) -> None:
    assert list(faults(expression, told())) == [fault]


def test_the_page_has_every_metric_with_its_labels_once() -> None:
    rows = re.findall(r"^\| `(stillhere_\w+)` \| ?(.*?) ?\| (?:all|own) \|", PAGE.read_text(), re.M)
    page = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    code: Names = {}
    for name, labels in told().items():
        if name.startswith("stillhere_"):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            code[family] = code.get(family, set()) | (labels - {"le"})
    assert page == code
    assert len(rows) == len(page)


def test_names_follow_prometheus() -> None:
    """Base units, and «total» where, and only where, something is counted."""
    text = exposition(Reading(ready=True, kept=None, health={})) + Counters().exposition()
    for family in text_string_to_metric_families(text.decode()):
        assert re.fullmatch(r"[a-z][a-z_]*[a-z]", family.name)
        assert not re.search(r"milli|_ms$|_minutes|_kb|_total$", family.name)
        assert family.type in ("counter", "gauge", "histogram")
        assert family.type != "histogram" or family.name.endswith("_seconds")


def test_no_panel_lies_upon_another() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    taken = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) == 23
    assert len({panel["id"] for panel in panels}) == len(panels)
