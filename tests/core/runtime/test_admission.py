"""How a message is taken, as its sender and the platform see it."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from core.domain.keys import Address
from core.errors import StorageError
from tests.core.domain.samples import HOME
from tests.core.runtime.house import KEY, Ground, asks, passes, said, spoil
from tests.core.runtime.virtual import in_virtual_time

NOBODY: frozenset[str] = frozenset()


@in_virtual_time
async def test_a_message_is_answered() -> None:
    ground = Ground("Hello Ada")
    process = await ground.starts()

    await process.hears("hi, I am Ada")
    await passes(2)

    assert ground.chat.texts == ["Hello Ada"]
    assert await ground.outcomes() == {"answered": 1}


@in_virtual_time
async def test_a_message_delivered_again_changes_nothing() -> None:
    ground = Ground("Hello Ada")
    process = await ground.starts()

    message = await process.hears("hi, I am Ada")
    await process.admission.accept(message)
    await passes(2)
    await process.admission.accept(message)
    process.dies()
    second = await ground.starts()
    await second.admission.accept(message)
    await passes(2)

    assert ground.chat.texts == ["Hello Ada"]
    assert await ground.outcomes() == {"answered": 1}


@in_virtual_time
async def test_what_is_replied_to_is_shown_to_the_model_and_may_be_of_any_length() -> None:
    ground = Ground("ok", "ok")
    process = await ground.starts()

    await process.hears("why?", quote="half \ud83d of it")
    await passes(2)
    await process.hears("and this?", quote="x" * 100_000)
    await passes(2)

    first, second = (request.messages[-1].text for request in ground.script.requests)
    stored = await ground.store.events(KEY)
    assert first == "[replies to: half \ufffd of it]\nwhy?"
    assert second == f"[replies to: {'x' * 500} …]\nand this?"
    assert max(len(str(recorded)) for recorded in stored) < 5_000
    entries = (await process.state()).session.entries
    assert [entry.tokens > 125 for entry in entries if entry.kind == "user"] == [False, True]


@in_virtual_time
async def test_what_is_replied_to_can_be_pinned_in_a_word() -> None:
    ground = Ground("ok")
    process = await ground.starts()

    await process.hears("/pin", quote="I am a vegetarian")
    await process.hears("what shall I cook?")
    await passes(2)

    assert "I am a vegetarian" in ground.script.requests[0].messages[-1].text


@in_virtual_time
async def test_what_cannot_be_stored_is_not_taken_and_can_come_again() -> None:
    ground = Ground("Hello Ada")
    process = await ground.starts()
    process.disk.faults.append("before")

    message = said("hi", 1)
    with pytest.raises(StorageError):
        await process.admission.accept(message)
    await passes(2)
    assert await ground.outcomes() == {}
    assert ground.chat.texts == []

    await process.admission.accept(message)
    await passes(2)
    assert ground.chat.texts == ["Hello Ada"]


@in_virtual_time
async def test_a_message_that_was_stored_with_an_error_is_answered_once() -> None:
    ground = Ground("Hello Ada")
    process = await ground.starts()
    process.disk.faults.append("after")

    message = said("hi", 1)
    with pytest.raises(StorageError):
        await process.admission.accept(message)
    await process.admission.accept(message)
    await passes(30)

    assert ground.chat.texts[-1] == "Hello Ada"
    assert ground.script.left == 0
    assert await ground.outcomes() == {"answered": 1}


@in_virtual_time
async def test_commands_answer_while_a_turn_hangs() -> None:
    ground = Ground("at last")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("think hard")

    await process.hears("/status")
    await process.hears("/HELP")
    await process.hears("/nonsense 1")
    await passes(3)

    assert "state: thinking" in ground.chat.texts[0]
    assert "/stop:" in ground.chat.texts[1]
    assert "I don't know `/nonsense`" in ground.chat.texts[2]
    ground.script.release()
    await passes(2)
    assert ground.chat.texts[-1] == "at last"


@pytest.mark.parametrize("command", ["/stop", "/new"])
@in_virtual_time
async def test_what_waits_at_a_command_that_ends_the_turn_is_answered(command: str) -> None:
    ground = Ground("two it is")
    process = await ground.starts()
    ground.script.hold()
    await process.hears("one")
    await process.hears("two")

    await process.hears(command)
    ground.script.release()
    await passes(3)

    assert ground.chat.texts[-1] == "two it is"
    assert await ground.outcomes() == {"answered": 2, "discarded": 1}


@in_virtual_time
async def test_a_path_is_no_command() -> None:
    ground = Ground("a folder")
    process = await ground.starts()

    await process.hears("/usr/bin is what?")
    await passes(2)

    assert ground.chat.texts == ["a folder"]


@in_virtual_time
async def test_two_people_have_two_conversations() -> None:
    ground = Ground("Hello Ada", "Hello Bo")
    process = await ground.starts()
    other = replace(HOME, chat="8")

    await process.hears("I am Ada")
    await passes(2)
    await process.hears("I am Bo", address=other, user="8")
    await passes(2)

    assert "Ada" not in str(ground.script.requests[1])


@in_virtual_time
async def test_a_text_that_no_database_takes_is_mended() -> None:
    ground = Ground("ok")
    process = await ground.starts()

    await process.hears("a\x00b\ud83d")
    await passes(2)

    assert ground.script.requests[0].messages[1].text == "a\ufffdb\ufffd"


@in_virtual_time
async def test_a_stranger_is_told_once_and_costs_no_model_call() -> None:
    ground = Ground()
    ground.allowed = NOBODY
    process = await ground.starts()

    await process.hears("hello?")
    await process.hears("/status")
    await process.hears("/start wrong")
    await passes(2)

    assert len(ground.chat.texts) == 1
    assert "private assistant" in ground.chat.texts[0]
    assert ground.script.requests == []
    assert await ground.outcomes() == {"discarded": 3}


@in_virtual_time
async def test_the_first_with_the_code_owns_it_and_lets_others_in_and_out() -> None:
    ground = Ground("Hello Bo")
    ground.allowed = NOBODY
    process = await ground.starts()
    code = await process.access.claim_code("S3CRET")
    bo = {"address": replace(HOME, chat="8"), "user": "8"}

    await process.hears(f"/start {code}")
    assert await process.access.claim_code("OTHER") is None
    await process.hears("/start S3CRET", **bo)
    await process.hears("/allow 8")
    await process.hears("hi", **bo)
    await passes(2)
    await process.hears("/allow 9", **bo)
    await process.hears("/deny 8")
    await process.hears("hi again", **bo)
    await passes(2)

    texts = ground.chat.texts
    assert "You are my owner now" in texts[0]
    assert "private assistant" in texts[1]
    assert "`chat:8` may talk" in texts[2]
    assert texts[3] == "Hello Bo"
    assert "Only the owner" in texts[4]
    assert "may not talk" in texts[5]
    assert len(texts) == 6
    assert len(ground.script.requests) == 1


@in_virtual_time
async def test_a_code_works_in_a_dm_alone() -> None:
    ground = Ground()
    ground.allowed = NOBODY
    process = await ground.starts()
    await process.access.claim_code("S3CRET")
    group = Address(platform="chat", account="bot", chat="-1", chat_type="group")

    await process.hears("/start S3CRET", address=group)
    await passes(2)

    assert not await process.access.owner()


@in_virtual_time
async def test_the_code_stays_the_same_until_someone_used_it() -> None:
    ground = Ground()
    first = await ground.starts()
    code = await first.access.claim_code("FIRST")
    first.dies()
    second = await ground.starts()

    assert await second.access.claim_code("SECOND") == code == "FIRST"


@in_virtual_time
async def test_an_unreadable_conversation_is_set_aside_told_and_followed_by_a_new_one() -> None:
    ground = Ground("Hello Ada", "Hello again", "Hello Bo")
    first = await ground.starts()
    await first.hears("I am Ada")
    await passes(2)
    first.dies()
    spoil(ground)
    second = await ground.starts()

    await second.hears("are you there?")
    await second.hears("I am Bo", address=replace(HOME, chat="8"), user="8")
    await passes(5)

    assert "could not be read" in ground.chat.texts[1]
    assert sorted(ground.chat.texts[2:]) == ["Hello Bo", "Hello again"]
    kept = [info.key for info in await ground.store.streams() if ":aside:" in info.key]
    assert len(kept) == 1
    assert kept[0].startswith(KEY)


@in_virtual_time
async def test_an_unreadable_conversation_with_an_open_turn_is_told_too() -> None:
    ground = Ground(asks("look"), "found", "Hello again")
    ground.tools["look"].seconds = 10
    first = await ground.starts()
    await first.hears("search")
    await passes(2)
    first.dies()
    spoil(ground)
    await passes(20)
    second = await ground.starts()
    await passes(20)

    await second.hears("are you there?")
    await passes(2)

    assert [text for text in ground.chat.texts if "could not be read" in text]
    assert ground.quarantine.kept == list(await ground.store.asides())


@in_virtual_time
async def test_the_end_of_the_process_that_sets_a_conversation_aside_leaves_nobody_untold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ground = Ground("Hello Ada", "Hello again")
    first = await ground.starts()
    await first.hears("I am Ada")
    await passes(2)
    first.dies()
    spoil(ground)
    second = await ground.starts()
    move = ground.store.set_aside

    async def dies_of_it(*args: Any) -> str:
        await move(*args)
        second.dies()
        return await asyncio.Future()

    with monkeypatch.context() as patch:
        patch.setattr(ground.store, "set_aside", dies_of_it)
        hearing = asyncio.create_task(second.hears("are you there?"))
        await passes(1)
    hearing.cancel()
    third = await ground.starts()
    await passes(5)
    assert "could not be read" in ground.chat.texts[-1]

    await third.hears("are you there?")
    await passes(5)
    assert ground.chat.texts[-1] == "Hello again"
    assert sum("could not be read" in text for text in ground.chat.texts) == 1


@in_virtual_time
async def test_two_processes_that_find_a_broken_log_set_it_aside_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ground = Ground("Hello", "fresh", "and on")
    first = await ground.starts()
    await first.hears("hi")
    await passes(2)
    first.dies()
    spoil(ground)
    quick, slow = await ground.starts(), await ground.starts()
    slow.disk.slow_answers["events"] = 3.0

    late = asyncio.create_task(slow.hears("second"))
    await passes(4)
    await quick.hears("first")
    await passes(1)
    await late
    await passes(10)

    assert sum("could not be read" in text for text in ground.chat.texts) == 1
    assert ground.chat.texts[-2:] == ["fresh", "and on"]
    assert await ground.outcomes() == {"answered": 3}
    assert len(ground.quarantine.kept) == 1


@in_virtual_time
async def test_what_a_process_remembers_of_a_log_set_aside_fits_no_other() -> None:
    ground = Ground("Hello", "Hello again", "fresh", "and on", "once more")
    behind, other = await ground.starts(), await ground.starts()
    await behind.hears("hi")
    await passes(2)
    await behind.hears("hi again")
    await passes(2)
    known = (await behind.state()).seq
    spoil(ground)
    await other.hears("are you there?")
    await passes(5)
    for _ in range(known - (await other.state()).seq):
        await other.hears("/help")
    await passes(20)
    assert (await other.state()).seq == known

    await behind.hears("and now?")
    await passes(5)
    await other.hears("and you?")
    await passes(5)

    assert ground.chat.texts[-2:] == ["and on", "once more"]
    assert sum("could not be read" in text for text in ground.chat.texts) == 1
    assert (await ground.outcomes()).keys() == {"answered"}


@in_virtual_time
async def test_someone_who_is_let_in_by_a_setting_can_become_the_owner() -> None:
    ground = Ground()
    process = await ground.starts()
    await process.access.claim_code("S3CRET")

    await process.hears("/start S3CRET")
    await passes(2)

    assert await process.access.owner() == "chat:7"


@in_virtual_time
async def test_two_who_claim_at_once_are_both_answered_and_one_owns_it() -> None:
    ground = Ground()
    ground.allowed = NOBODY
    process = await ground.starts()
    await process.access.claim_code("S3CRET")
    bo = {"address": replace(HOME, chat="8"), "user": "8"}

    await asyncio.gather(process.hears("/start S3CRET"), process.hears("/start S3CRET", **bo))
    await passes(2)

    assert sorted("You are my owner now" in text for text in ground.chat.texts) == [False, True]


@in_virtual_time
async def test_two_messages_that_find_a_broken_log_set_it_aside_once() -> None:
    ground = Ground("Hello", "one", "two")
    first = await ground.starts()
    await first.hears("hi")
    await passes(2)
    first.dies()
    spoil(ground)
    second = await ground.starts()

    await asyncio.gather(second.hears("first"), second.hears("second"))
    await passes(5)

    assert sum("could not be read" in text for text in ground.chat.texts) == 1
    assert await ground.outcomes() == {"answered": 3}
