"""Holds the vendor's SDK and its connections; it decides nothing.

The SDK sleeps through every 429 and repeats what a server failed at. Here it does neither: whoever
calls has a clock, a limiter and an outbox for that.
"""

import asyncio
import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import aiohttp
import discord
from discord.gateway import DiscordWebSocket, KeepAliveHandler
from discord.http import Route

from bots.platforms.discord.settings import Settings

CLOSE_SECONDS = 3.0
READY_SECONDS = 0.2
"""How long after its last guild the gateway counts as ready; the SDK's own is two seconds."""
DEFAULT_RETRY_SECONDS = 5.0
_IMPATIENT = 30.0
"""The least that the SDK takes; a bucket that is empty for longer is told as an error."""

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
"""None of them is privileged: what is written in a DM, or mentions us, is shown without."""
FEWER_INTENTS = discord.Intents(guilds=True, dm_messages=True)


class TooManyError(Exception):
    """Nothing was done. ``retry_after`` in seconds."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"too many requests, retry after {retry_after:g} s")
        self.retry_after = retry_after


class ServerFaultError(Exception):
    """Something on the way failed; what was asked for may be done."""


class Client(discord.Client):
    """With the settings' own addresses, which the SDK has as constants of its classes: they are put
    in here, instance by instance, where its HTTP client is asked for an address."""

    def __init__(
        self,
        settings: Settings,
        intents: discord.Intents = INTENTS,
        *,
        enable_debug_events: bool = False,
    ) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(_refuse_to_wait)
        trace.on_request_end.append(self._look_at_the_time)
        # The SDK remarks on this at its first client; we have no voice.
        discord.VoiceClient.warn_nacl = False
        discord.VoiceClient.warn_dave = False
        super().__init__(
            intents=intents,
            allowed_mentions=discord.AllowedMentions.none(),
            chunk_guilds_at_startup=False,
            enable_debug_events=enable_debug_events,
            guild_ready_timeout=READY_SECONDS,
            http_trace=trace,
            max_messages=None,
            max_ratelimit_timeout=_IMPATIENT,
            member_cache_flags=discord.MemberCacheFlags.none(),
        )
        self._told: tuple[datetime, float] | None = None
        self._settings = settings
        self._plain_request = self.http.request
        self._plain_connect = self.http.ws_connect
        self._sockets: list[aiohttp.ClientWebSocketResponse] = []
        self.http.request = self._request
        self.http.ws_connect = self._connect

    @property
    def now(self) -> datetime | None:
        """By Discord's clock, as its last answer told it: ours may be wrong."""
        if self._told is None:
            return None
        told, at = self._told
        return told + timedelta(seconds=time.monotonic() - at)

    def message_of(self, chat: int, raw: Any) -> discord.Message:  # noqa: ANN401
        """Raises anything for one that the SDK cannot read."""
        channel = self.get_partial_messageable(chat)
        return discord.Message(state=self._connection, channel=channel, data=raw)

    async def end(self) -> None:
        """Closing waits for the other side, which may be gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.close()
                for socket in self._sockets:
                    await socket.close()
        self._stop_heartbeats()
        await self.http.close()
        # What was dispatched a moment ago begins, or it would be said never to have been awaited.
        await asyncio.sleep(0)

    def dispatch(self, event: str, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Nobody listens any more to a client that is closed."""
        if not self.is_closed():
            super().dispatch(event, *args, **kwargs)

    def _stop_heartbeats(self) -> None:
        """The SDK forgets a connection that was given up while it was being made, and its thread
        would then go on for ever."""
        for thread in threading.enumerate():
            if isinstance(thread, KeepAliveHandler) and thread.ws.socket in self._sockets:
                thread.stop()

    async def _look_at_the_time(
        self, _: aiohttp.ClientSession, __: SimpleNamespace, ended: aiohttp.TraceRequestEndParams
    ) -> None:
        with suppress(ValueError):
            told = parsedate_to_datetime(ended.response.headers.get("Date", ""))
            self._told = (told, time.monotonic())

    async def _request(self, route: Route, **options: Any) -> Any:  # noqa: ANN401
        if self._settings.api_url:
            route.url = self._settings.api_url + route.url.removeprefix(Route.BASE)
        return await self._plain_request(route, **options)

    async def _connect(self, url: str, **options: Any) -> aiohttp.ClientWebSocketResponse:  # noqa: ANN401
        """A session is resumed where Discord said; that address is none of the constants."""
        default = str(DiscordWebSocket.DEFAULT_GATEWAY)
        if self._settings.gateway_url and url.startswith(default):
            url = self._settings.gateway_url + url.removeprefix(default)
        socket = await self._plain_connect(url, **options)
        self._sockets = [*(s for s in self._sockets if not s.closed), socket]
        return socket


class Calls:
    """A client for calls alone. It is made at the first call, and again after one that failed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._opening = asyncio.Lock()

    async def client(self) -> Client:
        """Logged in. Raises what the SDK does."""
        async with self._opening:
            if self._client is None:
                client = Client(self._settings)
                try:
                    await client.login(self._settings.token)
                except BaseException:
                    await client.end()
                    raise
                self._client = client
            return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.end()


async def _refuse_to_wait(
    _: aiohttp.ClientSession, __: SimpleNamespace, ended: aiohttp.TraceRequestEndParams
) -> None:
    """Of a websocket the SDK's own care is better: it resumes."""
    status = ended.response.status
    if "Sec-WebSocket-Key" in ended.headers:
        return
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise TooManyError(_seconds(ended.response.headers.get("Retry-After", "")))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ServerFaultError(f"HTTP {status}")


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return DEFAULT_RETRY_SECONDS
