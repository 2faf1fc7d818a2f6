import asyncio
import logging

import msgspec
import pytest

from core.domain.messages import (
    AssistantMessage,
    ModelRequest,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.core.models.harness import HELLO, KEY, NOW, Heard, Models, failure_of, reply_of
from tests.standins import openai_reply as said
from tests.standins.faults import (
    BAD_GATEWAY,
    GARBAGE,
    SERVER_ERROR,
    Fault,
    Hang,
    Refuse,
    Reset,
    too_many,
)
from tests.standins.openai import COMPLETIONS, FILTERED, TOO_LONG, UNSAFE, OpenAIStandIn, Reply


async def test_text_grows_and_the_whole_reply_comes_with_its_bill(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(Reply(text="Hello, nice to meet you.", usage=said.Usage(1000, 100)))

    reply = reply_of(await model("openai/gpt-4o").complete(HELLO, heard.on_text))

    assert (reply.text, reply.calls, reply.cut) == ("Hello, nice to meet you.", (), False)
    assert heard.texts == ["Hello, nice ", "Hello, nice to meet you."]
    assert (reply.usage.prompt, reply.usage.completion) == (1000, 100)
    assert reply.usage.cost == pytest.approx(0.0035)
    assert reply.model == "gpt-4o"


async def test_a_bare_name_and_a_base_of_its_own(
    ai: OpenAIStandIn, model: Models, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_BASE")

    bare = model("gpt-4o", api_base=f"{ai.url}/v1")

    assert reply_of(await bare.complete(HELLO, heard.on_text)).text == "You said: hello"


async def test_an_unknown_price_is_no_price(ai: OpenAIStandIn, model: Models, heard: Heard) -> None:
    reply = reply_of(await model().complete(HELLO, heard.on_text))

    assert reply.usage.total > 0
    assert reply.usage.cost == 0.0


async def test_parallel_calls_arrive_whole_and_in_order(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    calls = (
        said.ToolCall("now", {"zone": "Europe/Berlin"}, id="a"),
        said.ToolCall("now", id="b"),
        said.ToolCall("remind_me", {"text": "«stretch», 伸び", "seconds": 10}, id="c"),
    )
    ai.script(Reply(text="Let me look.", tool_calls=calls, chunk_size=5))

    reply = reply_of(await model().complete(HELLO, heard.on_text))

    assert reply.text == "Let me look."
    assert reply.calls == (
        ToolCall("a", "now", '{"zone": "Europe/Berlin"}'),
        ToolCall("b", "now", "{}"),
        ToolCall(
            "c", "remind_me", '{"text": "\\u00abstretch\\u00bb, \\u4f38\\u3073", "seconds": 10}'
        ),
    )


async def test_the_request_is_what_was_asked_and_legal_whatever_the_log_holds(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    calls = (ToolCall("a", "now", '{"zone": "UTC"}'), ToolCall("b", "now", '{"zone": "UT'))
    messages = (
        SystemMessage("Be kind."),
        UserMessage("what time is it"),
        AssistantMessage("", calls),
        ToolMessage("a", "now", "noon"),
        ToolMessage("b", "now", ""),
        AssistantMessage(" "),
        UserMessage("\n"),
    )

    reply_of(await model().complete(ModelRequest(messages, (NOW,)), heard.on_text))

    sent = ai.requests[0]
    assert sent["messages"][0] == {"role": "system", "content": "Be kind."}
    assert sent["messages"][3] == {
        "role": "tool",
        "tool_call_id": "a",
        "name": "now",
        "content": "noon",
    }
    arguments = [call["function"]["arguments"] for call in sent["messages"][2]["tool_calls"]]
    assert arguments == ['{"zone": "UTC"}', "{}"]
    assert sent["tools"][0]["function"]["name"] == "now"


async def test_without_tools_none_are_named(ai: OpenAIStandIn, model: Models, heard: Heard) -> None:
    await model().complete(ModelRequest((UserMessage("hello"),)), heard.on_text)

    assert "tools" not in ai.requests[0]


async def test_the_same_token_over_and_over_is_no_error(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(Reply(text="----" * 300, chunk_size=4))

    reply = reply_of(await model().complete(HELLO, heard.on_text))

    assert reply.text == "----" * 300


@pytest.mark.parametrize("fault", [SERVER_ERROR, BAD_GATEWAY, GARBAGE, Reset(), too_many(7)])
async def test_what_may_pass_is_tried_again(
    ai: OpenAIStandIn, model: Models, heard: Heard, fault: Fault
) -> None:
    ai.faults.next(COMPLETIONS, fault, fault, fault)

    reply = reply_of(await model().complete(HELLO, heard.on_text))

    assert reply.text == "You said: hello"
    assert len(ai.calls) == 4
    assert len(heard.pauses) == 3


async def test_pauses_grow_with_jitter_and_wait_as_long_as_the_vendor_says(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.faults.next(COMPLETIONS, SERVER_ERROR, SERVER_ERROR, too_many(30))

    await model().complete(HELLO, heard.on_text)

    first, second, third = heard.pauses
    assert 0.5 <= first <= 1.0 <= second <= 2.0
    assert 32.0 <= third <= 34.0


async def test_a_long_wait_is_handed_back_instead_of_slept(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.faults.always(COMPLETIONS, too_many(3600))

    failure = failure_of(await model().complete(HELLO, heard.on_text))

    assert (failure.kind, failure.retry_after) == ("try_again", 3600.0)
    assert (len(ai.calls), heard.pauses) == (1, [])


async def test_it_gives_up_after_its_attempts(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.faults.always(COMPLETIONS, SERVER_ERROR)

    failure = failure_of(await model(attempts=3).complete(HELLO, heard.on_text))

    assert failure.kind == "try_again"
    assert "500" in failure.detail
    assert len(ai.calls) == 3


async def test_text_starts_anew_after_a_cut_stream(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(Reply(text="Hello, nice to meet you.", cut_after=2), Reply(text="Good day."))

    reply = reply_of(await model().complete(HELLO, heard.on_text))

    assert reply.text == "Good day."
    assert heard.texts == ["Hello, nice ", "Good day."]


CALL = said.ToolCall("now", {"zone": "UTC"})


@pytest.mark.parametrize("broken", ["cut_after", "garbage_after"])
@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
async def test_half_a_call_is_no_call(
    ai: OpenAIStandIn, model: Models, heard: Heard, broken: str, pieces: int
) -> None:
    half = msgspec.structs.replace(Reply(tool_calls=(CALL,), chunk_size=4), **{broken: pieces})
    ai.script(half, half)

    failure = failure_of(await model(attempts=2).complete(HELLO, heard.on_text))

    assert failure.kind == "try_again"


async def test_the_output_limit_cuts_the_text(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(Reply(text="Once upon", finish_reason="length"))

    reply = reply_of(await model().complete(HELLO, heard.on_text))

    assert (reply.text, reply.cut) == ("Once upon", True)


REFUSALS = [
    (TOO_LONG, "too_long"),
    (Refuse(400, "words that litellm does not know", code="context_length_exceeded"), "too_long"),
    (Refuse(413, "Payload Too Large"), "too_long"),
    (UNSAFE, "refused"),
    (Refuse(400, "No."), "refused"),
    (Refuse(401, f"Incorrect API key provided: {KEY}.", code="invalid_api_key"), "never"),
    (Refuse(402, "Pay."), "never"),
    (Refuse(403, f"Not with Bearer {KEY}."), "never"),
    (Refuse(404, "No such model.", code="model_not_found"), "never"),
    (Refuse(429, "You exceeded your current quota.", code="insufficient_quota"), "never"),
]


@pytest.mark.parametrize(("refusal", "kind"), REFUSALS)
async def test_what_will_not_pass_is_not_tried_again(
    ai: OpenAIStandIn, model: Models, heard: Heard, refusal: Refuse, kind: str
) -> None:
    ai.script(refusal)

    failure = failure_of(await model().complete(HELLO, heard.on_text))

    assert failure.kind == kind
    assert str(refusal.status) in failure.detail
    assert len(ai.calls) == 1


async def test_a_second_try_of_litellms_own_ends_as_well(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.faults.always(COMPLETIONS, Refuse(422, "No."))

    assert failure_of(await model().complete(HELLO, heard.on_text)).kind == "refused"


async def test_what_the_content_filter_stopped_is_no_reply(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(FILTERED)

    assert failure_of(await model().complete(HELLO, heard.on_text)).kind == "refused"


async def test_known_secrets_are_in_no_failure(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(Refuse(403, "Not for hunter2."))

    failure = failure_of(await model(secrets=("hunter2", "")).complete(HELLO, heard.on_text))

    assert "Not for ***." in failure.detail


async def test_a_missing_key_and_an_unknown_name_are_hopeless(
    model: Models, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    for name in ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "nobody/knows", "nothing"):
        failure = failure_of(await model(name).complete(HELLO, heard.on_text))
        assert failure.kind == "never"

    assert heard.pauses == []


async def test_fallbacks_are_tried_in_order(ai: OpenAIStandIn, model: Models, heard: Heard) -> None:
    gone = Refuse(404, "No such model.", code="model_not_found")
    ai.faults.next(COMPLETIONS, gone, SERVER_ERROR, SERVER_ERROR)
    chosen = model("openai/first", fallbacks=("openai/second", "openai/third"), attempts=2)

    reply = reply_of(await chosen.complete(HELLO, heard.on_text))

    tried = [call.params["body"]["model"] for call in ai.calls]
    assert tried == ["first", "second", "second", "third"]
    assert (chosen.name, reply.model) == ("openai/first", "third")


async def test_a_request_at_fault_is_not_carried_to_another_model(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.script(TOO_LONG)

    failure = failure_of(await model(fallbacks=("openai/second",)).complete(HELLO, heard.on_text))

    assert (failure.kind, len(ai.calls)) == ("too_long", 1)


async def test_one_model_that_may_come_back_is_hope_for_all(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.faults.next(COMPLETIONS, Refuse(404, "Gone."), too_many(120))

    failure = failure_of(await model(fallbacks=("openai/second",)).complete(HELLO, heard.on_text))

    assert (failure.kind, failure.retry_after) == ("try_again", 120.0)
    assert "404" in failure.detail
    assert "429" in failure.detail


async def test_silence_before_and_within_a_reply_is_tried_again(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    ai.faults.next(COMPLETIONS, Hang())
    ai.script(Reply(text="Hello, nice to meet you.", hang_after=2))

    reply = reply_of(await model(silence=0.5).complete(HELLO, heard.on_text))

    assert reply.text == "You said: hello"
    await ai.wait_for(lambda: ai.calls[0].cancelled and ai.calls[1].cancelled)


async def test_a_slow_reply_is_not_silence(ai: OpenAIStandIn, model: Models, heard: Heard) -> None:
    ai.script(Reply(text="word " * 8, chunk_size=5, delay_per_chunk=0.15))

    reply = reply_of(await model(silence=1.0).complete(HELLO, heard.on_text))

    assert reply.text == "word " * 8


async def test_there_is_a_limit_in_all(ai: OpenAIStandIn, model: Models, heard: Heard) -> None:
    ai.script(Reply(text="word " * 100, chunk_size=5, delay_per_chunk=0.05))

    chosen = model(total=0.5, fallbacks=("openai/second",))
    failure = failure_of(await chosen.complete(HELLO, heard.on_text))

    assert failure.kind == "try_again"
    await ai.wait_for(lambda: len(ai.cancelled) == 1)
    assert len(ai.calls) == 1


@pytest.mark.parametrize("reply", [Reply(text="Hello, you.", hang_after=1), None])
async def test_a_cancelled_call_lets_go_of_its_connection(
    ai: OpenAIStandIn, model: Models, heard: Heard, reply: Reply | None
) -> None:
    ai.script(*filter(None, [reply]))
    ai.faults.next(COMPLETIONS, *filter(None, [Hang() if reply is None else None]))
    task = asyncio.create_task(model().complete(HELLO, heard.on_text))
    await ai.wait_for(lambda: ai.calls and (reply is None or ai.calls[0].pieces))

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    await ai.wait_for(lambda: len(ai.cancelled) == 1)


async def test_it_says_nothing_on_its_own(
    ai: OpenAIStandIn,
    model: Models,
    heard: Heard,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    ai.script(Reply(text="hi"), Refuse(404, "Gone."), TOO_LONG, Reply(text="hello", cut_after=2))

    with caplog.at_level(logging.INFO):
        for name in ("openai/a", "openai/b", "openai/c", "openai/d", "nobody/knows"):
            await model(name).complete(HELLO, heard.on_text)

    assert capfd.readouterr() == ("", "")
    assert KEY not in caplog.text
    assert [record.message for record in caplog.records if record.name.startswith("LiteLLM")] == []


async def test_its_errors_reach_the_log_without_secrets(
    model: Models, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    await model().load()

    logging.getLogger("LiteLLM").error("refused with %s", KEY)

    assert caplog.messages == ["refused with REDACTED"]
    assert capfd.readouterr() == ("", "")
