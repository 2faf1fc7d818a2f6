"""Mistakes that only a second replica brings to light; each must turn cells of the kill matrix
red."""

from tests.planted.kills import Edit, KillBug

PAIR_BUGS = (
    KillBug(
        name="the lease of the bot's token is not asked",
        scenario="plain answer",
        form="two replicas",
        says="409",
        edits=(
            Edit(
                "bots/intakes.py",
                "await self._leases.take_lease(lease, self._holder.lease(now), now)",
                "now is not None",
            ),
        ),
    ),
    KillBug(
        name="a turn is taken from who is at work on it, and its lease is not fenced",
        scenario="two tools",
        form="two replicas",
        says="none of ('Charged once.'",
        edits=(
            Edit(
                "storage/reads.py",
                'streams.c.open_turn, streams.c.lease_until <= sa.bindparam("now")',
                'streams.c.open_turn, streams.c.lease_until - 10**15 <= sa.bindparam("now")',
            ),
            Edit(
                "storage/checks.py",
                "    if head.owner != lease.owner and (lease.held or",
                '    if lease.owner == "" and (lease.held or',
            ),
        ),
    ),
    KillBug(
        name="a claim that is over puts its message back all the same",
        scenario="five parts",
        form="one paused",
        edits=(
            Edit(
                "storage/deliveries.py",
                '    .where(_of_claim, _under_way)\n    .values(\n        state="pending",',
                '    .where(_of_position)\n    .values(\n        state="pending",',
            ),
        ),
    ),
    KillBug(
        name="what was held through a long sleep is sent on waking",
        scenario="five parts",
        form="one paused",
        edits=(
            Edit(
                "core/runtime/delivery.py",
                "        if _time() + self._limiter.blocked_for(address) >= until:\n"
                "            return False\n"
                "        try:\n"
                "            async with asyncio.timeout_at(until):\n",
                "        try:\n            async with asyncio.timeout(self._holder.seconds):\n",
            ),
            Edit(
                "core/runtime/delivery.py",
                "    if _time() >= until:\n",
                "    if until < 0:\n",
            ),
        ),
    ),
)
