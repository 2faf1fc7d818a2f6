"""``python -m bots`` is ``stillhere``."""

from bots.cli import main

main()
