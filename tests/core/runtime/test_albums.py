"""What is sent as one is answered as one, whatever dies in between."""

from tests.core.runtime.filing import PHOTO, asked, ground
from tests.core.runtime.house import passes
from tests.core.runtime.virtual import in_virtual_time


@in_virtual_time
async def test_an_album_is_one_message_to_the_model() -> None:
    here = ground("three cats")
    process = await here.starts()
    for text in ("my cats", "", ""):
        await process.is_sent(PHOTO, text=text, album="g1")
        await passes(0.2)
    await passes(10)

    assert here.chat.texts == ["three cats"]
    assert len(asked(here).pictures) == 3
    assert await here.outcomes() == {"answered": 3}


@in_virtual_time
async def test_a_picture_that_comes_while_the_model_thinks_of_its_album_is_not_left_behind() -> (
    None
):
    here = ground("one cat", "two cats")
    process = await here.starts()
    here.script.hold()
    await process.is_sent(PHOTO, album="g1")
    await passes(10)
    await process.is_sent(PHOTO, album="g1")
    here.script.release()
    await passes(10)

    assert here.chat.texts == ["two cats"]
    assert len(asked(here).pictures) == 2
    assert await here.outcomes() == {"answered": 2}


@in_virtual_time
async def test_an_album_outlives_the_process_that_began_to_take_it() -> None:
    here = ground("two cats")
    process = await here.starts()
    await process.is_sent(PHOTO, album="g1")
    await passes(0.3)
    process.dies()
    await passes(20)
    process = await here.starts()
    await process.is_sent(PHOTO, album="g1")
    await passes(60)

    assert here.chat.texts[-1] == "two cats"
    assert len(asked(here).pictures) == 2
    assert await here.outcomes() == {"answered": 2}
