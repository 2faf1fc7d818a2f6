"""A whole service without a network or a disk: lives of a process, a chat, a model, tools."""

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, cast

from msgspec.structs import replace

from core.domain.keys import Address
from core.domain.ledger import Ledger
from core.domain.messages import (
    Attachment,
    EffectClass,
    Inbound,
    ModelReply,
    OutboxMessage,
    Part,
    ToolCall,
    ToolSpec,
)
from core.domain.policy import Policy
from core.errors import StillhereError, StorageError
from core.files.limits import Limits
from core.files.reader import FileReader
from core.models.scripted import ScriptedModel
from core.ports import Model, Pace, Paces, Store, ToolContext, ToolOutput, Transcriber
from core.ports.telemetry import UNWATCHED, Telemetry
from core.runtime.access import Access
from core.runtime.admission import Admission
from core.runtime.agent import Agent
from core.runtime.aside import Aside
from core.runtime.budget import Budget
from core.runtime.compactor import Compactor
from core.runtime.delivery import Delivery
from core.runtime.holder import UNLIMITED, Holder
from core.runtime.limiter import Limiter
from core.runtime.model_signs import ModelSigns
from core.runtime.outside import Outside
from core.runtime.owners_chat import OwnersChat
from core.runtime.recovery import Recovery
from core.runtime.sessions import Sessions
from core.runtime.toolbox import Toolbox
from core.runtime.wakeups import Wakeups
from scheduler.jobs import Jobs
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME, commands
from tests.core.runtime.virtual import START, VirtualClock

LEASE = 15.0
KEY = "agent:main:chat:dm:7"


class Chat:
    """``core.ports.Channel``. ``shown`` is what the person sees, by the platform's message id."""

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}
        self.log: list[tuple[float, str, str]] = []
        """When, which call, which text."""
        self.faults: deque[StillhereError | None] = deque()
        """One for each coming send; None is a success."""
        self.files: dict[str, bytes] = {}
        """What came with messages, by reference."""
        self.fetch_faults: deque[Exception | None] = deque()
        self.edit_faults: deque[StillhereError] = deque()
        self.lookup_faults: deque[StillhereError] = deque()
        self.asked_since: list[datetime] = []
        self.lookup_seconds = 0.0
        self.seconds = 0.0
        """How long a send takes."""
        self.arrived: str | None = None
        """What a look-up finds."""
        self._ids = count(1)

    @property
    def texts(self) -> list[str]:
        return list(self.shown.values())

    def calls(self, name: str) -> list[tuple[float, str]]:
        return [(at, text) for at, call, text in self.log if call == name]

    def render(self, text: str) -> tuple[Part, ...]:
        return tuple(Part(text=part, plain=part) for part in text.split("|") if part.strip())

    def preview(self, text: str) -> Part | None:
        shown = f"{text} …"
        return Part(text=shown, plain=shown) if text.strip() else None

    async def send(self, message: OutboxMessage) -> str:
        self._note("send", message.part.text)
        await asyncio.sleep(self.seconds)
        fault = self.faults.popleft() if self.faults else None
        if fault is not None:
            raise fault
        name = f"m{next(self._ids)}"
        self.shown[name] = message.part.text
        return name

    async def edit(self, address: Address, platform_id: str, part: Part) -> None:
        self._note("edit", part.text)
        await asyncio.sleep(self.seconds)
        if self.edit_faults:
            raise self.edit_faults.popleft()
        self.shown[platform_id] = part.text

    async def typing(self, address: Address) -> None:
        self._note("typing", "")

    async def lookup(self, message: OutboxMessage, since: datetime) -> str | None:
        self._note("lookup", message.part.text)
        self.asked_since.append(since)
        await asyncio.sleep(self.lookup_seconds)
        if self.lookup_faults:
            raise self.lookup_faults.popleft()
        return self.arrived

    async def fetch(self, attachment: Attachment, limit: int) -> bytes:
        self._note("fetch", attachment.ref)
        await asyncio.sleep(self.seconds)
        fault = self.fetch_faults.popleft() if self.fetch_faults else None
        if fault is not None:
            raise fault
        return self.files[attachment.ref]

    def _note(self, call: str, text: str) -> None:
        self.log.append((asyncio.get_running_loop().time(), call, text))


class FakeTool:
    """``core.ports.Tool``; it counts how often each call ran, and how it came to an end."""

    demo_only = False

    def __init__(self, name: str, effect: EffectClass, seconds: float = 0.0) -> None:
        self.spec = ToolSpec(name, f"{name} it", {"type": "object", "properties": {}})
        self.effect: EffectClass = effect
        self.timeout = 60.0
        self.seconds = seconds
        self.started: Counter[str] = Counter()
        self.contexts: list[ToolContext] = []
        self.ended = 0
        self.result: Any = f"{name}: done"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.started[context.call_key] += 1
        self.contexts.append(context)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.ended += 1
        if isinstance(self.result, Exception):
            raise self.result
        return ToolOutput(value=self.result)


