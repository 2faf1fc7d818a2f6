"""What those are told who watch sessions."""

from collections import Counter
from contextlib import AbstractContextManager, nullcontext

from core.domain.keys import TurnId
from core.ports import Happening, Span, TurnEnd
from tests.core.runtime.house import LEASE, Ground, asks, passes
from tests.core.runtime.virtual import in_virtual_time


class Told:
    """``core.ports.Telemetry`` that keeps it all."""

    def __init__(self) -> None:
        self.counts = Counter[tuple[str, str]]()
        self.spans: list[Span] = []
        self.ends: list[TurnEnd] = []

    def count(self, what: Happening, platform: str = "") -> None:
        self.counts[what, platform] += 1

    def span(self, span: Span) -> AbstractContextManager[Span]:
        self.spans.append(span)
        return nullcontext(span)

    def ended(self, turn: TurnEnd) -> None:
        self.ends.append(turn)


def watched(*lines: object) -> tuple[Ground, Told]:
    ground = Ground(*lines)
    ground.telemetry = told = Told()
    return ground, told


@in_virtual_time
async def test_a_session_that_another_process_took_is_told_once() -> None:
    ground, told = watched("from the second", "from nobody")
    ground.script.hold()
    first = await ground.starts()
    await first.hears("hello")
    await passes(1)
    first.forgets_to_renew()
    await passes(LEASE)
    second = await ground.starts()
    await passes(1)
    assert told.counts == {("recovery", "chat"): 1}
    for _ in range(3):
        await first.jobs.renew_leases()
        await second.jobs.renew_leases()
    assert told.counts == {("recovery", "chat"): 1, ("lease_loss", "chat"): 1}
    ground.script.release()
    await passes(5)
    assert told.counts["lease_loss", "chat"] == 1
    assert first.sessions.phases() == second.sessions.phases() == {}


@in_virtual_time
async def test_a_lease_that_is_let_go_is_not_lost() -> None:
    ground, told = watched("one", "two")
    process = await ground.starts()
    for word in ("one", "two"):
        await process.hears(word)
        await passes(LEASE)
    await process.stops()
    assert told.counts == {}


@in_virtual_time
async def test_a_turns_end_is_told_once_with_all_of_its_life() -> None:
    ground, told = watched(asks("look"), "found")
    ground.tools["look"].seconds = 50
    first = await ground.starts()
    await first.hears("go")
    await passes(2)
    await first.stops(drain=0)
    assert told.ends == []
    await passes(100)
    ground.tools["look"].seconds = 0
    second = await ground.starts()
    await passes(5)
    session = (await second.state()).session.session_id
    (end,) = told.ends
    assert (end.turn, end.platform) == (TurnId(session, 1), "chat")
    assert (end.outcome, end.reason, end.steps, end.resumes) == ("answered", "", 2, 1)
    assert 102 <= (end.ended_at - end.started_at).total_seconds() < 108
    of_turn = [span for span in told.spans if span.turn == end.turn]
    kinds = Counter((span.kind, span.outcome) for span in of_turn)
    assert kinds["model", "replied"] == 2
    assert kinds["tool", "ok"] == 1
    assert kinds["send", "sent"] == len(ground.chat.texts) == 2
    assert kinds["commit", "stored"] >= 5
