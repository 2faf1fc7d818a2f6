"""What became of the messages taken, in numbers that can disagree; it counts nothing itself."""

import msgspec

from core.domain.state import SessionState, Source


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """Of one platform. The first four are counted as messages are taken and settled; ``pending`` is
    what the sessions owe, so that a message which every session forgot makes the sum unequal."""

    accepted: int = 0
    answered: int = 0
    failed: int = 0
    discarded: int = 0
    pending: int = 0

    @property
    def missing(self) -> int:
        """Messages that nobody accounts for; negative when more are accounted for than taken."""
        return self.accepted - self.answered - self.failed - self.discarded - self.pending

    @property
    def balanced(self) -> bool:
        return self.missing == 0

    @property
    def verdict(self) -> str:
        """In words; «balanced» only when it is."""
        if self.balanced:
            return "balanced"
        many = abs(self.missing)
        messages = "1 message is" if many == 1 else f"{many} messages are"
        whose = "by nobody" if self.missing > 0 else "though never taken"
        return f"UNEQUAL: {messages} accounted for {whose}"

    @property
    def numbers(self) -> dict[str, int]:
        return msgspec.structs.asdict(self)

    def __add__(self, other: "Ledger") -> "Ledger":
        return Ledger(
            accepted=self.accepted + other.accepted,
            answered=self.answered + other.answered,
            failed=self.failed + other.failed,
            discarded=self.discarded + other.discarded,
            pending=self.pending + other.pending,
        )


def owed(state: SessionState) -> int:
    """How many messages of its user a session still has to answer: queued, or in the open turn."""
    in_turn: tuple[Source, ...] = state.turn.sources if state.turn else ()
    return sum(source.kind == "user" for source in (*state.queue, *in_turn))
