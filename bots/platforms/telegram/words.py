"""What Telegram's states and errors mean to the operator; it decides on no call."""

from collections.abc import Callable

from bots.platforms.patience import Judgement, jittered
from bots.platforms.signs import State
from bots.platforms.telegram.faults import described, fault_of, seconds_of

CONFLICT_SECONDS = 5.0
SILENT_SECONDS = 90.0
"""Two polls with all their slack, or a look at the webhook a minute, are well below it."""

WORDS: dict[State, str] = {
    "off": "not started",
    "connecting": "connecting",
    "receiving": "receives messages",
    "conflict": (
        "another instance takes this bot's messages; stop it, or give it a token of its own. "
        "Trying on"
    ),
    "unreachable": "Telegram is out of reach; trying on",
    "undelivered": "Telegram cannot deliver to PUBLIC_URL; it keeps trying",
    "rejected": "Telegram rejects how it is set up; trying on",
    "refused": (
        "Telegram refuses TELEGRAM_BOT_TOKEN, so nothing is received or sent; get a valid one "
        "from @BotFather and start again"
    ),
    "not stored": "messages cannot be stored; they wait at Telegram until the database is back",
}


def judge(error: Exception, redact: Callable[[str], str]) -> Judgement:
    detail = described(error, redact)
    match fault_of(error):
        case "refused":
            return Judgement("refused", detail)
        case "conflict":
            return Judgement("conflict", detail, jittered(CONFLICT_SECONDS))
        case "slow down":
            return Judgement("unreachable", detail, seconds_of(error))
        case "moved" | "rejected":
            return Judgement("rejected", detail)
        case "unsent" | "unknown":
            return Judgement("unreachable", detail)
