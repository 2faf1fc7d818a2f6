"""The scenarios of the kill matrix: what one person does and what she must see; whatever dies, she
only looks at her screen."""

import asyncio

import msgspec

from tests.harness.scripted import (
    BUSY,
    DIE,
    FIRST,
    HANG,
    LONG,
    LONG_STORY,
    PARTS,
    REMIND,
    REMINDED,
    SLOW,
    SLOW_TOOL,
    STORIES,
    TOOLS,
    WHO,
    with_pictures,
)
from tests.harness.spoil import spoil
from tests.harness.stage import (
    BACK,
    CHARGED,
    HANGING,
    KNOWN,
    NEW,
    NOTHING_RUNS,
    PUT_ASIDE,
    QUIET,
    SEEING,
    STOPPED,
    SUMMED_UP,
    SUMMING_UP,
    UNREADABLE,
    WAITS,
    Scenario,
    Stage,
    Wishes,
)


async def plain(stage: Stage) -> None:
    stage.says("hello")
    await stage.read("hello")
    stage.town.repeats()
    stage.says("and now")
    await stage.read("and now")


async def pictures(stage: Stage) -> None:
    stage.sends("look at this", "red")
    await stage.read("look at this")
    stage.sends("my flags", "red", "green", "blue")
    await stage.read("my flags")


async def streamed(stage: Stage) -> None:
    stage.says(SLOW)
    await stage.read(SLOW)


async def tools(stage: Stage) -> None:
    stage.says(TOOLS)
    await stage.shown(*CHARGED)


async def parts(stage: Stage) -> None:
    stage.says(LONG)
    await stage.shown(f"Part {PARTS}.")


async def follow_ups(stage: Stage) -> None:
    stage.says(TOOLS)
    await stage.model_hears(TOOLS)
    for word in ("one", "two", "three"):
        stage.says(word)
        await asyncio.sleep(0.1)
    await stage.shown(*CHARGED)
    await stage.sees(lambda: all(map(stage.answers, ("one", "two", "three"))))


async def interrupting(stage: Stage) -> None:
    stage.says(HANG)
    await stage.model_hears(HANG)
    for word in ("one", "two", "three"):
        stage.says(word)
        await asyncio.sleep(0.1)
    await stage.read("three")


async def stop_in_the_model(stage: Stage) -> None:
    stage.says(HANG)
    await stage.model_hears(HANG)
    stage.says("/stop")
    await stage.shown(STOPPED, NOTHING_RUNS)
    stage.says("a new start")
    await stage.read("a new start")


async def stop_in_a_tool(stage: Stage) -> None:
    stage.says(SLOW_TOOL)
    await stage.charging()
    stage.says("/stop")
    await stage.shown(STOPPED, NOTHING_RUNS)
    stage.says("a new start")
    await stage.read("a new start")


async def new_in_a_turn(stage: Stage) -> None:
    stage.says("hello")
    await stage.read("hello")
    stage.says(HANG)
    await stage.model_hears(HANG)
    stage.says("/new")
    await stage.shown(STOPPED, NEW)
    stage.says(FIRST)
    await stage.shown("You said first:")


async def idle_reset(stage: Stage) -> None:
    stage.says("hello")
    await stage.read("hello")
    await asyncio.sleep(4.2)
    stage.says("are you there")
    await stage.read("are you there")


async def reminder(stage: Stage) -> None:
    stage.says(REMIND)
    await stage.shown("I shall remind you.")
    await stage.shown(f"Do not forget {REMINDED}.")


async def busy_model(stage: Stage) -> None:
    stage.says(BUSY)
    await stage.read(BUSY)


async def downtime(stage: Stage) -> None:
    """A deploy in the middle of a turn: SIGTERM, a drain that is too short, messages meanwhile."""
    stage.says("hello")
    await stage.read("hello")
    stage.says(HANG)
    await stage.model_hears(HANG)
    await stage.lab.leaves()
    stage.says("are you there")
    await stage.lab.returns()
    await stage.sees(lambda: stage.answers(HANG) and stage.answers("are you there"))


async def broken(stage: Stage) -> None:
    """The disk spoils the log while nothing runs; the message that comes next finds it so."""
    stage.says("hello")
    await stage.read("hello")
    await stage.lab.down()
    await spoil(stage.lab.database, stage.town.key)
    stage.says("are you there")
    await stage.lab.up()
    await stage.shown(UNREADABLE)
    await stage.read("are you there")


