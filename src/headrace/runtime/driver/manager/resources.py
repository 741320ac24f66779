"""Of what there may be too little: memory, and processor time."""

from __future__ import annotations

import math
from enum import Enum
from typing import assert_never

from headrace.byte_sizes import format_bytes
from headrace.core_counts import format_cores
from headrace.runtime.driver.manager.policy import USED
from headrace.runtime.driver.settings import RunSettings


class Resource(Enum):
    """Something of which a run needs more with larger windows, by the option that limits it."""

    MEMORY = "memory_limit"
    """State, and what epochs work with (bytes)."""
    TIME = "processing_limit"
    """Processor time (cores)."""

    def text(self, amount: float) -> str:
        """An amount of it, for people."""
        return format_bytes(amount) if self is Resource.MEMORY else format_cores(amount)

    def limit_of(self, how: RunSettings) -> float | None:
        """The limit of it that a run has; None where any amount may be needed."""
        return how.memory_limit if self is Resource.MEMORY else how.processing_limit

    def ways_on(self, least: float, working: float, cores: int | None) -> str:
        """The ways on for somebody who lacks it: a limit that would do, in whole kilobytes or hundredths.

        Args:
            least: what there has to be room for.
            working: how much an epoch works with.
            cores: on how many cores the run works; any number if None.
        """
        others = "drop queries, or let windows have a smaller MIN"
        match self:
            case Resource.MEMORY:
                enough = f"'{-(-(least / USED + working) // 1000):.0f} kB'"
            case Resource.TIME:
                hundredths = math.ceil(100 * least / USED)
                if cores is not None and hundredths > 100 * cores:
                    return others
                enough = f"{hundredths / 100:g}"
            case _:
                assert_never(self)
        return f"write SET {self.value} = {enough}, or more; or {others}"
