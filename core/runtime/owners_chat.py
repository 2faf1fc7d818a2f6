"""Where the owner talks to us, and what the service itself says there, each thing once; it knows no
conversation."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import structlog
from msgspec.structs import replace

from core.domain.keys import Address, session_key
from core.domain.messages import Inbound, OutboxMessage
from core.ports import Channel, Clock, Directory, Outbox
from core.runtime.access import Access

PLACE_FACT = "owner's chat"
TOLD_FACT = "owner told of "

log = structlog.get_logger(__name__)


class Place(msgspec.Struct, frozen=True):
    """``owner`` is «platform:user»."""

    owner: str
    key: str
    address: Address


class Shelf(Outbox, Directory, Protocol):
    """What is promised, and the facts that it stands on."""


class OwnersChat:
    def __init__(
        self,
        shelf: Shelf,
        access: Access,
        channels: Mapping[str, Channel],
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._shelf = shelf
        self._access = access
        self._channels = channels
        self._clock = clock
        self._new_id = new_id
        self._known: Place | None = None
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """It is called when there is a new owner to talk to, and must not block."""
        self._listeners.append(listener)

    async def seen(self, inbound: Inbound, claimed: bool) -> None:  # noqa: FBT001 (a listener)
        """A message of the owner is on disk; with ``claimed`` it made them that. Raises
        StorageError: then the platform brings it again, and so the place is never missed."""
        if inbound.trusted or inbound.address.chat_type != "dm":
            return
        place = Place(
            owner=f"{inbound.address.platform}:{inbound.person}",
            key=str(session_key(inbound.address, inbound.user)),
            address=replace(inbound.address, reply_to=""),
        )
        if place == self._known and not claimed:
            return
        await self._shelf.set_fact(PLACE_FACT, msgspec.json.encode(place).decode())
        is_new = self._known is None or self._known.owner != place.owner
        self._known = place
        for listener in self._listeners if claimed or is_new else ():
            listener()

    async def platform(self) -> str:
        """Of the owner's chat; empty where there is none here. Raises StorageError."""
        place = await self._place()
        return place.address.platform if place else ""

    async def tell(self, topic: str, about: str, text: str) -> bool:
        """Promises the text, unless the owner was told the same ``about`` last in this topic,
        whichever process did it; then False, as where there is no owner's chat here. Raises
        StorageError."""
        place = await self._place()
        if place is None:
            return False
        name = self._new_id()
        parts = self._channels[place.address.platform].render(text) if text else ()
        messages = tuple(
            OutboxMessage(
                id=f"owner@{name}.{number}",
                key=place.key,
                address=place.address,
                kind="notice",
                part=part,
            )
            for number, part in enumerate(parts, 1)
        )
        value = hashlib.sha256(f"{place.owner}\n{about}".encode()).hexdigest()
        return await self._shelf.promise(messages, TOLD_FACT + topic, value, self._clock.now())

    async def _place(self) -> Place | None:
        noted = await self._shelf.fact(PLACE_FACT)
        if not noted:
            return None
        try:
            place = msgspec.json.decode(noted, type=Place)
        except msgspec.MsgspecError:
            log.warning("the owner's chat cannot be read; it is learnt again when they write")
            return None
        if (
            place.address.platform not in self._channels
            or place.owner != await self._access.owner()
        ):
            return None
        return place