async def killer(stage: Stage) -> None:
    stage.says(DIE)
    await stage.shown(PUT_ASIDE)
    stage.says("a new start")
    await stage.read("a new start")


async def long_talk(stage: Stage) -> None:
    stage.says("hello")
    await stage.read("hello")
    await stage.lab.leaves()
    stage.says(TOOLS)
    await stage.lab.returns()
    await stage.shown(*CHARGED)
    stage.says(HANG)
    await stage.model_hears(HANG)
    stage.says("/stop")
    await stage.shown(STOPPED, NOTHING_RUNS)
    stage.says("a new start")
    await stage.read("a new start")
    stage.says("/resume")
    await stage.shown(BACK)
    stage.says(FIRST)
    await stage.shown("You said first: hello")


async def compacting_on_wish(stage: Stage) -> None:
    stage.says(STORIES[0])
    await stage.read(STORIES[0])
    stage.says("hello")
    await stage.read("hello")
    stage.says("/compact")
    await stage.shown(SUMMED_UP)
    stage.says(WHO)
    await stage.shown(KNOWN)


async def compacting_behind(stage: Stage) -> None:
    """When the window fills; who writes meanwhile is answered at once."""
    for story in STORIES:
        stage.says(story)
        await stage.read(story)
    stage.says(WHO)
    await stage.shown(KNOWN)


async def compacting_before(stage: Stage) -> None:
    """A message that does not fit with what was said before waits for the summary."""
    for story in STORIES[:2]:
        stage.says(story)
        await stage.read(story)
    stage.says(LONG_STORY)
    await stage.read(LONG_STORY)
    stage.says(WHO)
    await stage.shown(KNOWN)


async def waiting_message(stage: Stage) -> None:
    """A message that comes while nobody is there finds its turn interrupted, not running."""
    lab = stage.lab

    def once() -> None:
        lab.when_dead = None
        stage.says("meanwhile")

    lab.when_dead = once
    stage.says(TOOLS)
    await stage.shown(*CHARGED)
    if lab.when_dead is not None:
        once()
    await stage.read("meanwhile")


