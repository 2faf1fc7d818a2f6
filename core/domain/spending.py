"""What models may cost and what they did, by person and day; it counts nothing itself."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

import msgspec

from core.domain.messages import Usage
from core.domain.policy import Policy

Limit = Literal["usd", "tokens", "service"]
"""A person's dollars and tokens of a day, and the dollars of all of them together."""
MarkKind = Limit | Literal["lifted", "all_lifted"]
"""A limit: whoever neared it was told so."""

LIMITS: tuple[Limit, ...] = ("usd", "tokens", "service")
NEAR = 0.8
"""The share of a limit at which that is said."""


class Spent(msgspec.Struct, frozen=True):
    """What a person's models cost on a day (UTC). ``person`` is unique on the platform, and empty
    where it is not known."""

    day: date
    platform: str
    person: str
    usage: Usage

    @property
    def who(self) -> str:
        return f"{self.platform}:{self.person}"


class Mark(msgspec.Struct, frozen=True):
    """Something that holds until the day (UTC) is over; of the whole service without a person."""

    day: date
    platform: str
    person: str
    what: MarkKind


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """How it stands with a person, and with all of them together, on a day (UTC)."""

    day: date
    person: Usage = Usage()
    service: Usage = Usage()
    marks: frozenset[MarkKind] = frozenset()

    def plus(self, usage: Usage) -> "Meter":
        return msgspec.structs.replace(
            self, person=self.person + usage, service=self.service + usage
        )


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is shown: the month until now, and as the owner who spent most today."""

    meter: Meter
    month: Usage = Usage()
    most: tuple[Spent, ...] = ()


def limits_of(policy: Policy) -> tuple[Limit, ...]:
    """Those that are set."""
    return tuple(limit for limit in LIMITS if cap_of(limit, policy))


def cap_of(limit: Limit, policy: Policy) -> float:
    """0 for none."""
    match limit:
        case "usd":
            return policy.daily_usd_per_user
        case "tokens":
            return policy.daily_tokens_per_user
        case "service":
            return policy.daily_usd


def spent_of(limit: Limit, meter: Meter) -> float:
    match limit:
        case "usd":
            return meter.person.cost
        case "tokens":
            return meter.person.total
        case "service":
            return meter.service.cost


def is_lifted(limit: Limit, meter: Meter) -> bool:
    return ("all_lifted" if limit == "service" else "lifted") in meter.marks


def reached(meter: Meter, policy: Policy) -> Limit | None:
    """The limit that forbids another call today."""
    return next((it for it in _in_force(meter, policy) if _share(it, meter, policy) >= 1), None)


def neared(meter: Meter, policy: Policy) -> tuple[Limit, ...]:
    """Limits of which there is little left, and nobody was told."""
    return tuple(
        limit
        for limit in _in_force(meter, policy)
        if limit not in meter.marks and _share(limit, meter, policy) >= NEAR
    )


def ends(day: date) -> datetime:
    """When what was spent on it counts no more."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def _in_force(meter: Meter, policy: Policy) -> tuple[Limit, ...]:
    return tuple(limit for limit in limits_of(policy) if not is_lifted(limit, meter))


def _share(limit: Limit, meter: Meter, policy: Policy) -> float:
    return spent_of(limit, meter) / cap_of(limit, policy)
