from bots.render.plain import render
from core.domain.messages import Part


def test_markdown_is_shown_as_it_is_in_one_part() -> None:
    source = "# a\r\n\n**b** `c`\n" * 2000
    assert render(source) == (Part(text=source, plain=source),)


def test_what_cannot_be_encoded_is_replaced() -> None:
    assert render("a\udc00\x00b")[0].text == "a\ufffd\ufffdb"
