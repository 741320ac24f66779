"""DISTINCT and EXCEPT within a limit of memory: they keep no more, and miss about what is said."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import headrace as hr
from headrace.errors import LanguageError
from headrace.runtime.driver.facts.remembered import MemoryOfQuery

STREAMS = """
CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM r (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY reading AS SELECT k FROM s UNION ALL SELECT k FROM r;
"""
LASTING = "SELECT DISTINCT k FROM s [RANGE 2000]"
NEW = "SELECT DISTINCT k FROM s"
DIFFERENCE = "SELECT k FROM s [NOW] EXCEPT SELECT k FROM r [RANGE 2000]"
UNTIL = 6000


class Run:
    """A query within a limit beside the exact one, over rows of both streams at each instant.

    Attributes:
        memories: what was told of the query, after each epoch.
        rows: how many of the instants at which a row is there were before `UNTIL`, in the query and exactly.
    """

    def __init__(self, text: str, limit: str, values: int, storage: Path | None = None) -> None:
        self.memories: list[MemoryOfQuery] = []
        at_random = Random(5)
        self.db = hr.connect(runner="inline", threads=1, buckets=2, storage=storage and str(storage))
        clauses = (f"q WITHIN MEMORY '{limit}'", "exact")
        self.db.execute(STREAMS + "; ".join(f"CREATE QUERY {clause} AS {text}" for clause in clauses))
        self.db.start()
        for begin in range(0, UNTIL, 200):
            for stream in "sr":
                instants = range(begin, begin + 200)
                self.db.push(stream, [{"k": at_random.randrange(values), "ts": ts} for ts in instants])
            memory = self.db.status.query("q").memory
            assert memory is not None
            self.memories.append(memory)
        self.rows = tuple(self._lasting(name) for name in ("q", "exact"))

    def _lasting(self, name: str) -> int:
        total = 0
        for row in self.db[name].changes().to_pylist():
            end = UNTIL if row["valid_to"] is None else min(row["valid_to"], UNTIL)
            total += max(end - row["valid_from"], 0) * row["change"]
        return total


@pytest.mark.slow("runs exact queries beside those within a limit")
@pytest.mark.parametrize("text", [LASTING, NEW, DIFFERENCE])
def test_filters_keep_within_their_memory_and_miss_what_is_said(text: str) -> None:
    values = 2500 if text == DIFFERENCE else 10**9
    run = Run(text, "10 kB", values)
    with run.db:
        ours, exact = run.rows
        last = run.memories[-1]
        assert max(memory.used for memory in run.memories) <= last.limit
        missed = 1 - ours / exact
        assert last.expected is not None
        # The first rows find an empty filter, so that less is missed of all than of the last ones.
        assert 0.01 < missed < 0.9
        assert last.expected == pytest.approx(missed, abs=0.3 if text == NEW else 0.1)
        assert last.expected >= missed - 0.03
        assert last.shares == ()
        # The rows of some blocks alone are measured: of few rows by two standard errors.
        assert last.measured == pytest.approx(missed, abs=0.3 if text == NEW else 0.08)
        said = run.db["q"].snapshot(UNTIL - 10).to_pylist()
        exactly = run.db["exact"].snapshot(UNTIL - 10).to_pylist()
        assert {row["k"] for row in said} <= {row["k"] for row in exactly}
        assert len({row["k"] for row in said}) == len(said)


@pytest.mark.parametrize("text", [LASTING.replace("2000", "200"), NEW, DIFFERENCE])
def test_with_enough_memory_hardly_anything_is_missed(text: str) -> None:
    run = Run(text, "20 MB", 3000)
    with run.db:
        ours, exact = run.rows
        measured = run.memories[-1].measured
        assert measured is not None
        # Of a window that ends the end is rounded.
        assert measured <= (0.0 if text == NEW else 0.02)
        # Hardly any value finds all of its cells in use. What is said too often would show as well.
        assert abs(exact - ours) <= 0.001 * exact
        expected = run.memories[-1].expected
        assert expected is not None
        assert expected < 1e-6


def test_it_is_told_where_people_look(tmp_path: Path) -> None:
    run = Run(LASTING, "10 kB", 10**9, tmp_path)
    with run.db as db:
        memory = run.memories[-1]
        assert memory.text.startswith("its Bloom filters keep ")
        assert re.search(
            r"% of what is new to them is expected to be missed, about \S+ % lately$", memory.text
        )
        for statement in ("DESCRIBE QUERY q", "WHY q", "EXPLAIN ANALYZE q"):
            assert memory.text in str(db.execute(statement)[0])
        with pytest.raises(LanguageError, match="q remembers what fits into its memory"):
            db.execute("ALTER QUERY q SET (KEEP 0.5)")
    with hr.connect(runner="inline", threads=1, storage=str(tmp_path)) as db:
        db.start()
        again = db.status.query("q").memory
        assert again is not None
        assert again.used == memory.used
        assert (again.expected, again.measured) == (None, None)
        assert again.text.endswith("what they miss is told when rows have come")
