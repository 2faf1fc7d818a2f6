"""What Discord is given for the Markdown that models write; and whatever it is, none of it lost."""

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.render.discord import LIMIT, render, render_preview
from core.domain.messages import Part
from tests.bots.render import checks, sources

LINES = ["x = 1", "    return y  # 😀", "", "\tz", "a" * 30, "b c " * 7, "```"]
LIMITS = st.sampled_from([200, 300, 500, 2000])

usual = settings(max_examples=200, deadline=None)


def one(markdown: str) -> str:
    (part,) = render(markdown)
    check([part], LIMIT)
    return part.text


def check(parts: list[Part], limit: int) -> None:
    """What Discord accepts, and that each part closes the code that it opens."""
    faults = [
        part
        for part in parts
        if not 0 < checks.utf16(part.text) <= limit
        or not 0 < checks.utf16(part.plain) <= limit
        or not regex.search(r"[^\s\p{Z}\p{Cc}\p{Cf}]", part.text)
        or len(regex.findall(r"(?m)^```|^\n?```$", part.text)) % 2
    ]
    assert faults == []


def whole(parts: tuple[Part, ...]) -> str:
    """Of an answer that went as a file: the file."""
    return "".join(part.markup["text"] if part.markup else part.text for part in parts)


def test_an_answer_reads_well() -> None:
    answer = """# Set up **it**

First *read* [the guide](https://ex.com/a_(b)):
it is ~~long~~ short.

#### Steps

1. Install

   ```bash
   pip install x
   ```

2. Configure
   - set `MODEL`
     - and ***tokens***

- [x] done

> a quote
> > inside

| a | b |
|---|--:|
| 1 | 2 |

---

![img](http://x.io/y.png) The end."""
    assert (
        one(answer)
        == """# Set up it

First _read_ [the guide](<https://ex.com/a_%28b%29>):
it is ~~long~~ short.

**Steps**

1. Install

```bash
pip install x
```

2. Configure
   - set `MODEL`
     - and **_tokens_**

☑ done

> a quote
>·
> \\> inside

```
a | b
--+--
1 | 2
```

————————

[img](<http://x.io/y.png>) The end.""".replace("·", " ")
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("snake_case_name and 2 * 3 * 4", r"snake\_case\_name and 2 \* 3 \* 4"),
        ("<@123> <!channel> a < b, List<String>", r"\<@123> <!channel> a < b, List<String>"),
        (
            "<#1> <:a:1> <a:b:1> <t:1> </a b:1> </b>",
            r"\<#1> \<:a:1> \<a:b:1> \<t:1> \</a b:1> </b>",
        ),
        ("||not hidden|| but a | b", r"\|\|not hidden\|\| but a | b"),
        ("see http://e.x/a__b__/_c_.py now", "see http://e.x/a__b__/_c_.py now"),
        (r"\# none, \> none", r"\# none, > none"),
        ("#tag and -# small", "#tag and -# small"),
        (r"\-# small", r"\-# small"),
        (r"\[a\](b)", r"[a]\(b)"),
        ("~5 and a~~b", r"~5 and a\~\~b"),
        ("مرحبا 日本語 e\u0301 👨‍👩‍👧", "مرحبا 日本語 e\u0301 👨‍👩‍👧"),
    ],
)
def test_text_that_is_no_markup_is_shown_as_it_is(text: str, written: str) -> None:
    assert one(text) == written


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("## Use `x` now", "## Use `x` **now**"),
        ("`x` first\n===", "`x` **first**"),
        ("Title\n===", "# Title"),
        ("Title\n---", "## Title"),
        ("- # inside", "- **inside**"),
        ("in*tra*word *b*", "in*tra*word _b_"),
        ("``a`b``", "`` a`b ``"),
        ("```` a``b```c ````", r"a\`\`b\`\`\`c"),
        ("[http://a.b/](http://c.d/)", "http://a.b/ (http://c.d/)"),
        ("<http://a.b/>", "http://a.b/"),
        ("[a [b]](http://c.d/)", r"[a \[b\]](<http://c.d/>)"),
        ("[a](./b.md)", "a (./b.md)"),
        ("````\n```\nx\n```\n````", "```\n`\u200b`\u200b`\nx\n`\u200b`\u200b`\n```"),
    ],
)
def test_what_discord_reads_otherwise_is_written_otherwise(markdown: str, written: str) -> None:
    assert one(markdown) == written


