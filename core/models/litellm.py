"""Every vendor's model through litellm, streamed; it never returns a reply that arrived by halves.

A call is tried again on the same model, then on each fallback. A request that is too long or
refused is not tried elsewhere: it is the request, not the model.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from core.domain.messages import ModelFailure, ModelReply, ModelRequest, RequestSize, Usage
from core.models.litellm_cache import marked, wants_marks
from core.models.litellm_check import trouble_with_key
from core.models.litellm_count import Counter, window_of
from core.models.litellm_errors import failure_of
from core.models.litellm_load import load
from core.models.litellm_remedies import Cause, cause_of, remedy
from core.models.litellm_wire import Assembly, ReportedUsage, messages_of, tools_of
from core.ports import OnText

Sleep = Callable[[float], Awaitable[None]]

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 20.0
FALLBACKS = "MODEL_FALLBACKS"
LONGEST_WAIT = 60.0
"""A longer Retry-After is the caller's to wait for; it can store that and we can't."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds: ``silence`` without any token, ``total`` with all retries and fallbacks.

    ``api_base`` holds for ``name`` alone. ``sees`` says whether the models take pictures; None:
    those that litellm knows to. ``window`` is in tokens; 0: what litellm knows. ``secrets`` are
    texts that no failure may show; the keys themselves are litellm's to find in the environment.
    ``variable`` is where the operator set the ``name``.
    """

    name: str
    variable: str = "MODEL"
    fallbacks: tuple[str, ...] = ()
    api_base: str | None = None
    silence: float = 60.0
    total: float = 600.0
    attempts: int = 4
    sees: bool | None = None
    window: int = 0
    secrets: tuple[str, ...] = ()


class LiteLLMModel:
    """Lives in one event loop, from ``load`` to ``close``."""

    def __init__(self, options: Options, sleep: Sleep, chance: random.Random) -> None:
        self._options = options
        self._sleep = sleep
        self._chance = chance
        self._loading = asyncio.Lock()
        self._litellm: Any = None
        self._counter: Counter | None = None

    @property
    def name(self) -> str:
        return self._options.name

    @property
    def _names(self) -> tuple[str, ...]:
        return self._options.name, *self._options.fallbacks

    async def load(self) -> None:
        """Imports litellm in a thread, once; until then nothing else has to wait for it."""
        async with self._loading:
            if self._litellm is None:
                self._litellm = await asyncio.to_thread(load)

    async def close(self) -> None:
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()

    async def check(self) -> ModelFailure | None:
        """Whether the vendor refuses the key, as far as it tells that for nothing; None where it
        does not, or is not known to. After ``load``."""
        name = self._options.name
        try:
            cause = await trouble_with_key(self._litellm, name, self._base_of(name))
        except self._litellm.BadRequestError as error:
            return self._failure(name, error, "name")
        if cause is None:
            return None
        return ModelFailure(
            kind="never", detail=f"at the start: {cause}", remedy=self._remedy(name, cause)
        )

    async def measure(self, request: ModelRequest) -> RequestSize:
        try:
            await self.load()
            return await asyncio.to_thread(self._measure, request)
        except Exception:  # noqa: BLE001 (what cannot be counted is not known)
            return RequestSize()

    def _measure(self, request: ModelRequest) -> RequestSize:
        options, name = self._options, self._options.name
        if self._counter is None:
            window = options.window or window_of(self._litellm, name, options.fallbacks)
            self._counter = Counter(self._litellm, name, window, sees=self._sees(name))
        return self._counter.size(request)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        try:
            await self.load()
        except Exception as error:  # noqa: BLE001 (a failure is a value, never an error)
            return ModelFailure(kind="never", detail=f"litellm cannot be loaded: {error!r}")
        try:
            async with asyncio.timeout(self._options.total):
                return await self._try_all(request, on_text)
        except TimeoutError:
            detail = f"no whole reply within {self._options.total:g} s"
            return ModelFailure(kind="try_again", detail=detail)

    async def _try_all(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        failures: list[ModelFailure] = []
        for name in self._names:
            result = await self._persist(name, request, on_text)
            if isinstance(result, ModelReply):
                return result
            failures.append(msgspec.structs.replace(result, detail=f"{name}: {result.detail}"))
            if result.kind in ("too_long", "refused"):
                return failures[-1]
        return _sum_up(failures)

    async def _persist(
        self, name: str, request: ModelRequest, on_text: OnText
    ) -> ModelReply | ModelFailure:
        for attempt in range(1, self._options.attempts):
            result = await self._attempt(name, request, on_text)
            if isinstance(result, ModelReply) or result.kind != "try_again":
                return result
            if (result.retry_after or 0.0) > LONGEST_WAIT:
                return result
            await self._sleep(self._pause(attempt, result.retry_after))
        return await self._attempt(name, request, on_text)

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        """Jittered, so that many turns that failed together do not come back together."""
        most = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)
        return (retry_after or 0.0) + self._chance.uniform(most / 2, most)

    async def _attempt(
        self, name: str, request: ModelRequest, on_text: OnText
    ) -> ModelReply | ModelFailure:
        try:
            self._vendor(name)
        except self._litellm.BadRequestError as error:
            return self._failure(name, error, "name")
        silence = asyncio.timeout(self._options.silence)
        try:
            async with silence:
                return await self._stream(name, request, on_text, silence)
        except Exception as error:  # noqa: BLE001  # vendors' clients raise what they like
            if silence.expired():
                detail = f"nothing came for {self._options.silence:g} s"
                return ModelFailure(kind="try_again", detail=detail)
            return self._failure(name, error)

    async def _stream(
        self, name: str, request: ModelRequest, on_text: OnText, silence: asyncio.Timeout
    ) -> ModelReply | ModelFailure:
        reply = Assembly()
        clock = asyncio.get_running_loop().time
        opened = await self._litellm.acompletion(**self._call(name, request))
        if opened is None:  # with drop_params litellm swallows a 422 that comes twice
            return ModelFailure(kind="refused", detail="422, whatever was left out")
        async with aclosing(opened) as stream:
            async for chunk in stream:
                silence.reschedule(clock() + self._options.silence)
                if reply.add(chunk):
                    on_text(reply.text)
            if _is_made_up(stream):
                return ModelFailure(kind="try_again", detail="the stream ended without a reason")
        return reply.finish(self._usage(name, reply.usage))

    def _call(self, name: str, request: ModelRequest) -> dict[str, Any]:
        files = request.files if self._sees(name) else None
        messages = messages_of(request.messages, files, signed="gemini" in name.lower())
        tools = tools_of(request.tools)
        if wants_marks(name, self._vendor(name)):
            messages, tools = marked(messages, tools)
        call: dict[str, Any] = {
            "model": name,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "num_retries": 0,
            "max_retries": 0,
            "timeout": self._options.total,
            "api_base": self._base_of(name),
        }
        return call | ({"tools": tools} if tools else {})

    def _vendor(self, name: str) -> str:
        return str(self._litellm.get_llm_provider(model=name, api_base=self._base_of(name))[1])

    def _sees(self, name: str) -> bool:
        if self._options.sees is not None:
            return self._options.sees
        return bool(self._litellm.supports_vision(model=name))

    def _base_of(self, name: str) -> str | None:
        return self._options.api_base if name == self._options.name else None

    def _usage(self, name: str, reported: ReportedUsage | None) -> Usage:
        if reported is None:
            return Usage()
        prompt, completion = reported.prompt_tokens or 0, reported.completion_tokens or 0
        cached = getattr(reported.prompt_tokens_details, "cached_tokens", None) or 0
        return Usage(prompt, completion, self._cost(name, reported), cached)

    def _cost(self, name: str, reported: ReportedUsage) -> float:
        """What the vendor or litellm put on the bill, else by the price list, else nothing."""
        billed: object = getattr(reported, "cost", None)
        if isinstance(billed, int | float):
            return float(billed)
        try:
            return float(sum(self._litellm.cost_per_token(model=name, usage_object=reported)))
        except Exception:  # noqa: BLE001  # an unknown price must not lose a reply
            return 0.0

    def _failure(self, name: str, error: BaseException, cause: Cause | None = None) -> ModelFailure:
        """What is passing has no remedy, but that nobody is reached at all."""
        failure = failure_of(self._litellm, error, self._redact)
        if cause is not None:
            return msgspec.structs.replace(failure, kind="never", remedy=self._remedy(name, cause))
        cause = cause_of(self._litellm, error)
        if failure.kind == "never" or cause == "unreachable":
            return msgspec.structs.replace(failure, remedy=self._remedy(name, cause))
        return failure

    def _remedy(self, name: str, cause: Cause | None) -> str:
        if cause is None:
            return ""
        vendor = name.partition("/")[0] if cause == "name" else self._vendor(name)
        first = name == self._options.name
        return remedy(cause, name, vendor, self._options.variable if first else FALLBACKS)

    def _redact(self, text: str) -> str:
        for secret in filter(None, self._options.secrets):
            text = text.replace(secret, "***")
        return self._litellm._logging.redact_secrets(text)


def _is_made_up(stream: object) -> bool:
    """litellm ends a stream that gave no reason, and a body that is no stream, with «stop»."""
    reasons = ("received_finish_reason", "intermittent_finish_reason", "received_any_finish_reason")
    return not any(getattr(stream, reason, True) for reason in reasons)


def _sum_up(failures: list[ModelFailure]) -> ModelFailure:
    """The most hopeful one speaks for all: it is worth a later try if any model is."""
    hopeful = [failure for failure in failures if failure.kind == "try_again"]
    waits = [failure.retry_after for failure in hopeful]
    known = [wait for wait in waits if wait is not None]
    return ModelFailure(
        kind="try_again" if hopeful else "never",
        detail="; ".join(failure.detail for failure in failures),
        retry_after=min(known) if known and len(known) == len(waits) else None,
        remedy=" ".join(dict.fromkeys(f.remedy for f in failures if f.remedy)),
    )
