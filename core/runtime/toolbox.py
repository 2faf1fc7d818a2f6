"""Runs one tool call and makes its result storable; it stores nothing itself."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import structlog

from core.domain.effects import RunTool
from core.domain.entries import BYTES_A_TOKEN
from core.domain.events import Event
from core.domain.messages import EffectClass, ToolCall, ToolOutcome, ToolSpec
from core.domain.policy import Policy
from core.domain.state import Session, SessionState
from core.domain.values import as_text, capped, is_small
from core.domain.window import window_of
from core.ports import Artifact, Clock, Tool, ToolContext, ToolOutput

LONGEST_ID = 100
SHARE_OF_WINDOW = 1 / 8
"""Of the model's window that one result may take."""
LEAST = 1_000
"""Bytes of a result that are shown however small the window is."""
MOST = 64_000
"""Bytes; so many that in any script the characters are counted first."""

ReadArtifact = Callable[[str, str], Awaitable[str | None]]
"""By session key and id; it need not look whose it is."""

log = structlog.get_logger(__name__)


class ToolDone(msgspec.Struct, frozen=True):
    outcome: ToolOutcome
    text: str
    events: tuple[Event, ...] = ()
    artifact: Artifact | None = None


class Toolbox:
    """``new_id`` makes short ids that find an error in the log."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        clock: Clock,
        new_id: Callable[[], str],
        policy: Policy,
        artifact: ReadArtifact,
    ) -> None:
        self._tools = tools
        self._clock = clock
        self.new_id = new_id
        self._policy = policy
        self._artifact = artifact
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in tools.values())

    def effects(self, calls: tuple[ToolCall, ...]) -> tuple[EffectClass, ...]:
        """One class a call; a tool that we do not have can do nothing."""
        return tuple(
            self._tools[call.name].effect if call.name in self._tools else "read_only"
            for call in calls
        )

    def known(self, name: str) -> str:
        """The name, where there is such a tool; what else a model may say is not repeated."""
        return name if name in self._tools else "unknown"

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
            done = self._done(output, context)
        except Exception:
            if limit.expired():
                text = f"Broken off after {tool.timeout:.0f} s without a result."
                return ToolDone("timeout", text)
            error_id = self.new_id()
            log.exception("tool failed", tool=call.name, call_id=call.id, error_id=error_id)
            return ToolDone("error", f"The tool failed (error {error_id}).")
        return done

    @staticmethod
    def _done(output: ToolOutput, context: ToolContext) -> ToolDone:
        text = as_text(output.value)
        whole = is_small(text, context.most)
        artifact = None if whole else Artifact(context.call_key, text)
        return ToolDone(
            outcome="error" if output.failed else "ok",
            text=capped(text, context.call_key, context.most),
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
            artifact=partial(self._read, state.key, session),
            most=_most(session, window_of(state, self._policy)),
            open_reminders=len(state.reminders),
        )

    async def _read(self, key: str, session: Session, artifact_id: str) -> str | None:
        """Only what tools of this session brought, or of the one before it under the same key."""
        run, slash, _ = artifact_id.partition("/")
        ours = slash and run in (session.session_id, session.parent)
        return await self._artifact(key, artifact_id) if ours else None


def _most(session: Session, window: int) -> int:
    """Bytes of one result that the model is shown, in whatever script."""
    tokens = window * SHARE_OF_WINDOW / session.scale
    return max(LEAST, min(MOST, int(tokens * BYTES_A_TOKEN)))


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
