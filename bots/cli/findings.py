"""What ``doctor`` finds: a line a thing."""

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    well: bool
    thing: str
    text: str


def good(thing: str, text: str) -> Finding:
    return Finding(well=True, thing=thing, text=text)


def bad(thing: str, text: str) -> Finding:
    return Finding(well=False, thing=thing, text=text)
