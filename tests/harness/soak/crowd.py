"""The people of the soak: each has habits, reacts to her own screen and keeps what she wrote; none
knows that anything is killed."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec

from core.domain.keys import SessionKey
from tests.harness.scripted import echoed
from tests.harness.soak.words import Kind, name, written
from tests.standins.telegram_user import User

Order = Literal["/stop", "/new", "/resume", "/retry"]
LOOK_SECONDS = 0.2
PATIENCE = 45.0
"""After so long she writes again, whether she was answered or not."""
FAILED = ("I could not finish this", "I cannot reach the model", "The model", "This conversation")
STOPPED = "Stopped at step"
NEW = "A new conversation."
REPLIES: dict[Order, tuple[str, ...]] = {
    "/stop": (STOPPED, "Nothing is running."),
    "/new": (NEW,),
    "/resume": ("We are back in", "There is no earlier", "I am still working here"),
    "/retry": ("Trying again.", "There is nothing to answer", "I am still working on it"),
}


class Sent(msgspec.Struct, frozen=True):
    """``what`` is unique to a message, or an order."""

    what: str
    kind: Kind | Order
    at: float
    update_id: int


def replies_to(order: Order, text: str) -> bool:
    """``/new`` tells in the same message what it stopped."""
    if NEW in text:
        return order == "/new"
    return text.startswith(REPLIES[order])


class Person:
    """``number`` tells her words from everybody's; ``tempo`` divides her pauses."""

    def __init__(self, user: User, number: int, dice: random.Random, tempo: float = 1.0) -> None:
        self.user = user
        self.number = number
        self.dice = dice
        self.sent: list[Sent] = []
        self.habits = HABITS[number % len(HABITS)]
        self._tempo = tempo
        self._ended: Callable[[], bool] = lambda: False

    @property
    def key(self) -> str:
        """Of her session."""
        return str(SessionKey(platform="telegram", chat_type="dm", chat=str(self.user.id)))

    async def lives(self, ended: Callable[[], bool]) -> None:
        self._ended = ended
        await self.thinks(0.0, 3.0)
        while not ended():
            await self.dice.choice(self.habits)(self)
            await self.thinks(0.5, 4.0)

    def says(self, kind: Kind) -> Sent:
        number = len(self.sent) + 1
        return self._send(written(self.number, number, kind), name(self.number, number), kind)

    def orders(self, order: Order) -> Sent:
        return self._send(order, order, order)

    async def reads(self, *messages: Sent) -> None:
        """Until each is answered, or she was told of a stop or failure, or her patience ends."""
        wanted = {message.what for message in messages}
        ends = self._ends()
        await self._looks(
            lambda texts: (
                self._ends(texts) > ends
                or wanted <= {said for text in texts for said in echoed(text)}
            )
        )

    async def hears(self, order: Order) -> None:
        """The reply to the newest of these orders."""
        count = sum(sent.kind == order for sent in self.sent)
        await self._looks(lambda texts: sum(replies_to(order, text) for text in texts) >= count)

    async def thinks(self, least: float, most: float) -> None:
        await asyncio.sleep(self.dice.uniform(least, most) / self._tempo)

    def _send(self, text: str, what: str, kind: Kind | Order) -> Sent:
        message = self.user.says(text)
        sent = Sent(what, kind, message.sent_at, message.update_id or 0)
        self.sent.append(sent)
        return sent

    def _ends(self, texts: Sequence[str] | None = None) -> int:
        seen = self.user.bot_texts() if texts is None else texts
        return sum(text.startswith((*FAILED, STOPPED)) for text in seen)

    async def _looks(self, wanted: Callable[[list[str]], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (wanted(self.user.bot_texts()) or self._ended()):
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(LOOK_SECONDS)


Habit = Callable[[Person], Awaitable[None]]


async def talks(person: Person) -> None:
    await person.reads(person.says("plain"))


async def listens(person: Person) -> None:
    await person.reads(person.says("slow"))


async def buys(person: Person) -> None:
    await person.reads(person.says("tools"))


async def hurries(person: Person) -> None:
    """Several in a row, the later ones while the first is being answered."""
    messages = [person.says("plain")]
    for _ in range(person.dice.randint(1, 3)):
        await person.thinks(0.1, 1.0)
        messages.append(person.says("plain"))
    await person.reads(*messages)


async def buys_and_goes_on(person: Person) -> None:
    bought = person.says("slowtool")
    await person.thinks(0.1, 1.5)
    await person.reads(bought, person.says("plain"))


async def walks_away(person: Person) -> None:
    """Writes on without waiting."""
    person.says("slow")
    await person.thinks(0.2, 2.0)


async def stops(person: Person) -> None:
    person.says("slow")
    await person.thinks(0.2, 2.5)
    person.orders("/stop")
    await person.hears("/stop")


async def stops_buying(person: Person) -> None:
    person.says("slowtool")
    await person.thinks(0.2, 1.5)
    person.orders("/stop")
    await person.hears("/stop")


async def begins_anew(person: Person) -> None:
    person.says("slow")
    await person.thinks(0.2, 2.5)
    person.orders("/new")
    await person.hears("/new")


async def goes_back(person: Person) -> None:
    person.orders("/resume")
    await person.hears("/resume")
    await person.reads(person.says("plain"))


async def retries(person: Person) -> None:
    """What was answered, or stopped."""
    await person.dice.choice((talks, stops))(person)
    person.orders("/retry")
    await person.hears("/retry")
    await person.thinks(1.0, 3.0)


async def is_reminded(person: Person) -> None:
    await person.reads(person.says("remind"))


HABITS: tuple[tuple[Habit, ...], ...] = (
    (talks,),
    (listens, talks),
    (buys, talks),
    (hurries,),
    (stops, talks, listens),
    (begins_anew, goes_back, talks),
    (retries, talks, goes_back),
    (is_reminded, talks, hurries),
    (buys_and_goes_on, buys, walks_away),
    (stops_buying, buys, talks),
)
"""Nobody both buys and retries: a retry may buy again, and its user is told so."""
