"""A storm's outcome as tables for the terminal and for a document; it judges nothing."""

import statistics
from collections.abc import Sequence

from tests.harness.chaos.gaps import Wait, in_spans, spread
from tests.harness.chaos.run import Outcome
from tests.harness.chaos.storm import DEPLOY, GENTLE, RESTART, SETTLING
from tests.harness.chaos.watch import Span
from tests.harness.soak.ending import MAX_FAILED

Row = tuple[str, ...]
AIM = 2.0
"""Seconds that a deploy may cost anyone."""
STEPS = (0.25, 0.5, 1.0, 2.0, 5.0, 15.0)


def as_markdown(outcome: Outcome, remarks: Sequence[str]) -> str:
    verdict = [f"- {fault}" for fault in outcome.faults]
    word = f"Red, {len(verdict)} faults:" if verdict else "Green: nothing to complain of."
    blocks = [
        "\n".join(f"- {one}" for one in remarks),
        "\n".join([word, *([""] if verdict else []), *verdict]),
        _table([("", ""), *_counts(outcome)]),
        "What a deploy cost those who talked meanwhile (no other blow fell with it, or less than a "
        "lease before it):",
        _table([("", ""), *_deploys(outcome)]),
        "How much longer than in the calm it took until the first sign of an answer was seen, of "
        "messages that someone waited for in such a deploy:",
        _table(_histogram(outcome)),
        "Each blow of the storm, and what it cost:",
        _table(_events(outcome)),
    ]
    return "\n\n".join([*blocks, ""])


def calm_median(outcome: Outcome) -> float:
    """Seconds to the first sign of an answer; 0 where nobody waited."""
    return statistics.median([w.seconds for w in in_spans(outcome.calm, outcome.timing)] or [0.0])


def deploys(outcome: Outcome, kinds: Sequence[str] = (DEPLOY, RESTART)) -> list[Span]:
    """Those that no other blow fell with, nor so shortly before that its leases still had to run
    out: who waits for a killed process's turn is not kept waiting by the deploy."""
    hard = [span for span in outcome.spans if span.kind not in GENTLE]
    clear = outcome.site.lease + SETTLING
    return [
        span
        for span in outcome.spans
        if span.kind in kinds
        and span.alone
        and not any(one.began < span.began < one.well + clear for one in hard)
    ]


def longest_gap(outcome: Outcome, kinds: Sequence[str] = (DEPLOY, RESTART)) -> float:
    """Seconds that a deploy cost who waited longest for a sign, beyond the calm's middle."""
    waits = in_spans(deploys(outcome, kinds), outcome.timing)
    return max((w.seconds for w in waits), default=0.0) - calm_median(outcome)


def _counts(outcome: Outcome) -> list[Row]:
    plan, books, accounts = outcome.plan, outcome.books, outcome.accounts
    sent = sum(one.sent for one in accounts)
    failed = sum(one.failed for one in accounts)
    extra, allowed = (sum(getattr(a, name) for a in accounts) for name in ("extra", "allowed"))
    seconds = max((span.well for span in outcome.spans), default=0.0) - outcome.began
    return [
        ("people", f"{plan.people}"),
        ("replicas", ", ".join(outcome.site.roles)),
        ("lease, grace of a stop", f"{outcome.site.lease:.0f} s, {outcome.site.drain:.0f} s"),
        ("seconds until the storm was over", f"{seconds:.0f}"),
        ("blows", f"{len(outcome.spans)}"),
        ("processes started", f"{len(outcome.codes)}"),
        ("… that ended by SIGKILL", f"{outcome.codes.count(-9)}"),
        ("messages and commands sent", f"{sent:,}"),
        ("… answered", f"{sum(one.answered for one in accounts):,}"),
        ("… stopped by their user, who was told", f"{sum(one.discarded for one in accounts):,}"),
        ("… failed, and said so", f"{failed} (≤ {MAX_FAILED:.0%})"),
        (
            "messages of the bot that came twice, or were left unfinished",
            f"{extra}, of {allowed} that blows left in doubt",
        ),
        ("charges made by an unsafe tool", f"{outcome.charges}, none twice for one message"),
        ("… answered as «I think», since a blow left it open", f"{outcome.unsure}"),
        ("polls ended by another's (409)", _conflicts(outcome)),
        ("calls of the model", f"{outcome.model_calls:,}"),
        ("message to its whole answer, p50, p95, longest", spread(_gaps(outcome))),
        ("until all was settled after the end", f"{outcome.settled_in:.1f} s"),
        ("events stored", f"{books.events:,}"),
    ]


