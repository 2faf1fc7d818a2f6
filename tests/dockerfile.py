"""A Dockerfile read, and its steps carried out in a folder, without an engine and without root.

It knows what our Dockerfile needs and fails at everything else. Absolute paths of the image become
paths below the folder; stages follow each other at the same paths, as in a builder.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

FOLDERS: Final = ("build", "data", "venv")
"""What our image has at its root that its base has not."""
KNOWN: Final = {
    *("ENV", "WORKDIR", "COPY", "RUN"),
    *("USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD"),
}
"""Instructions; those of the second line are carried out by whoever starts the image."""
PATIENCE: Final = 600.0
_ABSOLUTE: Final = re.compile(r"(?<![\w./}])/(\w[\w.-]*)")
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")
_ASSIGNMENT: Final = re.compile(r"(\w+)=(\S+)")
_GLOB: Final = re.compile(r"\*\*/?|\*|\?|[^*?]+")


class Instruction(msgspec.Struct, frozen=True):
    name: str
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """Of the exec form, or of a plain list."""
        if self.text.startswith("["):
            return tuple(msgspec.json.decode(self.text, type=list[str]))
        return tuple(self.text.split())


class Stage(msgspec.Struct, frozen=True):
    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def of(self, name: str) -> list[Instruction]:
        return [one for one in self.instructions if one.name == name]

    def last(self, name: str) -> Instruction:
        return self.of(name)[-1]

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair for one in self.of("ENV") for pair in _ASSIGNMENT.findall(one.text))


def read_stages(text: str) -> list[Stage]:
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    stages: list[tuple[str, list[Instruction]]] = []
    for line in filter(str.strip, lines):
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            stages.append((rest, []))
        else:
            stages[-1][1].append(Instruction(name, " ".join(rest.split())))
    heads = [(head.partition(" AS "), found) for head, found in stages]
    return [Stage(base, name, tuple(found)) for (base, _, name), found in heads]


class Ignore:
    """A .dockerignore: the last pattern that matches a path or a folder above it decides."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()]
        self._rules = [
            (_regex(line.removeprefix("!")), line.startswith("!"))
            for line in lines
            if line and not line.startswith("#")
        ]

    def __call__(self, path: str) -> bool:
        parts = path.split("/")
        heads = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        verdicts = [
            not kept for rule, kept in self._rules if any(rule.fullmatch(head) for head in heads)
        ]
        return bool(verdicts) and verdicts[-1]


def _regex(pattern: str) -> re.Pattern[str]:
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(signs.get(t) or re.escape(t) for t in _GLOB.findall(pattern)))


def context_of(root: Path, names: Iterable[str]) -> list[str]:
    """Of these files those that a builder is sent."""
    ignored = Ignore((root / ".dockerignore").read_text())
    return sorted(name for name in names if not ignored(name))


class Machine:
    """What stands for the image: a folder, and a Python that the image's user can start."""

    def __init__(self, folder: Path, user: int) -> None:
        """``user`` is who carries out every step; one's own number where one is not root."""
        self._become = user if os.geteuid() == 0 else None
        self.user = self._become or os.geteuid()
        self._asked = user
        self._root = folder / "image"
        self._done = folder / "stages"
        self._home = folder / "home"
        for one in (folder, self._root, self._done, self._home, folder / "bin"):
            one.mkdir(exist_ok=True)
            one.chmod(0o755)
            self._own(one)
        self._environment: dict[str, str] = {}
        self._folder = self._root
        self._bin = folder / "bin"

    def _put_python(self) -> str:
        """The base image's: ours, copied when it lies in a home that the user may not enter. Where
        its libraries are."""
        base = Path(sys.base_prefix)
        python = Path("bin") / f"python{sys.version_info.major}.{sys.version_info.minor}"
        if base != Path("/usr") and not self._can_start(base / python):
            bare = shutil.ignore_patterns("test", "share")
            copy = self._bin.parent / "base"
            base = shutil.copytree(base, copy, symlinks=True, ignore=bare)
        starter = self._bin / "python"
        starter.write_text(f'#!/bin/sh\nexec {base / python} "$@"\n')
        starter.chmod(0o755)
        return str(base / "lib")

    def _can_start(self, python: Path) -> bool:
        try:
            done = subprocess.run([python, "-c", ""], check=False, user=self._become)
        except PermissionError:
            return False
        return done.returncode == 0

    @property
    def _groups(self) -> list[int] | None:
        return None if self._become is None else []

    def _own(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.user, self.user)

    def here(self, text: str) -> str:
        """The same with the image's paths as ours. Raises ValueError at one it does not know."""

        def moved(found: re.Match[str]) -> str:
            if found[1] not in FOLDERS:
                raise ValueError(f"{found[0]} is not a folder of the image: {text}")
            return f"{self._root}{found[0]}"

        text = text.replace(str(self._asked), str(self.user))
        return _ABSOLUTE.sub(moved, text)

    def carry_out(self, stages: list[Stage], context: Path) -> None:
        unknown = {one.name for stage in stages for one in stage.instructions} - KNOWN
        if unknown:
            raise ValueError(f"{', '.join(unknown)} is not known here")
        libraries = self._put_python()
        for stage in stages:
            self._environment = {
                "HOME": str(self._home),
                "LANG": "C.UTF-8",
                "LD_LIBRARY_PATH": libraries,
                "PATH": f"{self._bin}:/usr/local/bin:/usr/bin:/bin",
            }
            self._folder = self._root
            for one in stage.instructions:
                self._step(one, context)
            if stage.name:
                self._root.rename(self._done / stage.name)
                self._root.mkdir()
                self._own(self._root)

    def _step(self, one: Instruction, context: Path) -> None:
        match one.name:
            case "ENV":
                for name, value in _ASSIGNMENT.findall(one.text):
                    self._environment[name] = _VARIABLE.sub(
                        lambda found: self._environment[found[1]], self.here(value)
                    )
            case "WORKDIR":
                self._folder = Path(self.here(one.text))
                self._folder.mkdir(exist_ok=True)
                self._own(self._folder)
            case "COPY":
                self._copy(one, context)
            case "RUN":
                outside = {name: v for name, v in os.environ.items() if name.startswith("PIP_")}
                self.run("/bin/sh", "-c", self.here(one.text), **outside)
            case _:
                pass

    def _copy(self, one: Instruction, context: Path) -> None:
        *sources, target = [word for word in one.words if not word.startswith("--")]
        stage = re.search(r"--from=(\w+)", one.text)
        for source in sources:
            found = context / source if stage is None else self._done / stage[1] / source[1:]
            into = Path(self.here(target)) if target.startswith("/") else self._folder / target
            if found.is_dir():
                shutil.copytree(found, into, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy2(found, into)

    def run(self, *words: str, **variables: str) -> str:
        """What it printed. Fails with that when it ends badly."""
        done = subprocess.run(
            words,
            cwd=self._folder,
            env=self._environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
            user=self._become,
            group=self._become,
            extra_groups=self._groups,
        )
        assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def start(self, words: Iterable[str], log: Path, **variables: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            return subprocess.Popen(
                list(words),
                cwd=self._folder,
                env=self._environment | variables,
                stdout=out,
                stderr=subprocess.STDOUT,
                user=self._become,
                group=self._become,
                extra_groups=self._groups,
            )
