"""A bundle holds a session to the byte, is whole or not there, and is not believed blindly."""

import asyncio
import gzip
import hashlib
import json
import stat
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.domain.events import CommandAnswered, Recorded
from core.domain.fold import fold
from core.domain.messages import ToolCall
from core.domain.state import SessionState
from core.errors import BrokenDataError
from core.ports import Commit, RawRow, Store
from storage import bundle
from storage.bundle_check import check
from storage.bundle_export import Request, export
from storage.bundle_files import PARTIAL, BundleFolder
from storage.codec import Codec, snapshot_text
from storage.memory import MemoryStore
from storage.quarantine import QuarantineFolder, bundle_name
from storage.store import SqlStore
from tests.contract.values import at, put_aside
from tests.core.domain.samples import KEY, START, calls, inbound
from tests.core.domain.world import World


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    store = await SqlStore.open(database_url)
    yield store
    await store.close()


def lived() -> World:
    """A session with a bit of everything, left in the middle of a tool call."""
    world = World()
    world.says("hello")
    world.replies("", *calls("book", "look"))
    world.runs("c1", "booked")
    world.runs("c2", "seen")
    world.replies("there you are")
    world.command("new")
    world.says("a new one, with «é» and 日本")
    world.replies("let me see", ToolCall("p1", "pay", '{"sum": 7}'))
    world.starts("p1")
    return world


async def keeps(store: Store, log: Sequence[Recorded], state: SessionState | None = None) -> None:
    await store.commit(
        Commit(key=KEY, expected_seq=0, at=at(), log=tuple(log), open_turn=True, snapshot=state)
    )


async def exported(store: Store, target: Path, *, compress: bool = False) -> Path:
    request = Request(key=KEY, target=target, at=at(), why="a test", compress=compress)
    assert await export(store, request) is not None
    return target


def logged(folder: Path) -> list[Recorded]:
    """The events of a bundle, as the program reads them."""
    lines = [line for path in sorted(folder.glob("events*")) for line in content(path)]
    rows = [bundle.row(bundle.read_line(line)) for line in lines]
    return [Codec().recorded(KEY, row) for row in rows]


def content(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()


def shown(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


@pytest.mark.parametrize("compress", [False, True])
async def test_what_goes_out_is_what_was_kept(store: Store, tmp_path: Path, compress: bool) -> None:
    world = lived()
    await keeps(store, world.log)
    folder = await exported(store, tmp_path / "out", compress=compress)
    meta = check(folder)
    assert (meta.key, meta.base_seq, meta.last_seq, meta.events) == (
        KEY,
        0,
        world.state.seq,
        world.state.seq,
    )
    assert logged(folder) == world.log
    assert bundle.state(shown(folder, "snapshot.json")) == world.state
    log = "events.jsonl.gz" if compress else "events.jsonl"
    assert {path.name for path in folder.iterdir()} == {"meta.json", "snapshot.json", log}


async def test_the_six_parts_stand_in_the_snapshot_whole(store: Store, tmp_path: Path) -> None:
    world = lived()
    await keeps(store, world.log)
    parts = shown(await exported(store, tmp_path / "out"), "snapshot.json")
    assert list(parts) == ["metadata", "context", "tools", "position", "usage", "configuration"]
    session = world.state.session
    assert session is not None
    assert parts["metadata"]["session"]["session_id"] == session.session_id
    assert parts["metadata"]["session"]["parent"] == session.parent != ""
    assert [entry["seq"] for entry in parts["context"]["entries"]] == [
        entry.seq for entry in session.entries
    ]
    (call,) = parts["tools"]
    assert (call["call"]["arguments"], call["status"]) == ('{"sum": 7}', "running")
    assert parts["position"]["turn"]["step"] == 1
    assert parts["usage"] == {"prompt": 10, "completion": 5, "total": 15, "cost": 0.25, "cached": 0}
    assert set(parts["configuration"]) == {"model", "parameters", "custom"}


actions: dict[str, Callable[[World], object]] = {
    "says": lambda world: world.says("more"),
    "new": lambda world: world.command("new"),
    "stop": lambda world: world.command("stop"),
    "answers": lambda world: world.replies("so it is"),
    "calls": lambda world: world.replies("", *calls("look", "pay")),
    "starts": lambda world: world.starts("c1"),
    "finishes": lambda world: world.finishes("c1"),
    "dies": lambda world: world.crashes() and world.attempts(),
    "waits": lambda world: world.fails("try_again", 20.0),
    "refused": lambda world: world.fails("refused"),
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(actions)), max_size=40))
def test_any_life_goes_out_and_is_sound(names: list[str]) -> None:
    world = World()
    world.says("hello")
    for name in names:
        if world.turn or name in ("says", "new"):
            actions[name](world)
    state = world.state
    assert bundle.state(json.loads(bundle.pretty(bundle.parts(state)))) == state
    with TemporaryDirectory() as folder:
        target = Path(folder) / "out"
        asyncio.run(_out(world.log, target))
        assert check(target).last_seq == world.state.seq
        assert logged(target) == world.log
        assert bundle.state(shown(target, "snapshot.json")) == world.state


