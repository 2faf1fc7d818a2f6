"""What people write becomes what the agent is told, or nothing by a stated rule."""

from typing import Any

import pytest
from telegram import Update

from bots.platforms.telegram.translate import Me, inbound
from core.domain.keys import session_key
from core.domain.messages import Attachment, Inbound

ME = Me(123456, "Stillhere_bot")
ADA: dict[str, Any] = {"id": 7, "first_name": "Ada", "last_name": "L.", "is_bot": False}
US: dict[str, Any] = {"id": 123456, "first_name": "Stillhere", "is_bot": True}
DM: dict[str, Any] = {"id": 7, "type": "private", "first_name": "Ada"}
GROUP: dict[str, Any] = {"id": -1001, "type": "supergroup", "title": "Group"}
FILE: dict[str, Any] = {"file_id": "f1", "file_unique_id": "u1", "file_size": 9}
SEEN: dict[str, Any] = FILE | {"width": 90, "height": 60}
PLACE: dict[str, Any] = {"latitude": 52.5, "longitude": 13.4}
TOPIC: dict[str, Any] = {"name": "t", "icon_color": 1}
LONG: dict[str, Any] = {"duration": 3}


def message(**fields: Any) -> dict[str, Any]:
    return {"message_id": 3, "date": 1_800_000_000, "from": ADA, "chat": DM} | fields


def read(**fields: Any) -> Inbound | None:
    return inbound(Update.de_json({"update_id": 1001, "message": message(**fields)}, None), ME)


def told(**fields: Any) -> Inbound:
    taken = read(**fields)
    assert taken is not None
    return taken


def entity(kind: str, offset: int, length: int, **more: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "offset": offset, "length": length} | more]


def command(text: str) -> dict[str, Any]:
    return {"text": text, "entities": entity("bot_command", 0, len(text.split()[0]))}


def mention(text: str, name: str = "@stillhere_BOT") -> dict[str, Any]:
    units = len(text[: text.index(name)].encode("utf-16-le")) // 2
    return {"text": text, "entities": entity("mention", units, len(name))}


def test_a_name_is_told_in_full_and_a_dm_is_not_quoted() -> None:
    taken = told(text="hi")
    assert (taken.user_name, taken.address.reply_to) == ("Ada L.", "")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (command("/start CODE-1 x"), "/start CODE-1 x"),
        (command("/new@STILLHERE_bot now"), "/new now"),
        (command("/new@other_bot now"), "/new@other_bot now"),
        ({"text": "/ is a slash"}, "/ is a slash"),
        ({"photo": [SEEN], "caption": "look"}, "look"),
    ],
    ids=["payload", "ours", "another's is text", "slash", "caption"],
)
def test_a_dm_says(fields: dict[str, Any], text: str) -> None:
    assert told(**fields).text == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (mention("@stillhere_BOT what time is it"), "what time is it"),
        (mention("@stillhere_BOT, what time is it"), "what time is it"),
        (mention("👋 hey @stillhere_BOT what now"), "👋 hey what now"),
        (mention("@stillhere_BOT /new"), "/new"),
        (mention("@stillhere_BOT"), "@stillhere_BOT"),
        ({"text": "Still, go", "entities": entity("text_mention", 0, 5, user=US)}, "go"),
        (command("/new"), "/new"),
        (command("/new@stillhere_bot x"), "/new x"),
        ({"text": "sure?", "reply_to_message": message(**{"from": US, "text": "yes"})}, "sure?"),
        ({"photo": [SEEN], "caption": "@stillhere_bot look",
          "caption_entities": entity("mention", 0, 14)}, "look"),
    ],
    ids=["mention", "comma", "after emoji", "command after", "alone", "by name", "command",
         "our command", "reply", "caption"],
)  # fmt: skip
def test_a_group_says_to_us(fields: dict[str, Any], text: str) -> None:
    assert told(chat=GROUP, **fields).text == text


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "nice weather"},
        mention("@stillhere_bot2 hi", "@stillhere_bot2"),
        {"text": "mail me@stillhere_bot"},
        {"text": "Bob, go", "entities": entity("text_mention", 0, 3, user=ADA)},
        command("/new@other_bot"),
        {"text": "sure?", "reply_to_message": message(text="yes")},
        {"text": "sure?", "is_topic_message": True, "message_thread_id": 3,
         "reply_to_message": message(**{"from": US, "forum_topic_created": TOPIC})},
        {"sticker": SEEN | {"is_animated": False, "is_video": False, "type": "regular"}},
    ],
    ids=["chatter", "another bot", "no entity", "another person", "another's command",
         "reply to another", "our topic is no reply", "sticker"],
)  # fmt: skip
def test_a_group_says_to_others(fields: dict[str, Any]) -> None:
    assert read(**{"chat": GROUP} | fields) is None


def test_in_a_group_the_answer_goes_to_the_message() -> None:
    taken = told(chat=GROUP, **command("/status"))
    address = taken.address
    assert (address.chat_type, address.chat, address.reply_to) == ("group", "-1001", "3")
    assert str(session_key(address, taken.user)) == "agent:main:telegram:group:-1001"


@pytest.mark.parametrize(
    ("chat", "fields", "key"),
    [
        (GROUP, {"is_topic_message": True}, "agent:main:telegram:group:-1001:thread:5"),
        (GROUP, {}, "agent:main:telegram:group:-1001"),
        (DM, {"is_topic_message": True}, "agent:main:telegram:dm:7:thread:5"),
    ],
    ids=["topic", "thread of replies", "topic in a DM"],
)
def test_a_topic_is_a_conversation_of_its_own(
    chat: dict[str, Any], fields: dict[str, Any], key: str
) -> None:
    taken = told(chat=chat, message_thread_id=5, **command("/new"), **fields)
    assert str(session_key(taken.address, taken.user)) == key


