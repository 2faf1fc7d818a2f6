"""Says what was promised, in Discord's own calls, each of which ends soon.

Each send carries a nonce that follows from its row: for a few minutes Discord answers the same
nonce with the message that is there. So a send whose outcome is unknown is sent again; where that
may come too late, the channel's history is looked at first: of what it holds since the message was
promised, the same text counts as arrived. Of a preview nobody knows the words any
more: if it is in doubt, its answer goes out under its nonce, and takes its place if it is there.
"""

import asyncio
import hashlib
import io
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import discord

from bots.platforms.discord import faults
from bots.platforms.discord.client import Client
from bots.platforms.discord.history import Raw, said_in
from bots.platforms.signs import Signs
from bots.render import discord as rendering
from core.domain.keys import Address
from core.domain.messages import Attachment, OutboxMessage, Part
from core.errors import PermanentError, TransientError
from core.ports import Clock

SEND_SECONDS = 10.0
"""An edit and a send, what a row may need, stay below the 24 s that delivery gives a row."""
FETCH_SECONDS = 60.0
NONCE_MINUTES = timedelta(minutes=2)
"""Discord says «the past few minutes». https://docs.discord.com/developers/resources/message
Delivery sends within half a minute of asking, so two of them leave some time."""
FORGOTTEN = timedelta(minutes=10)
"""Of what was first tried that long ago the history is looked at, whether or not we know when."""
NONCE_CHARACTERS = 25
CLOCKS_DIFFER = timedelta(minutes=5)
"""Discord's and ours, at most."""
LONGEST_TURN = timedelta(hours=1)
"""An answer that takes a preview's place is as old as that, which is older than its promise."""
LONGEST_LABEL, LONGEST_ID = 80, 100

Result = TypeVar("Result")


class DiscordChannel:
    def __init__(
        self,
        get_client: Callable[[], Awaitable[Client]],
        signs: Signs,
        redact: Callable[[str], str],
        clock: Clock,
    ) -> None:
        self._get_client = get_client
        self._signs = signs
        self._redact = redact
        self._clock = clock
        self._tried: dict[str, datetime] = {}
        """When each nonce was first tried, or not yet."""
        self._doubtful: dict[str, str] = {}
        """The nonces of previews that are in doubt, by their rows."""

    def render(self, text: str) -> tuple[Part, ...]:
        return rendering.render(text)

    def preview(self, text: str) -> Part | None:
        return rendering.render_preview(text)

    async def send(self, message: OutboxMessage) -> str:
        sent = await self._call(lambda: self._send(message))
        self._signs.outbound()
        return str(sent.id)

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        await self._call(lambda: self._edit(address, platform_id, part))

    async def typing(self, address: Address) -> None:
        await self._call(lambda: self._type(address))

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        """While Discord knows the nonce, it settles it better. Later the same text among ours, of
        the last hundred messages, is taken for it; not what is older than ``since`` or than the
        message that is answered."""
        try:
            return await self._call(lambda: self._look_up(message, since))
        except PermanentError:
            return None

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        """Raises PermanentError when it is gone or larger than ``limit`` bytes."""
        return await self._call(lambda: self._fetch(attachment, limit), FETCH_SECONDS)

    async def _send(self, message: OutboxMessage) -> discord.Message:
        place = await self._place(message.address)
        said = await self._say(place, message, self._nonce(message))
        if message.edits not in self._doubtful or _shows(said, message.part):
            return said
        try:
            await said.edit(**_whole(message.part))
        except discord.NotFound:
            self._doubtful.pop(message.edits)
            return await self._say(place, message, nonce_of(message))
        return said

    async def _say(
        self, place: discord.PartialMessageable, message: OutboxMessage, nonce: str
    ) -> discord.Message:
        now = self._clock.now()
        self._tried = {name: at for name, at in self._tried.items() if at > now - FORGOTTEN}
        self._tried.setdefault(nonce, now)
        return await place.send(
            message.part.text,
            nonce=nonce,
            files=_files(message.part),
            view=_view(message.part),
            suppress_embeds=True,
            **_reply(message.address),
        )

    async def _edit(self, address: Address, platform_id: str, part: Part) -> None:
        place = await self._place(address)
        message = place.get_partial_message(int(platform_id))
        await message.edit(**_whole(part))

    async def _type(self, address: Address) -> None:
        await (await self._place(address)).typing()

    async def _look_up(self, message: OutboxMessage, since: datetime) -> str | None:
        """It was not tried before ``since``; of a process that has ended nobody knows it better."""
        if message.kind == "preview":
            self._doubtful[message.id] = nonce_of(message)
            return None
        nonce, now = self._nonce(message), self._clock.now()
        if now - NONCE_MINUTES < self._tried.setdefault(nonce, since) <= now:
            return None
        return await self._find(message, since)

    async def _find(self, message: OutboxMessage, since: datetime) -> str | None:
        client = await self._get_client()
        first = max(_oldest(message, since), int(message.address.reply_to or 0))
        wanted = message.part.text.split()
        for number, raw in reversed((await said_in(client, int(message.address.chat))).items()):
            if number > first and _is_by(client.user, raw) and _words(raw) == wanted:
                return str(number)
        return None

    def _nonce(self, message: OutboxMessage) -> str:
        return self._doubtful.get(message.edits) or nonce_of(message)

    async def _fetch(self, attachment: Attachment, limit: int) -> bytes:
        chat, message_id, file_id = map(int, attachment.ref.split("/"))
        client = await self._get_client()
        message = await client.get_partial_messageable(chat).fetch_message(message_id)
        parts = (message, *message.message_snapshots)
        files = {file.id: file for part in parts for file in part.attachments}
        if file_id not in files:
            raise PermanentError("the file is not there any more")
        if files[file_id].size > limit:
            raise PermanentError(f"the file is larger than {limit} bytes")
        return await files[file_id].read()

    async def _place(self, address: Address) -> discord.PartialMessageable:
        client = await self._get_client()
        return client.get_partial_messageable(int(address.chat))

    async def _call(
        self, call: Callable[[], Awaitable[Result]], seconds: float = SEND_SECONDS
    ) -> Result:
        """A refused token is not tried again: ten thousand such calls ban an address."""
        if self._signs.refused:
            raise TransientError("Discord refuses the bot token", faults.REFUSED_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                result = await call()
        except PermanentError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever broke, the call may have arrived
            match faults.fault_of(error):
                case "refused":
                    self._signs.enter("refused")
                case "unsent":
                    self._signs.unreached(faults.described(error, self._redact))
                case "slow down" | "rejected":
                    self._signs.heard()
                case "unknown":
                    pass
            # Without its context, which may show what has to be redacted.
            raise faults.translated(error, self._redact) from None
        self._signs.heard()
        return result


def nonce_of(message: OutboxMessage) -> str:
    """A row's id may come again, in a new database or after a log was set aside; the message that
    it answers does not."""
    name = f"{message.id} {message.address.reply_to}"
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:NONCE_CHARACTERS]


