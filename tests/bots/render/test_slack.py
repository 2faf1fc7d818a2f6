"""What Slack is given of an answer: its own Markdown, in pieces that stand for themselves."""

from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bots.render.slack import STREAM, render, render_preview
from core.domain.messages import Part
from tests.bots.render import checks, sources

usual = settings(max_examples=300, deadline=None)
limits = st.sampled_from([64, 65, 80, 100, 200, 500, 4096])
TOKEN = regex.compile(r"<[@#]|<!(?!--|\[CDATA\[|doctype\b)", regex.IGNORECASE)


def texts(markdown: str, limit: int = 64) -> list[str]:
    return [part.text for part in render(markdown, limit)]


def check(parts: tuple[Part, ...], limit: int) -> None:
    for part in parts:
        assert 0 < checks.utf16(part.text) <= limit
        assert part.text.strip() and part.plain == part.text
        assert TOKEN.search(part.text) is None


def code_of(text: str) -> list[str]:
    """The lines of all blocks of code, as a reader of CommonMark sees them."""
    tokens = MarkdownIt("commonmark").parse(text)
    return [line for t in tokens if t.type == "fence" for line in t.content.split("\n") if line]


def test_a_short_answer_is_as_it_was_written() -> None:
    source = "# Head\n\n- **a**\n- `b`\n\n| x | y |\n| - | - |\n| 1 | 2 |\n\n```py\nx = 1\n```"
    assert texts(source, 12_000) == [source]


def test_it_is_cut_between_blocks() -> None:
    assert texts("a " * 20 + "\n\n" + "b " * 20) == [("a " * 20).strip(), ("b " * 20).strip()]


def test_a_heading_stays_with_its_text() -> None:
    cut = texts("a " * 20 + "\n\n# Head\n\n" + "b " * 20)
    assert cut[1].startswith("# Head\n\nb b")


def test_a_block_of_code_is_closed_and_opened_again() -> None:
    code = [f"line {number} = 1" for number in range(9)]
    cut = texts("\n".join(["before", "", "```py", *code, "```", "", "after"]))
    assert all(piece.count("```") == 2 for piece in cut)
    assert all("```py\n" in piece for piece in cut)
    assert [line for piece in cut for line in code_of(piece)] == code
    assert cut[-1].endswith("after")


@pytest.mark.parametrize("before", ["> ", "- ", "10. "], ids=["quotation", "list", "numbers"])
def test_code_inside_of_something_else_goes_on_by_itself(before: str) -> None:
    rest = "> " if before == "> " else " " * len(before)
    code = [f"    line {number} = 1" for number in range(9)]
    inner = "\n".join(rest + line for line in [*code, "```"])
    cut = texts(f"{before}```py\n{inner}")
    assert len(cut) > 1
    assert [line for piece in cut for line in code_of(piece)] == code


def test_code_that_is_never_closed_is_closed() -> None:
    assert texts("```py\nx = 1") == ["```py\nx = 1\n```"]


def test_the_end_of_a_block_alone_makes_no_message() -> None:
    for length in range(30, 80):
        cut = texts("```py\n" + "x" * length + "\n```")
        assert all(code_of(piece) for piece in cut)


def test_the_head_of_a_table_is_said_again() -> None:
    head = "| name | value |\n| --- | --- |"
    rows = [f"| row {number} | {number} |" for number in range(9)]
    cut = texts("\n".join([head, *rows]), 80)
    assert all(piece.startswith(head) for piece in cut)
    assert [row for piece in cut for row in piece.split("\n")[2:]] == rows


@pytest.mark.parametrize(
    "call",
    [
        "<!channel>",
        "<!here>",
        "<!everyone|all>",
        "<!subteam^S1>",
        "<@U1>",
        "<#C1|x>",
        "`<!channel>`",
    ],
)
def test_nobody_is_called(call: str) -> None:
    (part,) = render(f"so {call} it is")
    assert TOKEN.search(part.text) is None
    assert part.text.replace("\u200b", "") == f"so {call} it is"


@pytest.mark.parametrize("text", ["<!DOCTYPE html>", "<!-- note -->", "<![CDATA[x]]>", "a < b"])
def test_what_calls_nobody_can_be_copied(text: str) -> None:
    assert texts(f"```html\n{text}\n```", 12_000) == [f"```html\n{text}\n```"]


@pytest.mark.parametrize("text", ["", " \n\t", "```", ">", "-"])
def test_nothing_to_see_is_no_part(text: str) -> None:
    assert (render(text), render_preview(text)) == ((), None)


def test_a_preview_is_closed_and_its_stream_is_not() -> None:
    preview = render_preview("look:\n\n```py\nx = 1")
    assert preview is not None
    assert preview.text == "look:\n\n```py\nx = 1\n```"
    assert preview.markup == {STREAM: "look:\n\n```py\nx = 1"}


def test_a_long_preview_says_that_there_is_more() -> None:
    preview = render_preview("word " * 100, 64)
    assert preview is not None
    assert preview.text.endswith("\n…")
    assert checks.utf16(preview.text) <= 64


def test_a_preview_that_is_full_does_not_change_any_more() -> None:
    assert render_preview("word " * 100, 64) == render_preview("word " * 200, 64)


@usual
@given(st.lists(st.sampled_from(["a", "<", "!", "!channel>", "@U1", "-- x -->", " "]), max_size=9))
def test_what_a_stream_shows_only_grows(chunks: list[str]) -> None:
    grown = ["x" + "".join(chunks[:end]) for end in range(len(chunks) + 1)]
    shown = [preview.markup[STREAM] for text in grown if (preview := render_preview(text))]
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))
    assert all(TOKEN.search(text) is None for text in shown)


@usual
@given(sources.documents | sources.unclosed | sources.soups, limits)
def test_every_part_is_accepted_and_no_word_is_lost(source: str, limit: int) -> None:
    numbered = sources.number(source)
    parts = render(numbered, limit)
    check(parts, limit)
    assert checks.words(checks.texts(parts)) == checks.words(numbered)


@usual
@given(sources.clusters, st.sampled_from([" ", "", "\n", ". "]), limits)
def test_no_grapheme_is_cut(clusters: list[str], joint: str, limit: int) -> None:
    source = joint.join(clusters)
    parts = render(source, limit)
    check(parts, limit)
    kept = [cluster for part in parts for cluster in checks.graphemes(part.text)]
    assert kept == checks.graphemes(source)


@usual
@given(st.text(max_size=400), limits)
def test_any_text_at_all_is_accepted(text: str, limit: int) -> None:
    check(render(text, limit), limit)


@settings(max_examples=25, deadline=None)
@given(sources.unclosed, st.sampled_from([64, 100, 4096]))
def test_every_beginning_has_a_valid_preview(source: str, limit: int) -> None:
    whole = sources.number(source)
    previews = [render_preview(whole[:end], limit) for end in range(len(whole) % 5, len(whole), 5)]
    check(tuple(preview for preview in previews if preview), limit)


LINES = ["x = 1", "    return y  # 😀", "\tz", "a" * 30, "b c " * 7, "w " * 28]


@usual
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=60), st.sampled_from([80, 100, 300]))
def test_code_keeps_its_lines_wherever_it_is_cut(lines: list[str], limit: int) -> None:
    code = ["first", *lines, "last"]
    parts = render("\n".join(["before", "```py", *code, "```", "after"]), limit)
    check(parts, limit)
    kept = [line.rstrip() for part in parts for line in code_of(part.text)]
    assert [line for line in kept if line] == [line.rstrip() for line in code]
