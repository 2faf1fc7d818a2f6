"""Mistakes that several processes bring to light, or a storm; each must turn a short one red."""

from tests.planted.kills import KILL_BUGS, Edit, KillBug

_OF_KILLS = {bug.name: bug for bug in KILL_BUGS}

STORM_BUGS = (
    KillBug(
        name="two may hold a token's lease",
        scenario="SIGKILL",
        says="was ended by one of",
        edits=(
            Edit(
                "bots/intakes.py",
                "        return await self._leases.take_lease("
                "lease, self._holder.lease(now), now)\n",
                "        await self._leases.take_lease(lease, self._holder.lease(now), now)\n"
                "        return True\n",
            ),
        ),
    ),
    KillBug(
        name="a lease that is lost is polled on with",
        scenario="SIGSTOP past the lease",
        says="was ended by one of",
        edits=(
            Edit(
                "bots/intakes.py",
                "                if not await self._take(lease):\n                    return\n",
                "                await self._take(lease)\n",
            ),
        ),
    ),
    KillBug(
        name="who slept past its lease goes on with its preview",
        scenario="SIGSTOP past the lease",
        says="messages too many|was never answered",
        edits=(
            Edit(
                "storage/deliveries.py",
                "if lease.held and not _is_held(connection, message.key, lease.owner):",
                "if False:",
            ),
            Edit(
                "core/runtime/preview.py",
                "if self._stage.clock.now() < self._sure_until:",
                "if True:",
            ),
        ),
    ),
    KillBug(
        name="a message that another process is sending is claimed",
        scenario="SIGKILL",
        says="messages too many",
        edits=(
            Edit(
                "storage/deliveries.py",
                '        outbox.c.state == "pending",\n        outbox.c.not_before',
                '        outbox.c.state.in_(("pending", "sending")),\n        outbox.c.not_before',
            ),
        ),
    ),
    _OF_KILLS["recovery runs an unsafe call again"],
    _OF_KILLS["the platform is told «got it» before the commit"],
)
