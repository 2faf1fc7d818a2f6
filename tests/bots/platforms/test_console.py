"""The terminal as a platform, where it is no terminal but a pipe, a file or a test's own screen."""

import asyncio
import io
import os
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from bots.clock import SystemClock
from bots.platforms import Site
from bots.platforms.console import (
    PREVIEW_ROWS,
    Console,
    ConsoleChannel,
    Screen,
    mend_terminal,
    platform,
)
from core.domain.keys import Address
from core.domain.messages import Inbound, OutboxKind, OutboxMessage, Part
from core.errors import StorageError, TransientError
from tests.bookmarks import no_bookmarks

HERE = Address(platform="console", account="local", chat="ada")


def message(part: Part, kind: OutboxKind = "answer") -> OutboxMessage:
    return OutboxMessage(id="x@1.1", key="x", address=HERE, kind=kind, part=part)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def channel(screen: Screen) -> ConsoleChannel:
    return ConsoleChannel(screen)


class Taken:
    def __init__(self) -> None:
        self.taken: list[Inbound] = []
        self.failing = False

    async def accept(self, inbound: Inbound) -> None:
        if self.failing:
            raise StorageError("disk full")
        self.taken.append(inbound)

    @property
    def texts(self) -> list[str]:
        return [inbound.text.rstrip("\n") for inbound in self.taken]


def console(taken: Taken, ended: asyncio.Event) -> Console:
    site = Site(accept=taken.accept, clock=SystemClock(), bookmarks=no_bookmarks, commands=())
    made = platform(ended).build({}, site)
    assert isinstance(made, Console)
    return made


async def read_all(stdin: IO[Any], taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    ended = asyncio.Event()
    made = console(taken, ended)
    await made.start()
    await made.start()
    await asyncio.wait_for(ended.wait(), 5)
    await made.close()


async def test_an_answer_is_shown_once_and_its_preview_not_at_all(
    channel: ConsoleChannel, screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    half = channel.preview("half of")
    assert half is not None
    preview = await channel.send(message(half, "preview"))
    assert screen.prompt() == "bot> half of\nyou> "
    await channel.edit(HERE, preview, channel.render("half of it, and the rest")[0])
    assert screen.prompt() == "you> "
    await channel.send(message(channel.render("another")[0]))
    assert capsys.readouterr().out == "bot> half of it, and the rest\nbot> another\n"


async def test_a_long_answer_in_the_making_leaves_room_for_the_prompt(screen: Screen) -> None:
    screen.preview("\n".join(f"line {n}" for n in range(100)))
    rows = screen.prompt().splitlines()
    assert rows[0] == "bot> …"
    assert rows[-2:] == ["line 99", "you> "]
    assert len(rows) == PREVIEW_ROWS + 2
    screen.preview("one paragraph " * 1_000)
    assert len(screen.prompt().splitlines()) == PREVIEW_ROWS + 2
    assert all(len(row) <= 80 for row in screen.prompt().splitlines())


def test_a_models_words_do_not_steer_the_terminal(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.show("clear \x1b[2J the \x07 screen")
    screen.preview("\x1b[31mred")
    assert "\x1b" not in capsys.readouterr().out + screen.prompt()


def test_nothing_is_no_message(channel: ConsoleChannel) -> None:
    assert channel.render(" \n") == ()
    assert channel.preview("") is None


async def test_a_terminal_that_is_gone_keeps_the_answer_for_later(
    channel: ConsoleChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(TransientError, match="the terminal does not take it"):
        await channel.send(message(channel.render("anyone there?")[0]))


async def test_each_line_that_is_piped_in_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, "one\n\n  \nzwei ä\n\xff".encode("latin-1") + b"no newline")
    os.close(writing)
    taken = Taken()
    with os.fdopen(reading) as stdin:
        await read_all(stdin, taken, monkeypatch)
    assert taken.texts == ["one", "zwei \ufffd", "\ufffdno newline"]
    assert all(inbound.trusted for inbound in taken.taken)
    assert len({inbound.update_id for inbound in taken.taken}) == 3


async def test_a_very_long_line_is_a_message_too(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    taken = Taken()
    long = b"x" * 500_000

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(long + b"\nshort\n")

    with os.fdopen(reading) as stdin:
        done = asyncio.get_running_loop().run_in_executor(None, write)
        await read_all(stdin, taken, monkeypatch)
        await done
    assert [len(text) for text in taken.texts] == [500_000, 5]


async def test_a_file_is_read_like_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Taken()
    with _written(tmp_path / "lines", "one\ntwo\n").open() as stdin:
        await read_all(stdin, taken, monkeypatch)
    assert taken.texts == ["one", "two"]


async def test_no_input_at_all_is_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Taken()
    with os.fdopen(os.open(os.devnull, os.O_RDONLY)) as stdin:
        await read_all(stdin, taken, monkeypatch)
    assert taken.texts == []


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


async def test_what_could_not_be_stored_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    taken = Taken()
    taken.failing = True
    with _written(tmp_path / "lines", "hello\n").open() as stdin:
        await read_all(stdin, taken, monkeypatch)
    assert "I could not write that down" in capsys.readouterr().out


async def test_it_takes_nothing_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    taken = Taken()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        made = console(taken, asyncio.Event())
        await made.start()
        assert (await made.check()).ok
        await made.stop()
        await made.stop()
        os.write(writing, b"too late\n")
        await asyncio.sleep(0.05)
        await made.close()
    os.close(writing)
    assert taken.texts == []


def test_what_is_no_terminal_needs_no_mending(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, _written(tmp_path / "x", "").open() as stdin:
        patch.setattr(sys, "stdin", stdin)
        mend_terminal()
