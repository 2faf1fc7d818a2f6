import asyncio

import pytest

from core.domain.messages import ModelFailure, ModelReply, ModelRequest, UserMessage
from core.models.scripted import ScriptedModel
from tests.core.models.harness import Heard

HELLO = ModelRequest((UserMessage("hello"),))


async def test_it_says_its_lines_in_order_and_keeps_the_requests(heard: Heard) -> None:
    failure = ModelFailure(kind="refused", detail="no")
    model = ScriptedModel("one", failure, lambda request: request.messages[-1].text)

    said = [await model.complete(HELLO, heard.on_text) for _ in range(3)]

    assert said == [
        ModelReply(text="one", model="scripted"),
        failure,
        ModelReply(text="hello", model="scripted"),
    ]
    assert model.requests == [HELLO] * 3
    assert heard.texts == ["one", "hello"]


async def test_an_exhausted_script_is_an_error(heard: Heard) -> None:
    model = ScriptedModel()
    model.then("one")
    await model.complete(HELLO, heard.on_text)

    with pytest.raises(AssertionError, match="script is over"):
        await model.complete(HELLO, heard.on_text)


async def test_a_call_that_is_held_and_cancelled_takes_no_line(heard: Heard) -> None:
    model = ScriptedModel("one")
    model.hold()
    call = asyncio.create_task(model.complete(HELLO, heard.on_text))
    await asyncio.sleep(0)

    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    model.release()

    assert (len(model.requests), model.left) == (1, 1)
    assert await model.complete(HELLO, heard.on_text) == ModelReply(text="one", model="scripted")
