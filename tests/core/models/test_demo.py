import msgspec
import pytest

from core.domain.context import NOTE, PINNED, REMINDER, SUMMARY
from core.domain.lifecycle import NOT_STARTED, UNKNOWN
from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelReply,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from core.domain.sections import FACTS
from core.models.demo import WORD_PAUSE, DemoModel
from tests.core.models.harness import Heard

TOOLS = tuple(ToolSpec(name, "", {}) for name in ("now", "remind_me", "count_slowly"))
COUNTING = ToolCall("c", "count_slowly", '{"to":3}')


async def ask(
    *messages: ChatMessage | str, tools: tuple[ToolSpec, ...] = TOOLS, heard: Heard | None = None
) -> ModelReply:
    said = (UserMessage(each) if isinstance(each, str) else each for each in messages)
    request = ModelRequest((SystemMessage("Be kind."), *said), tools)
    heard = heard or Heard()
    return await DemoModel(heard.sleep).complete(request, heard.on_text)


async def test_it_says_what_it_is_and_what_to_try() -> None:
    for text in ("hello", "Help", "Who are you?", "tell me about Bach"):
        reply = await ask(text)
        assert "built-in **demo model**" in reply.text
        assert "`count slowly to 20`" in reply.text
        assert reply.calls == ()


async def test_it_repeats_what_it_understood() -> None:
    assert "“Tell me about Bach.”" in (await ask("Tell me about Bach.")).text


async def test_it_speaks_word_by_word_and_always_the_same() -> None:
    heard = Heard()
    reply = await ask("hello", heard=heard)

    assert heard.texts[:2] == ["Hello! ", "Hello! I "]
    assert heard.texts[-1] == reply.text
    assert heard.pauses == [WORD_PAUSE] * len(heard.texts)
    assert await ask("hello") == reply
    assert reply.usage.total > 0
    assert reply.usage.cost == 0.0


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("what time is it", "now", {}),
        ("What's the time?!", "now", {}),
        ("What time is it in Asia/Tokyo?", "now", {"zone": "Asia/Tokyo"}),
        ("what time is it in america/new_york", "now", {"zone": "America/New_York"}),
        ("remind me in 10 seconds to stretch", "remind_me", {"seconds": 10.0, "text": "stretch"}),
        (
            "Please remind me in 1.5 hours that Ada calls.",
            "remind_me",
            {"seconds": 5400.0, "text": "Ada calls"},
        ),
        ("Remind me to eat in a minute!", "remind_me", {"seconds": 60.0, "text": "eat"}),
        ("Count slowly to 20.", "count_slowly", {"to": 20}),
        ("ada: count to 3", "count_slowly", {"to": 3}),
    ],
)
async def test_a_wish_becomes_a_call(text: str, name: str, arguments: dict[str, object]) -> None:
    reply = await ask(text)

    assert [call.name for call in reply.calls] == [name]
    assert msgspec.json.decode(reply.calls[0].arguments) == arguments


async def test_several_wishes_become_calls_with_ids_of_their_own() -> None:
    reply = await ask("what time is it\n\ncount to 3\n\nhow are you")

    assert [call.name for call in reply.calls] == ["now", "count_slowly"]
    assert len({call.id for call in reply.calls}) == 2


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    reply = await ask("count to 3", tools=TOOLS[:1])

    assert reply.calls == ()
    assert "`count_slowly`, which I was not given" in reply.text


async def test_results_are_put_into_words_and_nothing_is_called_again() -> None:
    calls = (ToolCall("a", "now", "{}"), COUNTING)
    reply = await ask(
        "what time is it\n\ncount to 3\n\nmy name is Ada",
        AssistantMessage("", calls),
        ToolMessage("a", "now", "noon (UTC)"),
        ToolMessage("c", "count_slowly", "1, 2, 3"),
    )

    assert reply.calls == ()
    assert "noon (UTC)" in reply.text
    assert "1, 2, 3" in reply.text
    assert "**Ada**" in reply.text


async def test_the_next_question_stands_alone() -> None:
    turn = (
        UserMessage("count to 3"),
        AssistantMessage("", (COUNTING,)),
        ToolMessage("c", "count_slowly", "1, 2, 3"),
        AssistantMessage("Counted, slowly: 1, 2, 3"),
    )

    assert "1, 2, 3" not in (await ask(*turn, "hello")).text
    assert [call.name for call in (await ask(*turn, "count to 3")).calls] == ["count_slowly"]


async def test_a_message_into_the_running_turn_loses_no_result() -> None:
    counted = (UserMessage("count to 3"), AssistantMessage("", (COUNTING,)))

    steered = await ask(*counted, ToolMessage("c", "count_slowly", "1, 2, 3"), "hello")
    stopped = await ask(*counted, ToolMessage("c", "count_slowly", NOT_STARTED), "hello")

    assert "1, 2, 3" in steered.text
    assert "Hello!" in steered.text
    assert NOT_STARTED not in stopped.text


async def test_it_remembers_a_name_from_the_conversation() -> None:
    assert "have not told me" in (await ask("what is my name?")).text
    assert "Nice to meet you, **Ada**" in (await ask("Hello, my name is Ada.")).text

    later = await ask("My name is Ada", AssistantMessage("Hello."), "What's my name?")

    assert later.text == "Your name is **Ada**."


async def test_a_reminder_that_is_due_is_said() -> None:
    text = f"{REMINDER} (set for 2026-05-05 14:30:22 UTC) Tell the user now: count to 3"
    late = text.replace("UTC)", "UTC, 90 s late since the service was down)")

    reply = await ask(text)

    assert (reply.text, reply.calls) == ("⏰ **count to 3**", ())
    assert (await ask(late)).text == "⏰ **count to 3** _(late: I was not running)_"


async def test_an_interruption_is_mentioned_and_the_work_goes_on() -> None:
    note = f"{NOTE} You were interrupted at noon."

    before = await ask(f"count to 3\n\n{note}")
    after = await ask(
        "count to 3\n\nmy name is Ada",
        AssistantMessage("", (COUNTING,)),
        ToolMessage("c", "count_slowly", "1, 2, 3"),
        note,
    )

    assert [call.name for call in before.calls] == ["count_slowly"]
    assert "I was interrupted" in after.text
    assert "1, 2, 3" in after.text
    assert "**Ada**" in after.text


async def test_an_unknown_outcome_is_said_and_not_repeated() -> None:
    reply = await ask(
        "pay the bill",
        AssistantMessage("", (ToolCall("p", "pay", "{}"),)),
        ToolMessage("p", "pay", UNKNOWN),
    )

    assert "`pay` was interrupted and **its outcome is unknown**" in reply.text
    assert reply.calls == ()


async def test_a_note_alone_still_gets_an_answer() -> None:
    assert (await ask(f"{NOTE} Please go on.")).text


async def test_it_answers_what_follows_a_summary_and_not_the_summary() -> None:
    summary = f"{SUMMARY} ## Goal\n- count to 3\n\n## {FACTS}\n- My name is Ada."

    assert (await ask(f"{summary}\n\n{PINNED} count to 4\n\nwhat's my name?")).text == (
        "Your name is **Ada**."
    )
