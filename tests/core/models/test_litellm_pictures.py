"""Pictures on their way to a model, by the genuine SDK: seen where it sees, told where not."""

import hashlib
from typing import Any

import pytest

from core.domain.messages import ModelRequest, Picture, SystemMessage, UserMessage
from core.models.litellm_wire import BLIND, GONE, messages_of
from tests.core.files.made import picture
from tests.core.models.harness import Heard, Models, reply_of
from tests.standins.openai import OpenAIStandIn

CAT = picture()
SHA = hashlib.sha256(CAT).hexdigest()
SHOWN = Picture(SHA, "image/jpeg", "photo, cat.jpg")
LOOK = ModelRequest(
    (SystemMessage("Be kind."), UserMessage("look\n[picture: photo, cat.jpg]", (SHOWN,))),
    files={SHA: CAT},
)


def content(ai: OpenAIStandIn) -> Any:
    return ai.requests[-1]["messages"][-1]["content"]


async def test_a_model_that_sees_gets_the_picture(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    reply_of(await model(sees=True).complete(LOOK, heard.on_text))

    text, image = content(ai)
    assert text == {"type": "text", "text": "look\n[picture: photo, cat.jpg]"}
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("sees", [False, None])
async def test_one_that_does_not_or_that_nobody_knows_is_told_so(
    ai: OpenAIStandIn, model: Models, heard: Heard, *, sees: bool | None
) -> None:
    reply_of(await model(sees=sees).complete(LOOK, heard.on_text))

    assert content(ai) == f"look\n[picture: photo, cat.jpg]\n[photo, cat.jpg: {BLIND}]"


async def test_one_that_is_known_to_see_needs_no_word(
    ai: OpenAIStandIn, model: Models, heard: Heard
) -> None:
    reply_of(await model("openai/gpt-4o").complete(LOOK, heard.on_text))

    assert [part["type"] for part in content(ai)] == ["text", "image_url"]


def test_a_picture_whose_file_is_gone_is_told_to_be_so() -> None:
    (message,) = messages_of(LOOK.messages[1:], {})

    assert message["content"].endswith(f"[photo, cat.jpg: {GONE}]")


def test_a_picture_without_words_has_a_text_beside_it() -> None:
    (message,) = messages_of((UserMessage("", (SHOWN,)),), {SHA: CAT})

    assert message["content"][0] == {"type": "text", "text": "(empty)"}
