"""A mark never runs ahead of what is on disk, whatever happens while marks are written."""

from collections.abc import Callable, Mapping

from bots.platforms.slack.places import Places

OLD, NEW, NEWER = "1.000000", "2.000000", "3.000000"


class Shelf:
    """``meanwhile`` is what happens while a mark is on its way to the disk."""

    def __init__(self) -> None:
        self.stored = {"D1": OLD, "D2": OLD}
        self.meanwhile: Callable[[], None] = lambda: None

    async def read(self) -> Mapping[str, str]:
        return self.stored

    async def put(self, chat: str, place: str) -> None:
        self.meanwhile()
        self.stored[chat] = place


async def test_a_gap_while_marks_are_written_moves_no_mark_past_it() -> None:
    shelf = Shelf()
    places = Places(shelf)
    await places.load()
    for place in places.behind:
        places.caught_up(place, NEW, places.fall(place))

    def something_is_missed() -> None:
        places.fall_behind()
        places.passed("D1", NEWER)
        places.passed("D2", NEWER)

    shelf.meanwhile = something_is_missed
    await places.write()
    assert NEWER not in {mark.partition(" ")[0] for mark in shelf.stored.values()}


async def test_a_gap_while_a_new_place_is_written_down_is_its_gap_too() -> None:
    shelf = Shelf()
    places = Places(shelf)
    await places.load()
    shelf.meanwhile = places.fall_behind
    await places.learn("D3", NEW)
    assert places.is_behind("D3")
