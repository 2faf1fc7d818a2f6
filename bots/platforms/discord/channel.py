"""Says what was promised, in Discord's own calls, each of which ends soon.

Each send carries a nonce that follows from its row: for a few minutes Discord answers the same
nonce with the message that is there. So a send whose outcome is unknown is sent again; where that
may come too late, the channel's history is looked at first. Of a preview nobody knows the words any
more: if it is in doubt, its answer goes out under its nonce, and takes its place if it is there.
"""

import asyncio
import hashlib
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import discord

from bots.platforms.discord import faults
from bots.platforms.discord.client import Client
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
"""Discord says «the past few minutes». https://docs.discord.com/developers/resources/message"""
NONCE_CHARACTERS = 25
LOOKED_AT = 100
"""So many of the channel's last messages."""
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
        """While Discord knows the nonce, it settles it better. Later, or if nobody knows since
        when, the same text among ours since the message that is answered is taken for it."""
        try:
            return await self._call(lambda: self._look_up(message))
        except PermanentError:
            return None

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        """Raises PermanentError when it is gone or larger than ``limit`` bytes."""
        return await self._call(lambda: self._fetch(attachment, limit), FETCH_SECONDS)

    async def _send(self, message: OutboxMessage) -> discord.Message:
        place = await self._place(message.address)
        preview = self._doubtful.get(message.edits)
        said = await self._say(place, message, preview or nonce_of(message))
        if preview is None or _shows(said, message.part):
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
        self._tried[nonce] = self._clock.now()
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

    async def _look_up(self, message: OutboxMessage) -> str | None:
        if message.kind == "preview":
            self._doubtful[message.id] = nonce_of(message)
            return None
        self._tried = _since(self._clock.now() - NONCE_MINUTES, self._tried)
        nonces = {nonce_of(message), self._doubtful.get(message.edits, "")}
        if nonces & self._tried.keys() or await self._is_young(message.address):
            return None
        return await self._find(message)

    async def _is_young(self, address: Address) -> bool:
        """Whether the message that is answered is: then no send of the answer is older."""
        now = (await self._get_client()).now
        if not address.reply_to or now is None:
            return False
        return discord.utils.snowflake_time(int(address.reply_to)) > now - NONCE_MINUTES

    async def _find(self, message: OutboxMessage) -> str | None:
        client = await self._get_client()
        place = client.get_partial_messageable(int(message.address.chat))
        first = int(message.address.reply_to or 0)
        wanted = message.part.text.split()
        async for said in place.history(limit=LOOKED_AT):
            is_ours = client.user is not None and said.author.id == client.user.id
            if is_ours and said.id > first and said.content.split() == wanted:
                return str(said.id)
        return None

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
            if faults.fault_of(error) == "refused":
                self._signs.enter("refused")
            # Without its context, which may show what has to be redacted.
            raise faults.translated(error, self._redact) from None
        self._signs.heard()
        return result


def nonce_of(message: OutboxMessage) -> str:
    """A row's id may come again, in a new database or after a log was set aside; the message that
    it answers does not."""
    name = f"{message.id} {message.address.reply_to}"
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:NONCE_CHARACTERS]


def _since(moment: datetime, moments: Mapping[str, datetime]) -> dict[str, datetime]:
    return {name: at for name, at in moments.items() if at > moment}


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
