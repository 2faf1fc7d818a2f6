"""A result that had to be shortened says how the model reads the whole of it."""

import pytest

from core.domain import inputs as ask
from core.domain.draft import Draft
from core.domain.room import shorten_results
from tests.core.domain.samples import calls
from tests.core.domain.world import World


@pytest.mark.parametrize(
    ("artifact", "way"),
    [("art1", 'read_result with id "art1" and offset 240'), ("", "characters left out")],
)
def test_a_shortened_result_names_its_artifact(artifact: str, way: str) -> None:
    world = World()
    world.says()
    world.replies("", *calls("look"))
    world.starts("c1")
    world.ask(
        ask.FinishTool(
            at=world.now,
            turn=1,
            step=1,
            call_id="c1",
            outcome="ok",
            text="0123456789" * 400,
            artifact=artifact,
        )
    )
    draft = Draft(world.state, world.now, world.policy)
    shorten_results(draft, newest=True)
    world.commit(draft.events)

    shown = world.request().messages[-1].text

    assert way in shown
    assert ("read_result" in shown) == bool(artifact)
    assert len(shown) < 600
