"""Who started this process, and so who starts it again; it reads what is given and asks nobody.

A service that was once started by systemd and now runs in someone's shell answers just as well,
until the next reboot.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

_HOSTS = {
    "DYNO": "Heroku",
    "RENDER": "Render",
    "RAILWAY_ENVIRONMENT_ID": "Railway",
    "FLY_APP_NAME": "Fly.io",
}
"""What each host sets in every process of its own: Heroku's dynos article, Render's environment
variables, Railway's variables reference, Fly's runtime environment."""
_ONE_OFF = "run."
"""How Heroku names a dyno that somebody started by hand."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "tcsh", "ash", "busybox", "login"})
_NESTED = frozenset({"make", "uv", "python", "python3", "stillhere", "env", "nohup", "setsid"})
_ROOTS = frozenset({"systemd", "init", "launchd", "sshd", "tini", "docker-init", "sudo", "su"})
_PASSED_OVER = _SHELLS | _NESTED | _ROOTS
"""Start nothing again by themselves, and say nothing of who does."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to see of a process from within. ``parents`` are the names of its parent, of
    that one's parent, and so on; ``cgroup`` is the last part of its path."""

    pid: int
    parent: int = 0
    parents: tuple[str, ...] = ()
    terminal: bool = False
    container: bool = False
    cgroup: str = ""
    launchd: bool = False


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """``supervised``: it starts the process again after a crash and a reboot, if it is told to."""

    name: str
    supervised: bool

    @property
    def text(self) -> str:
        return f"started by {self.name}"


def host_of(environment: Mapping[str, str]) -> str:
    """The PaaS, or an empty string."""
    return next((host for name, host in _HOSTS.items() if environment.get(name)), "")


def starter(environment: Mapping[str, str], process: Process) -> Starter:
    """A terminal goes first: who opens a shell on a host, or in a container, has all of its
    variables there."""
    by_hand = process.terminal and not _is_first(process)
    if by_hand or environment.get("DYNO", "").startswith(_ONE_OFF):
        return _shell(environment, process)
    if host := host_of(environment):
        return Starter(name=host, supervised=True)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return Starter(name="Kubernetes", supervised=True)
    if environment.get("SUPERVISOR_ENABLED"):
        return Starter(name="supervisord", supervised=True)
    if environment.get("INVOCATION_ID") and _is_unit(process.cgroup):
        unit = f" ({process.cgroup})" if process.cgroup else ""
        return Starter(name=f"systemd{unit}", supervised=True)
    if process.launchd and environment.get("XPC_SERVICE_NAME", "0") != "0":
        return Starter(name=f"launchd ({environment['XPC_SERVICE_NAME']})", supervised=True)
    if process.container and _is_first(process):
        return Starter(name="a container", supervised=True)
    return _shell(environment, process)


def _is_first(process: Process) -> bool:
    """Of its container: itself, or the one child of a small init."""
    return process.container and (process.pid == 1 or process.parent == 1)


def _is_unit(cgroup: str) -> bool:
    """A desktop's terminals inherit INVOCATION_ID; they live in a scope."""
    return not cgroup or cgroup.endswith(".service")


def _shell(environment: Mapping[str, str], process: Process) -> Starter:
    where = host_of(environment) or ("a container" if process.container else "")
    on = f" on {where}" if where else ""
    if process.terminal:
        return Starter(name=f"a shell in a terminal{on}", supervised=False)
    nearest = next((name for name in process.parents if name not in _PASSED_OVER), "")
    if nearest:
        return Starter(name=f"another program ({nearest}){on}", supervised=False)
    return Starter(name=f"a shell without a terminal{on}", supervised=False)


def this_process() -> Process:
    return Process(
        pid=os.getpid(),
        parent=os.getppid(),
        parents=tuple(_parents(os.getppid())),
        terminal=_has_terminal(),
        container=_in_container(),
        cgroup=_read("/proc/self/cgroup").strip().rpartition("/")[2],
        launchd=sys.platform == "darwin",
    )


def _parents(pid: int) -> list[str]:
    """As far as they can be seen; on Linux only."""
    names: list[str] = []
    while pid > 0 and (stat := _read(f"/proc/{pid}/stat")):
        name, _, rest = stat.partition("(")[2].rpartition(")")
        names.append(name)
        pid = int(rest.split()[1])
    return names


def _has_terminal() -> bool:
    """Whether it can open its controlling terminal; standard input may be anything."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _in_container() -> bool:
    """https://systemd.io/CONTAINER_INTERFACE for the last of them."""
    marks = ("/.dockerenv", "/run/.containerenv", "/run/host/container-manager")
    return any(Path(mark).exists() for mark in marks) or bool(
        _read("/proc/1/environ").partition("container=")[1]
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