def _conflicts(outcome: Outcome) -> str:
    blamed = len(outcome.conflicts) - outcome.explained
    return f"{blamed}; and {outcome.explained} of processes that stood still"


def _gaps(outcome: Outcome) -> list[float]:
    return [gap for one in outcome.accounts for gap in one.gaps]


def _deploys(outcome: Outcome) -> list[Row]:
    calm = in_spans(outcome.calm, outcome.timing)
    rows: list[Row] = [
        ("calm: to the first sign, p50, p95, longest", _signs(calm)),
        ("calm: longest pause in an answer, p50, p95, longest", _pauses(calm)),
        ("calm: longest silence for all", f"{_silence(outcome, outcome.calm):.2f} s"),
    ]
    for kind in (DEPLOY, RESTART):
        spans = deploys(outcome, (kind,))
        waits = in_spans(spans, outcome.timing)
        gap = longest_gap(outcome, (kind,))
        rows += [
            (f"{kind}: how many, each p50, p95, longest", f"{len(spans)}: {_lasted(spans)}"),
            (f"{kind}: messages waited for", f"{len(waits)}"),
            (f"{kind}: to the first sign, p50, p95, longest", _signs(waits)),
            (f"{kind}: longest pause in an answer, p50, p95, longest", _pauses(waits)),
            (f"{kind}: longest silence for all", f"{_silence(outcome, spans):.2f} s"),
            (f"**{kind}: longest gap a user saw**", f"**{gap:.2f} s** (aim {AIM:.0f} s)"),
        ]
    return rows


def _signs(waits: Sequence[Wait]) -> str:
    return spread([wait.seconds for wait in waits])


def _pauses(waits: Sequence[Wait]) -> str:
    return spread([wait.pause for wait in waits])


def _lasted(spans: Sequence[Span]) -> str:
    return spread([span.ended - span.began for span in spans])


def _silence(outcome: Outcome, spans: Sequence[Span]) -> float:
    return max((outcome.timing.silence(s.began, s.ended) for s in spans), default=0.0)


def _histogram(outcome: Outcome) -> list[Row]:
    median = calm_median(outcome)
    more = [w.seconds - median for w in in_spans(deploys(outcome), outcome.timing)]
    calm = [w.seconds - median for w in in_spans(outcome.calm, outcome.timing)]
    heads = [f"≤ {step:g} s" for step in STEPS]
    lines: list[Row] = [("", *heads, "more")]
    for name, values in (("in a deploy", more), ("in the calm", calm)):
        within = [sum(value <= step for value in values) for step in STEPS]
        each = [b - a for a, b in zip((0, *within), (*within, len(values)), strict=True)]
        lines.append((name, *(f"{count:,}" for count in each)))
    return lines


def _events(outcome: Outcome) -> list[Row]:
    rows: list[Row] = [
        ("at", "blow", "lasted", "all well after", "longest wait for a sign", "silence", "")
    ]
    for span in outcome.spans:
        waits = outcome.timing.seen_in(span.began, span.well)
        longest = max((wait.seconds for wait in waits), default=0.0)
        notes = [*([] if span.alone else ["with another"]), *([span.note] if span.note else [])]
        rows.append(
            (
                f"{span.began - outcome.began:.0f} s",
                span.kind,
                f"{span.ended - span.began:.1f} s",
                f"{span.well - span.began:.1f} s",
                f"{longest:.1f} s",
                f"{outcome.timing.silence(span.began, span.well):.1f} s",
                "; ".join(notes),
            )
        )
    return rows


def _table(rows: Sequence[Row]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in rows
    ]
    lines.insert(1, f"| {' | '.join('-' * max(width, 3) for width in widths)} |")
    return "\n".join(lines)
