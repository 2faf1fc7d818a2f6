"""A process that has imported everything and forks the service on demand; it serves nothing itself.

One JSON object a line. In: {"spawn": {...a Birth...}} or {"poll": pid}. Out: {"pid": n}, or
{"status": the exit code, negative for a signal, or null while it runs}. So a cell of the kill
matrix costs milliseconds to start, not the seconds that litellm takes to import.
"""

import os
import sys
import traceback
from typing import BinaryIO

import msgspec

from tests.harness.child import Birth, live, warm_up


class Request(msgspec.Struct, omit_defaults=True):
    spawn: Birth | None = None
    poll: int = 0


def main() -> None:
    warm_up()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=Request)
        if request.spawn is not None:
            _answer(answers, {"pid": _spawn(request.spawn)})
        else:
            _answer(answers, {"status": _status(request.poll)})


def _answer(answers: BinaryIO, value: object) -> None:
    answers.write(msgspec.json.encode(value) + b"\n")


def _spawn(birth: Birth) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with open(birth.log, "ab", buffering=0) as log:  # noqa: PTH123 (a child of a fork)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = live(birth)
    except BaseException:  # noqa: BLE001 (the fork must end here)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _status(pid: int) -> int | None:
    done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


if __name__ == "__main__":
    main()