@pytest.mark.parametrize(
    ("fields", "attachment"),
    [
        ({"photo": [SEEN | {"width": 9, "file_id": "small"}, SEEN]}, Attachment(
            kind="photo", ref="f1", size=9)),
        ({"document": FILE | {"file_name": "a.pdf", "mime_type": "application/pdf"}}, Attachment(
            kind="document", ref="f1", name="a.pdf", mime="application/pdf", size=9)),
        ({"animation": SEEN | LONG, "document": FILE}, Attachment(
            kind="animation", ref="f1", size=9)),
        ({"voice": FILE | LONG | {"mime_type": "audio/ogg"}}, Attachment(
            kind="voice message", ref="f1", mime="audio/ogg", size=9)),
        ({"audio": FILE | LONG | {"file_name": "a.mp3"}}, Attachment(
            kind="audio", ref="f1", name="a.mp3", size=9)),
        ({"video": SEEN | LONG}, Attachment(kind="video", ref="f1", size=9)),
        ({"video_note": FILE | LONG | {"length": 9}}, Attachment(
            kind="video message", ref="f1", size=9)),
        ({"document": {"file_id": "f1", "file_unique_id": "u1"}}, Attachment(
            kind="document", ref="f1")),
    ],
    ids=["photo", "document", "animation", "voice", "audio", "video", "note", "no size"],
)  # fmt: skip
def test_a_file_is_noted(fields: dict[str, Any], attachment: Attachment) -> None:
    taken = told(**fields)
    assert (taken.text, taken.attachments) == ("", (attachment,))


def test_what_was_sent_as_one_says_so() -> None:
    assert told(photo=[SEEN], media_group_id="g1").album == "g1"
    assert told(photo=[SEEN]).album == ""


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"location": PLACE}, "[location: 52.5, 13.4]"),
        ({"location": PLACE, "venue": {"location": PLACE, "title": "Zoo", "address": "Budapester"}},
         "[place: Zoo, Budapester (52.5, 13.4)]"),
        ({"contact": {"first_name": "Bob", "phone_number": "+49"}}, "[contact: Bob, +49]"),
        ({"dice": {"value": 3, "emoji": "🎲"}}, "[a message of a kind I cannot read: dice]"),
        ({"hologram": {"size": 1}}, "[a message of a kind I cannot read: hologram]"),
        ({"poll": {"id": "1", "question": "Tea?", "total_voter_count": 0, "is_closed": False,
                   "is_anonymous": True, "type": "regular", "allows_multiple_answers": False,
                   "allows_revoting": False, "members_only": False,
                   "options": [{"text": text, "voter_count": 0, "persistent_id": text}
                               for text in ("yes", "no")]}},
         "[poll: Tea? yes / no]"),
    ],
    ids=["location", "venue", "contact", "dice", "newer than the SDK", "poll"],
)  # fmt: skip
def test_what_is_no_text_is_told_in_words(fields: dict[str, Any], text: str) -> None:
    assert told(**fields).text == text


def test_a_sticker_says_its_emoji() -> None:
    taken = told(
        sticker=SEEN | {"is_animated": False, "is_video": False, "type": "regular", "emoji": "😀"}
    )
    assert (taken.text, [file.kind for file in taken.attachments]) == ("[sticker 😀]", ["sticker"])


@pytest.mark.parametrize(
    ("fields", "text", "quote"),
    [
        ({"text": "why"}, "why", ""),
        ({"text": "why", "reply_to_message": message(text="a\nb")}, "why", "a\nb"),
        ({"text": "why", "reply_to_message": message(**{"from": US, "text": "ours"})},
         "why", "ours"),
        ({"text": "why", "reply_to_message": message(photo=[SEEN], caption="a cat")},
         "why", "a cat"),
        ({"text": "why", "quote": {"text": "only this", "position": 0},
          "reply_to_message": message(text="all of it, only this")}, "why", "only this"),
        ({"text": "why", "reply_to_message": message(location=PLACE)},
         "why", "[location: 52.5, 13.4]"),
        ({"photo": [SEEN], "reply_to_message": message(text="show me")}, "", "show me"),
        (command("/pin") | {"reply_to_message": message(text="a")}, "/pin", "a"),
        ({"text": "hi", "is_topic_message": True, "message_thread_id": 3,
          "reply_to_message": message(forum_topic_created=TOPIC, text="not said")}, "hi", ""),
    ],
    ids=["nothing", "lines", "ours", "caption", "chosen part", "no text", "photo",
         "a command stays one", "a topic's root"],
)  # fmt: skip
def test_what_is_replied_to_is_quoted(fields: dict[str, Any], text: str, quote: str) -> None:
    taken = told(**fields)
    assert (taken.text, taken.quote) == (text, quote)


@pytest.mark.parametrize(
    "fields",
    [
        {"pinned_message": message(text="pinned")},
        {"forum_topic_created": TOPIC, "hologram": 1},
        {"from": US, "text": "I am a bot"},
        {"chat": {"id": -5, "type": "channel", "title": "News"}, "text": "news"},
        {"chat": GROUP, "is_automatic_forward": True, **command("/new")},
        {"chat": GROUP, "new_chat_members": [ADA]},
    ],
    ids=["pinned", "topic", "bot", "channel", "forward", "joined"],
)
def test_what_asks_nothing_is_left_out(fields: dict[str, Any]) -> None:
    assert read(**fields) is None


@pytest.mark.parametrize("kind", ["edited_message", "channel_post"])
def test_edits_and_channels_are_left_out(kind: str) -> None:
    update = Update.de_json({"update_id": 1001, kind: message(text="hi")}, None)
    assert inbound(update, ME) is None
