"""What Slack's states and errors mean to the operator; it decides on no call."""

from collections.abc import Callable

from bots.platforms.patience import Judgement
from bots.platforms.signs import State
from bots.platforms.slack.faults import described, fault_of, seconds_of

SILENT_SECONDS = 90.0
"""Pings over a socket, or a question to Slack a minute, are well below it."""

WORDS: dict[State, str] = {
    "off": "not started",
    "connecting": "connecting",
    "receiving": "receives messages",
    "conflict": "another instance is in the way; trying on",
    "unreachable": "Slack is out of reach; trying on",
    "undelivered": "Slack cannot deliver to PUBLIC_URL; it keeps trying for some minutes",
    "rejected": "Slack rejects how the app is set up; compare it with `stillhere slack manifest`",
    "refused": (
        "Slack refuses a token, so nothing is received or sent; look at SLACK_BOT_TOKEN and "
        "SLACK_APP_TOKEN under api.slack.com/apps, install the app again if need be, and start "
        "again"
    ),
    "not stored": "messages cannot be stored; Slack brings them again, and history keeps them",
}


def judge(error: Exception, redact: Callable[[str], str]) -> Judgement:
    detail = described(error, redact)
    match fault_of(error):
        case "refused":
            return Judgement("refused", detail)
        case "slow down":
            return Judgement("unreachable", detail, seconds_of(error))
        case "rejected":
            return Judgement("rejected", detail)
        case "later" | "unsent" | "unknown":
            return Judgement("unreachable", detail)
