"""A table of a database that a sink keeps, and those beside it: their statements, for any DB-API."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

from headrace.errors import DeliveryError
from headrace.runtime.delivery.contract import Origin
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, Schema, places_named

_MANY: Final = 50
"""From so many rows on COPY is used."""
_TOGETHER: Final = 100
"""So many rows are looked up by one statement."""
_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

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


PRESENT: Final = "present"
"""The form of a table that has the content at the heartbeat."""


class Claim(NamedTuple):
    """Whose answer a table has.

    Attributes:
        delivery: it.
        epoch: the last epoch that is in it.
        form: in which form.
    """

    delivery: str
    epoch: int
    form: str


class Validity(NamedTuple):
    """A row and the instants at which it is in the answer.

    Attributes:
        row: the row.
        begin: from which instant on.
        end: before which instant; INFINITY where that is not known.
    """

    row: TableRow
    begin: int
    end: int


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
        reached = (
            "one INTEGER PRIMARY KEY, delivery TEXT, query TEXT, epoch BIGINT, heartbeat BIGINT, form TEXT"
        )
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._reached} ({reached})")
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._later} (at BIGINT, content TEXT, change BIGINT)")

    def find(self, cursor: Any, names: Sequence[str], key: Sequence[str]) -> None:
        """Find the query's columns in the table, in whatever order it has them, exact names first.

        Args:
            cursor: of the database.
            names: the query's columns.
            key: those of them that are its key.

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
        self.key = tuple(self.columns[names.index(name)] for name in key)

    def count(self, cursor: Any) -> int:
        """How many rows the table has."""
        cursor.execute(f"SELECT COUNT(*) FROM {self._rows}")
        return int(cursor.fetchone()[0])

    def claim(self, cursor: Any, origin: Origin, form: str) -> None:
        """Say whose answer the table has, and in which form; there is none yet."""
        first = (1, origin.delivery, origin.query, origin.first - 1, None, form)
        cursor.execute(f"INSERT INTO {self._reached} VALUES ({self._markers(6)})", first)

    def claimed(self, cursor: Any) -> Claim:
        """Whose answer the table has; of one that was made when there was one form it is that."""
        cursor.execute(f"SELECT * FROM {self._reached}")
        names = [str(column[0]).lower() for column in cursor.description]
        found = dict(zip(names, cursor.fetchone(), strict=True))
        return Claim(found["delivery"], int(found["epoch"]), found.get("form", PRESENT))

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

    def take_spans(self, cursor: Any, rows: Collection[TableRow]) -> list[Validity]:
        """When some rows are in the answer, as far as that may be taken back; it is forgotten."""
        found: list[Validity] = []
        contents = sorted(map(json.dumps, rows))
        for place in range(0, len(contents), _TOGETHER):
            some = contents[place : place + _TOGETHER]
            among = f"FROM {self._later} WHERE content IN ({self._markers(len(some))})"
            cursor.execute(f"SELECT content, at, change {among}", some)
            found += [
                Validity(tuple(json.loads(content)), *map(int, span)) for content, *span in cursor.fetchall()
            ]
            cursor.execute(f"DELETE {among}", some)
        return found

    def put_spans(self, cursor: Any, spans: Iterable[Validity]) -> None:
        """Remember when rows are in the answer."""
        self.put_later(cursor, [Endpoint(one.begin, one.row, one.end) for one in spans])

    def forget_spans(self, cursor: Any, heartbeat: int) -> None:
        """Forget what has ended up to a heartbeat, and can be taken back no more."""
        cursor.execute(f"DELETE FROM {self._later} WHERE change <= {self._marker}", (heartbeat,))

    def count_of(self, cursor: Any, key: TableRow) -> int:
        """How many rows of a key there are."""
        return self._count(cursor, self.key, key)

    def delete(self, cursor: Any, key: TableRow) -> None:
        """Delete the rows of a key."""
        self._delete(cursor, self.key, key)

    def insert(self, cursor: Any, rows: Sequence[TableRow]) -> None:
        """Insert rows; into PostgreSQL many at once by COPY."""
        if not rows:
            return
        columns = ", ".join(map(_quoted, self.columns))
        if len(rows) >= _MANY and type(cursor).__module__.partition(".")[0] == "pg8000":
            lines = "".join("\t".join(map(_copied, row)) + "\n" for row in rows)
            cursor.execute(f"COPY {self._rows} ({columns}) FROM STDIN", stream=io.BytesIO(lines.encode()))
            return
        text = f"INSERT INTO {self._rows} ({columns}) VALUES ({self._markers(len(self.columns))})"
        cursor.executemany(text, rows)

    def take(self, cursor: Any, row: TableRow) -> bool:
        """Delete one of the rows that are equal to one; whether there was any."""
        count = self._count(cursor, self.columns, row)
        if count:
            self._delete(cursor, self.columns, row)
            self.insert(cursor, [row] * (count - 1))
        return count > 0

    def _count(self, cursor: Any, names: Sequence[str], values: TableRow) -> int:
        where, given = self._where(names, values)
        cursor.execute(f"SELECT COUNT(*) FROM {self._rows}{where}", given)
        return int(cursor.fetchone()[0])

    def _delete(self, cursor: Any, names: Sequence[str], values: TableRow) -> None:
        where, given = self._where(names, values)
        cursor.execute(f"DELETE FROM {self._rows}{where}", given)

    def _where(self, names: Sequence[str], values: TableRow) -> tuple[str, Sequence[TableValue]]:
        """The condition that a row has some values; NULL is a value like others."""
        if not names:
            return "", ()
        tests = (" IS NULL" if value is None else f" = {self._marker}" for value in values)
        terms = (_quoted(name) + test for name, test in zip(names, tests, strict=True))
        return f" WHERE {' AND '.join(terms)}", [value for value in values if value is not None]

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


def _copied(value: TableValue) -> str:
    """A value in the text format of PostgreSQL's COPY."""
    match value:
        case None:
            return "\\N"
        case bool():
            return "t" if value else "f"
        case str():
            return value.translate(_ESCAPED)
        case _:
            return repr(value)


def _type_of(dtype: pa.DataType) -> str:
    return _TYPES.get(dtype, "TEXT")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
