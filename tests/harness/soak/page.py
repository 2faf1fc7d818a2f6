"""A soak's outcome as a table for the terminal and for a document; it judges nothing."""

import statistics
from collections.abc import Sequence

from tests.harness.soak.ending import MAX_FAILED
from tests.harness.soak.gauge import Change
from tests.harness.soak.run import (
    CALM_FILES_EACH,
    CALM_RSS_GROWTH,
    FILES_GROWTH,
    RSS_GROWTH,
    Outcome,
)

Row = tuple[str, str]


def as_markdown(outcome: Outcome, remarks: Sequence[str]) -> str:
    table = [("", ""), *_rows(outcome)]
    widths = [max(len(row[column]) for row in table) for column in (0, 1)]
    lines = [f"| {what.ljust(widths[0])} | {value.ljust(widths[1])} |" for what, value in table]
    lines.insert(1, f"| {'-' * widths[0]} | {'-' * widths[1]} |")
    verdict = [f"- {fault}" for fault in outcome.faults]
    word = f"Red, {len(verdict)} faults:" if verdict else "Green: nothing to complain of."
    return "\n".join([*(f"- {one}" for one in remarks), "", *lines, "", word, *verdict, ""])


def _rows(outcome: Outcome) -> list[Row]:
    plan, books, accounts = outcome.plan, outcome.books, outcome.accounts
    sent = sum(one.sent for one in accounts)
    failed = sum(one.failed for one in accounts)
    gaps = sorted(gap for one in accounts for gap in one.gaps)
    return [
        ("people", f"{plan.people}"),
        ("seconds with kills, then without", f"{plan.seconds:.0f}, {plan.calm:.0f}"),
        ("lives of the service", f"{outcome.lives}"),
        ("… ended by SIGKILL", f"{outcome.kills}"),
        ("… told to stop by SIGTERM", f"{outcome.stops}"),
        ("… and killed in the drain", f"{outcome.drained}"),
        ("messages and commands sent", f"{sent:,}"),
        ("… answered", f"{sum(one.answered for one in accounts):,}"),
        ("… stopped by their user, who was told", f"{sum(one.discarded for one in accounts):,}"),
        ("… failed, and said so", f"{failed} (≤ {MAX_FAILED:.0%})"),
        ("messages of the bot that came twice, or were left unfinished", _extra(outcome)),
        ("charges made by an unsafe tool", f"{outcome.charges}, none twice for one message"),
        ("… answered as «I think», since a kill left it open", f"{outcome.unsure}"),
        ("calls of the model", f"{outcome.model_calls:,}"),
        ("message to its whole answer, p50, p95, longest", _gaps(gaps)),
        ("until all was settled after the end", f"{outcome.settled_in:.1f} s"),
        (f"memory {_of(outcome.young)}", f"{_rss(outcome.young)} (≤ +{RSS_GROWTH:.0f} MiB)"),
        (f"open files {_of(outcome.young)}", f"{_files(outcome.young)} (≤ +{FILES_GROWTH})"),
        ("memory of the calm life, first and last quarter", _calm(outcome)),
        (
            "open files of the calm life",
            f"{_files(outcome.calm)} (≤ +{plan.people * CALM_FILES_EACH})",
        ),
        ("… a minute", f"{outcome.slope[0]:+.2f} MiB, {outcome.slope[1]:+.2f} files"),
        ("events stored", f"{books.events:,}"),
        ("database, log", f"{books.mib:.1f} MiB, {outcome.log_mib:.1f} MiB"),
    ]


def _extra(outcome: Outcome) -> str:
    seen = sum(one.extra for one in outcome.accounts)
    return f"{seen}, of {sum(one.allowed for one in outcome.accounts)} that kills left in doubt"


def _gaps(gaps: Sequence[float]) -> str:
    if len(gaps) < 2:
        return "too few"
    cuts = statistics.quantiles(gaps, n=20, method="inclusive")
    return f"{cuts[9]:.1f} s, {cuts[18]:.1f} s, {gaps[-1]:.1f} s"


def _of(change: Change) -> str:
    return f"at the same age, first and last quarter of {change.count} lives"


def _rss(change: Change) -> str:
    return f"{change.rss[0]:.1f}, {change.rss[1]:.1f} MiB"


def _files(change: Change) -> str:
    return f"{change.files[0]:.0f}, {change.files[1]:.0f}"


def _calm(outcome: Outcome) -> str:
    return f"{_rss(outcome.calm)} (≤ +{CALM_RSS_GROWTH:.0f} MiB)"
