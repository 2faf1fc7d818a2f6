"""What each command says, and what it changes."""

import pytest

from core.domain import events as ev
from core.domain.events import AccessChanged, Role
from core.domain.keys import Address
from core.domain.messages import ToolCall
from tests.core.commands.running import run
from tests.core.domain.samples import calls, commands, reminder
from tests.core.domain.world import World

WORKSPACE = Address(platform="chat", account="bot", chat="D1", workspace="T1")


def granted(user: str, role: Role) -> tuple[ev.Event, ...]:
    return (AccessChanged(platform="chat", user=user, role=role),)


def test_every_command_has_the_name_of_its_file_and_says_what_it_does() -> None:
    found = commands()

    assert set(found) == {
        *("allow", "compact", "context", "deny", "help", "new", "pin", "pins", "resume"),
        *("retry", "start", "status", "stop", "undo", "unpin"),
        *("lift", "usage"),
    }
    assert all(name == command.name and command.summary for name, command in found.items())


def test_help_lists_what_one_may_use() -> None:
    owners, _ = run("/help")
    others, _ = run("/help", role="allowed")

    assert all(f"/{name}:" in owners for name in commands())
    assert "/stop:" in others
    assert "/allow" not in others
    assert "/deny" not in others


def test_only_the_owner_lets_people_in() -> None:
    found = commands()

    assert found["allow"].owner_only
    assert found["deny"].owner_only


@pytest.mark.parametrize("text", ["/allow 12", "/allow chat:12"])
def test_allow_lets_one_person_in(text: str) -> None:
    reply, events = run(text)

    assert "chat:12" in reply
    assert events == granted("12", "allowed")


def test_deny_keeps_one_person_out() -> None:
    reply, events = run("/deny 12")

    assert "chat:12" in reply
    assert events == granted("12", "denied")


@pytest.mark.parametrize("text", ["/allow", "/allow 1 2", "/allow chat:", "/deny", "/deny 1 2"])
def test_a_command_that_names_nobody_says_how(text: str) -> None:
    reply, events = run(text)

    assert "Whom?" in reply
    assert events == ()


@pytest.mark.parametrize("where", ["", "chat:"])
def test_an_id_that_nobody_can_have_is_no_id(where: str) -> None:
    reply, events = run(f"/allow {where}{'x' * 3_900}")

    assert "Whom?" in reply
    assert events == ()


def test_the_owner_cannot_keep_themselves_out() -> None:
    assert run("/deny 7")[1] == ()
    assert run("/deny chat:7")[1] == ()


def test_the_owner_cannot_give_their_place_away_by_accident() -> None:
    assert run("/allow 7")[1] == ()


def test_an_id_means_a_person_of_ones_own_workspace() -> None:
    assert run("/allow U2", address=WORKSPACE)[1] == granted("T1.U2", "allowed")
    assert run("/deny T1.7", address=WORKSPACE)[1] == ()


def test_start_tells_what_it_is_and_who_may_use_it() -> None:
    owner, _ = run("/start")
    other, events = run("/start", role="allowed")

    assert "You are my owner" in owner
    assert "Only people whom my owner allows" in other
    assert events == ()


def test_the_right_claim_makes_an_owner() -> None:
    reply, events = run("/start CODE", role=None, claims=True)

    assert "You are my owner now" in reply
    assert events == granted("7", "owner")


def test_an_owner_is_known_by_workspace_too() -> None:
    _, events = run("/start CODE", role=None, claims=True, address=WORKSPACE)

    assert events == granted("T1.7", "owner")


def test_status_of_nothing() -> None:
    reply, events = run("/status")

    assert "state: closed" in reply
    assert "waiting messages: 0" in reply
    assert events == ()


def test_status_of_a_turn_at_work() -> None:
    world = World()
    world.says("one")
    world.replies("", ToolCall("c1", "look", "{}"))
    world.starts("c1")
    world.says("two")

    reply, _ = run("/status", world=world)

    assert f"`{world.session_id}`" in reply
    assert "state: acting" in reply
    assert "turn 1, step 1, since 2026-05-05 14:30:00 UTC" in reply
    assert "tools at work: look" in reply
    assert "model: demo" in reply
    assert "tokens: 15 (10 in, 5 out)" in reply
    assert "cost: $0.2500" in reply
    assert "waiting messages: 1" in reply


def test_status_of_a_wait_and_a_reminder() -> None:
    world = World()
    world.says("one")
    world.replies("", *calls("book"))
    world.starts("c1")
    world.finishes("c1", events=(reminder("r1", world.now.replace(hour=20, minute=0)),))
    world.fails("try_again", retry_after=60)

    reply, _ = run("/status", world=world)

    assert "waits until 14:31:00 UTC" in reply
    assert "reminders: 1 (2026-05-05 20:00:00 UTC)" in reply


def test_stop_without_a_turn_stops_nothing() -> None:
    reply, events = run("/stop")

    assert reply == "Nothing is running."
    assert events == ()


@pytest.mark.parametrize("text", ["/retry", "/resume"])
def test_going_back_is_for_when_nothing_runs(text: str) -> None:
    world = World()
    world.says("one")

    reply, events = run(text, world=world)

    assert "/stop" in reply
    assert events == ()


def test_there_is_nothing_to_retry_at_first() -> None:
    assert run("/retry") == ("There is nothing to answer again here.", ())


def test_new_says_what_it_broke_off_and_the_way_back() -> None:
    world = World()
    world.says("one")
    world.replies("", *calls("pay"))
    world.starts("c1")

    reply, _ = run("/new", world=world)

    assert "Started, outcome unknown: pay" in reply
    assert "/resume" in reply
    assert run("/new")[0] == "A new conversation."
