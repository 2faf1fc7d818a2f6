"""Sessions in which anything happens, and what a model is asked in them; it judges nothing itself.

Beside what ``machine`` knows, models of other vendors reply here: with ids, names and arguments
that theirs alone would take.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import rule

from core.domain.effects import CallModel, next_effects
from core.domain.messages import Attachment, ModelRequest, ReadFile, ToolCall, ToolSpec
from core.domain.state import Phase
from tests.core.domain.machine import Sessions, while_
from tests.core.domain.samples import EFFECTS
from tests.core.domain.world import Events, World
from tests.core.files.made import picture

Judge = Callable[[ModelRequest], None]

CAT = picture()
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"zone": {"type": "string"}}}
TOOLS = tuple(ToolSpec(name, f"To {name}.", SCHEMA) for name in EFFECTS)

foreign_ids = st.sampled_from(["functions.now:0", "functions.now:1", "fc|1", "é", "c1", "x" * 70])
foreign_names = st.sampled_from([*EFFECTS, "functions.look", "mcp/look", "schön", "", "n" * 300])
foreign_arguments = st.sampled_from(["{}", "", "[]", "null", '{"zone": "U', '{"zone": "UTC"}', "7"])
foreign_calls = st.lists(
    st.builds(ToolCall, foreign_ids, foreign_names, foreign_arguments), min_size=1, max_size=4
)
blank = st.sampled_from(["", " ", "\n\n", "\u200b", "\u00a0", "\x1c"])
"""What is nothing to see, and to some vendors nothing at all."""


def shown(number: int) -> ReadFile:
    return ReadFile(kind="picture", label="photo", sha=str(number) * 64, mime="image/jpeg")


class Asked(World):
    """Hands over each request that a model would be sent, pictures and tools included."""

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self._judge = judge
        self._last: ModelRequest | None = None

    def commit(self, events: Events) -> Events:
        events = super().commit(events)
        due = any(isinstance(e, CallModel) for e in next_effects(self.state, self.policy))
        request = self.full() if due else None
        if request is not None and request != self._last:
            self._last = request
            self._judge(request)
        return events

    def full(self) -> ModelRequest:
        request = self.request()
        files = {shown.sha: CAT for shown in request.pictures[::2] if shown.mime}
        return msgspec.structs.replace(request, tools=TOOLS, files=files)


class Asking(Sessions):
    judge: Judge

    def __init__(self) -> None:
        super().__init__()
        self.world = Asked(type(self).judge)

    @rule(text=blank)
    def someone_writes_nothing(self, text: str) -> None:
        self.world.says(text)

    @while_(Phase.CLOSED, Phase.IDLE, Phase.SUSPENDED)
    @rule(text=blank, many=st.integers(1, 3))
    def someone_shows_pictures(self, text: str, many: int) -> None:
        self.world.says(text, attachments=(Attachment(kind="photo", ref="r"),))
        self.world.reads(*(shown(number) for number in range(many)))

    @while_(Phase.THINKING)
    @rule(calls=foreign_calls, text=blank, result=blank)
    def another_vendors_model_calls_tools(
        self, calls: list[ToolCall], text: str, result: str
    ) -> None:
        self.world.replies(text, *calls)
        for call in tuple(self.world.witness.open):
            self.world.runs(call[2], result)

    @while_(Phase.THINKING)
    @rule(text=blank)
    def the_model_says_nothing(self, text: str) -> None:
        self.world.replies(text)

    @while_(Phase.IDLE)
    @rule(pinned=st.booleans(), calls=foreign_calls)
    def a_talk_is_summed_up_and_goes_on(self, pinned: bool, calls: list[ToolCall]) -> None:
        for _ in range(3):
            self.world.says(self.marked("m"))
            self.another_vendors_model_calls_tools(calls, "", "")
            self.world.replies(self.marked("a"))
        if pinned:
            self.world.pins(self.marked("p"))
        if self.world.wants_compaction(""):
            self.world.compacts()
            self.world.summarizes(self.marked("s"))
        self.world.says(self.marked("m"))
