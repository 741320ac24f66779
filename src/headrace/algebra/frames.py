"""Frames: which rows of its partition an aggregate with OVER reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.errors import PlanError
from headrace.time import Duration

MAX_ROWS: Final = 1_000_000_000
"""The most rows a window may hold, or slide by, and the farthest row that a frame starts or ends with."""


@dataclass(frozen=True)
class RowsFrame:
    """The rows that are `first` to `last` places before the row (SQL's ROWS).

    The order is that of instant and payload, as in a row window. With `first` None the frame starts with the
    first row that ever was in the partition.
    """

    first: int | None
    last: int

    def __post_init__(self) -> None:
        if not 0 <= self.last <= (MAX_ROWS if self.first is None else self.first) <= MAX_ROWS:
            raise PlanError("a frame of rows starts no later than it ends, and not after the current row")


@dataclass(frozen=True)
class RangeFrame:
    """The rows of the last `size` instants, all of the row's own instant among them (SQL's RANGE).

    With size INFINITY these are all rows up to the row's instant.
    """

    size: Duration

    def __post_init__(self) -> None:
        if self.size.length < 1:
            raise PlanError("a frame holds at least one instant")


Frame = RowsFrame | RangeFrame
