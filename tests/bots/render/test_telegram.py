"""What a reader of the chat sees for the Markdown that models write."""

import pytest

from bots.render.telegram import render, render_preview
from core.domain.messages import Part
from tests.bots.render import checks


def one(markdown: str) -> Part:
    (part,) = render(markdown)
    checks.check([part], 4096)
    return part


def shown(markdown: str) -> str:
    return one(markdown).text


def marked(markdown: str) -> list[tuple[str, str]]:
    part = one(markdown)
    return [(entity["type"], checks.of(part, entity)) for entity in part.markup]


def test_an_answer_reads_well() -> None:
    answer = """# Set up **it**

First *read* [the guide](https://ex.com/a_(b)):
it is ~~long~~ short.

1. Install

   ```bash
   pip install x
   ```

2. Configure
   - set `MODEL`
     - and **tokens**
3. Run

- [x] done
- [ ] open

> a quote
> > inside

---

The end."""
    assert (
        shown(answer)
        == """Set up it

First read the guide:
it is long short.

1. Install

pip install x

2. Configure
   • set MODEL
     ◦ and tokens

3. Run

☑ done
☐ open

a quote

> inside

————————

The end."""
    )
    assert marked(answer) == [
        ("bold", "Set up it"),
        ("italic", "read"),
        ("text_link", "the guide"),
        ("strikethrough", "long"),
        ("pre", "pip install x"),
        ("code", "MODEL"),
        ("bold", "tokens"),
        ("blockquote", "a quote\n\n> inside"),
    ]


def test_offsets_are_counted_in_utf16_units() -> None:
    assert one("😀 **b** 👨‍👩‍👧 *i*").markup == [
        {"type": "bold", "offset": 3, "length": 1},
        {"type": "italic", "offset": 14, "length": 1},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Use List<String> here",
        "a<b and b>c",
        "<!channel> <@U1> &lt",
        "see https://ex.com/a__b__/__init__.py?x=_y_ now",
        "snake_case_name and 2 * 3 * 4",
        "مرحبا بالعالم 日本語 e\u0301",
        "<b>not bold</b> <!-- kept -->",
        "2024. was a year",
        "007) agent",
    ],
)
def test_text_that_is_no_markup_stays_as_it_is(text: str) -> None:
    assert one(text) == Part(text=text, plain=text, markup=[])


def test_a_narrow_table_is_aligned_also_with_wide_letters() -> None:
    table = "| 名前 | n | x |\n|:-|-:|:-:|\n| a | 1 | mid |\n| 日本語 | 200 | `c` |"
    assert marked(table) == [("pre", shown(table))]
    assert shown(table).split("\n") == [
        "名前   |   n |  x",
        "-------+-----+----",
        "a      |   1 | mid",
        "日本語 | 200 |  c",
    ]


def test_a_table_with_links_or_long_cells_becomes_lines() -> None:
    table = "| a | b | c |\n|-|-|-|\n| **x** | | [l](http://e.x/y) |\n| z | | |"
    assert shown(table) == "a | b | c\n• x | – | l\n• z"
    assert marked(table) == [("bold", "a | b | c"), ("bold", "x"), ("text_link", "l")]
    assert shown(f"| a |\n|-|\n| {'long ' * 20} |") == "a\n• " + ("long " * 20).strip()


def test_cells_beyond_the_head_are_kept() -> None:
    assert "extra" in shown("| a |\n|-|\n| b | extra |")
    assert "extra" in shown("- x\n\n  | a |\n  |-|\n  | b | extra |")


def test_code_in_a_heading_or_a_link_does_not_overlap() -> None:
    assert marked("## Use `x` now") == [("bold", "Use"), ("code", "x"), ("bold", "now")]
    assert marked("[`f()` ok](http://e.x/)") == [("text_link", "f() ok")]


def test_a_link_that_telegram_would_drop_shows_its_address() -> None:
    assert shown("[a](http://localhost:80/x)") == "a (http://localhost:80/x)"
    assert shown("[a](./b.md) [me](mailto:a@b.c)") == "a (./b.md) me (a@b.c)"
    assert shown("[](https://e.x/y)") == "https://e.x/y"


def test_the_twin_has_the_addresses() -> None:
    part = one('[a](http://e.x/y "T") ![i](http://e.x/z) http://e.x/w')
    assert part.plain == "a (http://e.x/y) (T) i (http://e.x/z) http://e.x/w"
    assert part.text == "a (T) i http://e.x/w"


def test_only_unused_link_definitions_are_shown() -> None:
    assert (
        shown("[a][1]\n\n[1]: http://e.x/a\n[2]: http://e.x/b 't'") == 'a\n\n[2]: http://e.x/b "t"'
    )


def test_what_is_nested_too_deep_is_still_there() -> None:
    assert "deep" in shown("> " * 60 + "deep")
    assert "deep" in shown("".join("  " * n + "- x\n" for n in range(40)) + "  " * 40 + "- deep")


def test_words_on_the_line_of_a_fence_are_kept() -> None:
    assert shown("```py title here\nx\n```") == "title here\nx"
    assert shown("``` some words") == "some words"
    assert one("```c++\nx").markup == [{"type": "pre", "offset": 0, "length": 1, "language": "c++"}]


