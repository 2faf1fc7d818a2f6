"""Takes commands of the menu and presses of buttons, and answers each in time; it runs none.

Discord wants a first answer within three seconds, and takes further ones for fifteen minutes. It
brings no interaction twice, so what cannot be stored is said to be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import discord
import structlog
from discord import InteractionType
from discord.http import Route

from bots.platforms.discord.client import Client
from bots.platforms.discord.faults import described
from bots.platforms.discord.translate import name_of
from bots.platforms.taker import Taker
from core.domain.keys import Address
from core.domain.messages import Inbound
from core.errors import StorageError
from core.ports import Clock

HOLD_SECONDS = 1.5
"""How long the first answer waits for the disk: half of what Discord allows."""
PAUSES = (0.5, 1.0, 2.0, 5.0, 5.0)
"""Between the tries to store."""
DEFER, DEFER_UPDATE, EPHEMERAL = 5, 6, 64
"""https://docs.discord.com/developers/interactions/receiving-and-responding"""

ELSEWHERE = "Taken. I cannot write here, so the answer comes as a direct message."
NOWHERE = "I cannot write here, and I cannot send you direct messages."
NOT_STORED = "I could not take that just now; please try again in a minute."

log = structlog.get_logger(__name__)


class Presses:
    def __init__(
        self,
        taker: Taker,
        clock: Clock,
        get_client: Callable[[], Awaitable[Client]],
        redact: Callable[[str], str],
    ) -> None:
        self._taker = taker
        self._clock = clock
        self._get_client = get_client
        self._redact = redact

    async def handle(self, press: discord.Interaction) -> None:
        said = _said(press)
        if said is None:
            return
        work = asyncio.create_task(self._take(press, said))
        await asyncio.wait((work,), timeout=HOLD_SECONDS)
        quietly = press.type is InteractionType.component and work.done() and not work.result()
        await self._defer(press, DEFER_UPDATE if quietly else DEFER)
        told = await work
        if not quietly:
            await self._tell(press, told)

    async def _take(self, press: discord.Interaction, said: str) -> str:
        """What there is to tell; empty where the answer shows that it is taken."""
        is_here = _can_write(press)
        chat = press.channel_id if is_here else await self._dm(press)
        if chat is None:
            return NOWHERE
        is_dm = not is_here or press.guild_id is None
        inbound = Inbound(
            address=Address(
                platform="discord",
                account=str(press.application_id),
                chat=str(chat),
                chat_type="dm" if is_dm else "channel",
                reply_to=str(press.id),
            ),
            update_id=str(press.id),
            user=str(press.user.id),
            user_name=name_of(press.user),
            text=said,
            sent_at=press.created_at,
        )
        if not await self._stored(inbound):
            return NOT_STORED
        return "" if is_here else ELSEWHERE

    async def _stored(self, inbound: Inbound) -> bool:
        for pause in (*PAUSES, None):
            try:
                await self._taker.take(inbound)
            except StorageError as error:
                log.warning("interaction not stored", error=str(error))
            else:
                return True
            if pause is not None:
                await self._clock.sleep(pause)
        return False

    async def _dm(self, press: discord.Interaction) -> int | None:
        try:
            client = await self._get_client()
            opened = await client.http.start_private_message(press.user.id)
            return int(opened["id"])
        except Exception as error:  # noqa: BLE001 - whatever it was, there is no way
            log.warning("no direct messages", error=described(error, self._redact))
            return None

    async def _defer(self, press: discord.Interaction, kind: int) -> None:
        data = {"flags": EPHEMERAL} if kind == DEFER else {}
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        body: dict[str, Any] = {"type": kind, "data": data}
        await self._call(Route("POST", path, webhook_id=press.id, webhook_token=press.token), body)

    async def _tell(self, press: discord.Interaction, text: str) -> None:
        """The waiting sign goes away, and what is to be told takes its place."""
        path = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
        method, body = ("PATCH", {"content": text}) if text else ("DELETE", None)
        route = Route(method, path, webhook_id=press.application_id, webhook_token=press.token)
        await self._call(route, body)

    async def _call(self, route: Route, body: dict[str, Any] | None) -> None:
        """Best effort: what was pressed is on disk, or said to be lost."""
        options: dict[str, Any] = {} if body is None else {"json": body}
        try:
            client = await self._get_client()
            request: Callable[..., Awaitable[Any]] = client.http.request
            await request(route, **options)
        except Exception as error:  # noqa: BLE001 - one more is to be answered
            log.warning("interaction unanswered", error=described(error, self._redact))


def _said(press: discord.Interaction) -> str | None:
    """None for what we have not offered."""
    data = cast("dict[str, Any]", press.data or {})
    if press.type is InteractionType.application_command:
        options: list[dict[str, Any]] = data.get("options") or []
        words = [str(option.get("value", "")) for option in options]
        return " ".join([f"/{data['name']}", *words]).strip()
    if press.type is InteractionType.component:
        _, found, said = str(data.get("custom_id", "")).partition(":")
        return said if found else None
    return None


def _can_write(press: discord.Interaction) -> bool:
    """A person who installed us for themselves may call us where we are not."""
    if press.guild_id is None:
        return press.context.dm_channel
    allowed = press.app_permissions
    may_send = allowed.send_messages or allowed.send_messages_in_threads
    return press.is_guild_integration() and allowed.view_channel and may_send
