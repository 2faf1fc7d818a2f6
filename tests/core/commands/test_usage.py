"""What ``/usage`` and ``/lift`` say, and to whom."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from core.commands.base import CommandContext
from core.domain import events as ev
from core.domain.draft import Draft
from core.domain.events import Role
from core.domain.messages import Usage
from core.domain.policy import Policy
from core.domain.spending import Bill, MarkKind, Meter, Spent
from core.domain.state import Session, SessionState
from tests.core.domain.samples import HOME, KEY, START, commands, inbound

TODAY = date(2026, 5, 5)
SPENT = Usage(1200, 300, 0.25, 1000)
CAPPED = Policy(daily_usd_per_user=1.0, daily_tokens_per_user=2000, daily_usd=10.0)


@dataclass
class Asked:
    text: str
    events: tuple[ev.Event, ...]

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def bill(*marks: MarkKind, most: tuple[Spent, ...] = ()) -> Bill:
    meter = Meter(day=TODAY, person=SPENT, service=SPENT + SPENT, marks=frozenset(marks))
    return Bill(meter=meter, month=SPENT + SPENT, most=most)


def run(
    text: str,
    role: Role = "allowed",
    policy: Policy = CAPPED,
    state: SessionState | None = None,
    **more: Any,
) -> Asked:
    name, _, argument = text.removeprefix("/").partition(" ")
    draft = Draft(state or SessionState(key=KEY), START, policy)
    address = more.pop("address", HOME)
    context = CommandContext(
        inbound=inbound(text, 1, address=address),
        argument=argument,
        role=role,
        claims=False,
        commands=commands(),
        **more,
    )
    return Asked(commands()[name].run(draft, context), draft.events)


def test_one_sees_the_conversation_the_day_the_month_and_what_is_left() -> None:
    session = Session(session_id="s", opened_at=START, updated_at=START, usage=Usage(10, 5, 0.125))
    asked = run("/usage", bill=bill(), state=SessionState(key=KEY, session=session))
    assert asked.lines == [
        "- this conversation: 15 tokens (10 in, 5 out), $0.1250",
        "- you, today: 1,500 tokens (1,200 in, 1,000 of them cached, 300 out), $0.2500",
        "- limit a day for one person: $1.00, $0.75 left until midnight UTC",
        "- limit a day for one person: 2,000 tokens, 500 tokens left until midnight UTC",
        "- you, this month: 3,000 tokens (2,400 in, 2,000 of them cached, 600 out), $0.5000",
        "- limit a day for all of us: $10.00, $9.50 left until midnight UTC",
    ]
    assert asked.events == ()


def test_without_limits_none_is_told() -> None:
    asked = run("/usage", bill=bill(), policy=Policy())
    assert [line.partition(":")[0] for line in asked.lines] == [
        "- you, today",
        "- you, this month",
    ]


def test_more_than_a_limit_leaves_nothing() -> None:
    policy = Policy(daily_usd_per_user=0.2)
    asked = run("/usage", bill=bill(), policy=policy)
    assert asked.lines[1] == "- limit a day for one person: $0.20, $0.00 left until midnight UTC"


def test_a_limit_that_is_lifted_says_so() -> None:
    asked = run("/usage", bill=bill("lifted", "all_lifted"))
    assert sum("lifted until midnight UTC" in line for line in asked.lines) == 3


def test_who_spent_nothing_is_told_that() -> None:
    asked = run("/usage", bill=Bill(meter=Meter(day=TODAY)), policy=Policy())
    assert asked.lines == ["- you, today: nothing", "- you, this month: nothing"]


def test_a_model_without_a_price_is_not_free() -> None:
    free = Bill(meter=Meter(day=TODAY, person=Usage(10, 5)))
    asked = run("/usage", bill=free, policy=Policy())
    assert asked.lines[0] == "- you, today: 15 tokens (10 in, 5 out), no price known"


def test_only_the_owner_sees_who_spent_most_and_only_in_private() -> None:
    paid = bill(most=(Spent(TODAY, "chat", "8", SPENT),))
    group = replace(HOME, chat_type="group")
    owners = run("/usage", "owner", bill=paid)
    assert "- all of us, today: 3,000 tokens" in owners.text
    assert "`chat:8`: 1,500 tokens" in owners.text
    assert "chat:8" not in run("/usage", "allowed", bill=paid).text
    assert "chat:8" not in run("/usage", "owner", bill=paid, address=group).text


@pytest.mark.parametrize("text", ["/lift 12", "/lift chat:12"])
def test_a_persons_limits_are_lifted(text: str) -> None:
    asked = run(text, "owner")
    assert asked.events == (ev.CapsLifted(platform="chat", user="12"),)
    assert "`chat:12`" in asked.text
    assert "midnight UTC" in asked.text


@pytest.mark.parametrize("text", ["/lift all", "/lift ALL"])
def test_the_services_limit_is_lifted(text: str) -> None:
    assert run(text, "owner").events == (ev.CapsLifted(),)


def test_in_a_workspace_an_id_is_one_of_it() -> None:
    asked = run("/lift U2", "owner", address=replace(HOME, workspace="T1"))
    assert asked.events == (ev.CapsLifted(platform="chat", user="T1.U2"),)


@pytest.mark.parametrize("text", ["/lift", "/lift 1 2", "/lift chat:", f"/lift {'x' * 3900}"])
def test_who_names_nobody_is_told_how_and_who_they_are(text: str) -> None:
    asked = run(text, "owner")
    assert asked.events == ()
    assert "`/lift chat:7` for yourself" in asked.text


def test_only_the_owner_lifts() -> None:
    assert commands()["lift"].owner_only
    assert not commands()["usage"].owner_only
