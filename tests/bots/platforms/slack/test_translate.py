"""What of Slack's becomes a message of a person, in which conversation, and in which words."""

from typing import Any

import pytest

from core.domain.keys import session_key
from core.domain.messages import Inbound
from tests.bots.platforms.slack.kit import CHANNEL, Bench, here, plain, row
from tests.standins.slack import SlackStandIn
from tests.standins.slack_user import MENTION, User


def key(inbound: Inbound) -> str:
    return str(session_key(inbound.address, inbound.user))


def escaped(ts: str) -> str:
    return ts.replace(".", "%2E")


async def test_a_private_conversation_is_one_session(bench: Bench, ada: User) -> None:
    ada.says("one")
    ada.says("two")
    one, two = await bench.takes(2)
    assert key(one) == key(two) == "agent:main:slack:dm:T1.U7"
    assert one.address == here(ada.dm)


async def test_a_thread_in_a_private_conversation_is_its_own(bench: Bench, ada: User) -> None:
    root = ada.says("one")
    ada.says("two", thread=root.ts)
    _, two = await bench.takes(2)
    assert key(two) == f"agent:main:slack:dm:T1.U7:thread:{escaped(root.ts)}"
    assert two.address == here(ada.dm, root.ts)


async def test_a_mention_opens_a_thread_in_which_all_is_heard(
    bench: Bench, slack: SlackStandIn, ada: User
) -> None:
    grace = slack.user("U8", "Grace")
    root = ada.says_in(CHANNEL, "what is this?", mention=True)
    await bench.takes(1)
    grace.says_in(CHANNEL, "yes, what?", thread=root.ts)
    grace.says_in(CHANNEL, "elsewhere")
    first, second = await bench.takes(2)
    assert (first.text, second.text) == ("what is this?", "yes, what?")
    assert (
        key(first)
        == key(second)
        == f"agent:main:slack:channel:T1.{CHANNEL}:thread:{escaped(root.ts)}"
    )
    assert first.address == here(CHANNEL, root.ts)


async def test_a_mention_in_a_thread_of_others_takes_part_in_it(bench: Bench, ada: User) -> None:
    root = ada.says_in(CHANNEL, "between us")
    ada.says_in(CHANNEL, "not to the bot", thread=root.ts)
    ada.says_in(CHANNEL, "and you?", thread=root.ts, mention=True)
    await bench.takes(1)
    ada.says_in(CHANNEL, "go on", thread=root.ts)
    await bench.takes(2)
    assert bench.inbox.texts == ["and you?", "go on"]


async def test_a_thread_that_the_bot_began_is_heard(bench: Bench, ada: User) -> None:
    ts = await bench.adapter.channel.send(row(plain("good morning"), here(CHANNEL)))
    ada.says_in(CHANNEL, "to you, too", thread=ts, extra={"parent_user_id": "UBOT"})
    await bench.takes()
    assert bench.inbox.texts == ["to you, too"]


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ("a &lt;b&gt; &amp; c", "a <b> & c"),
        ("see <https://a.b/c>", "see https://a.b/c"),
        ("see <https://a.b/c|a.b/c>", "see a.b/c"),
        ("see <https://a.b/c|the page>", "see the page (https://a.b/c)"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
        ("ask <@U8> or <@U8|grace>", "ask @U8 or @grace"),
        ("in <#C1|general>", "in #general"),
        ("<!here> <!subteam^S1|@team>", "@here @team"),
        (f"{MENTION}, look at <#C1>", "look at #C1"),
        (f"hey {MENTION} look", "hey look"),
    ],
)
async def test_slacks_tokens_are_read(bench: Bench, ada: User, raw: str, read: str) -> None:
    ada.sends_raw(raw)
    (taken,) = await bench.takes()
    assert taken.text == read.replace("see a.b/c", "see https://a.b/c")


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("stop", "/stop"),
        ("Stop", "/stop"),
        ("!stop", "/stop"),
        ("!new and clean", "/new and clean"),
        ("/stop", "/stop"),
        ("stop it", "stop it"),
        ("new", "new"),
        ("!important", "!important"),
        ("!", "!"),
    ],
)
async def test_commands_are_said_with_an_exclamation_mark(
    bench: Bench, ada: User, said: str, read: str
) -> None:
    ada.says(said)
    ada.says_in(CHANNEL, said, mention=True)
    await bench.takes(2)
    assert bench.inbox.texts == [read, read]


