"""The windows and granules of queries that may change, as the status of a run has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import Tuning, TuningKind, Tunings, size_of, sizes_in, tunings_in
from headrace.time import BEGINNING


@dataclass(frozen=True)
class WindowStatus:
    """A window whose size may change within bounds, or a granule.

    Attributes:
        streams: the names of the streams whose rows it has.
        smallest, largest: its bounds (instants; rows for a window of rows).
        size: what it is for rows that come now, in the same unit.
        since: the first instant at which it has that size; BEGINNING if it has had no other one.
        why: why it has that size, where nobody has asked for it; else empty.
        kind: what it is.
    """

    streams: tuple[str, ...]
    smallest: int
    largest: int
    size: int
    since: int
    why: str = ""
    kind: TuningKind = TuningKind.WINDOW

    @property
    def first(self) -> int:
        """The size before the first change."""
        return self.kind.first(self.smallest, self.largest)


def window_statuses(plan: Plan, tunings: Tunings) -> tuple[WindowStatus, ...]:
    """The windows and granules of a query that may change.

    Args:
        plan: the query's.
        tunings: the sizes that have changed.
    """
    return tuple(window_status(tuning, tunings) for tuning in _sizes_in(plan))


def tuning_statuses(plan: Plan, tunings: Tunings) -> tuple[WindowStatus, ...]:
    """The same, and the share of its rows that a query keeps, in millionths, if it bears loss."""
    return tuple(window_status(tuning, tunings) for tuning in _tunings_in(plan))


def window_status(tuning: Tuning, tunings: Tunings) -> WindowStatus:
    """Windows of one size.

    Args:
        tuning: says the size.
        tunings: the sizes that have changed.
    """
    known, size = tunings.get(tuning), size_of(tuning, tunings)
    since = known.steps[-1].begin if known is not None and known.steps else BEGINNING
    why = "" if known is None else known.why
    bounds = tuning.smallest, tuning.largest
    return WindowStatus(tuning.streams, *bounds, size, since, why, tuning.kind)


_sizes_in: Final = ByObject(sizes_in, REMEMBERED)
_tunings_in: Final = ByObject(tunings_in, REMEMBERED)