async def _out(log: Sequence[Recorded], target: Path) -> None:
    store = MemoryStore()
    await keeps(store, log)
    await exported(store, target)


def chatter(count: int) -> list[Recorded]:
    return [
        Recorded(seq, START, CommandAnswered(inbound=inbound("x", seq), command="help", text="y"))
        for seq in range(1, count + 1)
    ]


class Counted:
    """How much is asked of it at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.most = 0

    async def raw_head(self, key: str) -> Any:
        return await self._store.raw_head(key)

    async def raw_events(self, key: str, after: int | None, limit: int) -> tuple[RawRow, ...]:
        rows = await self._store.raw_events(key, after, limit)
        self.most = max(self.most, len(rows))
        return rows


async def test_a_long_log_is_read_in_pages_and_split(store: Store, tmp_path: Path) -> None:
    log = chatter(20_001)
    await keeps(store, log)
    counted = Counted(store)
    folder = await exported(counted, tmp_path / "out")  # pyright: ignore[reportArgumentType]
    assert counted.most == 1_000
    names = [f"events-{number:04}.jsonl" for number in (1, 2, 3)]
    assert [len(content(folder / name)) for name in names] == [10_000, 10_000, 1]
    assert check(folder).events == len(log)
    assert logged(folder) == log


async def test_what_is_said_after_the_export_began_stays_out(store: Store, tmp_path: Path) -> None:
    class Busy(Counted):
        async def raw_head(self, key: str) -> Any:
            head = await super().raw_head(key)
            more = chatter(4)[3:]
            await store.commit(Commit(key=KEY, expected_seq=3, at=at(), log=tuple(more)))
            return head

    await keeps(store, chatter(3))
    folder = await exported(Busy(store), tmp_path / "out")  # pyright: ignore[reportArgumentType]
    assert check(folder).last_seq == 3


async def test_it_is_for_its_owner_alone(store: Store, tmp_path: Path) -> None:
    await keeps(store, lived().log)
    folder = await exported(store, tmp_path / "deep" / "out")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 3


async def test_an_unknown_key_leaves_nothing(store: Store, tmp_path: Path) -> None:
    request = Request(key="agent:main:chat:dm:nobody", target=tmp_path / "a" / "b", at=at(), why="")
    assert await export(store, request) is None
    assert not (tmp_path / "a").exists()


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob(f"{PARTIAL}*"))


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
async def test_what_is_there_is_never_written_over(store: Store, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    {
        "folder": target.mkdir,
        "file": target.touch,
        "dangling link": lambda: target.symlink_to(tmp_path / "nowhere"),
    }[kind]()
    await keeps(store, lived().log)
    with pytest.raises(FileExistsError):
        await exported(store, target)
    assert leftovers(tmp_path) == []


async def test_a_write_that_fails_half_way_leaves_nothing(store: Store, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Failing(Counted):
        async def raw_events(self, key: str, after: int | None, limit: int) -> tuple[RawRow, ...]:
            seen.append([path.name for path in place.iterdir()])
            if after is not None:
                raise OSError(28, "No space left on device")
            return await super().raw_events(key, after, limit)

    place = tmp_path / "place"
    await keeps(store, chatter(1_500))
    with pytest.raises(OSError, match="No space left"):
        await exported(Failing(store), place / "out")  # pyright: ignore[reportArgumentType]
    assert [[name.startswith(PARTIAL) for name in names] for names in seen] == [[True], [True]]
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("step", ["__init__", "add_line", "end_lines", "publish"])
async def test_who_stops_an_export_finds_nothing_or_all_of_it(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on, ended = threading.Event(), threading.Event(), threading.Event()
    real = getattr(BundleFolder, step)

    def slow(*args: Any, **named: Any) -> None:
        begun.set()
        may_go_on.wait(20)
        real(*args, **named)
        ended.set()

    store = MemoryStore()
    await keeps(store, lived().log)
    monkeypatch.setattr(BundleFolder, step, slow)
    place = tmp_path / "place"
    exporting = asyncio.create_task(exported(store, place / "out"))
    await asyncio.to_thread(begun.wait, 20)
    for _ in range(2):
        exporting.cancel()
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.05, may_go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await exporting
    assert ended.is_set()
    left = list(place.iterdir())
    assert left == [place / "out"] * (step in ("end_lines", "publish"))
    assert [check(folder).fault for folder in left] == [""] * len(left)


def test_the_name_of_a_folder_is_safe_and_tells_two_apart() -> None:
    first = bundle_name("agent:main:slack:dm:T1.U2%2F..:aside:20260505_143022_000001")
    second = bundle_name("agent:main:slack:dm:T1.U2%2F..:aside:20260505_143022_000002")
    assert first == "agent_main_slack_dm_T1.U2_2F...20260505_143022_000001"
    assert first != second
    long = bundle_name(f"agent:main:x:dm:{'é' * 500}:aside:20260505_143022_000001")
    assert len(long.encode()) < 255


class Clock:
    def now(self) -> Any:
        return at()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError


async def test_a_log_set_aside_goes_to_quarantine_under_its_old_key(
    store: Store, tmp_path: Path
) -> None:
    world = lived()
    await keeps(store, world.log, world.state)
    kept_as = await put_aside(store, KEY, at())
    quarantine = QuarantineFolder(store, tmp_path / "quarantine", Clock())
    folder = Path(await quarantine.keep(kept_as, "because"))
    meta = check(folder)
    assert (meta.key, meta.kept_as, meta.why) == (KEY, kept_as, "because")
    assert bundle.state(shown(folder, "snapshot.json")) == world.state


async def test_a_broken_logs_snapshot_goes_out_as_it_was_stored(
    store: Store, tmp_path: Path
) -> None:
    world = lived()
    broken = [*world.log[:-1], Recorded(world.state.seq, START, world.log[0].event)]
    early = fold(SessionState(key=KEY), world.log[:5])
    await keeps(store, broken, early)
    folder = await exported(store, tmp_path / "out")
    stored = shown(folder, "snapshot.json")["stored"]
    assert (stored["seq"], stored["data"]) == (5, json.loads(snapshot_text(early)))
    assert f"@{world.state.seq}" in shown(folder, "meta.json")["fault"]
    with pytest.raises(BrokenDataError, match=f"@{world.state.seq}: SessionOpened while acting"):
        check(folder)


Change = Callable[[Path], object]


def meta(**changes: Any) -> Change:
    return lambda folder: rewritten(folder, "meta.json", changes)


def rewritten(folder: Path, name: str, changes: dict[str, Any]) -> None:
    found = shown(folder, name)
    (folder / name).write_text(json.dumps({**found, **changes}))


def part(name: str, **changes: Any) -> Change:
    def change(folder: Path) -> None:
        parts = shown(folder, "snapshot.json")
        parts[name] |= changes
        (folder / "snapshot.json").write_text(json.dumps(parts))
        agreed(folder)

    return change


def lines(edit: Callable[[list[bytes]], list[bytes]]) -> Change:
    def change(folder: Path) -> None:
        path = folder / "events.jsonl"
        path.write_bytes(b"\n".join(edit(content(path))) + b"\n")
        agreed(folder)

    return change


def agreed(folder: Path) -> None:
    """The files' own marks follow, so that only what they say is wrong."""
    files = [
        {**file, "size": len(data), "lines": data.count(b"\n"), "sha256": digest(data)}
        for file in shown(folder, "meta.json")["files"]
        for data in [(folder / file["name"]).read_bytes()]
    ]
    events = files[0]["lines"]
    rewritten(folder, "meta.json", {"files": files, "events": events})


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def without(found: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != name}


