"""The definition of a relation that is given by changes, by looking at all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headrace.reference.contents import Content, History, Payload, history_of, order, payload
from headrace.reference.lateness import late_with_limits
from headrace.time import BEGINNING


@dataclass(frozen=True)
class RowChange:
    """A row that is inserted, updated or deleted.

    Attributes:
        instant: from which on it holds.
        since: from which on it is known, its instant or later where it comes late.
        key: of the row.
        version: orders the changes of a key at one instant; NULL comes before all others.
        deletes: whether there is no such row any more. Else there is this one, whatever was there before.
        row: all columns of the relation.
        arrived: its place among the changes of its source, which orders those of one version.
    """

    instant: int
    key: Payload
    version: object
    deletes: bool
    row: Payload
    since: int = BEGINNING
    arrived: int = 0

    @property
    def counts_from(self) -> int:
        """The first instant whose content it may change: what was said before stays."""
        return max(self.instant, self.since)


def content_after(changes: Iterable[RowChange], instant: int) -> Content:
    """The content of a relation: per key its last change that counts at an instant, unless that deletes.

    One that comes late counts from when it came, as if it had come in time.
    The last one is by instant, then by version, then by when it came. Of those that nothing else orders a
    deletion comes before the others, and these are ordered column by column.
    """
    last: dict[Payload, RowChange] = {}
    for change in sorted(changes, key=_place):
        if change.counts_from <= instant:
            last[payload(change.key)] = change
    return Counter(payload(change.row) for change in last.values() if not change.deletes)


def history_after(changes: Iterable[RowChange]) -> History:
    """The canonical history of a relation."""
    known = list(changes)
    return history_of({at: content_after(known, at) for at in {change.counts_from for change in known}})


def as_they_come(changes: Iterable[RowChange], disorder: int, how_late: int) -> list[RowChange]:
    """The changes that count, each since when it is known.

    One that is late is known from the heartbeat on that it is below, if it is no further below that than is
    said; else it is set apart.

    Args:
        changes: in the order in which they come.
        disorder: how much older than the newest one before it one may be (instants).
        how_late: how far below the heartbeat one may be that still counts (instants).
    """
    known = list(changes)
    limits = late_with_limits([change.instant for change in known], disorder)
    return [
        replace(change, since=limits.get(place, BEGINNING))
        for place, change in enumerate(known)
        if change.instant >= limits.get(place, BEGINNING) - how_late
    ]


def _place(change: RowChange) -> tuple[object, ...]:
    row = tuple(map(order, change.row))
    return change.instant, order(change.version), change.arrived, not change.deletes, row