def test_the_first_line_of_code_keeps_its_indentation() -> None:
    assert marked("text\n\n```\n\n    x\n  y\n```\nafter") == [("pre", "    x\n  y")]
    assert marked("1. ```\n     x\n   ```") == [("pre", "  x")]


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b\n\u00a0", "```", "#", "\u2028", ">"])
def test_nothing_to_see_gives_no_part(nothing: str) -> None:
    assert render(nothing) == ()
    assert render_preview(nothing) is None


def test_a_number_alone_is_an_answer() -> None:
    assert shown("42.") == "42."


def test_what_cannot_be_encoded_is_replaced() -> None:
    assert shown("a\ud83d b\x00 c\x1b[0m\r\nd") == "a\ufffd b\ufffd c [0m\nd"


@pytest.mark.parametrize("shift", range(6))
def test_emoji_at_the_boundary_are_never_cut(shift: int) -> None:
    parts = render("a" * shift + "😀" * 6000)
    checks.check(parts, 4096)
    assert checks.texts(parts) == "a" * shift + "😀" * 6000
    assert {checks.utf16(part.text) for part in parts[:-1]} <= {4095, 4096}


@pytest.mark.parametrize("cluster", ["👨‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "👍🏽"])
@pytest.mark.parametrize("shift", range(4))
def test_clusters_at_the_boundary_are_never_cut(cluster: str, shift: int) -> None:
    parts = render("a" * shift + cluster * 60, 40)
    checks.check(parts, 40)
    kept = [found for part in parts for found in checks.graphemes(part.text)]
    assert kept == ["a"] * shift + [cluster] * 60


def test_one_grapheme_longer_than_a_message_loses_nothing() -> None:
    parts = render("a" + "\u0301" * 100, 40)
    checks.check(parts, 40)
    assert checks.texts(parts) == "a" + "\u0301" * 100


def test_long_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"    line({n})  # {'x' * (n % 50)}" for n in range(500))
    parts = render(f"Here:\n\n```py\n{code}\n```\n\nDone.")
    checks.check(parts, 4096)
    assert "\n".join(checks.entities(parts, "pre")) == code
    assert [part.markup[-1].get("language") for part in parts] == ["py"] * len(parts)
    assert len(parts) <= len(code) // 4096 + 2


def test_a_cut_table_repeats_its_head() -> None:
    table = "| name | n |\n|-|-|\n" + "\n".join(f"| row | {n} |" for n in range(1000))
    parts = render(table)
    checks.check(parts, 4096)
    assert len(parts) > 2
    assert {part.text.split("\n")[0] for part in parts} == {"name | n"}
    assert [len(part.markup) for part in parts] == [1] * len(parts)
    rows = [line for part in parts for line in part.text.split("\n")[2:]]
    assert rows == [f"row  | {n}" for n in range(1000)]


def test_a_cut_table_of_lines_repeats_its_head() -> None:
    table = "| name | n |\n|-|-|\n" + "\n".join(f"| row {'x' * 70} | {n} |" for n in range(100))
    parts = render(table)
    checks.check(parts, 4096)
    assert [part.text.split("\n")[0] for part in parts] == ["name | n"] * 3
    assert checks.entities(parts, "bold") == ["name | n"] * 3


def test_a_cut_link_goes_on_as_a_link() -> None:
    parts = render(f"[{'word ' * 40}](http://e.x/y)", 100)
    checks.check(parts, 100)
    assert [part.markup[0]["url"] for part in parts] == ["http://e.x/y"] * len(parts)
    assert [checks.of(part, part.markup[0]) for part in parts] == [part.text for part in parts]


def test_an_address_longer_than_a_message_stays_a_link() -> None:
    address = "http://e.x/" + "a" * 100
    parts = render(address, 64)
    checks.check(parts, 64)
    assert checks.texts(parts) == address
    assert [part.markup[0]["url"] for part in parts] == [address] * len(parts)


def test_no_message_has_more_entities_than_telegram_reads() -> None:
    parts = render(" ".join(f"**b{n}**" for n in range(300)))
    checks.check(parts, 4096)
    assert checks.entities(parts, "bold") == [f"b{n}" for n in range(300)]


def test_bare_addresses_do_not_count_as_entities() -> None:
    assert len(render(" ".join(f"http://e.x/{n}" for n in range(150)))) == 1


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a" * 60 + "\n\n" + "b" * 20 + " c" * 30, "a" * 60),
        ("- " + "a" * 60 + "\n- " + "b " * 40, "• " + "a" * 60),
        ("a" * 60 + "\n" + "b " * 40, "a" * 60),
        ("a b " * 15 + "end. " + "c " * 40, "a b " * 15 + "end."),
        ("a" * 70 + " " + "b" * 60, "a" * 70),
        ("日" * 60 + "。" + "本" * 60, "日" * 60 + "。"),
    ],
)
def test_the_cut_is_at_the_best_place(text: str, first: str) -> None:
    assert render(text, 100)[0].text == first


def test_a_heading_stays_with_its_text() -> None:
    parts = render("a" * 50 + "\n\n## Head\n\n" + "b " * 40, 100)
    assert [part.text[:4] for part in parts] == ["aaaa", "Head"]


def test_a_long_preview_is_cut_at_a_boundary_and_says_so() -> None:
    preview = render_preview("**word** " * 40, 60)
    assert preview is not None
    checks.check([preview], 60)
    assert preview.text == "word " * 11 + "…"
    assert render_preview("short") == Part(text="short", plain="short", markup=[])


def test_the_preview_of_a_very_long_answer_says_that_there_is_more() -> None:
    preview = render_preview(f"[a](http://e.x/{'y' * 500}) " * 3, 100)
    assert preview is not None
    assert preview.text.endswith(" …")


def test_a_limit_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="32"):
        render("x", 31)


def test_a_quotation_stops_for_code_and_goes_on() -> None:
    quoted = marked("> a\n>\n> ```\n> x\n> ```\n>\n> b")
    assert quoted == [("blockquote", "a"), ("pre", "x"), ("blockquote", "b")]
