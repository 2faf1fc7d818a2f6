"""Bolt in front of the intake: whatever comes is stored before Slack is told that we have it."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.request import SocketModeRequest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bots.platforms.signs import Signs
from bots.platforms.slack.client import Client
from bots.platforms.slack.intake import Intake
from bots.platforms.slack.settings import EVENTS_PATH, Settings
from core.errors import StorageError

log = structlog.get_logger(__name__)


class Front:
    """``is_open`` says whether messages are taken over HTTP."""

    def __init__(self, client: Client, settings: Settings, intake: Intake, signs: Signs) -> None:
        self.is_open = False
        self._intake = intake
        self._signs = signs
        # Bolt warns of the token that it finds in the environment beside that of the client.
        logger = logging.getLogger("slack_bolt.stillhere")
        logger.setLevel(logging.ERROR)
        # Before Bolt's authorization, which would ask Slack who we are while Slack waits.
        self._app: Any = AsyncApp(
            name="stillhere",
            logger=logger,
            client=client.web,
            signing_secret=settings.signing_secret,
            before_authorize=self._store,
        )
        self._http: Any = AsyncSlackRequestHandler(self._app)

    @property
    def stores(self) -> bool:
        """Whether the last message could be stored."""
        return self._intake.stores

    @property
    def route(self) -> Route:
        return Route(EVENTS_PATH, self._receive, methods=["POST"])

    async def take(self, request: SocketModeRequest) -> bool:
        """Whether Slack may be told that we have it."""
        answer = await run_async_bolt_app(self._app, request)
        return answer.status == 200

    async def _receive(self, request: Request) -> Response:
        """Bolt looks at signature and age first, and answers 401."""
        if not self.is_open:
            return Response(status_code=503)
        if not _can_be_signed(request):
            return Response(status_code=401)
        try:
            return await self._http.handle(request)
        except UnicodeDecodeError:
            return Response(status_code=400)

    async def _store(
        self, body: dict[str, Any], next_: Callable[[], Awaitable[BoltResponse]]
    ) -> BoltResponse:
        """All but the question whether we are at this address ends here."""
        if body.get("type") == "url_verification":
            return await next_()
        try:
            await self._intake.take(body)
        except StorageError as error:
            self._signs.enter("not stored", str(error))
            return BoltResponse(status=500)
        return BoltResponse(status=200)


def _can_be_signed(request: Request) -> bool:
    """Bolt breaks on what is no number, or no plain text."""
    time = request.headers.get("x-slack-request-timestamp", "")
    signature = request.headers.get("x-slack-signature", "")
    return time.isascii() and time.isdigit() and signature.isascii()
