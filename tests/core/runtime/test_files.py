"""Files in the life of a process: whatever comes and whatever fails, the message is answered."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.domain.messages import Attachment, ModelFailure, ModelRequest
from core.errors import PermanentError, StorageError, TransientError, UnknownOutcomeError
from core.files import reader
from tests.core.domain import checks
from tests.core.runtime.filing import FILES, NOTES, PHOTO, VOICE, Ear, asked, ground
from tests.core.runtime.house import passes
from tests.core.runtime.virtual import in_virtual_time, run_virtually


@in_virtual_time
async def test_a_picture_is_shown_to_the_model_and_is_no_part_of_the_log() -> None:
    here = ground("a cat")
    process = await here.starts()
    await process.is_sent(PHOTO, text="what is it?")
    await passes(5)

    assert here.chat.texts == ["a cat"]
    (shown,) = asked(here).pictures
    assert here.script.requests[0].files[shown.sha].startswith(b"\xff\xd8")
    stored = str(await here.store.events("agent:main:chat:dm:7"))
    assert shown.sha in stored
    assert "base64" not in stored
    assert len(stored) < 5_000


@in_virtual_time
async def test_a_later_request_shows_it_again_from_the_store() -> None:
    here = ground("a cat", "black")
    process = await here.starts()
    await process.is_sent(PHOTO)
    await passes(5)
    process.dies()
    here.chat.files.clear()
    process = await here.starts()
    await process.hears("what colour?")
    await passes(5)

    first, second = here.script.requests
    assert first.files == second.files != {}
    assert len(here.chat.calls("fetch")) == 1


@in_virtual_time
async def test_a_picture_whose_file_is_gone_is_told_to_be_so() -> None:
    here = ground("a cat", "black")
    process = await here.starts()
    await process.is_sent(PHOTO)
    await passes(5)
    vars(here.store)["_files"].clear()
    await process.hears("what colour?")
    await passes(5)

    assert here.chat.texts == ["a cat", "black"]
    assert here.script.requests[1].files == {}


@in_virtual_time
async def test_documents_are_read_and_speech_is_heard() -> None:
    here = ground("understood")
    here.transcriber = Ear("buy eggs")
    process = await here.starts()
    deed = Attachment(kind="document", ref="deed", name="deed.pdf", mime="application/pdf")
    await process.is_sent(VOICE, NOTES, deed)
    await passes(5)

    assert asked(here).text == (
        "[voice message]\nbuy eggs\n[end of voice message]\n"
        "[document, notes.txt]\nmilk, eggs\n[end of document, notes.txt]\n"
        "[document, deed.pdf]\nsold\n[end of document, deed.pdf]"
    )


@in_virtual_time
async def test_a_long_document_says_what_is_cut() -> None:
    here = ground("read")
    here.chat.files["notes"] = b"word " * 50_000
    process = await here.starts()
    await process.is_sent(NOTES)
    await passes(5)

    assert "characters left out …]" in asked(here).text
    assert len(asked(here).text) < 41_000


@pytest.mark.parametrize(
    ("attachment", "sentence"),
    [
        (VOICE, reader.NO_SPEECH_MODEL),
        (Attachment(kind="photo", ref="cat", size=21_000_000), "larger than the 20 MB"),
        (Attachment(kind="video", ref="film", mime="video/mp4"), reader.NOT_READABLE),
    ],
)
def test_what_is_not_taken_is_not_even_fetched(attachment: Attachment, sentence: str) -> None:
    @in_virtual_time
    async def life() -> None:
        here = ground("sorry")
        process = await here.starts()
        await process.is_sent(attachment, text="this")
        await passes(5)

        assert here.chat.texts == ["sorry"]
        assert "this" in asked(here).text
        assert sentence in asked(here).text
        assert here.chat.calls("fetch") == []

    life()


@pytest.mark.parametrize(
    ("faults", "tries", "sentence"),
    [
        ([TransientError("busy", 3.0), UnknownOutcomeError("cut")], 3, "[picture: photo]"),
        ([TransientError("busy")] * 3, 3, reader.UNAVAILABLE),
        ([PermanentError("gone")], 1, reader.NOT_GIVEN),
        ([ValueError("a bug")], 1, reader.BROKEN),
    ],
    ids=["often away", "away", "gone", "a bug"],
)
def test_a_download_that_fails_is_tried_again_and_then_told(
    faults: list[Exception], tries: int, sentence: str
) -> None:
    @in_virtual_time
    async def life() -> None:
        here = ground("answered")
        here.chat.fetch_faults.extend(faults)
        process = await here.starts()
        await process.is_sent(PHOTO, text="look")
        await passes(30)

        assert here.chat.texts == ["answered"]
        assert len(here.chat.calls("fetch")) == tries
        assert sentence in asked(here).text

    life()


@in_virtual_time
async def test_a_download_that_hangs_costs_its_time_limit_and_no_more() -> None:
    here = ground("answered")
    here.chat.seconds = 10_000
    process = await here.starts()
    await process.is_sent(PHOTO)
    await passes(reader.FETCH_SECONDS * reader.TRIES + 5)

    assert len(here.script.requests) == 1
    assert reader.UNAVAILABLE in asked(here).text


@in_virtual_time
async def test_speech_that_is_not_understood_is_told() -> None:
    here = ground("pardon?")
    here.transcriber = Ear(TransientError("busy"))
    process = await here.starts()
    await process.is_sent(VOICE)
    await passes(5)

    assert reader.NOT_UNDERSTOOD in asked(here).text


@in_virtual_time
async def test_a_process_that_dies_while_it_downloads_answers_once_in_its_next_life() -> None:
    here = ground("a cat")
    here.chat.seconds = 5
    process = await here.starts()
    await process.is_sent(PHOTO)
    await passes(2)
    process.dies()
    await passes(20)
    await here.starts()
    await passes(60)

    assert here.chat.texts == ["a cat"]
    assert len(here.script.requests) == 1
    assert await here.outcomes() == {"answered": 1}


@in_virtual_time
async def test_a_file_that_kills_each_process_is_left_alone_and_its_message_answered() -> None:
    here = ground("I leave it alone.")
    deaths: list[str] = []

    async def kills(attachment: Attachment, limit: int) -> bytes:
        deaths.append(attachment.ref)
        here.processes[-1].dies()
        return b""

    vars(here.chat)["fetch"] = kills
    process = await here.starts()
    await process.is_sent(PHOTO, text="look")
    for _ in range(5):
        await passes(150)
        await here.starts()

    assert len(deaths) == 4
    assert here.chat.texts[-1] == "I leave it alone."
    assert "look" in asked(here).text
    assert reader.UNOPENED in asked(here).text


@in_virtual_time
async def test_a_picture_that_cannot_be_stored_waits_for_the_database() -> None:
    here = ground("a cat")
    process = await here.starts()
    keep, faults = here.store.keep_file, [StorageError("full"), StorageError("full")]

    async def often_full(data: bytes) -> str:
        if faults:
            raise faults.pop()
        return await keep(data)

    vars(here.store)["keep_file"] = often_full
    await process.is_sent(PHOTO)
    await passes(20)

    assert here.chat.texts == ["a cat"]
    assert len(asked(here).pictures) == 1


@in_virtual_time
async def test_stop_ends_a_download() -> None:
    here = ground("never")
    here.chat.seconds = 30
    process = await here.starts()
    await process.is_sent(PHOTO)
    await passes(1)
    here.chat.seconds = 0
    await process.hears("/stop")
    await passes(2)

    assert here.chat.texts[-1].startswith("Stopped at step 1.")
    assert process.agent.working() == ()
    await passes(60)
    assert here.script.requests == []


@in_virtual_time
async def test_a_refused_picture_does_not_poison_what_comes_after_it() -> None:
    refused = ModelFailure(kind="refused", detail="400: image_url: invalid image")
    here = ground(refused, "I cannot see it.", "hello again")
    process = await here.starts()
    await process.is_sent(PHOTO, text="look")
    await passes(5)
    await process.hears("hello?")
    await passes(5)

    assert here.chat.texts == ["I cannot see it.", "hello again"]
    assert [len(request.pictures) for request in here.script.requests] == [1, 0, 0]


attachments = st.lists(
    st.builds(
        Attachment,
        kind=st.sampled_from(["photo", "document", "voice message", "sticker", "what is this"]),
        ref=st.sampled_from(sorted(FILES)),
        name=st.sampled_from(
            ["", "a.txt", "a.pdf", "a.png", "a.ogg", "a.zip", "../../x", "\ud83d\0"]
        ),
        mime=st.sampled_from(
            ["", "image/png", "text/plain", "application/pdf", "audio/ogg", "a/b"]
        ),
        size=st.sampled_from([-1, 0, 10, 10**12]),
    ),
    min_size=1,
    max_size=4,
)
faults = st.lists(
    st.sampled_from(
        [None, TransientError("t"), PermanentError("p"), UnknownOutcomeError("u"), KeyError("k")]
    ),
    max_size=8,
)
heard = st.lists(
    st.sampled_from(["words", "", TransientError("t"), PermanentError("p"), KeyError("k")]),
    max_size=4,
)
refusals = st.sampled_from([None, "refused", "never", "too_long"])


@settings(max_examples=25)
@given(attachments, faults, heard, refusals, st.booleans())
def test_whatever_comes_and_whatever_fails_it_is_answered(
    files: list[Attachment],
    faults: list[Exception | None],
    heard: list[str | Exception],
    refusal: str | None,
    dies: bool,
) -> None:
    def once(request: ModelRequest) -> object:
        checks.legal(request)
        nonlocal refusal
        if request.pictures and refusal:
            kind, refusal = refusal, None
            return ModelFailure(kind=kind, detail="no")  # pyright: ignore[reportArgumentType]
        return "answer"

    async def life() -> None:
        here = ground(once, once, once)
        here.chat.fetch_faults.extend(faults)
        here.transcriber = Ear(*heard)
        process = await here.starts()
        await process.is_sent(*files, text="look")
        if dies:
            await asyncio.sleep(0)
            process.dies()
            await here.starts()
        await passes(240)
        assert here.chat.texts == ["answer"]
        assert await here.outcomes() == {"answered": 1}

    run_virtually(life())
