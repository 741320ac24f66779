"""The definition of a relation that is given by changes, by looking at all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.reference.contents import Content, History, Payload, history_of, order, payload


@dataclass(frozen=True)
class RowChange:
    """A row that is inserted, updated or deleted.

    Attributes:
        instant: from which on it holds.
        key: of the row.
        version: orders the changes of a key at one instant; NULL comes before all others.
        deletes: whether there is no such row any more. Else there is this one, whatever was there before.
        row: all columns of the relation.
    """

    instant: int
    key: Payload
    version: object
    deletes: bool
    row: Payload


def content_after(changes: Iterable[RowChange], instant: int) -> Content:
    """The content of a relation: per key its last change up to an instant, unless that deletes.

    The last one is by instant, then by version; of one version a deletion comes before the others, and rows
    that nothing else orders are ordered column by column.
    """
    last: dict[Payload, RowChange] = {}
    for change in sorted(changes, key=_place):
        if change.instant <= instant:
            last[payload(change.key)] = change
    return Counter(payload(change.row) for change in last.values() if not change.deletes)


def history_after(changes: Iterable[RowChange]) -> History:
    """The canonical history of a relation."""
    known = list(changes)
    return history_of({change.instant: content_after(known, change.instant) for change in known})


def _place(change: RowChange) -> tuple[object, ...]:
    row = tuple(map(order, change.row))
    return change.instant, order(change.version), not change.deletes, row
