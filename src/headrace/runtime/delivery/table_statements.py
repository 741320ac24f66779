"""A table of a database that a sink keeps, and those beside it: their statements, for any DB-API."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

from headrace.errors import DeliveryError
from headrace.runtime.delivery.contract import Origin
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, Schema, places_named

TableValue = bool | int | float | str | None
TableRow = tuple[TableValue, ...]

_TYPES: Final = {BOOLEAN: "BOOLEAN", BIGINT: "BIGINT", DOUBLE: "DOUBLE PRECISION"}
"""The types of columns that are not made TEXT."""


class Endpoint(NamedTuple):
    """That a row comes or goes.

    Attributes:
        at: from which instant on.
        row: the row.
        change: how many of it come, or go if below 0.
    """

    at: int
    row: TableRow
    change: int


class DeliveredTable:
    """A table with a query's content, one with how far it is, and one with what is ahead.

    Args:
        name: the first one's name, perhaps with its schema before a dot; the others' are made from it.
        marker: how the driver marks a parameter.

    Attributes:
        name: its name.
        key: the columns of its key.
        columns: all its columns that the query fills, as the table spells them, in the query's order.
    """

    def __init__(self, name: str, marker: str) -> None:
        self.name = name
        self.key: tuple[str, ...] = ()
        self.columns: tuple[str, ...] = ()
        self._marker = marker
        *schema, last = name.split(".")
        suffixes = ("", "_headrace", "_headrace_later")
        self._rows, self._reached, self._later = (
            ".".join(map(_quoted, (*schema, last + suffix))) for suffix in suffixes
        )

    def make(self, cursor: Any, schema: Schema) -> None:
        """Make the tables that are missing."""
        columns = ", ".join(f"{_quoted(field.name)} {_type_of(field.type)}" for field in schema)
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._rows} ({columns})")
        reached = "one INTEGER PRIMARY KEY, delivery TEXT, query TEXT, epoch BIGINT, heartbeat BIGINT"
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._reached} ({reached})")
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._later} (at BIGINT, content TEXT, change BIGINT)")

    def find(self, cursor: Any, names: Sequence[str]) -> None:
        """Find the query's columns in the table, in whatever order it has them, exact names first.

        Args:
            cursor: of the database.
            names: the query's columns.

        Raises:
            DeliveryError: one is not there, or several differ from it by case alone.
        """
        cursor.execute(f"SELECT * FROM {self._rows} WHERE 1 = 0")
        known = [str(column[0]) for column in cursor.description]
        found = [places_named(name, known) for name in names]
        for name, places in zip(names, found, strict=True):
            if len(places) != 1:
                several = "several columns that are" if places else "no column"
                hint = f"its columns are {', '.join(known)}; name the query's columns so, by AS"
                raise DeliveryError(f"the table {self.name} has {several} called {name}", hint=hint)
        self.columns = tuple(known[place] for (place,) in found)

    def count(self, cursor: Any) -> int:
        """How many rows the table has."""
        cursor.execute(f"SELECT COUNT(*) FROM {self._rows}")
        return int(cursor.fetchone()[0])

    def claim(self, cursor: Any, origin: Origin) -> None:
        """Say whose answer the table has; there is none yet."""
        first = (1, origin.delivery, origin.query, origin.first - 1, None)
        cursor.execute(f"INSERT INTO {self._reached} VALUES ({self._markers(5)})", first)

    def claimed(self, cursor: Any) -> tuple[str, int]:
        """The delivery whose answer the table has, and the last epoch that is in it."""
        cursor.execute(f"SELECT delivery, epoch FROM {self._reached}")
        delivery, epoch = cursor.fetchone()
        return delivery, int(epoch)

    def move(self, cursor: Any, epoch: int, heartbeat: int) -> None:
        """Say that an epoch is in it, after which the answer is final below a heartbeat."""
        text = f"UPDATE {self._reached} SET epoch = {self._marker}, heartbeat = {self._marker}"
        cursor.execute(text, (epoch, heartbeat))

    def take_later(self, cursor: Any, heartbeat: int) -> list[Endpoint]:
        """What was ahead and is below a heartbeat now; it is forgotten."""
        before = f"FROM {self._later} WHERE at < {self._marker}"
        cursor.execute(f"SELECT at, content, change {before}", (heartbeat,))
        found = [
            Endpoint(at, tuple(json.loads(content)), change) for at, content, change in cursor.fetchall()
        ]
        if found:
            cursor.execute(f"DELETE {before}", (heartbeat,))
        return found

    def put_later(self, cursor: Any, endpoints: Iterable[Endpoint]) -> None:
        """Remember what is ahead."""
        rows = [(one.at, json.dumps(one.row), one.change) for one in endpoints]
        if rows:
            cursor.executemany(f"INSERT INTO {self._later} VALUES ({self._markers(3)})", rows)

    def count_of(self, cursor: Any, key: TableRow) -> int:
        """How many rows of a key there are."""
        where, values = self._where(key)
        cursor.execute(f"SELECT COUNT(*) FROM {self._rows}{where}", values)
        return int(cursor.fetchone()[0])

    def delete(self, cursor: Any, key: TableRow) -> None:
        """Delete the row of a key."""
        where, values = self._where(key)
        cursor.execute(f"DELETE FROM {self._rows}{where}", values)

    def insert(self, cursor: Any, row: TableRow) -> None:
        """Insert a row."""
        columns = ", ".join(map(_quoted, self.columns))
        cursor.execute(f"INSERT INTO {self._rows} ({columns}) VALUES ({self._markers(len(row))})", row)

    def _where(self, key: TableRow) -> tuple[str, Sequence[TableValue]]:
        """The condition that a row has a key; NULL is a value like others."""
        if not key:
            return "", ()
        tests = (" IS NULL" if value is None else f" = {self._marker}" for value in key)
        terms = (_quoted(name) + test for name, test in zip(self.key, tests, strict=True))
        return f" WHERE {' AND '.join(terms)}", [value for value in key if value is not None]

    def _markers(self, count: int) -> str:
        return ", ".join([self._marker] * count)


def plain(value: object) -> TableValue:
    """A value as any driver takes it; not all databases have NaN."""
    match value:
        case float() if math.isnan(value):
            return None
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, default=plain)


def _type_of(dtype: pa.DataType) -> str:
    return _TYPES.get(dtype, "TEXT")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
