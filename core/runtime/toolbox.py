"""Runs one tool call and makes its result storable; it stores nothing itself."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from core.domain.effects import RunTool
from core.domain.events import Event
from core.domain.messages import EffectClass, ToolCall, ToolOutcome, ToolSpec
from core.domain.state import SessionState
from core.domain.values import TEXT_LIMIT, as_text, capped
from core.ports import Artifact, Clock, Tool, ToolContext, ToolOutput

LONGEST_ID = 100

log = structlog.get_logger(__name__)


class ToolDone(msgspec.Struct, frozen=True):
    outcome: ToolOutcome
    text: str
    events: tuple[Event, ...] = ()
    artifact: Artifact | None = None


class Toolbox:
    """``new_id`` makes short ids that find an error in the log."""

    def __init__(self, tools: Mapping[str, Tool], clock: Clock, new_id: Callable[[], str]) -> None:
        self._tools = tools
        self._clock = clock
        self.new_id = new_id
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in tools.values())

    def effects(self, calls: tuple[ToolCall, ...]) -> tuple[EffectClass, ...]:
        """One class a call; a tool that we do not have can do nothing."""
        return tuple(
            self._tools[call.name].effect if call.name in self._tools else "read_only"
            for call in calls
        )

    async def run(
        self, state: SessionState, effect: RunTool, progress: Callable[[str], None]
    ) -> ToolDone:
        """Never raises but when it is cancelled: whatever goes wrong is a result."""
        call = effect.call
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolDone("error", f"There is no tool {call.name!r}.")
        arguments = _arguments(call)
        if arguments is None:
            return ToolDone("error", "The arguments are not a JSON object; send them again.")
        context = self._context(state, effect, progress)
        limit = asyncio.timeout(tool.timeout)
        try:
            async with limit:
                output = await tool.run(arguments, context)
            done = self._done(output, context.call_key)
        except Exception:
            if limit.expired():
                text = f"Broken off after {tool.timeout:.0f} s without a result."
                return ToolDone("timeout", text)
            error_id = self.new_id()
            log.exception("tool failed", tool=call.name, call_id=call.id, error_id=error_id)
            return ToolDone("error", f"The tool failed (error {error_id}).")
        return done

    @staticmethod
    def _done(output: ToolOutput, call_key: str) -> ToolDone:
        text = as_text(output.value)
        artifact = Artifact(call_key, text) if len(text) > TEXT_LIMIT else None
        return ToolDone(
            outcome="error" if output.failed else "ok",
            text=capped(text, artifact.id) if artifact else text,
            events=output.events,
            artifact=artifact,
        )

    def _context(
        self, state: SessionState, effect: RunTool, progress: Callable[[str], None]
    ) -> ToolContext:
        turn, session = state.turn, state.session
        if turn is None or session is None:
            raise LookupError(f"{state.key}: no turn is open")
        place = f"{session.session_id}/{effect.turn}/{effect.step}/{_short(effect.call.id)}"
        return ToolContext(
            key=state.key,
            call_key=place,
            address=turn.address,
            now=self._clock.now,
            sleep=self._clock.sleep,
            progress=progress,
            open_reminders=len(state.reminders),
        )


def _short(call_id: str) -> str:
    """Models put whole signatures into their ids; a key that long no index takes."""
    if len(call_id) <= LONGEST_ID:
        return call_id
    return hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None
