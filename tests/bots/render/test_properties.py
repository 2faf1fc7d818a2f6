"""Whatever the answer is: every message is accepted, and no word of it is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bots.render.telegram import render, render_preview
from tests.bots.render import checks, sources

LINES = ["x = 1", "    return y  # 😀", "", "\tz", "a" * 30, "b c " * 7, "w " * 28]

usual = settings(max_examples=300, deadline=None)


@usual
@given(sources.documents | sources.unclosed, sources.limits)
def test_every_part_is_accepted_and_every_word_is_there_in_order(source: str, limit: int) -> None:
    parts = render(sources.number(source), limit)
    checks.check(parts, limit)
    spoken = sources.plain_words(source)
    found = checks.words(checks.texts(parts))
    assert [word for word in found if word in set(spoken)] == spoken
    assert set(checks.words(sources.number(source))) == set(found) | checks.hidden(parts)
    assert checks.words(checks.twins(parts)) == checks.words(sources.number(source))


@usual
@given(sources.soups, sources.limits)
def test_a_soup_of_marks_is_accepted_and_loses_no_word(soup: str, limit: int) -> None:
    source = sources.number(soup.replace("][", "] [").replace("]:", "] :"))
    parts = render(source, limit)
    checks.check(parts, limit)
    found = set(checks.words(checks.texts(parts))) | checks.hidden(parts)
    assert found == set(checks.words(source))


@usual
@given(sources.clusters, st.sampled_from([" ", "", "\n", ". "]), sources.limits)
def test_no_grapheme_is_cut(clusters: list[str], joint: str, limit: int) -> None:
    source = joint.join(clusters)
    parts = render(source, limit)
    checks.check(parts, limit)
    kept = [cluster for part in parts for cluster in checks.graphemes(part.text)]
    assert kept == checks.graphemes(source)


@usual
@given(st.text(max_size=400), sources.limits)
def test_any_text_at_all_is_accepted(text: str, limit: int) -> None:
    checks.check(render(text, limit), limit)


@settings(max_examples=25, deadline=None)
@given(sources.unclosed, st.sampled_from([32, 100, 4096]))
def test_every_beginning_has_a_valid_preview(source: str, limit: int) -> None:
    whole = sources.number(source)
    previews = [render_preview(whole[:end], limit) for end in range(len(whole) % 5, len(whole), 5)]
    checks.check([preview for preview in previews if preview], limit)


@usual
@given(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=60),
    st.sampled_from([64, 100, 300]),
)
def test_code_is_cut_between_lines_and_opened_again(lines: list[str], limit: int) -> None:
    code = ["first", *lines, "last"]
    parts = render("\n".join(["before", "```py", *code, "```", "after"]), limit)
    checks.check(parts, limit)
    blocks = [entity for part in parts for entity in part.markup if entity["type"] == "pre"]
    assert {entity["language"] for entity in blocks} == {"py"}
    kept = [line for text in checks.entities(parts, "pre") for line in text.split("\n")]
    assert [line.rstrip() for line in kept if line] == [line.rstrip() for line in code if line]
