"""What each kind of message becomes, and which are not for us."""

from typing import Any

import pytest

from core.domain.messages import Inbound, OutboxMessage, Part
from tests.bots.platforms.discord.kit import CHANNEL, Bench
from tests.standins.discord_user import User

ME = "<@123456>"


async def one(bench: Bench) -> Inbound:
    return (await bench.takes())[-1]


@pytest.mark.parametrize(
    ("written", "heard"),
    [
        (f"{ME} what time is it?", "what time is it?"),
        (f"hey {ME}, what time is it?", "hey what time is it?"),
        ("what time is it, <@123456>?", "what time is it, ?"),
        (f"{ME} /new", "/new"),
        (ME, "@stillhere"),
        (f"{ME} ask {ME}", "ask @stillhere"),
    ],
)
async def test_the_mention_of_us_is_taken_out(
    bench: Bench, ada: User, written: str, heard: str
) -> None:
    ada.says_in(CHANNEL, written)
    assert (await one(bench)).text == heard


async def test_an_answer_to_us_is_for_us_and_quotes_us(bench: Bench, ada: User) -> None:
    asked = ada.says_in(CHANNEL, "hello", mention=True)
    address = (await one(bench)).address
    part = Part(text="good day", plain="good day")
    row = OutboxMessage(id="k@1", key="k", address=address, kind="answer", part=part)
    ours = int(await bench.adapter.channel.send(row))
    ada.says_in(CHANNEL, "to myself", reply_to=asked.id)
    ada.says_in(CHANNEL, "to you", reply_to=ours)
    await bench.takes(2)
    taken = await one(bench)
    assert bench.inbox.texts == ["hello", "to you"]
    assert taken.quote == "good day"


async def test_a_command_is_alone_and_knows_what_it_replies_to(bench: Bench, ada: User) -> None:
    first = ada.says("hello")
    ada.says("/pin", reply_to=first.id)
    taken = (await bench.takes(2))[1]
    assert (taken.text, taken.quote) == ("/pin", "hello")


async def test_what_is_replied_to_may_be_gone(bench: Bench, ada: User) -> None:
    first = ada.says("hello")
    ada.deletes(first)
    ada.says("what I said", reply_to=first.id)
    taken = (await bench.takes(2))[1]
    assert (taken.text, taken.quote) == ("what I said", "")


STICKER: dict[str, Any] = {"sticker_items": [{"id": "5", "name": "wave", "format_type": 1}]}
POLL: dict[str, Any] = {
    "poll": {
        "question": {"text": "Tea?"},
        "answers": [
            {"answer_id": 1, "poll_media": {"text": "yes"}},
            {"answer_id": 2, "poll_media": {"text": "no"}},
        ],
        "expiry": "2030-01-01T00:00:00+00:00",
        "allow_multiselect": False,
        "layout_type": 1,
    }
}
SNAPSHOT: dict[str, Any] = {
    "type": 0,
    "content": "look at this",
    "embeds": [],
    "attachments": [],
    "timestamp": "2026-01-01T00:00:00+00:00",
    "edited_timestamp": None,
    "flags": 0,
}
FORWARDED: dict[str, Any] = {
    "message_reference": {"type": 1, "message_id": "1", "channel_id": "2"},
    "message_snapshots": [{"message": SNAPSHOT}],
}
UNREADABLE = "a message of a kind I cannot read"


@pytest.mark.parametrize(
    ("kind", "extra", "heard"),
    [
        (0, STICKER, "[sticker wave]"),
        (99, {}, f"[{UNREADABLE}: unknown_99]"),
        (0, {"activity": {"type": 1}}, f"[{UNREADABLE}]"),
        (0, POLL, "[poll: Tea? yes / no]"),
        (0, FORWARDED, "[forwarded] look at this"),
    ],
    ids=["sticker", "newer than the SDK", "empty", "poll", "forwarded"],
)
async def test_what_is_no_text_is_told_in_words(
    bench: Bench, ada: User, kind: int, extra: dict[str, Any], heard: str
) -> None:
    ada.sends_kind(kind, **extra)
    assert (await one(bench)).text == heard


@pytest.mark.parametrize(
    ("name", "content_type", "kind"),
    [
        ("a.png", "image/png", "photo"),
        ("a.ogg", "audio/ogg", "audio"),
        ("a.mp4", "video/mp4", "video"),
        ("a.txt", "text/plain; charset=utf-8", "document"),
    ],
)
async def test_a_file_is_noted(
    bench: Bench, ada: User, name: str, content_type: str, kind: str
) -> None:
    said = ada.sends_file(name, b"12345", "see", content_type)
    taken = await one(bench)
    (file,) = taken.attachments
    assert (taken.text, file.kind, file.name, file.size) == ("see", kind, name, 5)
    assert file.mime == content_type.partition(";")[0]
    assert file.ref == f"{ada.dm}/{said.id}/{said.files[0].id}"


async def test_a_file_without_a_word_is_a_message(bench: Bench, ada: User) -> None:
    ada.sends_file()
    taken = await one(bench)
    assert (taken.text, len(taken.attachments)) == ("", 1)


async def test_bots_webhooks_and_discord_itself_are_not_heard(bench: Bench, ada: User) -> None:
    bench.place.user(9, "Other", is_bot=True).says_in(ada.dm, "I am a bot")
    ada.sends_kind(0, "by a webhook", webhook_id="77")
    ada.sends_kind(6, "pinned a message")
    ada.says("a person")
    assert (await one(bench)).text == "a person"
    assert len(bench.inbox.offered) == 1


async def test_half_an_emoji_is_no_reason_to_stop(bench: Bench, ada: User) -> None:
    ada.says("half \ud83d of it")
    ada.says("behind it")
    await bench.takes(2)
    assert bench.inbox.texts[1] == "behind it"


async def test_a_voice_message_is_one(bench: Bench, ada: User) -> None:
    ada.sends_voice()
    (voice,) = (await one(bench)).attachments
    assert (voice.kind, voice.mime) == ("voice message", "audio/ogg")
