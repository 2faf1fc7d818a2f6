import logging
import socket
import time
from types import ModuleType
from typing import Any

import pytest

from core.domain.entries import TOKENS_A_PICTURE
from core.domain.messages import (
    AssistantMessage,
    ChatMessage,
    ModelRequest,
    Picture,
    RequestSize,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from core.models import litellm as model_module
from core.models.litellm_count import UNKNOWN_WINDOW, Counter, window_of
from core.models.litellm_load import load
from tests.core.models.harness import HELLO, NOW, Models

GPT = "openai/gpt-4o"
PROSE = "All the world's a stage, and all the men and women merely players. "


@pytest.fixture(scope="module")
def litellm() -> ModuleType:
    return load()


@pytest.fixture
def counted(litellm: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that went through the tokenizer."""
    texts: list[str] = []
    genuine = litellm.token_counter

    def counter(model: str, text: str) -> int:
        texts.append(text)
        return genuine(model=model, text=text)

    monkeypatch.setattr(litellm, "token_counter", counter)
    return texts


def asked(*messages: ChatMessage) -> ModelRequest:
    return ModelRequest((SystemMessage("Be kind."), *messages), (NOW,))


def talk(turns: int) -> tuple[ChatMessage, ...]:
    said: list[ChatMessage] = []
    for turn in range(turns):
        said += [UserMessage(f"{turn}: {PROSE}"), AssistantMessage(f"{turn} it is. {PROSE}")]
    return tuple(said)


async def test_a_request_is_as_large_as_the_vendor_says_within_a_tenth(
    model: Models, litellm: ModuleType
) -> None:
    """As their own formula has it: three tokens a message, and three to begin the answer."""
    messages = talk(20)
    texts = [m.text for m in messages if not isinstance(m, ToolMessage)]
    exact = sum(litellm.token_counter(model=GPT, text=text) + 4 for text in texts) + 3

    size = await model(GPT).measure(ModelRequest(messages))

    assert exact * 0.9 <= size.counted <= exact * 1.1
    assert size.overhead == 0


async def test_calls_results_tools_and_the_prompt_are_counted(model: Models) -> None:
    gpt = model(GPT)
    call = AssistantMessage("", (ToolCall("a", "now", '{"zone": "Europe/Berlin"}'),))
    less, more, most = [
        await gpt.measure(asked(*messages))
        for messages in (
            [UserMessage("hello")],
            [UserMessage("hello"), call],
            [UserMessage("hello"), call, ToolMessage("a", "now", PROSE * 10)],
        )
    ]

    assert less.overhead == more.overhead == most.overhead > 20
    assert less.counted > less.overhead
    assert more.counted - less.counted > 8
    assert most.counted - more.counted > 130
    assert (await gpt.measure(HELLO)).overhead == less.overhead


@pytest.mark.parametrize(("sees", "each"), [(True, TOKENS_A_PICTURE), (False, 0)])
async def test_a_picture_costs_the_same_whatever_it_shows(
    model: Models, *, sees: bool, each: int
) -> None:
    shown = tuple(Picture(str(number) * 64, "image/jpeg", "photo") for number in range(3))
    plain, with_pictures = [
        await model(GPT, sees=sees).measure(asked(UserMessage("look", pictures)))
        for pictures in ((), shown)
    ]

    assert with_pictures.counted - plain.counted == 3 * each


async def test_a_message_is_counted_once(model: Models, counted: list[str]) -> None:
    gpt = model(GPT)
    before = await gpt.measure(asked(*talk(100)))
    many = len(counted)

    again = await gpt.measure(asked(*talk(100), UserMessage("a new one")))

    assert many > 200
    assert counted[many:] == ["a new one"]
    assert again.counted > before.counted


async def test_what_was_counted_is_not_kept_for_ever(
    litellm: ModuleType, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.models.litellm_count.MOST_KEPT", 3)
    counter = Counter(litellm, GPT, 1000, sees=True)
    for text in ("a", "b", "c", "d", "d", "a"):
        counter.size(ModelRequest((UserMessage(text),)))

    assert counted == ["a", "b", "c", "d", "a"]


@pytest.mark.parametrize(
    "text", ["\ud800 half a pair", "<|endoftext|>", "", "\x00", "你好世界" * 9]
)
async def test_any_text_can_be_counted(model: Models, text: str) -> None:
    size = await model(GPT).measure(asked(UserMessage(text)))

    assert size.counted > size.overhead


@pytest.mark.parametrize(
    ("name", "fallbacks", "window"),
    [
        ("openai/gpt-4o", (), 128_000 - 8_192),
        ("openai/gpt-4", (), 8_192 - 2_048),
        ("gpt-4o", (), 128_000 - 8_192),
        ("openai/gpt-4o", ("openai/gpt-4",), 8_192 - 2_048),
        ("openai/gpt-4", ("openai/gpt-4o",), 8_192 - 2_048),
        ("openai/gpt-4o", ("nobody/knows",), 128_000 - 8_192),
        ("nobody/knows", (), UNKNOWN_WINDOW),
        ("nobody/knows", ("openai/gpt-4",), 8_192 - 2_048),
        ("openai/test", ("openai/gpt-4o",), UNKNOWN_WINDOW),
    ],
)
def test_the_window_is_the_smallest_that_is_known(
    litellm: ModuleType, name: str, fallbacks: tuple[str, ...], window: int
) -> None:
    assert window_of(litellm, name, fallbacks) == window


async def test_the_operator_knows_better(model: Models) -> None:
    size = await model(GPT, window=1234, fallbacks=("openai/gpt-4",)).measure(HELLO)

    assert size.window == 1234


async def test_a_model_of_ones_own_is_not_asked_how_large_it_is(
    litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[Any] = []

    def connect(_: socket.socket, address: Any) -> None:
        reached.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)

    assert window_of(litellm, "ollama/my-own", ()) == UNKNOWN_WINDOW
    assert window_of(litellm, "ollama_chat/my-own", ()) == UNKNOWN_WINDOW
    assert reached == []


@pytest.mark.parametrize(
    "name",
    ["meta-llama/llama-3-70b", "command-r", "deepseek/deepseek-v4-flash", "claude-sonnet-4-5"],
)
async def test_no_tokenizer_is_fetched(
    model: Models, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted: list[Any] = []

    def resolve(*args: Any, **_: Any) -> None:
        wanted.append(args)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    with caplog.at_level(logging.INFO):
        size = await model(name).measure(asked(UserMessage(PROSE * 10)))

    assert 100 < size.counted - size.overhead < 300
    assert (wanted, caplog.messages) == ([], [])


async def test_what_cannot_be_counted_is_not_known(
    model: Models, litellm: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: str, text: str) -> int:
        raise ValueError(text)

    monkeypatch.setattr(litellm, "token_counter", fail)

    assert await model().measure(HELLO) == RequestSize()


async def test_without_litellm_nothing_is_known(
    model: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ImportError("litellm")

    monkeypatch.setattr(model_module, "load", fail)

    assert await model().measure(HELLO) == RequestSize()


async def test_a_long_conversation_costs_little_the_second_time(model: Models) -> None:
    gpt = model(GPT)
    messages = talk(2000)
    await gpt.measure(asked(*messages))

    before = time.process_time()
    await gpt.measure(asked(*messages))

    assert time.process_time() - before < 0.1