@pytest.mark.parametrize(
    ("typed", "read"),
    [("stop", "/stop"), ("/new", "/new"), ("", "/help"), ("what time is it?", "what time is it?")],
)
async def test_the_slash_command_says_it(bench: Bench, ada: User, typed: str, read: str) -> None:
    ada.commands(typed)
    (taken,) = await bench.takes()
    await bench.slack.wait_for(lambda: bench.slack.events.taken)
    assert (taken.text, key(taken)) == (read, "agent:main:slack:dm:T1.U7")


async def test_each_slash_command_is_an_update_of_its_own(bench: Bench, ada: User) -> None:
    ada.commands("stop")
    ada.commands("stop")
    await bench.takes(2)


async def test_files_come_by_reference(bench: Bench, ada: User) -> None:
    file = ada.sends_file("cat.png", b"\x89PNG", "look", "image/png").files[0]
    ada.sends_file("notes.txt", b"notes")
    one, two = await bench.takes(2)
    (picture,), (notes,) = one.attachments, two.attachments
    assert (one.text, two.text) == ("look", "")
    assert (picture.kind, picture.ref, picture.mime, picture.size) == (
        "photo",
        file.id,
        "image/png",
        4,
    )
    assert (notes.kind, notes.name) == ("document", "notes.txt")


UNREADABLE: list[tuple[dict[str, Any], str]] = [
    ({"subtype": "file_share"}, "[a message of a kind I cannot read: file_share]"),
    ({"subtype": "hologram"}, "[a message of a kind I cannot read: hologram]"),
    (
        {"extra": {"files": [{"id": "F9", "mode": "quip", "filetype": "quip", "title": "Plan"}]}},
        "[a message of a kind I cannot read: quip, «Plan»]",
    ),
    (
        {"extra": {"files": [{"id": "F9", "mode": "tombstone"}]}},
        "[a file that Slack does not show any more]",
    ),
]


@pytest.mark.parametrize(("fields", "read"), UNREADABLE)
async def test_what_has_no_text_is_said_in_words(
    bench: Bench, ada: User, fields: dict[str, Any], read: str
) -> None:
    ada.says("", **fields)
    (taken,) = await bench.takes()
    assert (taken.text, taken.attachments) == (read, ())


SHARED: dict[str, Any] = {"is_share": True, "text": "a &lt; b"}
LINKED: dict[str, Any] = {"title": "a page", "text": "of a link"}


@pytest.mark.parametrize(
    ("said", "attachments", "quote"),
    [
        ("why?", [SHARED], "a < b"),
        ("", [SHARED], "a < b"),
        ("!new", [SHARED], "a < b"),
        ("both", [SHARED, {"is_msg_unfurl": True, "fallback": "c"}], "a < b\nc"),
        ("look", [LINKED], ""),
    ],
)
async def test_a_message_that_is_shared_is_quoted(
    bench: Bench, ada: User, said: str, attachments: list[dict[str, Any]], quote: str
) -> None:
    ada.says(said, extra={"attachments": attachments})
    (taken,) = await bench.takes()
    assert (taken.text, taken.quote) == (said.replace("!", "/"), quote)


async def test_what_cannot_be_read_holds_up_nobody(bench: Bench, ada: User) -> None:
    ada.says("broken", extra={"files": [{"mode": "hosted"}]})
    ada.says("whole")
    await bench.takes()
    await bench.slack.wait_for(lambda: len(bench.slack.events.taken) == 2)
    assert bench.inbox.texts == ["whole"]


async def test_a_person_without_a_name_is_heard(
    bench: Bench, slack: SlackStandIn, ada: User
) -> None:
    slack.scopes = frozenset({"chat:write"})
    ada.says("hello")
    (taken,) = await bench.takes()
    assert (taken.text, taken.user_name) == ("hello", "")