def lacking(folder: Path) -> None:
    parts = shown(folder, "snapshot.json")
    parts["position"] = without(parts["position"], "queue")
    (folder / "snapshot.json").write_text(json.dumps(parts))
    agreed(folder)


def escaping(folder: Path) -> None:
    files = shown(folder, "meta.json")["files"]
    files.append({**files[1], "name": "../out/snapshot.json"})
    rewritten(folder, "meta.json", {"files": files})


DAMAGES: dict[str, tuple[Change, str]] = {
    "no meta": (lambda folder: (folder / "meta.json").unlink(), "meta.json: No such file"),
    "meta that is no JSON": (lambda f: (f / "meta.json").write_bytes(b"\xff"), "meta.json: "),
    "another format": (meta(format=2), "format 2, this version reads format 1"),
    "meta without a key": (meta(key=None), "meta.json: .*key"),
    "a file that is gone": (lambda f: (f / "events.jsonl").unlink(), "events.jsonl: No such file"),
    "a file that changed": (
        lambda f: (f / "events.jsonl").write_bytes(b"{}\n"),
        "events.jsonl: it is not the file that was exported",
    ),
    "a file from elsewhere": (escaping, "other files than a bundle has"),
    "counts that differ": (meta(events=3), "counts do not add up"),
    "a newer schema": (meta(schema_version=9), "a newer version wrote it"),
    "an event of a newer version": (
        meta(kinds=[{"type": "TurnStarted", "version": 2, "count": 1}]),
        "cannot read TurnStarted v2",
    ),
    "an unknown event": (
        meta(kinds=[{"type": "Unheard", "version": 1, "count": 1}]),
        "cannot read Unheard v1",
    ),
    "a snapshot without a field": (lacking, "snapshot.json: it has no queue"),
    "a snapshot's wrong field": (part("metadata", seq="two"), "snapshot.json: .*seq"),
    "a snapshot of another key": (part("metadata", key="other"), "it is of other"),
    "a snapshot beyond the log": (part("metadata", seq=999), "it is at 999, outside the log"),
    "a gap": (lines(lambda found: found[:4] + found[5:]), "event 5 is missing: 6 is in its place"),
    "an end that is missing": (lines(lambda found: found[:-1]), "missing: the log ends there"),
    "a line that is no JSON": (
        lines(lambda found: [*found[:4], b"{", *found[5:]]),
        "events.jsonl, line 5: ",
    ),
    "an event that cannot follow": (
        lines(lambda f: [*f[:4], f[0].replace(b'"seq":1,', b'"seq":5,'), *f[5:]]),
        "@5: SessionOpened while thinking",
    ),
    "an event with another field": (
        lines(lambda f: [line.replace(b'"turn":1', b'"turn":"x"') for line in f]),
        "@3: TurnStarted",
    ),
    "a log that leads elsewhere": (
        part("usage", prompt=11),
        "snapshot.json: the log leads to another state",
    ),
    "a fault that was known": (meta(fault="it was so"), "broken when it was exported: it was so"),
}


@pytest.mark.parametrize(
    ("change", "wanted"), [pytest.param(*case, id=name) for name, case in DAMAGES.items()]
)
async def test_each_fault_is_found_and_named(change: Change, wanted: str, tmp_path: Path) -> None:
    store = MemoryStore()
    await keeps(store, lived().log)
    folder = await exported(store, tmp_path / "out")
    check(folder)
    change(folder)
    with pytest.raises(BrokenDataError, match=wanted):
        check(folder)


async def test_a_state_that_cannot_be_true_is_not_believed(tmp_path: Path) -> None:
    """All agrees with all, and yet it is nonsense: a usage below nothing."""
    world = lived()
    store = MemoryStore()
    await keeps(store, world.log)
    folder = await exported(store, tmp_path / "out")
    lines(lambda f: [line.replace(b'"prompt":10', b'"prompt":-10') for line in f])(folder)
    part("usage", prompt=-10)(folder)
    parts = shown(folder, "snapshot.json")
    parts["metadata"]["previous"]["usage"]["prompt"] = -20
    (folder / "snapshot.json").write_text(json.dumps(parts))
    agreed(folder)
    with pytest.raises(BrokenDataError, match="usage is negative"):
        check(folder)
