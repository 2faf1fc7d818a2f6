"""Knows of which previews nobody can know whether they arrived; it makes no call."""

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from bots.platforms.slack.faults import fault_of
from core.ports import Clock

YOUNG = timedelta(hours=1)
"""How long after the start an answer may belong to a preview of a process that was killed."""
REMEMBERED = 10_000


class Previews:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._born = clock.now()
        self._doubtful = OrderedDict[str, bool]()

    @contextmanager
    def trying(self, preview_id: str) -> Generator[None]:
        self._remember(preview_id, doubtful=True)
        try:
            yield
        except Exception as error:
            self._remember(preview_id, doubtful=fault_of(error) == "unknown")
            raise
        self._remember(preview_id, doubtful=False)

    def may_be_out(self, preview_id: str) -> bool:
        """Said of one that is not known to be out."""
        if not preview_id:
            return False
        is_young = self._clock.now() - self._born < YOUNG
        return self._doubtful.get(preview_id, is_young)

    def _remember(self, preview_id: str, *, doubtful: bool) -> None:
        self._doubtful[preview_id] = doubtful
        self._doubtful.move_to_end(preview_id)
        if len(self._doubtful) > REMEMBERED:
            self._doubtful.popitem(last=False)
