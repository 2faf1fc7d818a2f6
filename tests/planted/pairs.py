"""Mistakes that only a second replica brings to light; each must turn cells of the kill matrix
red."""

from tests.planted.kills import Edit, KillBug

PAIR_BUGS = (
    KillBug(
        name="a claim is not looked at before its message is taken for abandoned",
        scenario="five parts",
        form="two replicas",
        says="messages too many",
        edits=(
            Edit(
                "storage/deliveries.py",
                'outbox.c.state == "sending", outbox.c.lease_until <= sa.bindparam("now"))',
                'outbox.c.state == "sending", sa.bindparam("now") > 0)',
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
)
