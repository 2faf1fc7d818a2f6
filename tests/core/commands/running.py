"""How the tests of commands run one."""

from msgspec.structs import replace

from core.commands.base import CommandContext
from core.domain import events as ev
from core.domain.draft import Draft
from core.domain.events import Role
from core.domain.keys import Address
from core.domain.room import compact
from tests.core.domain.samples import HOME, commands, inbound
from tests.core.domain.world import World


def run(
    text: str,
    role: Role | None = "owner",
    claims: bool = False,
    address: Address = HOME,
    world: World | None = None,
    quote: str = "",
) -> tuple[str, tuple[ev.Event, ...]]:
    """The reply and the events; nothing is committed."""
    world = world or World()
    name, _, argument = text.removeprefix("/").partition(" ")
    draft = Draft(world.state, world.now, world.policy)
    context = CommandContext(
        inbound=replace(inbound(text, 1, address=address), quote=quote),
        argument=argument,
        role=role,
        claims=claims,
        commands=commands(),
    )
    return commands()[name].run(draft, context), draft.events


def talked(*words: str, world: World | None = None) -> World:
    """A conversation of so many exchanges."""
    world = world or World()
    for text in words:
        world.says(text)
        world.replies(f"{text}: yes")
    return world


def summed_up(world: World, first_turn: int, summary: str = "what was said") -> None:
    """As the compactor does it."""
    started = ev.CompactionStarted(first_turn=first_turn, reason="asked", address=HOME)
    world.commit((started, ev.CompactionAttempted(attempt=1)))
    draft = Draft(world.state, world.now, world.policy)
    compact(draft, first_turn, summary)
    world.commit(draft.events)
