"""The forms of a table of a database: the present content, events, the history, or each change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import pyarrow as pa

from headrace.elements import Batch, to_rows
from headrace.errors import DeliveryError, warn
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.table_statements import (
    PRESENT,
    DeliveredTable,
    Endpoint,
    TableRow,
    TableValue,
    Validity,
    plain,
)
from headrace.runtime.results.changes import Change
from headrace.schema import TIMESTAMP, Schema
from headrace.suggestions import did_you_mean
from headrace.time import ALWAYS, INFINITY, TimeDomain, format_instant

EVENTS: Final = "events"
FORMS: Final = (PRESENT, EVENTS, "history", "changes")
"""The forms of tables."""


class TableForm(Protocol):
    """The way in which the rows of a table follow from changes.

    Attributes:
        key: the columns of which no two rows have the same values; none where there may be several rows.
    """

    key: tuple[str, ...]

    def columns(self, origin: Origin) -> Schema:
        """The columns of the table."""
        ...

    def write(self, cursor: Any, change: Change) -> None:
        """Carry out what an epoch changes, within its transaction."""
        ...


class PresentRows:
    """The content at the heartbeat, one row per key.

    Args:
        table: the table.
        key: the columns of the key; None for what follows from the query.
    """

    def __init__(self, table: DeliveredTable, key: tuple[str, ...] | None) -> None:
        self._table = table
        self._given = key
        self.key: tuple[str, ...] = ()
        self._places: tuple[int, ...] = ()
        self._origin: Origin | None = None

    def columns(self, origin: Origin) -> Schema:
        """Those of the query.

        Raises:
            DeliveryError: the query has no key, or changes were left out.
        """
        self.key = _key(self._given, origin)
        self._places = tuple(map(origin.schema.names.index, self.key))
        self._origin = origin
        if origin.is_stream:
            warn(
                f"{origin.query} is a stream of events, of which the table {self._table.name} has those of "
                "the last instant alone; in form 'events' it has all"
            )
        if origin.first > origin.start:
            raise lacking(self._table, origin, "leave out from_epoch, or start anew in an empty folder")
        return origin.schema

    def write(self, cursor: Any, change: Change) -> None:
        """Replace the rows that have changed at the new heartbeat.

        Raises:
            DeliveryError: two rows have the same key at one instant.
        """
        found = _endpoints(change.elements)
        due = [*self._table.take_later(cursor, change.heartbeat)]
        due += [one for one in found if one.at < change.heartbeat]
        self._table.put_later(cursor, [one for one in found if one.at >= change.heartbeat])
        for key, endpoints in self._by_key(due).items():
            self._replace(cursor, key, endpoints)

    def _by_key(self, endpoints: Iterable[Endpoint]) -> dict[TableRow, list[Endpoint]]:
        found: dict[TableRow, list[Endpoint]] = {}
        for one in endpoints:
            found.setdefault(tuple(one.row[place] for place in self._places), []).append(one)
        return found

    def _replace(self, cursor: Any, key: TableRow, endpoints: list[Endpoint]) -> None:
        """Put the row of a key in place that is there after some instants.

        Raises:
            DeliveryError: there are two at one of the instants.
        """
        before = count = self._table.count_of(cursor, key)
        moments: Counter[int] = Counter()
        rows: Counter[TableRow] = Counter()
        for at, row, change in endpoints:
            moments[at] += change
            rows[row] += change
        for at in sorted(moments):
            count += moments[at]
            if count > 1:
                raise self._repeated(key, at)
        come = [row for row, change in rows.items() if change > 0]
        if before and (come or not count):
            self._table.delete(cursor, key)
        self._table.insert(cursor, come)

    def _repeated(self, key: TableRow, at: int) -> DeliveryError:
        assert self._origin is not None
        names = self._table.key
        told = ", ".join(f"{name} = {json.dumps(value)}" for name, value in zip(names, key, strict=True))
        which = f"of the key {told}" if names else "without a key"
        return DeliveryError(
            f"{self._origin.query} has two rows {which} at {_shown(at, self._origin.domain)}",
            hint="give TableSink the columns that say which row it is: key=[...]",
        )


class ChangesRows:
    """Each change is a row, with `epoch`, `valid_from`, `valid_to` and `change`; nothing is ever updated.

    Args:
        table: the table.
    """

    key: tuple[str, ...] = ()

    def __init__(self, table: DeliveredTable) -> None:
        self._table = table

    def columns(self, origin: Origin) -> Schema:
        """Those of the changes."""
        return origin.changes

    def write(self, cursor: Any, change: Change) -> None:
        """Append the changes."""
        self._table.insert(cursor, list(_rows_of(change)))


class EventRows:
    """Each event is a row, once; one that is taken back is deleted.

    Args:
        table: the table.
    """

    key: tuple[str, ...] = ()

    def __init__(self, table: DeliveredTable) -> None:
        self._table = table

    def columns(self, origin: Origin) -> Schema:
        """Those of the query.

        Raises:
            DeliveryError: its rows last for longer than an instant.
        """
        if not origin.is_stream:
            raise DeliveryError(
                f"the rows of {origin.query} are not events, they come and go",
                hint="write form 'history' or 'changes', or deliver a query ISTREAM(...)",
            )
        return origin.schema

    def write(self, cursor: Any, change: Change) -> None:
        """Insert the events that come; delete those that were taken back.

        Raises:
            DeliveryError: somebody has changed a row that is taken back.
        """
        counts: Counter[TableRow] = Counter()
        for row, _, _, count in _spans_of(change):
            counts[row] += count
        for row, count in counts.items():
            for _ in range(-count):
                if not self._table.take(cursor, row):
                    raise _changed_by_others(self._table, row)
        self._table.insert(cursor, list(counts.elements()))


class HistoryRows:
    """Each row of the answer with `valid_from` and `valid_to`, which is set when it is known.

    What may still be taken back is kept beside the table, with the instants, until the heartbeat has passed
    its end. A row whose instants are said piece by piece is in the table in pieces.

    Args:
        table: the table.
    """

    key: tuple[str, ...] = ()

    def __init__(self, table: DeliveredTable) -> None:
        self._table = table
        self._domain = TimeDomain.INTEGER

    def columns(self, origin: Origin) -> Schema:
        """Those of the query, and the two instants.

        Raises:
            DeliveryError: changes were left out.
        """
        if origin.first > origin.start:
            raise lacking(self._table, origin, "leave out from_epoch, or write form 'changes'")
        self._domain = origin.domain
        return Schema(tuple(origin.changes)[1:-1])

    def write(self, cursor: Any, change: Change) -> None:
        """Insert the rows that come, and end those that go.

        Raises:
            DeliveryError: somebody has changed a row that ends.
        """
        told = _spans_of(change)
        kept = _by_row(self._table.take_spans(cursor, {row for row, _, _, count in told if count < 0}))
        new: dict[TableRow, list[Validity]] = {}
        for row, begin, end, count in told:
            mine, there = new.setdefault(row, []), kept.get(row, [])
            mine += [Validity(row, begin, end)] * count
            for _ in range(-count):
                whole = _covering(mine, begin, end)
                if whole is not None:
                    mine.remove(whole)
                else:
                    whole = _covering(there, begin, end)
                    if whole is None or not self._table.take(cursor, self._told(whole)):
                        raise _changed_by_others(self._table, row)
                    there.remove(whole)
                pieces = Validity(row, whole.begin, begin), Validity(row, end, whole.end)
                mine += [piece for piece in pieces if piece.begin < piece.end]
        come = list(chain.from_iterable(new.values()))
        self._table.insert(cursor, list(map(self._told, come)))
        self._table.forget_spans(cursor, change.heartbeat)
        left = chain(come, *kept.values())
        self._table.put_spans(cursor, [span for span in left if span.end > change.heartbeat])

    def _told(self, span: Validity) -> TableRow:
        """A span as it is in the table."""
        return *span.row, *(_instant(at, self._domain) for at in (span.begin, span.end))


def form_of(name: str, table: DeliveredTable, key: tuple[str, ...] | None) -> TableForm:
    """The form of a name, one of `FORMS`.

    Args:
        name: it.
        table: the table.
        key: the columns of the key, by which present rows are found; None for what follows from the query.
    """
    match name:
        case "events":
            return EventRows(table)
        case "history":
            return HistoryRows(table)
        case "changes":
            return ChangesRows(table)
        case _:
            return PresentRows(table, key)


def lacking(table: DeliveredTable, origin: Origin, hint: str) -> DeliveryError:
    """A table would not have all that has been said."""
    return DeliveryError(
        f"the table {table.name} would lack what {origin.query} has said before epoch {origin.first}",
        hint=hint,
    )


def _spans_of(change: Change) -> list[tuple[TableRow, int, int, int]]:
    """The rows of a change, when they begin and end, and how often; of an instant first those that come."""
    found = [
        (tuple(map(plain, row)), begin, end, count) for row, begin, end, count in to_rows(change.elements)
    ]
    return sorted(found, key=lambda one: (one[1], -one[3]))


def _by_row(spans: Iterable[Validity]) -> dict[TableRow, list[Validity]]:
    found: dict[TableRow, list[Validity]] = {}
    for one in spans:
        found.setdefault(one.row, []).append(one)
    return found


def _covering(spans: Sequence[Validity], begin: int, end: int) -> Validity | None:
    """A span of a row with all instants from one to before another; of several the one that ends first."""
    able = [one for one in spans if one.begin <= begin and end <= one.end]
    return min(able, key=lambda one: one.end, default=None)


def _instant(at: int, domain: TimeDomain) -> TableValue:
    """An instant as the table has it; NULL for the ends of time."""
    if at in (ALWAYS, INFINITY):
        return None
    return at if domain is TimeDomain.INTEGER else plain(pa.scalar(at, TIMESTAMP).as_py())


def _rows_of(change: Change) -> Iterator[tuple[Any, ...]]:
    """The changes as rows of what drivers take."""
    columns = [column.to_pylist() for column in change.rows.columns]
    for values in zip(*columns, strict=True):
        yield tuple(map(plain, values))


def _changed_by_others(table: DeliveredTable, row: TableRow) -> DeliveryError:
    return DeliveryError(
        f"the table {table.name} has no row {row} any more, which is taken back",
        hint="leave its rows alone, or name another table and another sink",
    )


def _key(given: tuple[str, ...] | None, origin: Origin) -> tuple[str, ...]:
    """The columns of the key.

    Raises:
        DeliveryError: it does not follow from the query.
    """
    if given is None:
        if origin.key is None:
            raise DeliveryError(
                f"it does not follow from {origin.query} which columns say which row it is",
                hint="give TableSink a key=[...], or group by its columns",
            )
        return origin.key
    return given


def check_key(given: tuple[str, ...] | None, origin: Origin) -> None:
    """Refuse a key that is not among the columns.

    Raises:
        DeliveryError: it is not.
    """
    names = origin.schema.names
    for name in given or ():
        if name not in names:
            raise DeliveryError(
                f"{origin.query} has no column {name}",
                hint=did_you_mean(name, names) or f"its columns are {', '.join(names)}",
            )


def _endpoints(elements: Batch) -> list[Endpoint]:
    """When the rows of some elements come and go."""
    found = []
    for payload, ts, te, change in to_rows(elements):
        row = tuple(map(plain, payload))
        found.append(Endpoint(ts, row, change))
        if te != INFINITY:
            found.append(Endpoint(te, row, -change))
    return found


def _shown(instant: int, domain: TimeDomain) -> str:
    return "the beginning" if instant <= ALWAYS else format_instant(instant, domain)
