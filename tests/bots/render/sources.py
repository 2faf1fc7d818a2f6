"""Strategies for Markdown in which every word is numbered, so that none can be lost unseen.

``§`` stands for a word and ``¤`` for one inside an address; ``number`` puts them in.
"""

from itertools import count

import regex
from hypothesis import strategies as st

CLUSTERS = [
    "a", "é", "e\u0301\u0323", "日本", "語。", "مرحبا", "שלום", "😀",
    "👨\u200d👩\u200d👧\u200d👦", "🇩🇪", "🇫🇷🇮🇹", "👍🏽", "❤️", "क्षि", "한글",
    "\u1112\u1161\u11ab", "�", "x.", "y!", "ok,", "z" * 40, "😀" * 20,
]  # fmt: skip
INLINES = [
    "§", "§ § §", "**§ §**", "*§*", "***§***", "~~§~~", "`§ §`", "``§`§``", "**§ `§` §**",
    "*§ **§** §*", "[§ §](http://a.b/¤)", "[`§`](https://c.d/¤)", "[**§** §](http://e.f/¤_(¤))",
    "![§](http://a.b/¤)", "[§](#¤)", "[§](http://localhost/¤)", "[![§](i/¤)](http://a.b/¤)",
    "[](http://a.b/¤)", "http://x.io/§_§__§__§.py", "<http://x.io/§>", "§@mail.io", "List<§>",
    "a<§ and §>c", "<!channel>", "<b>§</b>", "<!-- § -->", "\\*§\\*", "§  \n§", "§\n§", "&amp; §",
    "snake_§_case", "**§", "*§", "`§", "[§](", "§. §! §? §", "x²", "§|§", "~~*§* `§`~~", "(§)",
    "&#8203;", "$§$", "1\\. §", "© §", "§" * 9, *CLUSTERS,
]  # fmt: skip
CELLS = [
    "§", "§ §", "**§**", "`§`", "日本§", "😀 §", "", "§ \\| §", "[§](http://a.b/¤)", "List<§>",
]  # fmt: skip
SOUP = [
    "§", "§", "§", " ", " ", "\n", "\n\n", "*", "**", "_", "__", "~~", "`", "```", "~~~", "[",
    "](", ")", "!", "<", ">", "|", "-", "|-|-|", "#", "1.", "+ ", "    ", "\t", "\\", "&", ";",
    "---", "===", "http://a.b/", "😀", "\u200d", "\u0301", "🇩", "\ud83d", "\x00", "\r\n",
    "\u2028", "\u00a0", "[ ] ", '"',
]  # fmt: skip


def number(source: str) -> str:
    numbers = count()
    return regex.sub("[§¤]", lambda _: f"q{next(numbers)}z", source)


def plain_words(source: str) -> list[str]:
    """The words of ``number(source)`` that stand outside of addresses."""
    marks = regex.findall("[§¤]", source)
    return [f"q{n}z" for n, mark in enumerate(marks) if mark == "§"]


def _indented(text: str, first: str, rest: str) -> str:
    return first + text.replace("\n", "\n" + rest)


def _heading(level: int, text: str) -> str:
    return "#" * level + " " + text.replace("\n", " ")


def _table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["-:"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _fence(code: str, mark: str, info: str) -> str:
    return f"{mark}{info}\n{code}\n{mark}"


def _list(items: list[str], gap: str, mark: str) -> str:
    return gap.join(_indented(item, mark, " " * len(mark)) for item in items)


def _quotation(text: str) -> str:
    return _indented(text, "> ", "> ")


def _unclosed(text: str, code: str) -> str:
    return f"{text}\n\n```py\n{code}"


LINES = ["§", "  § = §", "", "\t§", "# *§* 😀", "§ " * 12, "    if § < §:", "`§`", "<b>§"]
MARKS = ["- ", "* ", "1. ", "17) ", "- [ ] ", "- [x] "]

inlines = st.lists(st.sampled_from(INLINES), min_size=1, max_size=9).map(" ".join)
headings = st.builds(_heading, st.integers(1, 6), inlines)
rows = st.lists(st.sampled_from(CELLS), min_size=1, max_size=4)
tables = st.builds(_table, rows, st.lists(rows, max_size=6))
codes = st.lists(st.sampled_from(LINES), max_size=9).map("\n".join)
fences = st.builds(
    _fence,
    codes,
    st.sampled_from(["```", "~~~", "````"]),
    st.sampled_from(["", "py", "c++", "py § §"]),
)
leaves = st.one_of(inlines, inlines, headings, tables, fences, st.just("---"))


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    items = st.lists(inner, min_size=1, max_size=4)
    lists = st.builds(_list, items, st.sampled_from(["\n", "\n\n"]), st.sampled_from(MARKS))
    return lists | inner.map(_quotation)


blocks = st.recursive(leaves, _nested, max_leaves=6)
documents = st.lists(blocks, min_size=1, max_size=6).map("\n\n".join)
unclosed = st.builds(_unclosed, documents, codes)
soups = st.lists(st.sampled_from(SOUP), min_size=1, max_size=60).map("".join)
clusters = st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=80)
limits = st.sampled_from([32, 33, 40, 64, 100, 200, 500, 4096])
