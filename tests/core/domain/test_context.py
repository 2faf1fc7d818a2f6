"""The words that the model is shown."""

import pytest

from core.domain.context import build_request, view_of
from core.domain.events import Recorded
from core.domain.keys import Address
from core.domain.messages import AssistantMessage, Attachment, ToolCall, ToolSpec, UserMessage
from core.domain.policy import Policy
from tests.core.domain.samples import calls, reminder
from tests.core.domain.test_room import shown, talks
from tests.core.domain.world import World

GROUP = Address(platform="chat", account="bot", chat="-1", chat_type="group")


def roles(world: World) -> list[str]:
    names = [type(message).__name__ for message in world.request().messages]
    return [name.removesuffix("Message").lower() for name in names]


def last(world: World) -> str:
    return world.request().messages[-1].text


def test_a_conversation_is_shown_as_it_was() -> None:
    world = World()
    world.says("what time is it?")
    world.replies("I look.", *calls("look"))
    world.runs("c1", "14:30")

    system, user, reply, result = world.request("Be kind.").messages
    assert (system.text, user.text, reply.text) == ("Be kind.", "what time is it?", "I look.")
    assert result.text == "14:30"


def test_the_tools_go_along() -> None:
    world = World()
    world.says("hi")
    spec = ToolSpec("now", "the time", {"type": "object"})

    assert build_request(view_of(world.state, world.policy), {}, "", (spec,)).tools == (spec,)


def test_a_file_is_noted_with_what_is_known_of_it() -> None:
    world = World()
    photo = Attachment(kind="photo", ref="r1", name="cat.jpg", mime="image/jpeg", size=2048)
    world.says("look", attachments=(photo, Attachment(kind="voice", ref="r2")))

    assert "[attached: photo, cat.jpg, image/jpeg, 2048 bytes;" in last(world)
    assert "[attached: voice;" in last(world)


def test_a_file_alone_is_a_message() -> None:
    world = World()
    world.says("", attachments=(Attachment(kind="photo", ref="r1"),))

    assert last(world).startswith("[attached: photo")


def test_no_message_is_ever_empty() -> None:
    world = World()
    world.says("  ")

    assert last(world) == "(an empty message)"


@pytest.mark.parametrize(
    ("address", "shown"),
    [(GROUP, "Ada: hi"), (Address(platform="chat", account="bot", chat="7"), "hi")],
)
def test_names_stand_before_messages_in_groups_only(address: Address, shown: str) -> None:
    world = World()
    world.says("hi", address=address, name="Ada")

    assert last(world) == shown


def test_after_an_interruption_the_model_is_told_to_look_again() -> None:
    world = World()
    world.says("pay it")
    world.replies("", *calls("look", "pay"))
    world.runs("c1")
    world.starts("c2")
    world.passes(60)
    world.comes_back()

    assert roles(world) == ["system", "user", "assistant", "tool", "tool", "user"]
    assert "You were interrupted at 2026-05-05 14:30:00 UTC" in last(world)
    assert "look again" in last(world)
    assert "outcome unknown" in world.request().messages[-2].text


def test_a_second_interruption_does_not_pile_up_notes() -> None:
    world = World()
    world.says("hello")
    world.comes_back()
    world.comes_back()

    assert last(world).count("You were interrupted") == 1


def test_a_short_interruption_is_not_said_and_a_long_one_is_said_once() -> None:
    world = World()
    world.says("hello")
    world.crashes()
    world.passes(29)
    world.attempts()
    assert world.texts == []
    world.crashes()
    world.passes(31)
    world.attempts()

    assert world.texts == ["_(I was interrupted; picking up at step 1.)_"]


def test_an_empty_result_is_shown_as_one() -> None:
    world = World()
    world.says("do it")
    world.replies("", ToolCall("c1", "look", "{}"))
    world.runs("c1", "")

    assert last(world) == "(empty)"


def test_bodies_that_are_gone_leave_a_legal_request() -> None:
    world = World()
    world.says("do it")
    world.replies("", *calls("look", "book"))
    world.runs("c1")

    assert world.view.seqs == (2, 5, 7)
    bodies: dict[int, Recorded] = {}
    request = build_request(world.view, bodies, "", ())
    assert isinstance(request.messages[1], UserMessage)


def test_a_name_that_no_tool_can_have_is_shown_as_one_that_it_could() -> None:
    world = World()
    world.says("read it")
    world.replies("", ToolCall("c1", "files.read", "{}"), ToolCall("c2", "", "{}"))
    world.runs("c1")
    world.runs("c2")

    reply, *results = world.request().messages[-3:]
    assert isinstance(reply, AssistantMessage)
    assert [call.name for call in reply.calls] == ["files_read", "_"]
    assert [getattr(result, "name", "") for result in results] == ["files_read", "_"]


def test_no_two_calls_of_a_request_share_an_id() -> None:
    world = World()
    world.says("look twice")
    for _ in range(2):
        world.replies("", *calls("look"))
        world.runs("c1")

    replies = [m for m in world.request().messages if isinstance(m, AssistantMessage)]
    ids = [call.id for reply in replies for call in reply.calls]
    assert len(set(ids)) == 2


def test_to_a_reminder_auto_shows_the_newest_turns_only() -> None:
    world = World(Policy(strategy="auto", context_full=450))
    talks(world, 4)
    world.says("<m5> remind me")
    world.replies("", *calls("book"))
    world.starts("c1")
    world.finishes("c1", events=(reminder("r1", world.now, "stretch"),))
    world.replies("<a5> I will")
    world.reminds("r1")

    assert shown(world) == [4, 5]
    world.replies("", *calls("look"))
    world.runs("c1", "found" * 500)
    assert shown(world) == [4, 5], "what the turn adds moves nothing out"
    world.replies("Stretch!")
    world.says("<m7>")
    assert shown(world) == [1, 2, 3, 4, 5, 7]
