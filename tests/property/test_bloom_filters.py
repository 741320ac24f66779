"""DISTINCT and EXCEPT within a limit of memory answer what a Bloom filter tells by its definition.

Whole runs are compared with the reference, which looks at all rows that have entered. Blocks have few cells,
so that values meet in them. Rows come late, and the database is left and opened again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.nodes import BloomFilter
from headrace.algebra.properties import walk
from headrace.algebra.tunings import bloom
from headrace.optimizer.estimates import remembering
from headrace.reference.contents import Stream, equal_form
from headrace.reference.operators import evaluate
from headrace.time import INFINITY
from how_many import examples
from inside import core_of

STREAMS = """
CREATE STREAM s (k BIGINT, x DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, x DOUBLE, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL
"""
DISORDER = {"s": 3, "r": 0}
QUERIES = {
    "distinct": "SELECT DISTINCT k FROM s [RANGE 6]",
    "wide": "SELECT DISTINCT k, x, 'a' AS a FROM s [RANGE 1300] WHERE k > 0",
    "ever": "SELECT DISTINCT k FROM s [RANGE UNBOUNDED]",
    "both": "SELECT DISTINCT k + 1 AS l FROM (SELECT k FROM s UNION ALL SELECT k FROM r) [RANGE 9]",
    "projected": "SELECT d.k * 2 AS k FROM (SELECT DISTINCT k, x FROM s [RANGE 5]) d WHERE d.k > 1",
    "new": "ISTREAM(SELECT DISTINCT k FROM s [RANGE 4])",
    "first": "SELECT DISTINCT x FROM s",
    "except": "SELECT k FROM s [NOW] EXCEPT SELECT k FROM r [RANGE 7]",
    "except_wide": "SELECT k, x FROM s [NOW] WHERE k > 2 EXCEPT SELECT k, x FROM r [RANGE 900]",
    "except_ever": "SELECT k FROM s [NOW] EXCEPT SELECT k + 1 FROM r [RANGE UNBOUNDED]",
    "two": "SELECT DISTINCT k FROM s [RANGE 6] UNION ALL SELECT DISTINCT k FROM r [RANGE 3]",
}
VALUES = (-0.0, 0.0, 1.5, float("nan"), None)
ROUNDS = 4
ACTIONS = ("restart", "level", "past", "pause", "again", "push")
Row = tuple[int, float | None, int]


class Life:
    """A database that Hypothesis fills and leaves."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        names = data.draw(st.lists(st.sampled_from(list(QUERIES)), min_size=1, max_size=3, unique=True))
        self.queries = {f"q_{name}": name for name in names}
        self.early: set[str] = set()
        self.values = data.draw(st.sampled_from((3, 9, 200)))
        self.step = data.draw(st.sampled_from((1, 40)))
        self.first = data.draw(st.sampled_from((0, -30, -5000)))
        self.db = hr.connect(runner="inline", storage=storage, buckets=data.draw(st.integers(1, 3)))
        self.db.execute(STREAMS)
        self.db.execute("CREATE QUERY reading AS SELECT k FROM s UNION ALL SELECT k FROM r")
        for name in self.queries:
            self.db.execute(f"CREATE QUERY {name} {self._text(name)}")
        self.db.start()

    def _text(self, name: str) -> str:
        return f"WITHIN MEMORY '50 kB' AS {QUERIES[self.queries[name]]}"

    def play(self) -> None:
        for _ in range(ROUNDS):
            for action in ("push", "push", self.data.draw(st.sampled_from(ACTIONS)), "push"):
                getattr(self, f"_{action}")()
                self.check()
        for stream in self.rows:
            self._pushed(stream, [(0, None, self._newest(stream) + 3000)])
        self.check()

    def _newest(self, stream: str) -> int:
        return max((ts for _, _, ts in self.rows[stream]), default=self.first - 1)

    def _push(self) -> None:
        stream = self.data.draw(st.sampled_from("ssr"))
        found, newest = [], self._newest(stream)
        for _ in range(self.data.draw(st.integers(1, 6))):
            ts = max(self.first, newest + self.data.draw(st.integers(-DISORDER[stream], self.step)))
            found.append(
                (self.data.draw(st.integers(0, self.values)), self.data.draw(st.sampled_from(VALUES)), ts)
            )
            newest = max(newest, ts)
        self._pushed(stream, found)

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [dict(zip(("k", "x", "ts"), row, strict=True)) for row in rows])

    def _restart(self) -> None:
        self.db.close()
        self.db = hr.connect(runner="inline", storage=self.storage)
        self.db.start()

    def _level(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        level = self.data.draw(st.sampled_from(("STRONG", "MIDDLE")))
        self.db.execute(f"ALTER QUERY {name} SET CONSISTENCY {level}")
        (self.early.add if level == "MIDDLE" else self.early.discard)(name)

    def _past(self) -> None:
        """A query more, which reads all rows again that came."""
        kind = self.data.draw(st.sampled_from(sorted(set(self.queries.values()))))
        name = f"q_{kind}_{len(self.queries)}"
        self.queries[name] = kind
        self.db.execute(f"CREATE QUERY {name} {self._text(name).replace(' AS ', ' FROM BEGINNING AS ', 1)}")

    def _pause(self) -> None:
        """A pause in which rows come."""
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if name in self.early or not all(self.rows.values()):
            return
        self.db.execute(f"ALTER QUERY {name} PAUSE KEEPING INPUT")
        self._push()
        self.db.execute(f"ALTER QUERY {name} RESUME")

    def _again(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if name not in self.early:
            self.db.execute(f"CREATE OR REPLACE QUERY {name} {self._text(name)}")

    def check(self) -> None:
        """Every query says what the reference finds, up to where it speaks."""
        streams = {
            name: Stream(("k", "x", "ts"), [(row, row[2], row[2] + 1, 1) for row in rows])
            for name, rows in self.rows.items()
        }
        for name in self.queries:
            query = self.db[name]
            plan = core_of(self.db).definitions.queries[query.id].plan
            assert any(isinstance(node, BloomFilter) for node in walk(plan))
            said = [
                ((tuple(row[column] for column in query.schema.names)), *_ends(row), row["change"])
                for row in query.changes().to_pylist()
            ]
            expected = [(*row, 1) for row in evaluate(plan, streams)]
            ends = {end for history in (said, expected) for _, *some in history for end in some[:2]}
            for instant in sorted(end for end in ends if end < query.horizon):
                assert _at(said, instant) == _at(expected, instant), (name, instant, self.rows)


def _ends(row: dict[str, Any]) -> tuple[int, int]:
    return row["valid_from"], INFINITY if row["valid_to"] is None else row["valid_to"]


def _at(history: Sequence[tuple[Any, ...]], instant: int) -> dict[str, int]:
    """The rows of an instant, with how often each is there; as texts NaN is equal to itself."""
    found: Counter[str] = Counter()
    for row, begin, end, count in history:
        if begin <= instant < end:
            found[repr(tuple(map(equal_form, row)))] += count
    return {row: count for row, count in found.items() if count}


@pytest.mark.slow("runs whole databases, with restarts")
@examples(10, 100)
@given(data=st.data())
def test_runs_answer_what_a_filter_tells(data: st.DataObject) -> None:
    cells, blocks = data.draw(st.sampled_from((1, 4, 16))), data.draw(st.sampled_from((1, 2, 4, 50)))
    with (
        tempfile.TemporaryDirectory() as storage,
        patch.object(bloom, "BLOCK_BYTES", cells),
        patch.object(remembering, "blocks_within", lambda _: blocks),
    ):
        life = Life(data, storage)
        try:
            life.play()
        finally:
            life.db.close()
