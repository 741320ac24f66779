"""Which sizes windows within bounds are to have, so that state stays within a limit: a pure function.

The heuristic of the thesis (chapter 23): one fraction for all windows, found by bisection over an estimate,
with a reserve of a fifth. The thesis leaves open what happens where nothing fits, and when sizes change back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from headrace.elements import BoolArray, Int64Array
from headrace.runtime.driver.manager.load import Load

USED: Final = 0.8
"""So much of a limit is given to state: the rest is for what comes until a change has taken effect."""
TOO_MUCH: Final = 0.9
"""Windows become shorter when more than this part of a limit is expected."""
TOO_LITTLE: Final = 0.7
"""Windows become longer when less than this part of a limit would be expected with longer ones."""
PARTS: Final = 100
"""Into so many parts the way from the smallest to the largest sizes is cut."""


@dataclass(frozen=True, eq=False)
class Knobs:
    """The sizes that may change.

    Attributes:
        smallest, largest: int64[k], their bounds (instants).
        sizes: int64[k], those in force.
        settled: bool[k], whether all rows from before the last change of each have left its windows.
    """

    smallest: Int64Array
    largest: Int64Array
    sizes: Int64Array
    settled: BoolArray

    def at(self, part: int) -> Int64Array:
        """int64[k]: the sizes so many hundredths of the way from the smallest to the largest."""
        whole, rest = np.divmod(self.largest - self.smallest, PARTS)
        found: Int64Array = self.smallest + whole * part + rest * part // PARTS
        return found


@dataclass(frozen=True, eq=False)
class Decision:
    """The sizes that are to be in force.

    Attributes:
        part: how far from the smallest to the largest sizes all would be, in hundredths: as far as the
            estimate for that is within the limit, without the reserve.
        sizes: int64[k], the sizes that are to be in force (instants).
        now: what is expected with those that have been in force so far (bytes).
        expected: what is expected with `sizes`.
        least, most: what is expected with the smallest and the largest sizes (bytes).
        missing: how many bytes too few the limit without its reserve has for the smallest sizes, 0 if none.
    """

    part: int
    sizes: Int64Array
    now: float
    expected: float
    least: float
    most: float
    missing: float


def decided(load: Load, knobs: Knobs, limit: int | None) -> Decision:
    """The sizes that are to be in force.

    They become smaller as soon as too much is expected, which depends on what has come and not on whether an
    earlier change has had its effect. They become larger only where too little is expected, and each only
    when its last change has taken effect. So they do not go to and fro while rows come as they do.

    Args:
        load: what is expected as a function of sizes.
        knobs: the sizes that may change.
        limit: how many bytes of state there may be; any number if None.
    """
    least, most, now = (load.bytes_at(sizes) for sizes in (knobs.smallest, knobs.largest, knobs.sizes))
    if limit is None:
        return Decision(PARTS, knobs.sizes, now, now, least, most, 0.0)
    part = _furthest(lambda part: load.bytes_at(knobs.at(part)), USED * limit)
    sizes = _changed(load, knobs, limit, part if now > TOO_MUCH * limit else None)
    expected = load.bytes_at(sizes)
    return Decision(part, sizes, now, expected, least, most, max(0.0, least - USED * limit))


def _changed(load: Load, knobs: Knobs, limit: int, part: int | None) -> Int64Array:
    """int64[k]: the sizes from now on.

    Args:
        load: what is expected as a function of sizes.
        knobs: the sizes that may change.
        limit: how many bytes of state there may be.
        part: how far sizes may be where too much is expected; None where it is not.
    """
    held: Int64Array = knobs.sizes if part is None else np.minimum(knobs.sizes, knobs.at(part))

    def at(part: int) -> Int64Array:
        """The sizes where those that may become larger are so far."""
        found: Int64Array = np.where(knobs.settled, knobs.at(part), held)
        return found

    def fitting(share: float) -> Int64Array:
        return at(_furthest(lambda part: load.bytes_at(at(part)), share * limit))

    if part is None and not (fitting(TOO_LITTLE) > knobs.sizes).any():
        return knobs.sizes
    return fitting(USED)


def _furthest(size: Callable[[int], float], budget: float) -> int:
    """The largest part for which a size that grows with it is within a budget; 0 where none is."""
    if size(PARTS) <= budget:
        return PARTS
    low, high = 0, PARTS
    while high - low > 1:
        middle = (low + high) // 2
        if size(middle) <= budget:
            low = middle
        else:
            high = middle
    return low
