"""A query that is added sees all of a relation that is given by endless changes.

It answers as the reference does over the rows of the streams since it was added, and over the changes of
the relation without those that a later one had made needless when it was added; also up to its horizon,
where it speaks early.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.elements import from_rows, to_rows
from headrace.engine.database import Database
from headrace.history import canonical, equivalent
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.time import BEGINNING
from how_many import examples
from inside import core_of, execution_of

CREATED = """
CREATE RELATION r (op STRING, k STRING, w BIGINT, x BIGINT, ts BIGINT) KEY (k) FROM push
  CHANGES BY op TIMESTAMP BY ts DISORDER 1;
CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
"""
COLUMNS = {"r": ("op", "k", "w", "x", "ts"), "s": ("k", "v", "ts")}
QUERIES = (
    "SELECT k, w FROM r",
    "SELECT COUNT(*) AS n, MAX(x) AS m FROM r",
    "SELECT COUNT(*) AS n FROM r WHERE k = 'a'",
    "SELECT COUNT(*) AS n FROM r WHERE k = 'b'",
    "SELECT s.k, s.v, r.w FROM s WINDOW(RANGE 3) JOIN r ON r.k = s.k",
    "SELECT s.k, s.v, r.x FROM s LEFT JOIN r ON r.k = s.k AND r.w > 0",
    "SELECT s.v, r.k FROM s WINDOW(RANGE 2), r WHERE r.w < s.v",
    "SELECT k FROM r EXCEPT ALL SELECT k FROM s WINDOW(RANGE 3)",
    "SELECT DISTINCT w FROM r",
    "SELECT k, v FROM s WINDOW(RANGE 2) WHERE NOT EXISTS (SELECT k FROM r WHERE r.k = s.k)",
    "SELECT r.w, COUNT(*) AS n FROM r JOIN s WINDOW(RANGE UNBOUNDED) ON s.k = r.k GROUP BY r.w",
    "SELECT k, n FROM (SELECT k, ROW_NUMBER() OVER (ORDER BY w, k) AS n FROM r) AS t WHERE n <= 2",
    "SELECT k, w FROM ISTREAM(SELECT k, w FROM r) AS t",
    "SELECT a.k FROM r AS a JOIN r AS b ON a.w = b.x",
)
Row = tuple[Any, ...]
"""A row of the relation's changes or of the stream, its instant last."""


@dataclass(frozen=True)
class Arrives:
    """A row, so long after the latest one."""

    name: str
    passed: int
    row: Row


@dataclass(frozen=True)
class Added:
    """A query, and whether it speaks before its answer is final."""

    text: str
    is_early: bool = False


SMALL = st.integers(0, 2)
KEYS = st.sampled_from(("a", "b", "c", "d"))
CHANGES = st.builds(Arrives, st.just("r"), SMALL, st.tuples(st.sampled_from("IUD"), KEYS, SMALL, SMALL))
ROWS = st.builds(Arrives, st.just("s"), SMALL, st.tuples(KEYS, SMALL))
STEPS = st.lists(
    st.one_of(
        CHANGES,
        CHANGES,
        ROWS,
        st.builds(Added, st.sampled_from(QUERIES), st.booleans()),
        st.sampled_from(("drop", "restart")),
    ),
    max_size=16,
)
BOTH = QUERIES[4]
"""It reads the stream and the relation; some query does all the time, or their rows would not be taken."""


class Script:
    """A database to which things happen one after the other, each row in an epoch of its own."""

    def __init__(self, storage: Path, buckets: int) -> None:
        self.storage, self.buckets = storage, buckets
        self.texts: dict[str, str] = {}
        self.there: dict[str, dict[str, list[Row]]] = {}
        self.counts: dict[str, dict[str, int]] = {}
        self.rows: dict[str, list[Row]] = {"r": [], "s": []}
        self.now = self.added = 0
        self.db = self.open()

    def open(self) -> Database:
        db = hr.connect(runner="inline", buckets=self.buckets, storage=self.storage)
        db.execute(CREATED)
        for name, text in self.texts.items():
            db.execute(f"CREATE QUERY {name} {text}")
        return db

    def play(self, steps: list[Arrives | Added | str]) -> None:
        for step in steps:
            match step:
                case Arrives(name, passed, row):
                    self.push(name, passed, row)
                case Added(text, is_early):
                    self.add(text, is_early=is_early)
                case "drop":
                    self.drop()
                case _:
                    self.db.close()
                    self.db = self.open()
                    self.db.start()

    def push(self, name: str, passed: int, row: Row) -> None:
        self.now += passed
        self.rows[name].append((*row, self.now))
        self.db.push(name, [dict(zip(COLUMNS[name], self.rows[name][-1], strict=True))])

    def add(self, text: str, *, is_early: bool = False) -> None:
        """A query; what it sees that is there, and from where on it sees all that comes."""
        name = f"q{self.added}"
        self.added += 1
        execution = core_of(self.db).execution
        heartbeat = BEGINNING if execution is None else execution.run.point("r").heartbeat
        self.texts[name] = f"{'CONSISTENCY MIDDLE ' * is_early}AS {text}"
        self.db.execute(f"CREATE QUERY {name} {self.texts[name]}")
        self.there[name] = {"r": list(compacted(self.rows["r"], heartbeat)), "s": []}
        self.counts[name] = {read: len(rows) for read, rows in self.rows.items()}

    def drop(self) -> None:
        name = min(self.texts)
        if f"AS {BOTH}" in list(self.texts.values())[1:]:
            self.db.drop(name)
            del self.texts[name]

    def check(self) -> None:
        execution = execution_of(self.db)
        for query in self.db.queries:
            there, counts, streams = self.there[query.name], self.counts[query.name], {}
            for name, rows in self.rows.items():
                found = [*there[name], *rows[counts[name] :]]
                numbered = [((*row, place), row[-1], row[-1] + 1, 1) for place, row in enumerate(found)]
                streams[name] = Stream((*COLUMNS[name], "arrived"), numbered)
            reader = execution.answers.reader(query)
            history = evaluate(query.plan, streams)
            expected = from_rows(query.plan.schema, [(row, ts, te, 1) for row, ts, te in history])
            elements = reader.elements()
            assert equivalent(elements, expected, reader.horizon), (
                self.texts[query.name],
                to_rows(canonical(elements)),
                history,
                reader.horizon,
            )


def compacted(changes: list[Row], heartbeat: int) -> Iterator[Row]:
    """The changes without those below an instant that a later one below it has made needless."""
    # Of one instant and no version: deletions first, then by the other columns.
    ordered = sorted(changes, key=lambda row: (row[-1], row[0] != "D", row[1:]))
    last = {row[1]: row for row in ordered if row[-1] < heartbeat}
    yield from (row for row in last.values() if row[0] != "D")
    yield from (row for row in changes if row[-1] >= heartbeat)


@examples(6, 30)
@given(STEPS, st.integers(1, 2))
def test_a_query_that_is_added_sees_all_of_a_relation(
    steps: list[Arrives | Added | str], buckets: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Script(Path(folder), buckets)
        try:
            script.add(BOTH)
            script.db.start()
            script.play(steps)
            script.check()
        finally:
            script.db.close()
