"""Speech to text by the genuine SDK against a stand-in."""

from collections.abc import AsyncIterator

import pytest

from core.domain.messages import Attachment
from core.errors import PermanentError, TransientError
from core.models.litellm_speech import LiteLLMTranscriber, SpeechOptions, file_name
from tests.core.models.harness import KEY, Heard
from tests.standins.faults import Refuse, Reset
from tests.standins.openai import BAD_KEY, TRANSCRIPTIONS, OpenAIStandIn

VOICE = Attachment(kind="voice message", ref="r", mime="audio/ogg")


@pytest.fixture
async def ear(heard: Heard) -> AsyncIterator[LiteLLMTranscriber]:
    made = LiteLLMTranscriber(SpeechOptions(name="openai/whisper-1"), heard.sleep)
    yield made
    await made.close()


async def test_what_was_said_comes_back(ai: OpenAIStandIn, ear: LiteLLMTranscriber) -> None:
    ai.spoken = "buy milk"

    assert await ear.transcribe(b"OggS-1", VOICE) == "buy milk"
    assert ai.heard == [b"OggS-1"]
    assert ai.calls_of(TRANSCRIPTIONS)[0].params["model"] == "whisper-1"


async def test_a_vendor_that_is_away_is_asked_again(
    ai: OpenAIStandIn, ear: LiteLLMTranscriber, heard: Heard
) -> None:
    ai.faults.next(TRANSCRIPTIONS, Refuse(503, "busy"), Reset())

    assert await ear.transcribe(b"OggS", VOICE) == "words"
    assert heard.pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("refuse", "error"),
    [(BAD_KEY, PermanentError), (Refuse(400, "no"), PermanentError)],
)
async def test_a_refusal_is_not_tried_again(
    ai: OpenAIStandIn, ear: LiteLLMTranscriber, refuse: Refuse, error: type[Exception]
) -> None:
    ai.faults.next(TRANSCRIPTIONS, refuse)

    with pytest.raises(error) as caught:
        await ear.transcribe(b"OggS", VOICE)
    assert KEY not in str(caught.value)
    assert len(ai.calls_of(TRANSCRIPTIONS)) == 1


async def test_one_that_stays_away_is_given_up(ai: OpenAIStandIn, ear: LiteLLMTranscriber) -> None:
    ai.faults.next(TRANSCRIPTIONS, *[Refuse(500, "oops")] * 3)

    with pytest.raises(TransientError):
        await ear.transcribe(b"OggS", VOICE)
    assert len(ai.calls_of(TRANSCRIPTIONS)) == 3


@pytest.mark.parametrize(
    ("name", "mime", "sent"),
    [
        ("", "audio/ogg; codecs=opus", "speech.ogg"),
        ("note.oga", "", "speech.ogg"),
        ("talk.M4A", "", "speech.m4a"),
        ("x", "audio/mpeg", "speech.mp3"),
        ("", "", "speech.ogg"),
        ("../../etc/passwd.wav", "", "speech.wav"),
    ],
)
def test_its_name_tells_the_vendor_what_it_is(name: str, mime: str, sent: str) -> None:
    assert file_name(Attachment(kind="audio", ref="r", name=name, mime=mime)) == sent