def _oldest(message: OutboxMessage, since: datetime) -> int:
    """As Discord numbers its messages by time."""
    margin = CLOCKS_DIFFER + LONGEST_TURN if message.edits else CLOCKS_DIFFER
    return discord.utils.time_snowflake(since - margin)


def _is_by(person: discord.ClientUser | None, raw: Raw) -> bool:
    author: Raw = raw.get("author") or {}
    return person is not None and author.get("id") == str(person.id)


def _words(raw: Raw) -> list[str]:
    return str(raw.get("content", "")).split()


def _shows(said: discord.Message, part: Part) -> bool:
    return said.content.split() == part.text.split() and not (part.markup or part.buttons)


def _whole(part: Part) -> dict[str, Any]:
    return {"content": part.text, "attachments": _files(part), "view": _view(part)}


def _files(part: Part) -> Sequence[discord.File]:
    if not part.markup:
        return ()
    file: dict[str, str] = part.markup
    return (discord.File(io.BytesIO(file["text"].encode()), file["name"]),)


def _view(part: Part) -> discord.ui.View:
    """Stopped at once: the SDK need not remember it, a press is read by its id."""
    view = discord.ui.View(timeout=None)
    for number, button in enumerate(part.buttons):
        shown = discord.ui.Button[discord.ui.View](
            label=button.label[:LONGEST_LABEL],
            custom_id=f"{number}:{button.says}"[:LONGEST_ID],
            style=discord.ButtonStyle.secondary,
        )
        view.add_item(shown)
    view.stop()
    return view


def _reply(address: Address) -> dict[str, Any]:
    """In a DM it is clear what is answered."""
    if address.chat_type == "dm" or not address.reply_to:
        return {}
    reference = discord.MessageReference(
        message_id=int(address.reply_to), channel_id=int(address.chat), fail_if_not_exists=False
    )
    return {"reference": reference}
