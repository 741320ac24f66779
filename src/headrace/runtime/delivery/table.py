"""A query's answer as a table of a database, kept equal to the content at the heartbeat."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from headrace.elements import Batch, to_rows
from headrace.errors import DeliveryError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.table_statements import DeliveredTable, Endpoint, TableRow, plain
from headrace.runtime.outside.trouble import is_away
from headrace.runtime.results.changes import Change
from headrace.suggestions import did_you_mean
from headrace.time import ALWAYS, INFINITY, TimeDomain, format_instant


class TableSink:
    """Keeps a table of a database equal to a query's content at its heartbeat, one row per key.

    The content is that of the last instant that is final. Rows that come are inserted, rows that go are
    deleted, and a row that changes is replaced by that of the same key. What an epoch changes is one
    transaction.

    Promise: exactly once, also after a crash, as long as the run's store is durable: the transaction writes
    the number of the epoch to a table of its own, `<table>_headrace`, and an epoch that is in it is not
    written again. `<table>_headrace_later` has what is known of instants that are not final yet.

    The tables are made if they are missing. One that is there has to be empty, and have the query's columns.
    DATE, TIMESTAMP, DECIMAL and ARRAY columns are TEXT where they are made. NaN becomes NULL.

    Args:
        connect: opens a connection of Python's DB-API, which is closed again after each epoch. It must not
            commit on its own.
        table: the table's name, with its schema before a dot if it needs one.
        key: the columns of which no two rows at one instant have the same values; none for an answer of one
            row. If None, what follows from the query, such as the columns of its GROUP BY.
        marker: how the driver marks the place of a parameter: `?`, or `%s`.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        table: str,
        key: Sequence[str] | None = None,
        marker: str = "?",
    ) -> None:
        self._connect = connect
        self._table = DeliveredTable(table, marker)
        self._key = None if key is None else tuple([key] if isinstance(key, str) else key)
        self._places: tuple[int, ...] = ()
        self._origin: Origin | None = None

    @property
    def name(self) -> str:
        """`database`."""
        return "database"

    def open(self, origin: Origin) -> None:
        """Make the tables, or see that they are ours and in step.

        Raises:
            DeliveryError: the query has no key, the key is not one of its columns, or the table is not ours.
        """
        self._places = tuple(map(origin.schema.names.index, _key(self._key, origin)))
        self._origin = origin
        if origin.first > origin.start:
            raise DeliveryError(
                f"the table {self._table.name} would lack what {origin.query} has said before epoch "
                f"{origin.first}",
                hint="leave out from_epoch, or start anew in an empty folder",
            )
        known = self._known()
        if known is None:
            with self._transaction() as cursor:
                self._claim(cursor, origin)
        elif known[0] != origin.delivery:
            raise DeliveryError(
                f"the table {self._table.name} has the answer of another run",
                hint="name another table; with a durable store a run goes on with the same one",
            )
        elif known[1] < origin.epoch:
            raise DeliveryError(
                f"the table {self._table.name} is at epoch {known[1]}, and was at epoch {origin.epoch}",
                hint="restore the newest copy of the database, or name another table and another sink",
            )
        else:
            with self._transaction() as cursor:
                self._find(cursor, origin)

    def write(self, change: Change) -> None:
        """Carry out what the epoch changes, unless the table has it already.

        Raises:
            DeliveryError: two rows have the same key at one instant.
        """
        with self._transaction() as cursor:
            if change.epoch <= self._table.claimed(cursor)[1]:
                return
            found = _endpoints(change.elements)
            due = [*self._table.take_later(cursor, change.heartbeat)]
            due += [one for one in found if one.at < change.heartbeat]
            self._table.put_later(cursor, [one for one in found if one.at >= change.heartbeat])
            for key, endpoints in self._by_key(due).items():
                self._replace(cursor, key, endpoints)
            self._table.move(cursor, change.epoch, change.heartbeat)

    def _known(self) -> tuple[str, int] | None:
        """Whose answer the table has, and up to which epoch; None where there is no such table."""
        try:
            with self._transaction() as cursor:
                return self._table.claimed(cursor)
        except Exception as error:  # each driver has an error of its own for a table that is not there
            if is_away(error):
                raise
            return None

    def _claim(self, cursor: Any, origin: Origin) -> None:
        table = self._table
        if origin.epoch >= origin.first:
            raise DeliveryError(
                f"there is no table {table.name} with what was delivered up to epoch {origin.epoch}",
                hint="restore it, or give the sink another name to deliver everything again",
            )
        table.make(cursor, origin.schema)
        self._find(cursor, origin)
        if table.count(cursor):
            raise DeliveryError(f"the table {table.name} has rows already", hint="name another one")
        table.claim(cursor, origin)

    def _find(self, cursor: Any, origin: Origin) -> None:
        """Find the columns of the query and of its key in the table."""
        self._table.find(cursor, origin.schema.names)
        self._table.key = tuple(self._table.columns[place] for place in self._places)

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
        for row in come:
            self._table.insert(cursor, row)

    def _repeated(self, key: TableRow, at: int) -> DeliveryError:
        assert self._origin is not None
        names = self._table.key
        told = ", ".join(f"{name} = {json.dumps(value)}" for name, value in zip(names, key, strict=True))
        which = f"of the key {told}" if names else "without a key"
        return DeliveryError(
            f"{self._origin.query} has two rows {which} at {_shown(at, self._origin.domain)}",
            hint="give TableSink the columns that say which row it is: key=[...]",
        )

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        connection = self._connect()
        try:
            yield connection.cursor()
            connection.commit()
        except BaseException:
            with suppress(Exception):
                connection.rollback()
            raise
        finally:
            connection.close()


def _key(given: tuple[str, ...] | None, origin: Origin) -> tuple[str, ...]:
    """The columns of the key.

    Raises:
        DeliveryError: it does not follow from the query, or is not among its columns.
    """
    if given is None:
        if origin.key is None:
            raise DeliveryError(
                f"it does not follow from {origin.query} which columns say which row it is",
                hint="give TableSink a key=[...], or group by its columns",
            )
        return origin.key
    names = origin.schema.names
    for name in given:
        if name not in names:
            raise DeliveryError(
                f"{origin.query} has no column {name}",
                hint=did_you_mean(name, names) or f"its columns are {', '.join(names)}",
            )
    return given


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
