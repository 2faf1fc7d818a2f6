"""Nasty Markdown through the genuine SDK: every part is accepted, and no word is lost."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given

from bots.render.telegram import render
from core.domain.keys import Address
from core.domain.messages import OutboxMessage
from tests.bots.platforms.telegram.kit import Bench
from tests.bots.render.sources import documents, unclosed
from tests.standins.telegram import TelegramStandIn
from tests.standins.telegram_text import checked_text, utf16_length
from tests.standins.telegram_user import User

HERE = Address(platform="telegram", account="123456", chat="7")
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
NASTY = {
    "nested lists": "\n".join(f"{'  ' * depth}- item{depth} **bold{depth}**" for depth in range(9)),
    "a table": "| name | value |\n|---|---|\n"
    + "\n".join(f"| key{n} | 値{n} |" for n in range(300)),
    "an unclosed fence": "before\n\n```python\nprint('never closed')\n" + "x = 1\n" * 900,
    "20 KB of code": "```\n" + "\n".join(f"line{n} = compute({n})" for n in range(900)) + "\n```",
    "emoji at each boundary": FAMILY * 1_200,
    "CJK": "「引用」**強調**後面。" * 700,
    "RTL": "שלום **עולם** مرحبا _بالعالم_ " * 300,
    "underscores in URLs": "see https://example.org/a_b_c/__init__.py?x=_y_ and `a_b`",
    "generics": "use `Map<K, V>` and List<String> where a<b and b>c & <!channel>",
}


@given(documents | unclosed)
def test_the_stand_ins_own_check_takes_whatever_is_rendered(source: str) -> None:
    for part in render(source.replace("§", "word"), 200):
        shown, _ = checked_text(part.text, part.markup, 200)
        assert shown.strip()


@pytest.fixture
async def bench(tg: TelegramStandIn, ada: User) -> AsyncIterator[Bench]:
    ada.says("hello")
    bench = Bench(tg)
    yield bench
    await bench.adapter.close()


@pytest.mark.parametrize("source", NASTY.values(), ids=NASTY.keys())
async def test_telegram_takes_every_part(bench: Bench, ada: User, source: str) -> None:
    channel = bench.adapter.channel
    for number, part in enumerate(channel.render(source)):
        row = OutboxMessage(id=f"k@{number}", key="k", address=HERE, kind="answer", part=part)
        await channel.send(row)
    refused = [call.outcome for call in bench.tg.calls_of("sendMessage") if call.outcome != "ok"]
    assert refused == []
    assert all(utf16_length(text) <= 4096 for text in ada.bot_texts())
    seen = "".join("".join(ada.bot_texts()).split())
    wanted = [word for word in WORDS[source] if word not in seen]
    assert wanted == []


WORDS = {
    NASTY["nested lists"]: [f"item{depth}" for depth in range(9)],
    NASTY["a table"]: [f"値{n}" for n in range(300)],
    NASTY["an unclosed fence"]: ["before", "print('neverclosed')", "x=1" * 900],
    NASTY["20 KB of code"]: [f"line{n}=compute({n})" for n in range(900)],
    NASTY["emoji at each boundary"]: [FAMILY * 1_200],
    NASTY["CJK"]: ["「引用」"],
    NASTY["RTL"]: ["שלום", "עולם", "مرحبا", "بالعالم"],
    NASTY["underscores in URLs"]: ["https://example.org/a_b_c/__init__.py?x=_y_", "a_b"],
    NASTY["generics"]: ["Map<K,V>", "List<String>", "a<bandb>c&<!channel>"],
}
