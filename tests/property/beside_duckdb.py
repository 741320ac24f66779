"""The content of queries over windows at some instants beside DuckDB's answers about the windows' rows."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

import headrace

LAST = 40
"""The last instant of the rows."""
SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64()), ("ts", pa.int64())])
STREAMS = ("a", "b")


@dataclass(frozen=True)
class Window:
    """The last `size` instants of a stream, in steps of `slide`."""

    stream: str
    size: int
    slide: int

    def ours(self) -> str:
        """The window as a query has it."""
        slide = f" SLIDE {self.slide}" if self.slide > 1 else ""
        return f"SELECT k, v FROM {self.stream} WINDOW(RANGE {self.size}{slide})"

    def theirs(self, instant: int) -> str:
        """The rows that are in the window; it stands still between the last instants of its steps."""
        end = (instant + 1) // self.slide * self.slide - 1
        return f"SELECT k, v FROM {self.stream} WHERE ts <= {end} AND ts > {end - self.size}"


@dataclass(frozen=True)
class Query:
    """Text with windows in it, which are written as {0}, {1} and so on."""

    text: str
    windows: tuple[Window, ...]

    def ours(self) -> str:
        """The query over streams."""
        return self.text.format(*(window.ours() for window in self.windows))

    def theirs(self, instant: int) -> str:
        """The query over the rows of an instant."""
        return self.text.format(*(window.theirs(instant) for window in self.windows))


def rows(seed: int) -> pa.Table:
    """Rows with ties, NULLs and pauses."""
    chance = random.Random(seed)
    times = sorted(chance.choices([ts for ts in range(LAST) if ts % 13 < 9], k=30))
    keys = chance.choices(["a", "b", "c", None], [4, 4, 2, 1], k=30)
    values = chance.choices([0, 1, 2, 3, 4, None], [2, 2, 2, 2, 2, 1], k=30)
    return pa.table([keys, values, times], schema=SCHEMA)


INSTANTS = (0, 3, 7, 9, 12, 18, 24, 33, LAST - 1, LAST + 4)


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """One for the process: to open another takes as long as to ask it ten questions."""
    return duckdb.connect(config={"threads": 1})


def compare(query: Query, seed: int, instants: tuple[int, ...] = INSTANTS) -> None:
    """Fails where a snapshot is not what DuckDB answers about the rows of that instant."""
    tables = {name: rows(1000 * seed + place) for place, name in enumerate(STREAMS)}
    with headrace.connect(runner="inline") as db, _duckdb().cursor() as other:
        for name, table in tables.items():
            db.stream(name, table, timestamp="ts")
            other.register(name, table)
        answer = db.query(query.ours())
        db.run()
        for instant in instants:
            ours = Counter(tuple(row.values()) for row in answer.snapshot(at=instant).to_pylist())
            theirs = Counter(other.sql(query.theirs(instant)).fetchall())
            assert ours == theirs, (instant, query.theirs(instant))
