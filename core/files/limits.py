"""How much of what people send is taken; numbers only, it measures nothing."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """``picture_side`` in pixels. ``characters`` is for all the texts of a message together."""

    attachment_bytes: int = 20_000_000
    """What the largest platform's public servers hand out."""
    picture_side: int = 1568
    """Vendors make larger ones smaller themselves."""
    picture_bytes: int = 1 << 20
    characters: int = 40_000
