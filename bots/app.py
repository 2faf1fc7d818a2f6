"""The composition root: builds every object, starts and stops them in order; decides nothing."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress

import structlog

from bots.bookmarks import StoredBookmarks
from bots.clock import claim_code, short_id
from bots.front import View, front_route
from bots.ground import Ground, build_adapters
from bots.intakes import Intakes
from bots.metrics import metrics_route
from bots.model import build_model, build_summary_model, build_transcriber, chosen
from bots.platforms import Adapter, Site
from bots.report import Report
from bots.status import WRITE_SECONDS, Status
from bots.watch import build_watch
from bots.web import Server, make_server
from core import commands as commands_package
from core import tools as tools_package
from core.commands.base import Command
from core.domain.messages import Inbound
from core.errors import StorageError
from core.files.reader import FileReader
from core.models.demo import DemoModel
from core.models.litellm import LiteLLMModel
from core.plugins import discover
from core.ports import Channel, Quarantine, Tool
from core.runtime.access import Access
from core.runtime.admission import Admission
from core.runtime.agent import Agent
from core.runtime.aside import Aside
from core.runtime.budget import Budget
from core.runtime.compactor import Compactor
from core.runtime.delivery import Delivery
from core.runtime.holder import Holder
from core.runtime.limiter import Limiter
from core.runtime.model_signs import ModelSigns
from core.runtime.outside import Outside
from core.runtime.owners_chat import OwnersChat
from core.runtime.recovery import Recovery
from core.runtime.retrying import insist
from core.runtime.sessions import Sessions
from core.runtime.toolbox import Toolbox
from core.runtime.wakeups import Wakeups
from scheduler.audit import Audit
from scheduler.jobs import Jobs
from scheduler.ticker import Ticker
from storage.quarantine import FOLDER as QUARANTINE
from storage.quarantine import LeftInDatabase, QuarantineFolder

FLUSH_SECONDS = 3.0
"""What is left of a PaaS's 30 seconds for the outbox, after 20 for the turns."""
TIMER_SECONDS = 1.0
QUIET_SECONDS = 0.1
CLAIM_LEASES = 2
"""How many times longer a message on its way stays claimed: a slow platform needs that."""
SIGN_SECONDS = 60.0
"""How often it is written down how it stands with each platform, for ``doctor``."""

AUDIT_SECONDS = 60.0
"""How often it is looked whether every message taken is accounted for."""

log = structlog.get_logger(__name__)


