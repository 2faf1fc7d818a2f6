"""What every store promises of the accounting: independent numbers, equal while nothing is lost."""

import asyncio
import random
from collections import Counter
from typing import get_args

import msgspec
import pytest

from core.domain.events import MessageReceived, Recorded
from core.domain.keys import Address
from core.domain.ledger import Ledger
from core.domain.messages import Inbound
from core.domain.outputs import Outcome
from core.errors import DuplicateError
from core.ports import Commit, InboxId, Store, Unowed
from tests.contract.values import KEY, OTHER, at, commit, lease, letter, put_aside, said, update

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
HEARD = Inbound(
    address=Address(platform="telegram", account="bot", chat="7"),
    update_id="1",
    user="7",
    text="hello",
    sent_at=at(),
)
PEOPLE = tuple(
    f"agent:main:{platform}:dm:{user}" for platform in ("telegram", "slack") for user in range(3)
)


async def of_telegram(store: Store) -> Ledger:
    return (await store.ledger())["telegram"]


async def test_nothing_was_taken_yet(store: Store) -> None:
    assert await store.ledger() == {}
    assert await store.undelivered() == {}
    assert await store.unowed() == ()


async def test_messages_taken_end_in_one_outcome_each(store: Store) -> None:
    slack = "agent:main:slack:dm:t.7"
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update(1)))
    await store.commit(commit(KEY, 1, said(), owed=2, inbox=update(2)))
    await store.commit(commit(slack, 0, said(), owed=1, inbox=update(3, "slack")))
    assert await store.ledger() == {
        "slack": Ledger(accepted=1, pending=1),
        "telegram": Ledger(accepted=2, pending=2),
    }
    settled = ((update(1), "answered"), (update(99), "failed"))
    await store.commit(commit(KEY, 2, said(), owed=1, settled=settled))
    await store.commit(commit(slack, 1, said(), settled=((update(3, "slack"), "failed"),)))
    assert await store.ledger() == {
        "slack": Ledger(accepted=1, failed=1),
        "telegram": Ledger(accepted=2, answered=1, pending=1),
    }


async def test_a_message_that_is_settled_as_it_is_taken_counts_once(store: Store) -> None:
    settled = ((update(4), "discarded"),)
    await store.commit(commit(KEY, 0, said(), inbox=update(4), settled=settled))
    assert await of_telegram(store) == Ledger(accepted=1, discarded=1)


async def test_a_message_that_is_tried_again_leaves_its_old_outcome(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update()))
    await store.commit(commit(KEY, 1, said(), settled=((update(), "failed"),)))
    await store.commit(commit(KEY, 2, said(), owed=1, settled=((update(), "pending"),)))
    assert await of_telegram(store) == Ledger(accepted=1, pending=1)
    await store.commit(commit(KEY, 3, said(), settled=((update(), "answered"),)))
    await store.commit(commit(KEY, 4, said(), settled=((update(), "answered"),)))
    assert await of_telegram(store) == Ledger(accepted=1, answered=1)


async def test_what_is_refused_is_not_counted(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update()))
    with pytest.raises(DuplicateError):
        await store.commit(commit(KEY, 1, said(), owed=2, inbox=update()))
    assert await of_telegram(store) == Ledger(accepted=1, pending=1)


async def test_a_message_that_its_session_forgot_makes_the_sum_unequal(store: Store) -> None:
    await store.commit(commit(OTHER, 0, said(), owed=1, inbox=update(8)))
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update(9), at=at(3)))
    await store.commit(commit(KEY, 1, said(), owed=0))
    ledger = await of_telegram(store)
    assert (ledger.missing, ledger.balanced) == (1, False)
    lost = Unowed(platform="telegram", update_id="9", key=KEY, since=at(3))
    assert await store.unowed() == (lost,)
    await store.commit(commit(KEY, 2, said(), settled=((update(9), "failed"),)))
    assert (await of_telegram(store)).balanced
    assert await store.unowed() == ()


async def test_of_a_session_that_owes_too_few_all_are_told_oldest_first(store: Store) -> None:
    for seq, number in enumerate((3, 1, 2)):
        await store.commit(commit(KEY, seq, said(), owed=1, inbox=update(number), at=at(seq)))
    assert [one.update_id for one in await store.unowed()] == ["3", "1", "2"]
    assert [one.update_id for one in await store.unowed(2)] == ["3", "1"]


async def test_a_lease_or_a_send_changes_no_number(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), owed=1, open_turn=True, inbox=update()))
    await store.renew((KEY,), lease("here", 60))
    await store.claim(at(), lease())
    assert await of_telegram(store) == Ledger(accepted=1, pending=1)


