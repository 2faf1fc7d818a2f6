"""Anthropic's Messages API for tests, scripted and strict; it never thinks.

async with AnthropicStandIn() as ai:     # api_base: ai.url, model: "anthropic/claude-sonnet-4-5"
    ai.script(Reply(tool_calls=(ToolCall("now"),)), Reply(text="It is noon."))
    ai.hold()                            # calls hang until ai.release()
    await ai.wait_for(lambda: ai.requests)
"""

import json
from collections.abc import Iterable, Iterator

from aiohttp import web

from tests.standins.anthropic_checks import WINDOW, Json, pieces, too_long, violations
from tests.standins.anthropic_reply import Answer
from tests.standins.base import Call
from tests.standins.faults import Refuse, RefusedError
from tests.standins.model import ModelStandIn
from tests.standins.openai_reply import Reply
from tests.standins.tokens import Piece, Used

MESSAGES = "messages"
LARGEST_BODY = 32 * 2**20
"""Bytes; platform.claude.com/docs/en/api/errors, as are the kinds of error."""
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
BAD_KEY = Refuse(401, "invalid x-api-key")
NO_VERSION = Refuse(400, "anthropic-version: header is required")
TOO_LARGE = Refuse(413, "Request exceeds the maximum allowed number of bytes.")
TOO_LONG = Refuse(400, "prompt is too long: 208310 tokens > 200000 maximum")
OVERLOADED = Refuse(529, "Overloaded")
NO_CREDIT = Refuse(
    400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
)
UNSAFE = Refuse(400, "Output blocked by content filtering policy")
DECLINED = Reply(text="I can", finish_reason="refusal")


class AnthropicStandIn(ModelStandIn):
    def routes(self) -> Iterable[web.RouteDef]:
        yield web.post("/v1/messages", self._on_messages)

    def wrong(self, request: Json) -> list[str]:
        return violations(request, WINDOW if self.window is None else self.window)

    def pieces(self, request: Json) -> Iterator[Piece]:
        return pieces(request)

    def overflow(self, tokens: int, window: int) -> Refuse:
        return Refuse(400, too_long(tokens, window))

    def shaped(self, reply: Reply, request: Json, number: int, used: Used) -> Answer:
        return Answer(reply, request, number, used)

    def frame(self, chunk: Json) -> bytes:
        return f"event: {chunk['type']}\ndata: {json.dumps(chunk)}\n\n".encode()

    async def act(self, call: Call) -> Answer:
        if not call.params["key"] or self.api_key not in (None, call.params["key"]):
            raise RefusedError(BAD_KEY)
        if not call.params["version"]:
            raise RefusedError(NO_VERSION)
        if call.params["bytes"] > LARGEST_BODY:
            raise RefusedError(TOO_LARGE)
        answer = await self.complete(call, call.params["body"])
        assert isinstance(answer, Answer)
        return answer

    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        return await self.say(call, call.effect, request)

    def refusal(self, refuse: Refuse) -> web.Response:
        wait = refuse.retry_after
        headers = {} if wait is None else {"retry-after": str(wait)}
        kind = KINDS.get(refuse.status, "api_error")
        error = {"type": kind, "message": refuse.text}
        body = {"type": "error", "error": error, "request_id": "req_1"}
        return web.json_response(
            body, status=refuse.status, headers=headers | {"request-id": "req_1"}
        )

    async def _on_messages(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        params = {
            "key": request.headers.get("x-api-key", ""),
            "version": request.headers.get("anthropic-version", ""),
            "bytes": len(data),
            "body": json.loads(data),
        }
        return await self.handle(request, MESSAGES, params)
