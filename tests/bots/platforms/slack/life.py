"""What Slack and a service's earlier processes leave to the next one; it tests nothing itself."""

from collections.abc import Callable

from storage.memory import MemoryStore
from tests.bots.platforms.slack.kit import Bench, Inbox, socketed
from tests.standins.base import Call
from tests.standins.faults import BAD_GATEWAY
from tests.standins.slack import CONNECT, SlackStandIn

HISTORY, REPLIES = "conversations.history", "conversations.replies"


class Life:
    """What outlives a process."""

    def __init__(self, slack: SlackStandIn) -> None:
        slack.events.ack_seconds = 0.02
        self.slack = slack
        self.store = MemoryStore()
        self.inbox = Inbox()

    async def takes_first(self, say: Callable[[], object]) -> None:
        """A process that hears something, and ends."""
        async with socketed(self.slack, self.store, self.inbox) as bench:
            await bench.is_well()
            taken = len(self.inbox.taken)
            say()
            await bench.takes(taken + 1)

    async def goes_down_for(self, bench: Bench, say: Callable[[], object]) -> None:
        """The network, for longer than Slack brings what is said."""
        self.slack.faults.always(CONNECT, BAD_GATEWAY)
        await self.slack.drop_sockets()
        await bench.says("out of reach")
        await self.lost(say)
        self.slack.faults.clear()
        await bench.is_well()

    async def lost(self, say: Callable[[], object]) -> None:
        """Something that Slack gives up to bring."""
        lost = len(self.slack.events.lost)
        say()
        await self.slack.wait_for(lambda: len(self.slack.events.lost) > lost)


class Held:
    """Slack's answers to a method, from now on: they are made up, and stay on their way."""

    def __init__(self, slack: SlackStandIn, method: str) -> None:
        self._slack = slack
        self._method = method
        self._held = 0
        self._let_go = False
        slack.after = self._hold

    async def is_one(self) -> None:
        await self._slack.wait_for(lambda: self._held)

    def let_go(self) -> None:
        self._let_go = True
        self._slack.changes.announce()

    async def _hold(self, call: Call) -> None:
        self._held += call.method == self._method
        await self._slack.until(call, lambda: self._let_go or call.method != self._method)
