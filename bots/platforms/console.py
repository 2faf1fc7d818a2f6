"""The terminal as a platform: one person, whom the machine itself vouches for; it keeps nothing."""

import asyncio
import getpass
import os
import secrets
import shutil
import stat
import sys
import termios
from collections.abc import AsyncIterator, Mapping
from datetime import datetime

import structlog
from msgspec.structs import replace
from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout
from rich.cells import chop_cells
from rich.console import Console as RichConsole
from rich.console import Group
from rich.markdown import Markdown
from rich.text import Text
from starlette.routing import Route

from bots.platforms import Adapter, Health, Platform, Site
from bots.render import plain
from bots.render.text import tame
from core.domain.keys import Address
from core.domain.messages import Attachment, Inbound, OutboxMessage, Part
from core.errors import PermanentError, StorageError, TransientError
from core.ports import Pace, Paces

NAME = "console"
PROMPT = "you> "
SPEAKER = "bot>"
PREVIEW_ROWS = 12
"""The newest rows of an answer in the making that stand above the prompt."""
PREVIEW_CHARACTERS = 4_000
"""More than that many rows hold; what is before is not looked at."""
PROMPT_ROWS = 4
FINAL = "final"
"""Marks a part that is no preview: shown for good, also where it edits one."""
LONGEST_LINE = 1 << 24
"""Bytes of a line that is piped in."""
REFRESH_SECONDS = 0.1
PACE = Pace(0.05, 20)

log = structlog.get_logger(__name__)


class Screen:
    """What is shown: answers scroll away above, the one in the making stands over the prompt."""

    def __init__(self) -> None:
        self._preview = ""
        self._rich = RichConsole() if sys.stdout.isatty() else None

    def prompt(self) -> str:
        if not self._preview:
            return PROMPT
        size = shutil.get_terminal_size()
        text = f"{SPEAKER} {self._preview[-PREVIEW_CHARACTERS:]}"
        rows = [row for line in text.splitlines() for row in chop_cells(line, size.columns) or [""]]
        room = max(1, min(PREVIEW_ROWS, size.lines - PROMPT_ROWS))
        if len(rows) > room:
            rows = [f"{SPEAKER} …", *rows[-room:]]
        return "\n".join([*rows, PROMPT])

    def preview(self, text: str) -> None:
        self._preview = tame(text)

    def show(self, text: str) -> None:
        """Raises OSError when there is no one to show it to."""
        self._preview = ""
        text = tame(text)
        if self._rich is None:
            sys.stdout.write(f"{SPEAKER} {text}\n")
            sys.stdout.flush()
            return
        self._rich.file = sys.stdout
        self._rich.print(Group(Text(SPEAKER, style="bold"), Markdown(text)))


class ConsoleChannel:
    """``core.ports.Channel``. Nothing that scrolled away can be edited: a preview stands over the
    prompt, and the final text that edits it is shown in its place."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._sent = 0

    def render(self, text: str) -> tuple[Part, ...]:
        parts = plain.render(text) if text.strip() else ()
        return tuple(replace(part, markup=FINAL) for part in parts)

    def preview(self, text: str) -> Part | None:
        return plain.render(text)[0] if text.strip() else None

    async def send(self, message: OutboxMessage) -> str:
        self._sent += 1
        self._put(message.part)
        return f"line {self._sent}"

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        self._put(part)

    def _put(self, part: Part) -> None:
        if part.markup != FINAL:
            self._screen.preview(part.text)
            return
        try:
            self._screen.show(part.text)
        except (OSError, UnicodeError) as error:
            raise TransientError(f"the terminal does not take it: {error}") from error

    async def typing(self, address: Address) -> None:
        """The growing answer says enough."""

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        return None

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        raise PermanentError("nothing can be sent by the terminal but text")


class Console:
    def __init__(self, site: Site, ended: asyncio.Event) -> None:
        self._site = site
        self._ended = ended
        self._screen = Screen()
        self.channel = ConsoleChannel(self._screen)
        self.routes: tuple[Route, ...] = ()
        self.intake = ""
        self._reader: asyncio.Task[None] | None = None
        self._last: datetime | None = None
        self._user = getpass.getuser()

    async def open(self) -> None:
        pass

    async def start(self) -> None:
        if self._reader is None:
            self._reader = asyncio.create_task(self._read())

    async def stop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def close(self) -> None:
        await self.stop()

    def health(self) -> Health:
        return Health(ok=True, detail="the terminal is here", last_sign=self._last)

    async def check(self) -> Health:
        return self.health()

    async def _read(self) -> None:
        try:
            lines = self._typed() if sys.stdin.isatty() else _piped()
            async for line in lines:
                if line.strip():
                    await self._take(line)
        finally:
            self._ended.set()

    async def _take(self, line: str) -> None:
        self._last = self._site.clock.now()
        inbound = Inbound(
            address=Address(platform=NAME, account="local", chat=self._user),
            update_id=secrets.token_hex(8),
            user=self._user,
            text=line,
            sent_at=self._last,
            trusted=True,
        )
        try:
            await self._site.accept(inbound)
        except StorageError as error:
            log.warning("message not stored", error=str(error))
            self._screen.show("I could not write that down (the database fails). Say it again.")

    async def _typed(self) -> AsyncIterator[str]:
        session: PromptSession[str] = PromptSession(
            self._screen.prompt, refresh_interval=REFRESH_SECONDS
        )
        with patch_stdout(raw=True):
            while True:
                try:
                    yield await session.prompt_async(handle_sigint=False)
                except (EOFError, KeyboardInterrupt):
                    return


async def _piped() -> AsyncIterator[str]:
    """Each line is a message, whether it comes by a pipe or from a file."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        for line in sys.stdin.buffer.readlines():
            yield line.decode(errors="replace")
        return
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        async for line in reader:
            yield line.decode(errors="replace")
    finally:
        transport.close()


def mend_terminal() -> None:
    """A process that was killed at its prompt has left the terminal without echo and lines."""
    if not sys.stdin.isatty():
        return
    mode = termios.tcgetattr(sys.stdin)
    mode[0] |= termios.ICRNL | termios.BRKINT
    mode[1] |= termios.OPOST | termios.ONLCR
    mode[3] |= termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN
    termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)


def platform(ended: asyncio.Event) -> Platform:
    """``ended`` is set when the person has left."""

    def build(values: Mapping[str, str], site: Site) -> Adapter | None:
        return Console(site, ended)

    return Platform(
        name=NAME, variables=(), build=build, paces=Paces(chat=PACE, bot=PACE), terminal=True
    )


PLATFORM = platform(asyncio.Event())
