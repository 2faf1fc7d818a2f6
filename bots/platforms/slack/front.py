"""Bolt in front of the intake: whatever comes is stored before Slack is told that we have it."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.signature import SignatureVerifier
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
        self._secret = settings.signing_secret

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
        """Signature and age are looked at first: Bolt does it, too, but reads the body before, and
        breaks on whatever anybody posts."""
        if not self.is_open:
            return Response(status_code=503)
        try:
            if not await self._is_signed(request):
                return Response(status_code=401)
            return await self._http.handle(request)
        except UnicodeDecodeError:
            return Response(status_code=400)

    async def _is_signed(self, request: Request) -> bool:
        """Slack's SDK breaks on what is no number, or no plain text. Raises UnicodeDecodeError."""
        time = request.headers.get("x-slack-request-timestamp", "")
        signature = request.headers.get("x-slack-signature", "")
        can_be = time.isascii() and time.isdigit() and signature.isascii()
        body, headers = await request.body(), dict(request.headers)
        return can_be and SignatureVerifier(self._secret).is_valid_request(body, headers)

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
