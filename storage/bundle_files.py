"""A folder that is there whole or not at all, for its owner alone; never writes over anything."""

import gzip
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from storage.bundle import LINES_A_FILE, META, File

PARTIAL = ".partial-"
"""How folders begin that a crash left half-written."""


class _Sink:
    """One new file, counted and hashed on its way to the disk."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb")
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> str:
        """Synced. Returns the hash."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._hash.hexdigest()

    def drop(self) -> None:
        self._file.close()


class BundleFolder:
    """Every method blocks. Raises OSError."""

    def __init__(self, target: Path, *, compress: bool) -> None:
        if os.path.lexists(target):
            raise FileExistsError(f"{target} is there already; name another")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._target = target
        self._folder = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=target.parent))
        self._end = ".jsonl.gz" if compress else ".jsonl"
        self._sink: _Sink | None = None
        self._lines: _Sink | gzip.GzipFile | None = None
        self._count = 0
        self._files: list[File] = []

    def add_line(self, data: bytes) -> None:
        if self._lines is None or self._count == LINES_A_FILE:
            self._next_file()
        if self._lines is not None:
            self._lines.write(data + b"\n")
            self._count += 1

    def end_lines(self) -> None:
        """A single file has no number."""
        if self._lines is None:
            self._next_file()
        self._end_file()
        if len(self._files) == 1:
            (only,) = self._files
            name = f"events{self._end}"
            (self._folder / only.name).rename(self._folder / name)
            self._files = [File(name, only.lines, only.size, only.sha256)]

    def add_file(self, name: str, data: bytes) -> None:
        sink = _Sink(self._folder / name)
        sink.write(data)
        self._files.append(File(name, data.count(b"\n"), sink.size, sink.close()))

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(self._files)

    def publish(self, meta: bytes) -> None:
        """From here on it is there, after a power cut as well."""
        self.add_file(META, meta)
        _sync(self._folder)
        if os.path.lexists(self._target):
            raise FileExistsError(f"{self._target} is there already; name another")
        self._folder.rename(self._target)
        _sync(self._target.parent)

    def drop(self) -> None:
        """After a failure: nothing of it stays."""
        if self._sink is not None:
            self._sink.drop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _next_file(self) -> None:
        self._end_file()
        self._sink = _Sink(self._folder / f"events-{len(self._files) + 1:04}{self._end}")
        compress = self._end.endswith(".gz")
        self._lines = (
            gzip.GzipFile("", "wb", fileobj=self._sink, mtime=0)  # pyright: ignore[reportArgumentType]
            if compress
            else self._sink
        )
        self._count = 0

    def _end_file(self) -> None:
        if self._sink is None:
            return
        if isinstance(self._lines, gzip.GzipFile):
            self._lines.close()
        name = f"events-{len(self._files) + 1:04}{self._end}"
        self._files.append(File(name, self._count, self._sink.size, self._sink.close()))
        self._sink = self._lines = None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