async def test_a_session_that_is_set_aside_owes_nothing_any_more(store: Store) -> None:
    await store.commit(commit(KEY, 0, said(), owed=1, inbox=update(1)))
    await store.commit(commit(KEY, 1, said(), owed=2, inbox=update(2)))
    await store.commit(commit(KEY, 2, said(), owed=1, settled=((update(1), "answered"),)))
    await store.commit(commit(OTHER, 0, said(), owed=1, inbox=update(3)))
    await put_aside(store, KEY, at(5))
    assert await of_telegram(store) == Ledger(accepted=3, answered=1, failed=1, pending=1)
    assert (await of_telegram(store)).balanced


async def test_what_is_not_delivered_is_told_by_platform(store: Store) -> None:
    address = msgspec.structs.replace(letter("x").address, platform="a:b")
    odd = msgspec.structs.replace(letter("x"), address=address)
    letters = (letter("a", "1"), letter("b", "2"), letter("c", "2"), letter("d", "3"), odd)
    preview = letter("p", "4", kind="preview")
    await store.commit(commit(KEY, 0, said(), outbox=(*letters, preview)))
    claimed = {row.message.id: row for row in await store.claim(at(), lease())}
    await store.give_up(claimed["a"], "blocked", at())
    await store.sent(claimed["d"], "1", at())
    await store.retry(claimed["b"], at(9), "429")
    await store.retry(claimed["x"], at(9), "429")
    assert await store.undelivered() == {
        "telegram": {"failed": 1, "pending": 2},
        "a:b": {"pending": 1},
    }


class Naive:
    """Every message with its outcome, in one dict, counted anew each time."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.messages: dict[InboxId, tuple[str, Outcome]] = {}
        self.seqs = Counter[str]()

    def next_commit(self, key: str) -> Commit:
        """Of some of: one more message, new outcomes for old ones, and outcomes that they have."""
        mine = [name for name, (of, _) in self.messages.items() if of == key]
        chosen = self.dice.sample(mine, self.dice.randint(0, min(3, len(mine))))
        settled: dict[InboxId, Outcome] = {name: self.dice.choice(OUTCOMES) for name in chosen}
        new = None
        if self.dice.random() < 0.6:
            new = update(len(self.messages), key.split(":")[2])
            settled |= {new: self.dice.choice(OUTCOMES)} if self.dice.random() < 0.4 else {}
            self.messages[new] = (key, "pending")
        self.messages |= {name: (key, outcome) for name, outcome in settled.items()}
        seq = self.seqs[key]
        self.seqs[key] += 1
        pairs = tuple(settled.items())
        return commit(key, seq, said(), owed=self.owed(key), inbox=new, settled=pairs)

    def owed(self, key: str) -> int:
        return sum(one == (key, "pending") for one in self.messages.values())

    def set_aside(self, key: str) -> None:
        mine = [name for name, (of, _) in self.messages.items() if of == key]
        for name in mine:
            outcome = self.messages[name][1]
            self.messages[name] = ("aside", "failed" if outcome == "pending" else outcome)
        del self.seqs[key]

    def ledger(self) -> dict[str, Ledger]:
        counts: dict[str, Counter[str]] = {}
        for name, (_, outcome) in self.messages.items():
            counts.setdefault(name.platform, Counter())[outcome] += 1
        return {name: Ledger(accepted=of.total(), **of) for name, of in sorted(counts.items())}


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_the_counts_are_those_of_the_messages(
    store: Store, seed: int
) -> None:
    naive = Naive(seed)
    for number in range(30):
        together = naive.dice.choices(PEOPLE, k=naive.dice.randint(1, 8))
        await asyncio.gather(*[store.commit(naive.next_commit(key)) for key in together])
        aside = naive.dice.choice(PEOPLE)
        for key in [aside] if number % 5 == 4 else []:
            await put_aside(store, key, at(number))
            naive.set_aside(key)
        assert await store.ledger() == naive.ledger()
        assert await store.unowed() == ()
    assert sum(one.pending > 0 for one in naive.ledger().values()) == 2


async def test_the_oldest_message_that_waits_is_known_by_platform(store: Store) -> None:
    slack, calm = "agent:main:slack:dm:t.7", "agent:main:telegram:dm:9"
    for key, moments in ((KEY, (1, 2, 3)), (OTHER, (7,)), (slack, (4,)), (calm, (0,))):
        for place, moment in enumerate(moments):
            heard = Recorded(place + 1, at(moment), MessageReceived(inbound=HEARD))
            owed = place + 1 if key != calm else 0
            taken = commit(key, place, at=at(moment), owed=owed)
            await store.commit(msgspec.structs.replace(taken, log=(heard,)))
    assert await store.waiting_since() == {"slack": at(4), "telegram": at(1)}
    await store.commit(commit(KEY, 3, said(), owed=1, at=at(20)))
    assert await store.waiting_since() == {"slack": at(4), "telegram": at(3)}
    await store.commit(commit(KEY, 4, said(), at=at(21)))
    await store.commit(commit(slack, 1, said(), at=at(22)))
    assert await store.waiting_since() == {"telegram": at(7)}