class Service:
    def __init__(self, ground: Ground) -> None:
        """Raises ConfigurationError with every fault of every platform, one a line."""
        self._ground = ground
        self._clock = ground.clock
        self._store = ground.store
        settings = ground.settings
        commands: dict[str, Command] = discover(commands_package, "COMMAND")
        self.adapters = self._build_adapters(commands)
        channels: dict[str, Channel] = {n: a.channel for n, a in self.adapters.items()}
        self.model = ground.model or build_model(settings, ground.environment, self._clock)
        self.summary_model = build_summary_model(
            settings, ground.environment, self._clock, self.model
        )
        self.transcriber = build_transcriber(settings, ground.environment, self._clock)
        policy = settings.policy(self.model.name)
        self._watch = watch = ground.watch or build_watch(ground.environment, self._clock)
        owner = short_id()
        most = 0 if settings.role == "intake" else settings.max_turns
        holder = Holder(owner, ground.lease, most)
        self._sessions = Sessions(self._store, channels, policy, self._clock, holder, watch)
        takes = settings.role != "worker"
        self._intakes = Intakes(
            self.adapters, self._store, self._clock, holder, takes=takes, telemetry=watch
        )
        terminals = frozenset(n for n in self.adapters if ground.platforms[n].terminal)
        self._access = Access(self._store, frozenset(settings.allowed_users), terminals)
        self._aside = aside = Aside(self._sessions, self._store, self._quarantine())
        budget = Budget(self._store, self._sessions, self._clock)
        chat = OwnersChat(self._store, self._access, channels, self._clock, short_id)
        self._admission = Admission(self._sessions, self._access, commands, aside, budget)
        self._admission.subscribe(chat.seen)
        self._model_signs = ModelSigns()
        limiter = Limiter(self._clock, {n: p.paces for n, p in ground.platforms.items()}, watch)
        outside = Outside(
            outbox=self._store,
            channels=channels,
            model=self.model,
            summarizer=self.summary_model,
            toolbox=Toolbox(self._tools(), self._clock, short_id, policy, self._sessions.artifact),
            reader=FileReader(
                channels, self._store, self._clock, settings.limits, self.transcriber
            ),
            limiter=limiter,
            clock=self._clock,
            holder=holder,
            aside=aside,
            budget=budget,
            access=self._access,
            model_signs=self._model_signs,
        )
        self._agent = Agent(self._sessions, outside)
        self._compactor = Compactor(self._sessions, outside)
        claimer = Holder(owner, ground.lease * CLAIM_LEASES)
        self._delivery = Delivery(self._store, channels, limiter, self._clock, claimer, watch)
        self._sessions.subscribe(self._agent.reconcile)
        self._sessions.subscribe(self._compactor.reconcile)
        self._sessions.subscribe(lambda state: self._delivery.nudge())
        self._recovery = Recovery(self._sessions, self._store, aside, self._clock, self._working)
        self._sessions.subscribe(self._recovery.reconcile)
        self._wakeups = Wakeups(
            self._store, self._sessions, self._recovery.nudge, self._intakes.nudge
        )
        jobs = Jobs(self._sessions, self._recovery, self._store, self._clock, self._working)
        self._keeper = Ticker(((jobs.renew_leases, ground.renew_every or ground.lease / 3),))
        self._audit = Audit(self._store)
        signs = self._model_signs
        self.status = Status(
            self._store, self._intakes, self._audit, self._clock, signs, self._sessions.phases
        )
        self._report = Report(ground, self.model.name, self._intakes, signs, chat)
        self._ticker = Ticker(
            (
                (jobs.fire_due, TIMER_SECONDS),
                (self.status.write_signs, SIGN_SECONDS),
                (self._audit.look, AUDIT_SECONDS),
            )
        )
        self._tasks: list[asyncio.Task[None]] = []

    def _build_adapters(self, commands: Mapping[str, Command]) -> dict[str, Adapter]:
        ground = self._ground
        site = Site(
            accept=self._accept,
            clock=ground.clock,
            bookmarks=lambda platform: StoredBookmarks(ground.store, platform),
            commands=tuple((name, command.summary) for name, command in commands.items()),
            public_url=ground.settings.public_url.rstrip("/"),
        )
        return build_adapters(ground.platforms, ground.environment, site)

    def _quarantine(self) -> Quarantine:
        settings = self._ground.settings
        if not settings.keeps_files:
            return LeftInDatabase()
        return QuarantineFolder(self._store, settings.stillhere_data / QUARANTINE, self._clock)

    def _working(self) -> tuple[str, ...]:
        return tuple({*self._agent.working(), *self._compactor.working()})

    def _tools(self) -> Mapping[str, Tool]:
        if self._ground.tools is not None:
            return self._ground.tools
        found: dict[str, Tool] = discover(tools_package, "TOOL")
        demo = isinstance(self.model, DemoModel)
        return {n: t for n, t in found.items() if demo or not t.demo_only}

    async def _accept(self, inbound: Inbound) -> None:
        await self._admission.accept(inbound)

    async def start(self) -> None:
        """Recovery comes before any message is taken; both wait for the database."""
        fresh = claim_code()
        code = await insist(self._clock, lambda: self._access.claim_code(fresh))
        if code is not None and not self._of_terminal():
            log.warning("Nobody owns this bot yet. Send it this in a DM: /start %s", code)
        if isinstance(self.model, LiteLLMModel):
            self._tasks.append(asyncio.create_task(self._load(self.model)))
        await insist(self._clock, self._recovery.run)
        self._aside.catch_up()
        await self._audit.look()
        for adapter in self.adapters.values():
            await insist(self._clock, adapter.open)
        for work in (self._delivery.run(), self._recovery.keep_at(), self._wakeups.run()):
            self._tasks.append(asyncio.create_task(work))
        self._keeper.start()
        self._ticker.start()
        await self._intakes.start()
        self.status.life = "running"
        self._tasks.append(asyncio.create_task(self._report.run(), name="report"))
        choice = chosen(self._ground.settings, self._ground.environment)
        log.info("ready", platforms=sorted(self.adapters), model=self.model.name, why=choice.why)

    async def _load(self, model: LiteLLMModel) -> None:
        try:
            await model.load()
            refused = await model.check()
        except Exception:
            log.exception("the model cannot be loaded; the first message tries it again")
            return
        if refused is not None:
            log.error("the model will not answer", detail=refused.detail, remedy=refused.remedy)
            self._model_signs.heard(refused)

    def _of_terminal(self) -> bool:
        return any(self._ground.platforms[name].terminal for name in self.adapters)

    async def stop(self) -> None:
        """Stops taking, lets turns finish, stores where the rest stood, flushes the outbox."""
        self.status.life = "stopping"
        self._sessions.capacity.closed = True
        await self._intakes.stop()
        self._ticker.stop()
        seconds = self._ground.settings.drain_seconds
        await asyncio.gather(self._agent.drain(seconds), self._compactor.drain(seconds))
        self._keeper.stop()
        await self._end_tasks()
        await self._last_write(self._recovery.interrupt(tuple(self._sessions.unfinished)))
        await self._last_write(self._delivery.drain(FLUSH_SECONDS))
        await self._last_write(self._sessions.save_snapshots())
        await self._aside.finish(FLUSH_SECONDS)
        await self._last_write(self.status.write_signs())
        for adapter in self.adapters.values():
            await adapter.close()
        for model in {self.model, self.summary_model}:
            if isinstance(model, LiteLLMModel):
                await model.close()
        if self.transcriber is not None:
            await self.transcriber.close()
        await self._watch.close()
        log.info("stopped")

    async def _last_write(self, write: Awaitable[None]) -> None:
        try:
            await write
        except StorageError as error:
            log.warning("stopped without a last write; the next start recovers", error=str(error))

    async def quiet(self) -> None:
        """Returns when no turn is at work, and nothing is being summed up."""
        while self._working():
            await self._clock.sleep(QUIET_SECONDS)

    async def _end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def server(self) -> Server:
        routes = [route for adapter in self.adapters.values() for route in adapter.routes]
        own = [front_route(self._view), metrics_route(self.status.reading, self._watch.counters)]
        return make_server(self.status.readiness, [*own, *routes])

    async def _view(self) -> View:
        """With the operator's own list of people the code is in the log alone: they are expected
        there, and a stranger who finds the page must not be faster."""
        code, owned = "", None
        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(WRITE_SECONDS):
                found = await self._access.open_claim()
            owned = found is None
            code = "" if self._ground.settings.allowed_users else found or ""
        return View(
            state=self.status.life,
            platforms=self._intakes.health(),
            model=self.model.name,
            trouble=self._model_signs.trouble,
            owned=owned,
            code=code,
        )
