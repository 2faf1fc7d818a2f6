from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.domain.keys import Address, SessionKey, session_id, session_key

NASTY = ("a:b", "a%3Ab", ".", "..", "a.b", "user", "thread", ":", "%", "ä", "\x00", "\ud800", " ")
parts = st.sampled_from(NASTY) | st.text(min_size=1, max_size=6)
optional = st.just("") | parts
keys = st.builds(
    SessionKey,
    agent=parts,
    platform=parts,
    chat_type=st.sampled_from(["dm", "group", "channel"]),
    chat=parts,
    workspace=optional,
    thread=optional,
    user=optional,
)


@given(keys)
@example(SessionKey(platform="p", chat_type="dm", chat="a.b", workspace="c:d", user="thread"))
def test_a_key_comes_back_from_its_text(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key


@given(keys, keys)
@example(
    SessionKey(platform="p", chat_type="dm", chat="1", thread="2"),
    SessionKey(platform="p", chat_type="dm", chat="1", user="2"),
)
@example(
    SessionKey(platform="p", chat_type="dm", chat="b", workspace="a"),
    SessionKey(platform="p", chat_type="dm", chat="a.b"),
)
@example(
    SessionKey(platform="p", chat_type="dm", chat="1:thread:2"),
    SessionKey(platform="p", chat_type="dm", chat="1", thread="2"),
)
def test_two_keys_share_a_text_only_if_they_are_equal(one: SessionKey, two: SessionKey) -> None:
    assert (str(one) == str(two)) == (one == two)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agent:main:chat:dm",
        "agent:main:chat:room:7",
        "bot:main:chat:dm:7",
        "agent:main:chat:dm:7:thread",
        "agent:main:chat:dm:7:topic:1",
        "agent:main:chat:dm:7:user:1:thread:2",
        "agent:main:chat:dm:7:thread:1:thread:1",
        "agent:main:chat:dm:%37",
    ],
)
def test_a_text_that_no_key_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        SessionKey.parse(text)


def test_a_dm_is_the_persons_and_carries_the_workspace() -> None:
    home = Address(platform="slack", account="b", chat="D77", workspace="T1")

    assert str(session_key(home, "U9")) == "agent:main:slack:dm:T1.U9"


def test_a_group_is_one_conversation_a_thread() -> None:
    topic = Address(platform="chat", account="b", chat="-5", chat_type="group", thread="3")

    assert session_key(topic, "U1") == session_key(topic, "U2")
    assert str(session_key(topic, "U1")) == "agent:main:chat:group:-5:thread:3"


def test_two_people_never_share_a_dm() -> None:
    home = Address(platform="chat", account="b", chat="1")

    assert session_key(home, "U1") != session_key(home, "U2")


def test_a_session_id_is_a_time_and_eight_hex_digits() -> None:
    at = datetime(2026, 5, 5, 14, 30, 22, tzinfo=UTC)

    name = session_id("k", 1, at)

    assert name.startswith("20260505_143022_")
    assert len(bytes.fromhex(name.rpartition("_")[2])) == 4
    assert name == session_id("k", 1, at)
    assert len({session_id("k", n, at) for n in range(1, 200)}) == 199


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_two_chats_share_a_lane_only_if_they_are_one(a: str, b: str, c: str, d: str) -> None:
    one = Address(platform="p", account=a, workspace=b, chat="x")
    two = Address(platform="p", account=c, workspace=d, chat="x")

    assert (one.lane == two.lane) == ((a, b) == (c, d))
