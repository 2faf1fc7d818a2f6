"""What comes with messages: read once, shown for a while, and never in the way."""

import pytest

from core.domain.context import LEFT_OUT, MOST_PICTURES, PICTURES_KEPT
from core.domain.effects import ALONE_FROM, CallModel, Effect, ReadFiles, TryTurn, next_effects
from core.domain.messages import Attachment, FailureKind, ReadFile, UserMessage
from core.domain.policy import Policy
from core.domain.state import Phase
from tests.core.domain.samples import calls
from tests.core.domain.world import World

PHOTO = (Attachment(kind="photo", ref="r1", name="cat.jpg"),)
CAT = ReadFile(kind="picture", label="photo, cat.jpg", sha="a" * 64, mime="image/jpeg", size=9)
NOTE = ReadFile(kind="words", label="voice message", text="buy milk")
FILM = ReadFile(kind="refused", label="video", text="I cannot read files of this kind.")


def effects(world: World) -> tuple[Effect, ...]:
    return next_effects(world.state, world.policy)


def last(world: World) -> UserMessage:
    message = world.request().messages[-1]
    assert isinstance(message, UserMessage)
    return message


def shown(world: World) -> int:
    return len(world.request().pictures)


def sends(world: World, *files: ReadFile, text: str = "look") -> None:
    world.says(text, attachments=PHOTO * len(files))
    world.reads(*files)


def test_what_came_is_read_before_the_model_is_asked() -> None:
    world = World()
    world.says("look", attachments=PHOTO)
    assert effects(world) == (ReadFiles(1, 2),)

    world.reads(CAT)
    assert effects(world) == (CallModel(1, 1),)


def test_a_message_without_files_is_asked_about_at_once() -> None:
    world = World()
    world.says("hello")

    assert effects(world) == (CallModel(1, 1),)


def test_a_picture_stands_where_it_was_sent_and_words_are_words() -> None:
    world = World()
    sends(world, CAT, NOTE, FILM, text="see and hear")

    assert last(world).text == (
        "see and hear\n"
        "[picture: photo, cat.jpg]\n"
        "[voice message]\nbuy milk\n[end of voice message]\n"
        "[video: not read; tell the user why: I cannot read files of this kind.]"
    )
    assert [picture.sha for picture in last(world).pictures] == [CAT.sha]


def test_files_are_read_once_and_what_comes_late_is_nothing() -> None:
    world = World()
    sends(world, CAT)
    seq = world.state.seq

    assert world.reads(NOTE) == ()
    world.ask(world.asked[-2])
    assert world.state.seq == seq


def test_a_death_in_the_middle_means_reading_again() -> None:
    world = World()
    world.says("look", attachments=PHOTO)
    world.comes_back()

    assert effects(world) == (ReadFiles(1, 2),)


def test_a_file_that_kills_again_and_again_is_left_alone_at_last() -> None:
    world = World(Policy(turn_max_attempts=4))
    world.says("look", attachments=PHOTO)
    seen: list[Effect] = []
    for _ in range(3):
        world.comes_back()
        seen += effects(world)

    assert seen == [
        ReadFiles(1, 2),
        ReadFiles(1, 2, unopened=False, alone=True),
        ReadFiles(1, 2, unopened=True, alone=True),
    ]
    assert ALONE_FROM == 3
    world.reads(FILM)
    assert effects(world) == (CallModel(1, 1),)


def test_where_one_attempt_is_all_there_is_it_is_made() -> None:
    world = World(Policy(turn_max_attempts=1))
    world.says("look", attachments=PHOTO)

    assert effects(world) == (ReadFiles(1, 2),)


def test_old_pictures_are_only_said_to_have_been_there() -> None:
    world = World(Policy(context_window=100_000))
    for _ in range(MOST_PICTURES + 1):
        sends(world, CAT)
        world.replies("a cat")
    world.says("and now?")
    texts = [m.text for m in world.request().messages if isinstance(m, UserMessage)]

    assert shown(world) == PICTURES_KEPT
    assert [("seen before" in text) for text in texts] == [True] * 6 + [False] * 6


def test_those_of_the_newest_turn_are_all_shown() -> None:
    world = World(Policy(context_window=100_000))
    sends(world, CAT)
    world.replies("a cat")
    sends(world, *[CAT] * (MOST_PICTURES + 3))

    assert shown(world) == MOST_PICTURES + 3


