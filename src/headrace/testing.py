"""Unit tests of continuous queries: rows in, the expected answer out, disorder and epochs varied.

>>> from headrace.testing import check_query
>>> check_query(
...     "SELECT SUM(v) AS total FROM reading [RANGE 10]",
...     {"reading": [{"ts": 1, "v": 10}, {"ts": 2, "v": 20}]},
...     history=[(10, 1, 2), (30, 2, 11), (20, 11, 12)],
... )
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import pyarrow as pa

from headrace.engine import Database, Query, Summary, connect
from headrace.engine.inputs.times import Length, disorder_of
from headrace.errors import DeadLetterWarning, UserError
from headrace.runtime.sources.composed.tables import to_arrow_table
from headrace.runtime.writing.texts import count
from headrace.schema import TIMESTAMP
from headrace.time import TimeDomain

Rows: TypeAlias = "Sequence[Mapping[str, Any]] | Sequence[Sequence[Any]] | pa.Table"
"""Dictionaries or, of an answer, tuples in the order of its columns; or a table or a data frame."""

_CUTS: Final = (None, 1, 2, 3, 5)
"""How many rows epochs take in the runs; None is all at once."""


def check_query(
    text: str,
    rows: Mapping[str, Rows],
    *,
    history: Rows | None = None,
    snapshots: Mapping[Any, Rows] | None = None,
    stream: Rows | None = None,
    timestamp: str = "ts",
    disorder: Length | None = None,
    late: int = 0,
    prepare: Callable[[Database], object] | None = None,
    orders: int = 5,
) -> None:
    """Check what a query answers to some rows, whatever the cut into epochs and the order of arrival.

    The query is run in this process, without Spark: on the rows in their order, cut into epochs of several
    sizes, then in other orders of arrival in which no row is later than the disorder allows. Every run must
    give the same rows, in any order. Where rows of the given order are late, it is the only one.

    Args:
        text: the query; if there are several statements, the last query of them.
        rows: by stream. Times are numbers, datetimes or ISO 8601 texts; UTC where they have no zone.
        history: all rows of `Query.history`.
        snapshots: by instant, all rows of `Query.snapshot`.
        stream: all rows of `Query.stream`.
        timestamp: the column that every stream is timed by.
        disorder: of every stream, as in `Database.stream`.
        late: how many rows are expected to come too late.
        prepare: called with each database before the query, to define functions or other streams.
        orders: how many other orders of arrival are tried.

    Raises:
        AssertionError: an answer is not the expected one; the message names the rows and the run.
        UserError: the rows or the query are wrong, the query fails, or nothing is expected of it.
    """
    if history is None and snapshots is None and stream is None:
        raise UserError("nothing is expected", hint="give history, snapshots or stream")
    tables = {name: _timed(_table(given), timestamp) for name, given in rows.items()}
    expected = _Expected(history, snapshots or {}, stream)
    for run in _runs(tables, timestamp, disorder, late, orders):
        with connect(runner="inline", epoch_rows=run.epoch_rows) as db:
            for name, table in run.tables.items():
                db.stream(name, table, timestamp=timestamp, disorder=disorder)
            if prepare is not None:
                prepare(db)
            query = _last_query(db, text)
            with warnings.catch_warnings():
                # How many are late is said.
                warnings.simplefilter("ignore", DeadLetterWarning)
                summary = db.run()
            _check_late(summary, late)
            expected.compare(query, run.title)


@dataclass(frozen=True)
class _Run:
    """The streams in one order of arrival, and how many rows epochs take."""

    tables: Mapping[str, pa.Table]
    epoch_rows: int | None
    title: str


@dataclass(frozen=True)
class _Expected:
    history: Rows | None
    snapshots: Mapping[Any, Rows]
    stream: Rows | None

    def compare(self, query: Query, run: str) -> None:
        """Compare the answer of a run.

        Raises:
            AssertionError: a view has other rows.
        """
        if self.history is not None:
            _compare("history", query.history(), self.history, run)
        if self.stream is not None:
            _compare("stream", query.stream(), self.stream, run)
        for instant, rows in self.snapshots.items():
            _compare(f"snapshot at {instant}", query.snapshot(instant), rows, run)


def _runs(
    tables: Mapping[str, pa.Table], timestamp: str, disorder: Length | None, late: int, orders: int
) -> Iterator[_Run]:
    for epoch_rows in _CUTS:
        yield _Run(tables, epoch_rows, f"in the given order, with {_cut(epoch_rows)}")
    for seed in range(orders if not late else 0):
        chance = random.Random(seed)
        order = {name: _order(table[timestamp], disorder, chance) for name, table in tables.items()}
        shuffled = {name: table.take(pa.array(order[name], pa.int64())) for name, table in tables.items()}
        epoch_rows = chance.choice(_CUTS)
        yield _Run(shuffled, epoch_rows, f"in the order {order}, with {_cut(epoch_rows)}")


def _cut(epoch_rows: int | None) -> str:
    return "all rows in one epoch" if epoch_rows is None else f"epoch_rows={epoch_rows}"


def _order(times: pa.ChunkedArray, disorder: Length | None, chance: random.Random) -> list[int]:
    """Places of rows in an order in which none is further behind than the disorder.

    A row that comes after another one has a time plus delay that is not smaller, so that it is behind by no
    more than the other's delay.
    """
    domain = TimeDomain.TIMESTAMP if pa.types.is_timestamp(times.type) else TimeDomain.INTEGER
    declared = disorder_of(disorder, domain)
    most = 0 if declared is None else declared.length
    instants = times.cast(TIMESTAMP).cast(pa.int64()) if domain is TimeDomain.TIMESTAMP else times
    if instants.null_count:
        return list(range(len(instants)))
    keys = [(time + chance.randint(0, most), chance.random()) for time in instants.to_pylist()]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _check_late(summary: Summary, expected: int) -> None:
    if summary.late == expected:
        return
    hints = [
        f"; {stream.name} needs the disorder {stream.needed_disorder}"
        for stream in summary.streams
        if stream.needed_disorder is not None
    ]
    raise AssertionError(f"{count(summary.late, 'row')} came too late, not {expected}{''.join(hints)}")


def _last_query(db: Database, text: str) -> Query:
    queries = [made for made in db.execute(text) if isinstance(made, Query)]
    if not queries:
        raise UserError("there is no query in the text", hint="write a SELECT")
    return queries[-1]


def _table(rows: Rows) -> pa.Table:
    if not isinstance(rows, Sequence):
        return to_arrow_table(rows)
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UserError(
            "a stream's rows are not dictionaries",
            hint="give dictionaries; for a stream without rows, an empty table",
        )
    return pa.Table.from_pylist(rows)


def _timed(table: pa.Table, timestamp: str) -> pa.Table:
    """The table with times that are texts made TIMESTAMPs."""
    place = table.schema.get_field_index(timestamp)
    if place < 0 or not pa.types.is_string(table.schema.field(place).type):
        return table
    times = [None if text is None else _instant(text) for text in table.column(place).to_pylist()]
    return table.set_column(place, timestamp, pa.array(times, TIMESTAMP))


def _instant(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"{text!r} is not a valid timestamp", hint="write 2024-01-01T00:00:00Z") from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _compare(what: str, found: pa.Table, expected: Rows, run: str) -> None:
    wanted = _counted(_fitted(what, found.schema, expected))
    given = _counted(found)
    if wanted == given:
        return
    lines = [f"the {what} differs {run}"]
    lines += [f"  missing     {row}" for row in (wanted - given).elements()]
    lines += [f"  unexpected  {row}" for row in (given - wanted).elements()]
    raise AssertionError("\n".join(lines))


def _counted(table: pa.Table) -> Counter[str]:
    """How often each row is there, by its text, since lists have no hash and NaN equals nothing."""
    return Counter(map(repr, table.to_pylist())) if table.num_columns else Counter({"{}": table.num_rows})


def _fitted(what: str, schema: pa.Schema, expected: Rows) -> pa.Table:
    """Expected rows with the types of the answer's columns.

    Raises:
        AssertionError: they do not fit.
    """
    names = schema.names
    rows = expected if isinstance(expected, Sequence) else to_arrow_table(expected).to_pylist()
    dictionaries = []
    for row in rows:
        made = dict(row) if isinstance(row, Mapping) else dict(zip(names, row, strict=False))
        if made.keys() != set(names) or len(row) != len(names):
            raise AssertionError(f"the {what} has the columns {', '.join(names)}, unlike {row!r}")
        for name in names:
            if pa.types.is_timestamp(schema.field(name).type) and isinstance(made[name], str):
                made[name] = _instant(made[name])
        dictionaries.append(made)
    try:
        return pa.Table.from_pylist(dictionaries, schema=schema)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise AssertionError(f"the {what} has the columns {schema}: {error}") from error