def test_long_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "\n".join(f"    line({n})" for n in range(500))
    parts = render(f"Here:\n\n```py\n{code}\n```\n\nDone.")
    check(list(parts), LIMIT)
    inside = [regex.findall(r"```py\n(.*?)\n```", part.text, regex.DOTALL) for part in parts]
    assert "\n".join(block for found in inside for block in found) == code
    assert 4 <= len(parts) <= 5


def test_what_is_escaped_counts() -> None:
    parts = render("2 * 3 * 4 _ " * 400)
    check(list(parts), LIMIT)
    assert all(checks.utf16(part.text) > LIMIT * 0.8 for part in parts[:-1])


def test_a_very_long_answer_goes_as_a_file_with_its_beginning() -> None:
    answer = "# All\n\n" + "\n\n".join(f"Paragraph {n} **has** words. " * 20 for n in range(60))
    (part,) = render(answer)
    check([part], LIMIT)
    assert part.text.startswith("# All\n\nParagraph 0 **has** words.")
    assert part.text.endswith("(This is the beginning; the whole answer is in the file.)")
    assert part.markup == {"name": "answer.md", "text": answer}


@pytest.mark.parametrize("nothing", ["", " \n\t", "\u200b\n\u00a0", "```", "#", "\u2028", ">"])
def test_nothing_to_see_gives_no_part(nothing: str) -> None:
    assert render(nothing) == ()
    assert render_preview(nothing) is None


def test_a_long_preview_is_cut_and_says_so() -> None:
    preview = render_preview("**word** " * 400)
    assert preview is not None
    check([preview], LIMIT)
    assert preview.text.endswith("**word** …")
    assert render_preview("short") == Part(text="short", plain="short")


def test_a_limit_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="200"):
        render("x", 199)


@usual
@given(sources.documents | sources.unclosed, LIMITS)
def test_every_part_is_accepted_and_every_word_is_there_in_order(source: str, limit: int) -> None:
    numbered = sources.number(source)
    parts = render(numbered, limit)
    check(list(parts), limit)
    spoken = sources.plain_words(source)
    found = checks.words(whole(parts))
    assert [word for word in found if word in set(spoken)] == spoken
    assert set(found) == set(checks.words(numbered))


@usual
@given(sources.soups, LIMITS)
def test_a_soup_of_marks_is_accepted_and_loses_no_word(soup: str, limit: int) -> None:
    source = sources.number(soup.replace("][", "] [").replace("]:", "] :"))
    parts = render(source, limit)
    check(list(parts), limit)
    assert set(checks.words(whole(parts))) == set(checks.words(source))


@usual
@given(st.text(max_size=400), LIMITS)
def test_any_text_at_all_is_accepted(text: str, limit: int) -> None:
    check(list(render(text, limit)), limit)


@settings(max_examples=20, deadline=None)
@given(sources.unclosed, st.sampled_from([200, 2000]))
def test_every_beginning_has_a_valid_preview(source: str, limit: int) -> None:
    text = sources.number(source)
    previews = [render_preview(text[:end], limit) for end in range(len(text) % 2, len(text), 2)]
    check([preview for preview in previews if preview], limit)


@usual
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=40), st.sampled_from([200, 500]))
def test_code_is_cut_between_lines_and_opened_again(lines: list[str], limit: int) -> None:
    code = ["first", *lines, "last"]
    parts = render("\n".join(["before", "````py", *code, "````", "after"]), limit)
    check(list(parts), limit)
    shown = whole(parts).replace("\u200b", "")
    assert [line.rstrip() in shown for line in code] == [True] * len(code)
