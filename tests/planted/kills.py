"""Mistakes that only a kill brings to light; each must turn cells of the kill matrix red."""

import shutil
from pathlib import Path

import msgspec

from tests.harness.kills import Form

ROOT = Path(__file__).parents[2]
CODE = ("bots", "core", "scheduler", "storage", "tests")


class Edit(msgspec.Struct, frozen=True):
    """``old`` stands once in the file, and becomes ``new``."""

    file: str
    old: str
    new: str


class KillBug(msgspec.Struct, frozen=True, kw_only=True):
    """``scenario`` is the one whose cells are to notice it; ``says`` what it complains of itself,
    before any kill of ours, where the mistake does not even need one."""

    name: str
    scenario: str
    edits: tuple[Edit, ...]
    says: str = ""
    form: Form = "alone"


KILL_BUGS = (
    KillBug(
        name="the platform is told «got it» before the commit",
        scenario="plain answer",
        edits=(
            Edit(
                "bots/platforms/telegram/polling.py",
                "await self._patience.insist(partial(self._intake.take, update.api_kwargs[RAW]))",
                "later.append(asyncio.create_task(self._take_later(update)))",
            ),
            Edit(
                "bots/platforms/telegram/polling.py",
                "    async def _end_webhook(self) -> None:",
                "    async def _take_later(self, update):\n"
                "        await asyncio.sleep(0.2)\n"
                "        await self._intake.take(update.api_kwargs[RAW])\n\n"
                "    async def _end_webhook(self) -> None:",
            ),
            Edit(
                "bots/platforms/telegram/polling.py",
                "from datetime import timedelta\n",
                "import asyncio\nfrom datetime import timedelta\n",
            ),
            Edit(
                "bots/platforms/telegram/polling.py",
                "AT_ONCE = timedelta()\n",
                "AT_ONCE = timedelta()\nlater = []\n",
            ),
        ),
    ),
    KillBug(
        name="the answer is sent beside the outbox",
        says="messages too many",
        scenario="five parts",
        edits=(
            Edit(
                "core/domain/outputs.py",
                "            return [_answer(state, turn, event, seq)]\n",
                "            return []\n",
            ),
            Edit(
                "core/runtime/agent.py",
                "        await self._tell(state.key, wish)\n        return outcome_of(reply)\n",
                "        await self._tell(state.key, wish)\n"
                "        turn = _open_turn(state)\n"
                "        channel = self._out.channels[turn.address.platform]\n"
                "        for part in channel.render(getattr(reply, 'text', '')):\n"
                "            if not getattr(reply, 'calls', ()):\n"
                "                await channel.send(OutboxMessage(id='x', key=state.key, "
                "address=turn.address, kind='answer', part=part))\n"
                "        return outcome_of(reply)\n",
            ),
            Edit(
                "core/runtime/agent.py",
                "from core.domain.outputs import preview_id\n",
                "from core.domain.messages import OutboxMessage\n"
                "from core.domain.outputs import preview_id\n",
            ),
        ),
    ),
    KillBug(
        name="a row is marked sent before it is sent",
        scenario="five parts",
        edits=(
            Edit(
                "core/runtime/delivery.py",
                "            platform_id = await self._send(row, until)\n",
                "            await self._outbox.sent(row, '0', self._clock.now())\n"
                "            platform_id = await self._send(row, until)\n",
            ),
        ),
    ),
    KillBug(
        name="a row whose sender died counts as sent",
        scenario="five parts",
        edits=(
            Edit(
                "core/runtime/delivery.py",
                'await self._again(row, TransientError("nobody knows whether it arrived"))\n',
                "await self._outbox.sent(row, '0', self._clock.now())\n",
            ),
        ),
    ),
    KillBug(
        name="the tool runs before its event is stored",
        scenario="/stop in a tool",
        edits=(
            Edit(
                "core/runtime/agent.py",
                "        if not await self._tell(state.key, start) or not await self._still_ours(\n"
                "            state.key, start.at\n"
                "        ):\n            return\n",
                "",
            ),
            Edit(
                "core/runtime/agent.py",
                "        finish = ask.FinishTool(\n",
                "        await self._tell(state.key, start)\n        finish = ask.FinishTool(\n",
            ),
        ),
    ),
    KillBug(
        name="recovery runs an unsafe call again",
        scenario="two tools",
        edits=(
            Edit(
                "core/domain/recovery.py",
                'call.status == "running" and call.effect == "unsafe"',
                'call.status == "completed" and call.effect == "unsafe"',
            ),
        ),
    ),
    KillBug(
        name="the attempt is counted after the work, so that a killer's never is",
        scenario="a turn that kills",
        says="the turn killed the process",
        edits=(
            Edit(
                "core/domain/decide.py",
                "ev.TurnAttempted(turn=turn.number, attempt=turn.attempt + 1)",
                "ev.TurnAttempted(turn=turn.number, attempt=max(1, turn.attempt))",
            ),
        ),
    ),
    KillBug(
        name="recovery comes after the intake",
        scenario="message during the downtime",
        edits=(
            Edit("bots/app.py", "        await insist(self._clock, self._recovery.run)\n", ""),
            Edit(
                "bots/app.py",
                '        self.status.life = "running"\n',
                "        await asyncio.sleep(0.5)\n"
                "        await self._recovery.run()\n"
                '        self.status.life = "running"\n',
            ),
            Edit(
                "bots/app.py",
                "self._recovery.keep_at(), ",
                "",
            ),
        ),
    ),
    KillBug(
        name="the reset is a commit of its own, before the message's",
        scenario="idle reset",
        edits=(
            Edit(
                "core/runtime/admission.py",
                "                await self._sessions.change(key, decision, "
                "Extras(inbox=inbox_id(inbound)))\n",
                "                taken = Extras(inbox=inbox_id(inbound))\n"
                "                reset = self._reset(inbound)\n"
                "                if await self._sessions.change(key, reset, taken):\n"
                "                    taken = Extras()\n"
                "                await self._sessions.change(key, decision, taken)\n",
            ),
            Edit(
                "core/runtime/admission.py",
                "    async def _decision(self, inbound: Inbound, role",
                "    def _reset(self, inbound):\n"
                "        def decision(state, at):\n"
                "            draft = Draft(state, at, self._sessions.policy)\n"
                "            if state.session is None or expiry(state, at, draft.policy):\n"
                "                ensure_session(draft, inbound.address)\n"
                "            return draft.events\n"
                "        return decision\n\n"
                "    async def _decision(self, inbound: Inbound, role",
            ),
            Edit(
                "core/runtime/admission.py",
                "from core.domain.lifecycle import start_next\n",
                "from core.domain.lifecycle import ensure_session, expiry, start_next\n",
            ),
        ),
    ),
    KillBug(
        name="what was taken is remembered in memory alone",
        says="the books are not closed",
        scenario="a long talk",
        edits=(
            Edit(
                "storage/checks.py",
                "        if commit.inbox is not None and commit.inbox in self.inbox:\n",
                "        if False:\n",
            ),
            Edit(
                "storage/rows.py",
                "        inbox.append(\n            {\n                **msgspec",
                "        taken = InboxId(taken.platform, taken.account, "
                "f'{taken.update_id}.{commit.expected_seq}')\n"
                "        inbox.append(\n            {\n                **msgspec",
            ),
        ),
    ),
)


def plant(bug: KillBug, folder: Path) -> None:
    """A copy of the code with the bug in it. Raises LookupError when its place is gone."""
    for name in CODE:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for edit in bug.edits:
        file = folder / edit.file
        text = file.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise LookupError(f"{bug.name}: its place in {edit.file} is gone; find the new one")
        file.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
