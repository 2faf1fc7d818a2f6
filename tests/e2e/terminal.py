"""A person at a terminal: types, looks, closes the lid; knows nothing of the program's inside."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

from tests.command import command, surroundings

ROWS, COLUMNS = 24, 200
PATIENCE = 20.0
_STEERING = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\x1b\][^\x07]*\x07|\r")


class Terminal:
    """One window, in which ``stillhere chat`` is started, killed, and started again."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self._environment = surroundings(folder, **variables)
        self._folder = folder
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._process: subprocess.Popen[bytes] | None = None
        self.output = ""
        """All that was ever written to the window, without what steers the cursor."""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kills()
        os.close(self._ours)
        os.close(self._theirs)

    def starts(self) -> None:
        self._process = subprocess.Popen(
            command("chat"),
            cwd=self._folder,
            env=self._environment,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
        )

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def sees(self, pattern: str) -> None:
        """Something new that the pattern matches; a redraw is asked for now and then."""
        begin = len(self.output)
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.output[begin:]):
            late = time.monotonic() > end or not self._lives
            assert not late, f"{pattern!r} never came: {self.output[-3000:]}"
            self._look(0.2)
            self._redraws()

    def kills(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._wait()

    def leaves(self, key: str = "\x03") -> int:
        """Presses Ctrl-C, and waits; the exit code."""
        self.types(key)
        return self._wait()

    def is_told(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._wait()

    @property
    def echoes(self) -> bool:
        """Whether the terminal is as a shell wants it."""
        flags = termios.tcgetattr(self._theirs)[3]
        wanted = termios.ECHO | termios.ICANON | termios.ISIG
        return flags & wanted == wanted

    def _wait(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        end = time.monotonic() + PATIENCE
        while process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.output[-3000:]}"
            self._look(0.05)
        self._look(0.05)
        return process.returncode

    def _look(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while select.select([self._ours], [], [], max(0.0, end - time.monotonic()))[0]:
            piece = os.read(self._ours, 65536).decode(errors="replace")
            self.output += _STEERING.sub("", piece)

    @property
    def _lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _redraws(self) -> None:
        """Otherwise only the cells that changed are written."""
        if self._process is not None and self._lives:
            self._process.send_signal(signal.SIGWINCH)