class Mortal:
    """Stands before an object of the outside world until its process is dead.

    ``faults`` are raised by the coming commits instead of, or (with «after») in spite of, storing.
    ``killer`` is asked around every commit whether the process dies here. A call whose name is in
    ``slow`` arrives so many seconds late, one in ``slow_answers`` is answered late.
    """

    def __init__(self, real: object) -> None:
        self._real = real
        self.dead = False
        self.faults: deque[str] = deque()
        self.killer: Callable[[str], bool] = lambda moment: False
        self.slow: dict[str, float] = {}
        self.slow_answers: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return partial(self._commit if name == "commit" else self._call, found)

    async def _call(self, method: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
        self._breathe()
        await asyncio.sleep(self.slow.get(method.__name__, 0.0))
        result = await method(*args, **named)
        await asyncio.sleep(self.slow_answers.get(method.__name__, 0.0))
        self._breathe()
        return result

    async def _commit(self, method: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        fault = self.faults.popleft() if self.faults else ""
        if fault == "before":
            raise StorageError("the disk is full")
        self.dead = self.dead or self.killer("before")
        stream = await self._call(method, *args)
        self.dead = self.dead or self.killer("after")
        self._breathe()
        if fault == "after":
            raise StorageError("the connection broke")
        return stream

    def _breathe(self) -> None:
        if self.dead:
            raise asyncio.CancelledError


class Ground:
    """What outlives a process: the store, the chats, the model's vendor, the tools' world."""

    def __init__(self, *lines: Any, policy: Policy | None = None) -> None:
        self.store = MemoryStore()
        self.chat = Chat()
        self.clock = VirtualClock()
        self.model: Model = ScriptedModel(*lines)
        self.summarizer: Model | None = None
        """None: the same model."""
        self.policy = policy or Policy()
        self.tools: dict[str, FakeTool] = {
            "look": FakeTool("look", "read_only"),
            "book": FakeTool("book", "idempotent"),
            "pay": FakeTool("pay", "unsafe"),
        }
        self.paces = {"chat": Paces()}
        self.allowed = frozenset({"*"})
        self.platform_set_up = True
        self.quarantine = Cell()
        self.transcriber: Transcriber | None = None
        self.telemetry: Telemetry = UNWATCHED
        self.numbers = count(1)
        self.processes: list[Process] = []

    @property
    def script(self) -> ScriptedModel:
        return cast("ScriptedModel", self.model)

    async def starts(
        self, owner: str = "", seconds: float = LEASE, most: int = UNLIMITED
    ) -> "Process":
        process = Process(self, Holder(owner or f"p{len(self.processes)}", seconds, most))
        self.processes.append(process)
        await process.start()
        return process

    async def outcomes(self) -> dict[str, int]:
        """What became of the messages taken; it always adds up."""
        ledger = (await self.store.ledger()).get("chat", Ledger())
        assert ledger.balanced, ledger
        return {name: n for name, n in ledger.numbers.items() if n and name != "accepted"}


class Cell:
    """``core.ports.Quarantine``: it only remembers."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def keep(self, kept_as: str, why: str) -> str:
        await asyncio.sleep(1)
        self.kept.append(kept_as)
        return "a cell"

    async def missing(self, kept: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one for one in kept if one not in self.kept)


class Process:
    """One life of the service. It looks at its timers, leases and outbox as the real one does."""

    def __init__(self, ground: Ground, holder: Holder) -> None:
        self.ground = ground
        self.holder = holder
        models = [ground.model, ground.summarizer or ground.model]
        self._outside = [Mortal(outer) for outer in (ground.store, ground.chat, *models)]
        self.disk, self.vendor = self._outside[0], self._outside[2]
        store, chat, model, summarizer = cast(
            "tuple[Store, Chat, Model, Model]", tuple(self._outside)
        )
        clock, channels = ground.clock, {"chat": chat} if ground.platform_set_up else {}
        self.sessions = Sessions(store, channels, ground.policy, clock, holder, ground.telemetry)
        self.access = Access(store, ground.allowed)
        self.aside = aside = Aside(self.sessions, store, ground.quarantine)
        self.budget = budget = Budget(store, self.sessions, clock)
        ids = (f"id{n}" for n in ground.numbers)
        self.owners_chat = OwnersChat(store, self.access, channels, clock, lambda: next(ids))
        self.admission = Admission(self.sessions, self.access, commands(), aside, budget)
        self.admission.subscribe(self.owners_chat.seen)
        self.limiter = Limiter(clock, ground.paces, ground.telemetry)
        self.model_signs = ModelSigns()
        outside = Outside(
            outbox=store,
            channels=channels,
            model=model,
            summarizer=summarizer,
            toolbox=Toolbox(
                ground.tools, clock, lambda: next(ids), ground.policy, self.sessions.artifact
            ),
            reader=FileReader(channels, store, clock, Limits(), ground.transcriber, at_once),
            limiter=self.limiter,
            clock=clock,
            holder=holder,
            aside=aside,
            budget=budget,
            access=self.access,
            model_signs=self.model_signs,
        )
        self.agent = Agent(self.sessions, outside)
        self.compactor = Compactor(self.sessions, outside, at_once)
        self.delivery = Delivery(store, channels, self.limiter, clock, holder, ground.telemetry)
        self.recovery = Recovery(self.sessions, store, aside, clock, self.working)
        self.jobs = Jobs(self.sessions, self.recovery, store, clock, self.working)
        self.sessions.subscribe(self.agent.reconcile)
        self.sessions.subscribe(self.compactor.reconcile)
        self.sessions.subscribe(lambda state: self.delivery.nudge())
        self.sessions.subscribe(self.recovery.reconcile)
        self.wakeups = Wakeups(store, self.sessions, self.recovery.nudge, lambda: None)
        self._tasks: list[asyncio.Task[None]] = []

    def working(self) -> tuple[str, ...]:
        return tuple({*self.agent.working(), *self.compactor.working()})

    async def start(self) -> None:
        """Recovery comes before any message is taken."""
        await self.recovery.run()
        self.aside.catch_up()
        third = self.holder.seconds / 3
        self._renewing = asyncio.create_task(_every(third, self.jobs.renew_leases))
        self._hearing = asyncio.create_task(self.wakeups.run())
        self._tasks = [
            self._renewing,
            self._hearing,
            asyncio.create_task(self.recovery.keep_at()),
            asyncio.create_task(_every(0.5, self.jobs.fire_due)),
            asyncio.create_task(self.delivery.run()),
        ]

    def forgets_to_renew(self) -> None:
        """As a process that is stopped or starved for a while."""
        self._renewing.cancel()
        self._hearing.cancel()

    def dozes(self) -> None:
        """As by SIGSTOP, but for what is under way: it looks at nothing and hears nothing."""
        for task in self._tasks:
            task.cancel()

    def dies(self) -> None:
        """As by SIGKILL: from here on it reaches nothing and nobody."""
        for thing in self._outside:
            thing.dead = True
        for task in self._tasks:
            task.cancel()

    async def stops(self, drain: float = 20.0) -> None:
        """As by SIGTERM."""
        self.sessions.capacity.closed = True
        await self.compactor.drain(drain)
        await self.agent.drain(drain)
        await self.recovery.interrupt(tuple(self.sessions.unfinished))
        for task in self._tasks:
            task.cancel()
        await self.delivery.drain(5.0)
        await self.sessions.save_snapshots()

    async def is_sent(self, *files: Attachment, text: str = "", **changes: Any) -> Inbound:
        return await self.hears(text, attachments=files, **changes)

    async def hears(self, text: str, **changes: Any) -> Inbound:
        message = said(text, next(self.ground.numbers), **changes)
        await self.admission.accept(message)
        return message

    async def state(self, key: str = KEY) -> Any:
        return await self.sessions.state(key)


def said(text: str, number: int, **changes: Any) -> Inbound:
    message = Inbound(address=HOME, update_id=f"u{number}", user="7", text=text, sent_at=START)
    return replace(message, **changes)


def asks(*names: str, text: str = "") -> ModelReply:
    """A reply that calls these tools."""
    calls = tuple(ToolCall(f"c{n}", name, "{}") for n, name in enumerate(names, 1))
    return ModelReply(text=text, calls=calls, model="scripted")


async def at_once(work: Callable[[], Any], seconds: float) -> Any:
    """Threads know nothing of virtual time."""
    return work()


def spoil(ground: Ground) -> None:
    """The newest event turns into one that cannot follow, as a bad disk or a bug would do."""
    log = ground.store._logs[KEY]  # pyright: ignore[reportPrivateUsage]
    log[-1] = replace(log[-1], data=log[0].data, type=log[0].type)
    ground.store._snapshots.clear()  # pyright: ignore[reportPrivateUsage]


async def service(*lines: str) -> tuple[Ground, Process]:
    """Whose chats have no pace."""
    ground = Ground(*lines)
    ground.paces = {"chat": Paces(chat=Pace(0.001, 100), bot=Pace(0.001, 1000))}
    return ground, await ground.starts()


def sends(ground: Ground) -> list[str]:
    return [text for _, text in ground.chat.calls("send")]


async def passes(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def _every(seconds: float, job: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await job()
