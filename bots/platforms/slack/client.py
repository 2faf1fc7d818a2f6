"""Holds the vendor's SDK and its connections; it decides nothing, and repeats no call."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bots.platforms.slack.settings import Settings
from core.errors import PermanentError

CONNECT_SECONDS = 5.0
SEND_SECONDS = 10.0
"""A send that is cut short has to be looked up, so Slack gets time to answer. An update and a post,
what a row may need, stay below the 24 s that delivery gives a row."""
_CHUNK = 65_536
_GONE = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})

Answer = dict[str, Any]


class Client:
    """``web`` is the SDK's client without its retries: by default it posts again what may have
    arrived. ``time`` is Slack's own, as of its last answer: our clock may be wrong, and history is
    asked for in Slack's."""

    def __init__(self, settings: Settings) -> None:
        self.time: datetime | None = None
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self.web: Any = AsyncWebClient(
            token=settings.bot_token, base_url=settings.api_url, retry_handlers=[]
        )
        # The session reads the proxies itself, and NO_PROXY, too.
        self.web.proxy = None

    async def write(self, method: str, **arguments: Any) -> Answer:  # noqa: ANN401
        return await self._call(method, json=arguments)

    async def read(self, method: str, **arguments: Any) -> Answer:  # noqa: ANN401
        return await self._call(method, http_verb="GET", params=arguments)

    async def connect(self) -> aiohttp.ClientWebSocketResponse:
        """A socket of its own for each call, which Slack has yet to greet."""
        return await self._open().ws_connect(await self.socket_url(), autoping=False)

    async def socket_url(self) -> str:
        answer = await self._call(
            "apps.connections.open", params={"token": self._settings.app_token}
        )
        return str(answer["url"])

    async def download(self, url: str, limit: int) -> bytes:
        """Raises PermanentError where it is larger. The token goes to Slack's files alone."""
        headers = {"Authorization": f"Bearer {self._settings.bot_token}"}
        async with self._open().get(url, headers=headers) as answer:
            if answer.status in _GONE:
                raise PermanentError(f"Slack does not have the file ({answer.status})")
            answer.raise_for_status()
            if answer.content_type == "text/html":
                raise PermanentError("Slack shows a login page in place of the file")
            data = bytearray()
            async for chunk in answer.content.iter_chunked(_CHUNK):
                data += chunk
                if len(data) > limit:
                    raise PermanentError(f"the file has more than {limit} bytes")
            return bytes(data)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _call(self, method: str, **how: Any) -> Answer:  # noqa: ANN401
        self._open()
        answer = await self.web.api_call(method, **how)
        self.time = _date(answer.headers) or self.time
        return dict(answer.data)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            timeout = aiohttp.ClientTimeout(total=SEND_SECONDS, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(trust_env=True, timeout=timeout)
            self.web.session = self._session
        return self._session


def _date(headers: Mapping[str, str]) -> datetime | None:
    try:
        return parsedate_to_datetime(headers["Date"])
    except (KeyError, ValueError):
        return None


def next_cursor(answer: Answer) -> str:
    """Of the page behind it; empty where it was the last."""
    metadata: Answer = answer.get("response_metadata") or {}
    return str(metadata.get("next_cursor") or "")
