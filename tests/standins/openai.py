"""An OpenAI-compatible model for tests, scripted and strict; it never thinks.

async with OpenAIStandIn() as ai:        # api_base: ai.url + "/v1", model: "openai/test"
    ai.script(Reply(tool_calls=(ToolCall("now"),)), Reply(text="It is noon."))
    ai.hold()                            # calls hang until ai.release()
    await ai.wait_for(lambda: ai.requests)
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web

from tests.standins.base import Call
from tests.standins.faults import Refuse, RefusedError
from tests.standins.model import ModelStandIn, Respond, echo
from tests.standins.openai_checks import Json, pieces, violations
from tests.standins.openai_reply import Answer, Reply
from tests.standins.tokens import Piece, Used

COMPLETIONS = "chat/completions"
MODELS = "models"
TRANSCRIPTIONS = "audio/transcriptions"
RECORDINGS = frozenset({"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"})
BAD_KEY = Refuse(401, "Incorrect API key provided.", code="invalid_api_key")
TOO_LONG = Refuse(
    400,
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9000 tokens. Please reduce the length of the messages.",
    code="context_length_exceeded",
)
UNSAFE = Refuse(
    400,
    "Your request was rejected as a result of our safety system. Your prompt may contain text "
    "that is not allowed by our safety system.",
    code="content_policy_violation",
)
FILTERED = Reply(text="I can", finish_reason="content_filter")


class OpenAIStandIn(ModelStandIn):
    """`heard` are the recordings in order, `spoken` is what is understood of each."""

    ending = b"data: [DONE]\n\n"

    def __init__(
        self, respond: Respond = echo, api_key: str | None = None, window: int | None = None
    ) -> None:
        super().__init__(respond, api_key, window)
        self.heard: list[bytes] = []
        self.spoken = "words"

    def wrong(self, request: Json) -> list[str]:
        return violations(request)

    def pieces(self, request: Json) -> Iterator[Piece]:
        return pieces(request)

    def overflow(self, tokens: int, window: int) -> Refuse:
        return Refuse(
            400,
            f"This model's maximum context length is {window} tokens. However, your messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
        )

    def shaped(self, reply: Reply, request: Json, number: int, used: Used) -> Answer:
        return Answer(reply, request, number, used)

    def frame(self, chunk: Json) -> bytes:
        return f"data: {json.dumps(chunk)}\n\n".encode()

    def url_for(self, who: str) -> str:
        """As of ``TelegramStandIn``."""
        return f"{self.url}/for/{who}"

    def routes(self) -> Iterable[web.RouteDef]:
        yield web.post("/v1/chat/completions", self._on_completion)
        yield web.post("/for/{who}/v1/chat/completions", self._on_completion)
        yield web.post("/v1/audio/transcriptions", self._on_transcription)
        yield web.get("/v1/models", self._on_models)

    async def act(self, call: Call) -> Any:
        if self.api_key is not None and call.params["key"] != self.api_key:
            raise RefusedError(BAD_KEY)
        if call.method == MODELS:
            return {"object": "list", "data": [{"id": "test", "object": "model"}]}
        if call.method == TRANSCRIPTIONS:
            return self._transcribe(call.params)
        return await self.complete(call, call.params["body"])

    def _transcribe(self, params: Json) -> Json:
        if not params["model"]:
            raise RefusedError(Refuse(400, "you must provide a model parameter"))
        if params["name"].rpartition(".")[2] not in RECORDINGS or not params["data"]:
            raise RefusedError(Refuse(400, "Unrecognized file format."))
        with self.changes.lock:
            self.heard.append(params["data"])
        return {"text": self.spoken}

    async def answer(self, call: Call, request: web.Request) -> web.StreamResponse:
        if not isinstance(call.effect, Answer):
            return web.json_response(call.effect)
        return await self.say(call, call.effect, request)

    def refusal(self, refuse: Refuse) -> web.Response:
        wait = refuse.retry_after
        headers = {} if wait is None else {"Retry-After": str(wait)}
        kind = "server_error" if refuse.status >= 500 else "invalid_request_error"
        error = {"message": refuse.text, "type": kind, "param": None, "code": refuse.code}
        return web.json_response({"error": error}, status=refuse.status, headers=headers)

    async def _on_completion(self, request: web.Request) -> web.StreamResponse:
        params = {"key": key_of(request), "body": await request.json()}
        return await self.handle(request, COMPLETIONS, params)

    async def _on_transcription(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form.get("file")
        name, data = ("", b"")
        if isinstance(file, web.FileField):
            with file.file as opened:
                name, data = file.filename, opened.read()
        params = {"key": key_of(request), "model": form.get("model"), "name": name, "data": data}
        return await self.handle(request, TRANSCRIPTIONS, params)

    async def _on_models(self, request: web.Request) -> web.StreamResponse:
        return await self.handle(request, MODELS, {"key": key_of(request)})


def key_of(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")