@pytest.mark.parametrize("kind", ["refused", "never", "too_long"])
def test_a_picture_that_is_refused_is_left_out_and_does_not_come_back(kind: FailureKind) -> None:
    world = World()
    sends(world, CAT)
    world.fails(kind)

    assert effects(world) == (CallModel(1, 1),)
    assert shown(world) == 0
    assert f"[photo, cat.jpg: {LEFT_OUT}]" in last(world).text
    world.replies("I cannot see it.")
    world.says("never mind")
    assert shown(world) == 0
    assert world.ledger["u1"] == "answered"


def test_a_second_refusal_is_for_something_else() -> None:
    world = World()
    sends(world, CAT)
    world.fails("refused")
    world.fails("refused")

    assert world.state.phase is Phase.IDLE
    assert world.ledger["u1"] == "failed"


def test_a_try_later_costs_no_picture() -> None:
    world = World()
    sends(world, CAT)
    world.fails("try_again", retry_after=20)
    world.passes(20)
    world.wakes()

    assert shown(world) == 1


def test_a_text_that_is_too_long_for_the_model_is_left_out_last() -> None:
    world = World(Policy(strategy="full"))
    sends(world, NOTE)
    world.replies("noted")
    sends(world, NOTE)
    world.fails("too_long")
    assert len(world.request().messages) == 2, "first what stands before"
    world.fails("too_long")

    assert "buy milk" not in last(world).text
    assert LEFT_OUT in last(world).text
    assert world.state.phase is Phase.THINKING
    world.fails("too_long")
    assert world.ledger["u2"] == "failed"


def test_to_try_again_nothing_is_read_anew() -> None:
    world = World()
    sends(world, CAT)
    world.fails("refused")
    world.replies("I see nothing.")
    world.command("retry")

    assert effects(world) == (CallModel(2, 1),)
    assert shown(world) == 1


def test_to_try_again_what_could_not_be_had_is_looked_for_again() -> None:
    world = World()
    sends(world, CAT, FILM)
    world.replies("What film?")
    world.command("retry")
    assert effects(world) == (ReadFiles(2, 2),)

    world.reads(CAT, CAT)
    assert shown(world) == 2


def test_a_message_that_is_steered_in_is_read_before_the_next_call() -> None:
    world = World(Policy(busy_mode="steer"))
    world.says("go")
    world.replies("", *calls("look"))
    world.says("this one", attachments=PHOTO)
    world.runs("c1")

    assert [type(effect) for effect in effects(world)] == [ReadFiles]


def album(world: World, text: str = "", name: str = "g1") -> None:
    world.says(text, attachments=PHOTO, album=name)


def test_the_pictures_of_an_album_are_waited_for_and_are_one_message() -> None:
    world = World()
    album(world, "two cats")
    (waiting,) = effects(world)
    assert isinstance(waiting, TryTurn)
    assert waiting.not_before is not None
    assert (waiting.not_before - world.now).total_seconds() == world.policy.album_wait

    album(world)
    world.attempts()
    world.reads(CAT)
    world.reads(CAT)

    assert shown(world) == 2
    world.replies("two cats")
    assert world.texts == ["two cats"]
    assert set(world.ledger.values()) == {"answered"}


def test_one_that_comes_late_is_not_left_behind() -> None:
    world = World()
    album(world, "cats")
    world.attempts()
    world.reads(CAT)
    too_early = world.step
    album(world)

    assert world.step == too_early + 1, "the reply to a call that is under way does not count"
    assert [type(effect) for effect in effects(world)] == [ReadFiles]
    world.reads(CAT)
    assert shown(world) == 2


def test_one_that_comes_after_a_death_still_belongs_to_it() -> None:
    world = World()
    album(world, "cats")
    world.attempts()
    world.crashes()
    album(world)
    world.attempts()

    assert len(effects(world)) == 2


def test_one_that_comes_after_the_answer_is_a_message_of_its_own() -> None:
    world = World()
    album(world)
    world.attempts()
    world.reads(CAT)
    world.replies("a cat")
    album(world)
    world.attempts()
    world.reads(CAT)
    world.replies("another")

    assert world.texts == ["a cat", "another"]


def test_an_album_does_not_interrupt_itself() -> None:
    world = World(Policy(busy_mode="interrupt"))
    album(world)
    album(world)

    assert world.texts == []
    assert world.state.turn is not None
    assert len(world.state.turn.sources) == 2


def test_another_album_waits_its_turn_and_overtakes_nothing() -> None:
    world = World()
    album(world)
    world.says("and this?")
    album(world)
    album(world, name="g2")

    assert world.state.turn is not None
    assert len(world.state.turn.sources) == 1
    assert len(world.state.queue) == 3
