"""All that those act on who do what a state wants done; it does nothing itself."""

from collections.abc import Mapping

import msgspec

from core.domain.keys import Address
from core.files.reader import FileReader
from core.ports import Channel, Clock, Model, Outbox
from core.runtime.access import Access
from core.runtime.aside import Aside
from core.runtime.budget import Budget
from core.runtime.holder import Holder
from core.runtime.limiter import Limiter
from core.runtime.model_signs import ModelSigns
from core.runtime.preview import Stage
from core.runtime.toolbox import Toolbox


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    outbox: Outbox
    channels: Mapping[str, Channel]
    model: Model
    summarizer: Model
    toolbox: Toolbox
    reader: FileReader
    limiter: Limiter
    clock: Clock
    holder: Holder
    aside: Aside
    budget: Budget
    access: Access
    model_signs: ModelSigns

    def stage(self, address: Address) -> Stage:
        return Stage(
            channel=self.channels[address.platform],
            outbox=self.outbox,
            limiter=self.limiter,
            clock=self.clock,
            holder=self.holder,
        )
