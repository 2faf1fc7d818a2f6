"""How many turns one process works on at a time; what is more is left to others, or to later."""


class Capacity:
    """``most`` is 0 in a process that runs no turns at all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._coming = 0
        self.closed = False
        """At a stop: no turn begins here any more."""

    def room(self, held: int) -> int:
        """How many more can be taken beside those that are held."""
        return 0 if self.closed else max(0, self._most - held - self._coming)

    def __enter__(self) -> None:
        """Within, one is being taken: it counts before it is held."""
        self._coming += 1

    def __exit__(self, *error: object) -> None:
        self._coming -= 1