STOPPED_TURN = Wishes(
    answered=("a new start",), one_of=((STOPPED, NOTHING_RUNS),), may=(HANGING, SEEING, *CHARGED)
)
SCENARIOS = (
    Scenario(
        name="plain answer",
        about="two messages, the first delivered twice",
        play=plain,
        wishes=Wishes(answered=("hello", "and now")),
    ),
    Scenario(
        name="plain answer by webhook",
        about="the same through Telegram's webhook",
        play=plain,
        wishes=Wishes(answered=("hello", "and now")),
        webhook=True,
    ),
    Scenario(
        name="streamed answer",
        about="an answer that grows as a preview and is edited into place",
        play=streamed,
        wishes=Wishes(answered=(SLOW,)),
    ),
    Scenario(
        name="pictures",
        about="a picture, and three that are sent as one; each is seen by the model",
        play=pictures,
        wishes=Wishes(
            answered=("look at this", with_pictures(1), "my flags", with_pictures(3)),
        ),
        environment={"MODEL_SEES": "yes"},
    ),
    Scenario(
        name="two tools",
        about="two calls side by side, one of which is unsafe",
        play=tools,
        wishes=Wishes(one_of=(CHARGED,), charges=1),
        twice=True,
        lags=True,
    ),
    Scenario(
        name="five parts",
        about="a reply in five messages",
        play=parts,
        wishes=Wishes(said=tuple(f"Part {n}." for n in range(1, PARTS + 1))),
    ),
    Scenario(
        name="follow-ups, queue",
        about="three messages during a turn wait for the next",
        play=follow_ups,
        wishes=Wishes(answered=("one", "two", "three"), one_of=(CHARGED,), charges=1),
        environment={"BUSY_MODE": "queue"},
    ),
    Scenario(
        name="follow-ups, steer",
        about="three messages during a turn go into it",
        play=follow_ups,
        wishes=Wishes(answered=("one", "two", "three"), one_of=(CHARGED,), charges=1),
        environment={"BUSY_MODE": "steer"},
        lags=True,
    ),
    Scenario(
        name="follow-ups, interrupt",
        about="three messages, each takes the place of the turn before it",
        play=interrupting,
        wishes=Wishes(answered=("three",), given_up=(HANG, "one", "two"), may=(HANGING,)),
        environment={"BUSY_MODE": "interrupt"},
    ),
    Scenario(
        name="/stop in a model call",
        about="the turn ends, the next message starts a new conversation",
        play=stop_in_the_model,
        wishes=msgspec.structs.replace(STOPPED_TURN, given_up=(HANG,)),
    ),
    Scenario(
        name="/stop in a tool",
        about="the same while an unsafe tool runs",
        play=stop_in_a_tool,
        wishes=msgspec.structs.replace(STOPPED_TURN, charges=1),
        lags=True,
    ),
    Scenario(
        name="/new with a turn open",
        about="the turn ends and a clean conversation begins",
        play=new_in_a_turn,
        wishes=Wishes(
            answered=("hello",),
            said=(f"You said first: {FIRST}",),
            one_of=((STOPPED, NEW),),
            may=(HANGING,),
            given_up=(HANG,),
        ),
    ),
    Scenario(
        name="idle reset",
        about="a message that finds its conversation over is answered in the new one",
        play=idle_reset,
        wishes=Wishes(answered=("hello", "are you there"), said=(QUIET,)),
        environment={"IDLE_RESET_MINUTES": "1"},
        rate=15.0,
    ),
    Scenario(
        name="reminder",
        about="set by a tool, told when it is due",
        play=reminder,
        wishes=Wishes(said=("I shall remind you.", f"Do not forget {REMINDED}.")),
    ),
    Scenario(
        name="waiting for the model",
        about="a rate limit of 90 seconds: the turn waits in the database",
        play=busy_model,
        wishes=Wishes(answered=(BUSY,), may=(WAITS,)),
        rate=15.0,
    ),
    Scenario(
        name="a turn that kills",
        about="a tool that takes the process with it is tried five times more and put aside",
        play=killer,
        wishes=Wishes(answered=("a new start",), said=(PUT_ASIDE,), may=(SEEING,), deaths=6),
        rate=10.0,
    ),
    Scenario(
        name="deploy in mid-turn",
        about="SIGTERM while the model answers, a drain that is too short, a message meanwhile",
        play=downtime,
        wishes=Wishes(answered=("hello", HANG, "are you there"), may=(HANGING,)),
        environment={"DRAIN_SECONDS": "0.3"},
        rate=8.0,
        twice=True,
    ),
    Scenario(
        name="a log that cannot be read",
        about="it is put aside, its person is told, and a new conversation answers her",
        play=broken,
        wishes=Wishes(answered=("hello", "are you there"), said=(UNREADABLE,)),
        twice=True,
    ),
    Scenario(
        name="message during the downtime",
        about="one that comes while the process is dead in mid-turn",
        play=waiting_message,
        wishes=Wishes(answered=("meanwhile",), one_of=(CHARGED,), charges=1),
    ),
    Scenario(
        name="/compact",
        about="older turns are summed up because the person asks for it",
        play=compacting_on_wish,
        wishes=Wishes(answered=(STORIES[0], "hello"), said=(SUMMING_UP, SUMMED_UP, KNOWN)),
        twice=True,
    ),
    Scenario(
        name="a summary behind the talk",
        about="the window fills, and older turns are summed up when a turn has ended",
        play=compacting_behind,
        wishes=Wishes(answered=STORIES, said=(SUMMED_UP, KNOWN)),
        environment={"CONTEXT_WINDOW": "1600"},
    ),
    Scenario(
        name="a summary before the answer",
        about="a message does not fit with what was said before, and waits for the summary of that",
        play=compacting_before,
        wishes=Wishes(answered=(*STORIES[:2], LONG_STORY), said=(SUMMED_UP, KNOWN)),
        environment={"CONTEXT_WINDOW": "2500"},
        twice=True,
    ),
    Scenario(
        name="a long talk",
        about="restarts, tools, /stop, a new conversation and /resume",
        play=long_talk,
        wishes=Wishes(
            answered=("hello", "a new start"),
            said=(BACK, "You said first: hello"),
            one_of=(CHARGED, (STOPPED, NOTHING_RUNS)),
            may=(HANGING,),
            given_up=(HANG,),
            charges=1,
        ),
    ),
)
