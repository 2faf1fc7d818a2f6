"""What is found of how the service is set up, and the remedy of what is not right: for the owner's
chat and for ``doctor``, from one source. It asks nobody."""

from collections.abc import Iterable, Mapping

import msgspec

from bots.platforms import Health, Platform
from bots.settings import Settings
from bots.supervisor import host_of
from core.models.choice import Choice
from core.runtime.access import EVERYONE

_ENDS = (".", "!", "?")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """``remedy`` is what to do, empty where nothing is to be done; ``well`` says that it works, or
    is not wanted. ``about`` is what does not change from start to start while all stays as it is;
    empty: ``text`` and ``remedy``."""

    well: bool
    thing: str
    text: str
    remedy: str = ""
    about: str = ""

    @property
    def whole(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text

    @property
    def sameness(self) -> str:
        return f"{self.thing}: {self.about or self.whole}"


def good(thing: str, text: str, remedy: str = "", about: str = "") -> Finding:
    return Finding(well=True, thing=thing, text=text, remedy=remedy, about=about)


def bad(thing: str, text: str, remedy: str = "", about: str = "") -> Finding:
    return Finding(well=False, thing=thing, text=text, remedy=remedy, about=about)


def of_model(name: str, choice: Choice) -> Finding:
    """As it is set up; whether it answers is another question."""
    if name != choice.name:
        return good("model", name)
    return good("model", f"{name}. {choice.why}", choice.remedy)


def of_trouble(trouble: str) -> tuple[Finding, ...]:
    """With the model, as ``ModelSigns`` has it."""
    return (bad("model", "it does not answer", trouble),) if trouble else ()


def of_platform(platform: Platform, health: Health | None) -> Finding:
    """None for one that is not set up. What passes by itself changes nothing about it."""
    if health is None:
        names = ", ".join(variable.name for variable in platform.variables[:1])
        return good(platform.name, f"not set up ({names} is not set)")
    if health.lasting:
        return bad(platform.name, "not connected", health.detail, about=f"not: {health.detail}")
    named = f", as {health.name}" if health.name else ""
    text = f"connected{named}" if health.ok else f"set up{named}, but {health.detail}"
    return Finding(well=health.ok, thing=platform.name, text=text, about="set up")


def of_database(settings: Settings, environment: Mapping[str, str]) -> Finding:
    if settings.database.startswith("postgres"):
        return good("database", "PostgreSQL")
    text = f"one SQLite file in {settings.stillhere_data}"
    host = host_of(environment)
    if not host:
        return good("database", text)
    remedy = (
        f"{host} throws that away at each restart, and our conversations with it: set "
        "DATABASE_URL to a PostgreSQL, or STILLHERE_DATA to a disk that stays"
    )
    return bad("database", text, remedy)


def of_people(settings: Settings) -> Finding:
    if EVERYONE in settings.allowed_users:
        return good("people", "everyone may talk to me (ALLOWED_USERS is *)")
    listed = f", those of ALLOWED_USERS ({len(settings.allowed_users)})"
    rest = listed if settings.allowed_users else ""
    return good("people", f"you{rest} and whom you `/allow`")


def of_role(settings: Settings) -> tuple[Finding, ...]:
    """Only where it is not that of a process that does everything."""
    if settings.role == "all":
        return ()
    return (good("role", f"{settings.role}, so others are needed that do the rest (ROLE)"),)


def report(findings: Iterable[Finding], not_set_up: Iterable[str]) -> str:
    """One message to the owner, in Markdown."""
    found = list(findings)
    lines = [f"- {_capital(one.thing)}: {_sentence(one.text)}" for one in found if one.text]
    if names := ", ".join(map(_capital, not_set_up)):
        lines.append(f"- Not set up: {names}.")
    todo = [f"{_capital(one.thing)}: {_sentence(one.remedy)}" for one in found if one.remedy]
    numbered = [f"{number}. {line}" for number, line in enumerate(todo, 1)]
    end = ["**To be mended**", "\n".join(numbered)] if todo else ["Nothing is missing."]
    return "\n\n".join(["**This is how I am set up**", "\n".join(lines), *end])


def _sentence(text: str) -> str:
    return text if text.endswith(_ENDS) else f"{text}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
