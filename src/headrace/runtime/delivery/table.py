"""A query's answer as a table of a database, kept equal to the content at the heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from headrace.errors import DeliveryError, UserError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.table_forms import EVENTS, FORMS, TableForm, check_key, form_of
from headrace.runtime.delivery.table_statements import PRESENT, Claim, DeliveredTable
from headrace.runtime.outside.trouble import is_away
from headrace.runtime.results.changes import Change
from headrace.schema import Schema


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

    That is the form `present`. An answer that is a stream of events would leave next to nothing in it: it has
    the form `events` if none is named, each event a row that is inserted once. `history` has each row with
    `valid_from` and `valid_to`, which is NULL until the row ends, and `changes` each change as a row.

    Args:
        connect: opens a connection of Python's DB-API, which is closed again after each epoch. It must not
            commit on its own.
        table: the table's name, with its schema before a dot if it needs one.
        key: the columns of which no two rows at one instant have the same values; none for an answer of one
            row. If None, what follows from the query, such as the columns of its GROUP BY.
        marker: how the driver marks the place of a parameter: `?`, or `%s`.
        form: `present`, `events`, `history` or `changes`.

    Raises:
        UserError: there is no such form.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        table: str,
        key: Sequence[str] | None = None,
        marker: str = "?",
        form: str | None = None,
    ) -> None:
        if form is not None and form not in FORMS:
            raise UserError(f"there is no form '{form}' of a table", hint=f"the forms are {', '.join(FORMS)}")
        self._connect = connect
        self._table = DeliveredTable(table, marker)
        self._key = None if key is None else tuple([key] if isinstance(key, str) else key)
        self._given = form
        self._form: TableForm = form_of(form or PRESENT, self._table, self._key)

    @property
    def name(self) -> str:
        """`database`."""
        return "database"

    def open(self, origin: Origin) -> None:
        """Make the tables, or see that they are ours and in step.

        Raises:
            DeliveryError: the form does not fit the query, the query has no key, the key is not one of its
                columns, or the table is not ours; or it has epochs that the store, which is a copy, does not
                have.
        """
        check_key(self._key, origin)
        known = self._known()
        form = self._given or (EVENTS if origin.is_stream else PRESENT)
        if known is not None and self._given in (None, known.form):
            form = known.form
        self._form = form_of(form, self._table, self._key)
        columns = self._form.columns(origin)
        if known is None:
            with self._transaction() as cursor:
                self._claim(cursor, origin, form, columns)
        elif known.delivery != origin.delivery:
            raise DeliveryError(
                f"the table {self._table.name} has the answer of another run",
                hint="name another table; with a durable store a run goes on with the same one",
            )
        elif known.form != form:
            raise DeliveryError(
                f"the table {self._table.name} has the form '{known.form}'",
                hint="write that form, or name another table and another sink",
            )
        elif known.epoch < origin.epoch:
            raise DeliveryError(
                f"the table {self._table.name} is at epoch {known.epoch}, and was at epoch {origin.epoch}",
                hint="restore the newest copy of the database, or name another table and another sink",
            )
        else:
            origin.check_most(f"the table {self._table.name}", known.epoch)
            with self._transaction() as cursor:
                self._table.find(cursor, columns.names, self._form.key)

    def write(self, change: Change) -> None:
        """Carry out what the epoch changes, unless the table has it already.

        Raises:
            DeliveryError: two rows have the same key at one instant, or somebody has changed the table.
        """
        with self._transaction() as cursor:
            if change.epoch <= self._table.claimed(cursor).epoch:
                return
            self._form.write(cursor, change)
            self._table.move(cursor, change.epoch, change.heartbeat)

    def _known(self) -> Claim | None:
        """Whose answer the table has; None where there is no such table."""
        try:
            with self._transaction() as cursor:
                return self._table.claimed(cursor)
        except Exception as error:  # each driver has an error of its own for a table that is not there
            if is_away(error):
                raise
            return None

    def _claim(self, cursor: Any, origin: Origin, form: str, columns: Schema) -> None:
        table = self._table
        if origin.epoch >= origin.first:
            raise DeliveryError(
                f"there is no table {table.name} with what was delivered up to epoch {origin.epoch}",
                hint="restore it, or give the sink another name to deliver everything again",
            )
        table.make(cursor, columns)
        table.find(cursor, columns.names, self._form.key)
        if table.count(cursor):
            raise DeliveryError(f"the table {table.name} has rows already", hint="name another one")
        table.claim(cursor, origin, form)

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
