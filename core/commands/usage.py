"""``/usage``: what this conversation and its person have cost, and what is left of the day."""

from core.commands.base import Command, CommandContext
from core.domain.draft import Draft
from core.domain.messages import Usage
from core.domain.notices import amount
from core.domain.policy import Policy
from core.domain.spending import Bill, Limit, Meter, cap_of, is_lifted, limits_of, spent_of


def run(draft: Draft, context: CommandContext) -> str:
    bill, session = context.bill, draft.state.session
    lines = [f"- this conversation: {_told(session.usage)}"] if session else []
    if bill is not None:
        lines += _person(bill, draft.policy)
        lines += _service(bill, draft.policy, context)
    return "\n".join(lines) or "Nothing was spent here yet."


def _person(bill: Bill, policy: Policy) -> list[str]:
    return [
        f"- you, today: {_told(bill.meter.person)}",
        *(_left(limit, bill.meter, policy) for limit in limits_of(policy) if limit != "service"),
        f"- you, this month: {_told(bill.month)}",
    ]


def _service(bill: Bill, policy: Policy, context: CommandContext) -> list[str]:
    """What all of them spent is told to the owner, in private."""
    left = [_left("service", bill.meter, policy)] if "service" in limits_of(policy) else []
    if not _is_for_owner(context):
        return left
    most = [f"  - `{spent.who}`: {_told(spent.usage)}" for spent in bill.most]
    return [
        f"- all of us, today: {_told(bill.meter.service)}",
        *left,
        *(["- most of it:", *most] if most else []),
    ]


def _is_for_owner(context: CommandContext) -> bool:
    return context.role == "owner" and context.inbound.address.chat_type == "dm"


def _left(limit: Limit, meter: Meter, policy: Policy) -> str:
    whose = "all of us" if limit == "service" else "one person"
    cap = cap_of(limit, policy)
    head = f"- limit a day for {whose}: {amount(limit, cap)}"
    if is_lifted(limit, meter):
        return f"{head}, lifted until midnight UTC"
    return f"{head}, {amount(limit, max(cap - spent_of(limit, meter), 0))} left until midnight UTC"


def _told(usage: Usage) -> str:
    cached = f", {usage.cached:,} of them cached" if usage.cached else ""
    tokens = f"{usage.total:,} tokens ({usage.prompt:,} in{cached}, {usage.completion:,} out)"
    cost = f"${usage.cost:,.4f}" if usage.cost else "no price known"
    return f"{tokens}, {cost}" if usage.total else "nothing"


COMMAND = Command(
    name="usage", summary="what it cost and what is left today", run=run, asks_bill=True
)
