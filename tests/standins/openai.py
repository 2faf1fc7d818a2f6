"""An OpenAI-compatible model for tests, scripted and strict; it never thinks.

async with OpenAIStandIn() as ai:        # api_base: ai.url + "/v1", model: "openai/test"
    ai.script(Reply(tool_calls=(ToolCall("now"),)), Reply(text="It is noon."))
    ai.hold()                            # calls hang until ai.release()
    await ai.wait_for(lambda: ai.requests)
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from aiohttp import web

from tests.standins.base import Call, StandIn, cut
from tests.standins.faults import Refuse, RefusedError
from tests.standins.openai_checks import Json, violations
from tests.standins.openai_reply import Answer, Reply, last_user_text

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

Respond = Callable[[Json], Reply | Refuse]


def echo(request: Json) -> Reply:
    return Reply(text=f"You said: {last_user_text(request)}")


class OpenAIStandIn(StandIn):
    """Scripted replies first, then what `respond` makes of the request.

    `requests` are all bodies in order, `violations` what was wrong with them. A call that is held
    and given up takes no scripted reply. With `api_key` any other key is refused. `heard` are the
    recordings in order, `spoken` is what is understood of each.
    """

    def __init__(self, respond: Respond = echo, api_key: str | None = None) -> None:
        super().__init__()
        self.respond: Respond = respond
        self.api_key = api_key
        self.requests: list[Json] = []
        self.violations: list[str] = []
        self._script: deque[Reply | Refuse] = deque()
        self.heard: list[bytes] = []
        self.spoken = "words"
        self._held = False

    def script(self, *replies: Reply | Refuse) -> None:
        """For the next completions, one each; faults count apart and come first."""
        self._script.extend(replies)

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        self.changes.announce()

    @property
    def cancelled(self) -> list[Call]:
        """Calls whose client left before the answer was out."""
        with self.changes.lock:
            return [call for call in self.calls if call.cancelled]

    def routes(self) -> Iterable[web.RouteDef]:
        yield web.post("/v1/chat/completions", self._on_completion)
        yield web.post("/v1/audio/transcriptions", self._on_transcription)
        yield web.get("/v1/models", self._on_models)

    async def work(self) -> None:
        """Nothing to do beside the answers."""

    async def act(self, call: Call) -> Any:
        if self.api_key is not None and call.params["key"] != self.api_key:
            raise RefusedError(BAD_KEY)
        if call.method == MODELS:
            return {"object": "list", "data": [{"id": "test", "object": "model"}]}
        if call.method == TRANSCRIPTIONS:
            return self._transcribe(call.params)
        return await self._complete(call)

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
        if call.effect.streams:
            return await self._stream(call, call.effect, request)
        return await self._at_once(call, call.effect, request)

    def refusal(self, refuse: Refuse) -> web.Response:
        wait = refuse.retry_after
        headers = {} if wait is None else {"Retry-After": str(wait)}
        kind = "server_error" if refuse.status >= 500 else "invalid_request_error"
        error = {"message": refuse.text, "type": kind, "param": None, "code": refuse.code}
        return web.json_response({"error": error}, status=refuse.status, headers=headers)

    async def _complete(self, call: Call) -> Answer:
        request: Json = call.params["body"]
        with self.changes.lock:
            self.requests.append(request)
            found = violations(request)
            self.violations += found
        self.changes.announce()
        if found:
            raise RefusedError(Refuse(400, f"Invalid request: {found[0]}"))
        await self.until(call, lambda: not self._held)
        if self.is_over(call):
            raise ConnectionResetError
        with self.changes.lock:
            reply = self._script.popleft() if self._script else self.respond(request)
        if isinstance(reply, Refuse):
            raise RefusedError(reply)
        return Answer(reply, request, call.number)

    async def _at_once(
        self, call: Call, answer: Answer, request: web.Request
    ) -> web.StreamResponse:
        reply = answer.reply
        if reply.hang_after is not None:
            await self.until(call, lambda: False)
        if reply.hang_after is not None or reply.cut_after is not None:
            return cut(call, request, "cut")
        if reply.garbage_after is not None:
            return web.Response(text="{not json", content_type="application/json")
        return web.json_response(answer.whole())

    async def _stream(self, call: Call, answer: Answer, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        reply = answer.reply
        for chunk in answer.chunks():
            if call.pieces == reply.hang_after:
                await self.until(call, lambda: False)
                return cut(call, request, "hung in the stream")
            if call.pieces == reply.cut_after:
                return cut(call, request, "cut in the stream")
            if call.pieces == reply.garbage_after:
                await response.write(b"data: {not json\n\n")
                break
            await self._send(call, response, chunk, reply.delay_per_chunk)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _send(
        self, call: Call, response: web.StreamResponse, chunk: Json, delay: float
    ) -> None:
        if call.cancelled:
            raise ConnectionResetError
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        call.pieces += 1
        self.changes.announce()
        await asyncio.sleep(delay)

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
