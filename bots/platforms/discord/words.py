"""What Discord's states and errors mean to the operator; it decides on no call."""

from collections.abc import Callable

from bots.platforms.discord.faults import described, fault_of, seconds_of
from bots.platforms.patience import Judgement
from bots.platforms.signs import State

SILENT_SECONDS = 120.0
"""Discord is asked for a sign of life every 41 seconds; the SDK gives it 60 to answer."""

WORDS: dict[State, str] = {
    "off": "not started",
    "connecting": "connecting",
    "receiving": "receives messages",
    "conflict": "another instance takes this bot's messages",
    "unreachable": "Discord is out of reach; trying on",
    "undelivered": "Discord cannot deliver; trying on",
    "rejected": "Discord rejects how it is set up; trying on",
    "refused": (
        "Discord refuses DISCORD_BOT_TOKEN, so nothing is received or sent; reset the token on the "
        "application's «Bot» page in the developer portal, set it and start again"
    ),
    "not stored": "messages cannot be stored; they wait here until the database is back",
}


class SpentError(Exception):
    """Discord counts how often a bot begins a session, and takes its token away when it is too
    often. ``seconds`` until the count begins anew."""

    def __init__(self, remaining: int, seconds: float) -> None:
        super().__init__(f"only {remaining} new sessions are left for {seconds / 3600:.1f} hours")
        self.seconds = seconds


def judge(error: Exception, redact: Callable[[str], str]) -> Judgement:
    detail = described(error, redact)
    if isinstance(error, SpentError):
        return Judgement("rejected", detail, error.seconds)
    match fault_of(error):
        case "refused":
            return Judgement("refused", detail)
        case "slow down":
            return Judgement("unreachable", detail, seconds_of(error))
        case "rejected":
            return Judgement("rejected", detail)
        case "unsent" | "unknown":
            return Judgement("unreachable", detail)
