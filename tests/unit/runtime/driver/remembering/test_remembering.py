"""Queries WITHIN MEMORY: their joins keep no more than that, and what is said of what they miss is so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import headrace as hr
from headrace.errors import LanguageError
from headrace.runtime.driver.facts.remembered import MemoryOfQuery

STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM c (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY reading AS SELECT k FROM a UNION ALL SELECT k FROM b UNION ALL SELECT k FROM c;
"""
PAIRS = "SELECT x.k, x.v, y.v AS w FROM a [RANGE 400] x JOIN b [RANGE 800] y ON x.k = y.k"
TRIPLES = """SELECT x.k, x.v, y.v AS w, z.v AS u FROM a [RANGE 300] x JOIN b [RANGE 300] y ON x.k = y.k
    JOIN c [RANGE 300] z ON y.k = z.k"""


def opened(storage: Path | None = None) -> hr.Database:
    return hr.connect(runner="inline", threads=1, storage=None if storage is None else str(storage))


class Rows:
    """Rows of all streams, which come evenly: of `a` at each instant, and of the others more seldom."""

    def __init__(self, db: hr.Database, keys: int = 40) -> None:
        self.db, self.keys, self.random, self.at = db, keys, Random(7), 0

    def push(self, until: int, times: int = 1) -> Iterator[MemoryOfQuery | None]:
        """Fill the streams in epochs of 50 instants; after each the memory of the query q.

        Args:
            until: the first instant that is left out.
            times: so many rows come where one would.
        """
        while self.at < until:
            for stream, every in (("a", 1), ("b", 3), ("c", 2)):
                rows = [
                    {"k": self.random.randrange(self.keys), "v": self.random.randrange(10**6), "ts": ts}
                    for ts in range(self.at, self.at + 50)
                    if ts % every == 0
                    for _ in range(times)
                ]
                self.db.push(stream, rows)
            self.at += 50
            yield self.db.status.query("q").memory


def missed(db: hr.Database) -> float:
    """The part of the pairs of `exact` that is not in the answer of `q`."""
    ours, whole = (db[name].changes().num_rows for name in ("q", "exact"))
    return float(1 - ours / whole)


@pytest.mark.slow("runs two joins over some thousand instants")
@pytest.mark.parametrize(("text", "limit"), [(PAIRS, "30 kB"), (TRIPLES, "100 kB")])
def test_joins_keep_within_their_memory_and_miss_what_is_said(text: str, limit: str) -> None:
    with opened() as db:
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '{limit}' AS {text}; CREATE QUERY exact AS {text}")
        db.start()
        rows = Rows(db)
        told = [memory for memory in rows.push(2400) if memory is not None]
        assert max(memory.used for memory in told) <= told[0].limit
        ours, whole = (db[name].changes().num_rows for name in ("q", "exact"))
        *_, last = rows.push(4800)
        ours, whole = db["q"].changes().num_rows - ours, db["exact"].changes().num_rows - whole
        assert last is not None
        assert last.measured is not None
        really = 1 - ours / whole
        assert 0.1 < really < 0.95
        assert last.expected == pytest.approx(really, abs=0.06)
        assert last.measured == pytest.approx(really, abs=0.12)
        exact = {tuple(row.values()) for row in db["exact"].snapshot(4000).to_pylist()}
        assert {tuple(row.values()) for row in db["q"].snapshot(4000).to_pylist()} <= exact


def test_with_enough_memory_nothing_is_missed() -> None:
    with opened() as db:
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '50 MB' AS {PAIRS}; CREATE QUERY exact AS {PAIRS}")
        db.start()
        *_, memory = Rows(db).push(1000)
        assert memory is not None
        assert (memory.expected, memory.measured) == (0.0, 0.0)
        assert [one.share for one in memory.shares] == [1_000_000, 1_000_000]
        assert memory.text == f"its joins keep {memory.used / 1000:.3g} kB of 50 MB, and remember all rows"
        assert missed(db) == 0.0


@pytest.mark.slow("runs a join until windows have drained")
def test_more_is_remembered_when_fewer_rows_come(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '60 kB' AS {PAIRS}")
        db.start()
        *_, full = Rows(db, keys=400).push(1600, times=4)
        # The run goes on with what it remembered.
    with opened(tmp_path) as db:
        db.start()
        rows = Rows(db, keys=400)
        rows.at = 1600
        *_, less = rows.push(5600)
    assert full is not None
    assert less is not None
    assert (less.expected or 0) < (full.expected or 0) - 0.05
    assert "raised from" in less.why


def test_it_is_told_where_people_look() -> None:
    with opened() as db:
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '20 kB' AS {PAIRS}")
        db.start()
        *_, memory = Rows(db).push(1500)
        assert memory is not None
        assert (memory.expected or 0) > 0
        assert memory.text in str(db.execute("DESCRIBE QUERY q")[0])
        assert memory.text in str(db.execute("WHY q")[0])
        tunings = str(db.execute("SHOW TUNINGS")[0])
        assert "a, b WITHIN MEMORY '20 kB' of a" in tunings
        assert "of b" in tunings
        assert "remembers" in str(db.execute("EXPLAIN ANALYZE q")[0])
        with pytest.raises(LanguageError, match="q remembers what fits into its memory") as refused:
            db.execute("ALTER QUERY q SET (KEEP 0.5)")
        assert "CREATE OR REPLACE QUERY q WITHIN MEMORY '...' AS ..." in str(refused.value)


def test_streams_that_end_are_read_within_the_memory(tmp_path: Path) -> None:
    import pyarrow as pa

    at_random = Random(3)
    table = pa.table(
        {"k": [at_random.randrange(40) for _ in range(6000)], "v": list(range(6000)), "ts": list(range(6000))}
    )
    with hr.connect(runner="inline", threads=1, epoch_rows=200) as db:
        db.stream("a", table, timestamp="ts")
        db.stream("b", table, timestamp="ts")
        db.execute(f"CREATE QUERY q WITHIN MEMORY '40 kB' AS {PAIRS}; CREATE QUERY exact AS {PAIRS}")
        db.run()
        assert 0.1 < missed(db) < 0.95
        memory = db.status.query("q").memory
        assert memory is not None
        assert memory.why.startswith("lowered from")


@pytest.mark.slow("runs a join over some thousand instants")
def test_rows_of_a_stream_that_is_behind_are_forgotten_too() -> None:
    """They are older than the heartbeat by which they are forgotten as soon as they come."""
    with opened() as db:
        text = "SELECT x.v, y.v AS w FROM a [RANGE 600] x JOIN b [RANGE 600] y ON x.k = y.k"
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '60 kB' AS {text}")
        db.start()
        shares, used = [], []
        for at in range(0, 3600, 50):
            for stream, behind in (("a", 0), ("b", 200)):
                rows = [{"k": ts % 97, "v": ts, "ts": ts} for ts in range(at - behind, at - behind + 50)]
                db.push(stream, [row for row in rows if row["ts"] >= 0])
            memory = db.status.query("q").memory
            assert memory is not None
            shares.append([one.share for one in memory.shares])
            used.append(memory.used)
        assert max(used[40:]) <= 60_000
        # They settle, and at no less than what tells how many pairs are missed.
        assert shares[50:] == [shares[-1]] * len(shares[50:])
        assert min(shares[-1]) >= 10_000


@pytest.mark.slow("runs three joins over two thousand instants")
def test_queries_of_other_plans_have_shares_of_their_own() -> None:
    def shares(others: str) -> dict[str, int]:
        with opened() as db:
            db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '30 kB' AS {PAIRS}; {others}")
            db.start()
            *_, memory = Rows(db).push(2000)
            assert memory is not None
            return {one.name: one.share for one in memory.shares}

    swapped = "SELECT y.v AS w, x.v FROM b [RANGE 100] y JOIN a [RANGE 50] x ON x.k = y.k"
    alone = shares("")
    assert alone["b"] > alone["a"]
    assert shares(f"CREATE QUERY other WITHIN MEMORY '30 kB' AS {swapped}") == alone


@pytest.mark.slow("runs two joins over two thousand instants")
def test_joins_of_a_union_are_expected_to_miss_pairs_apart() -> None:
    other = "SELECT z.k, z.v, z.v AS w FROM c [RANGE 200] z JOIN b [RANGE 100] y ON z.k = y.k"
    with opened() as db:
        text = f"{PAIRS} UNION ALL {other}"
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '40 kB' AS {text}")
        db.execute(f"CREATE QUERY exact AS {text}")
        db.start()
        rows = Rows(db)
        *_, _ = rows.push(1600)
        ours, whole = (db[name].changes().num_rows for name in ("q", "exact"))
        *_, last = rows.push(3200)
        ours, whole = db["q"].changes().num_rows - ours, db["exact"].changes().num_rows - whole
        assert last is not None
        assert 1 - ours / whole > 0.05
        assert last.expected == pytest.approx(1 - ours / whole, abs=0.06)


@pytest.mark.slow("runs a join before and after it is replaced")
def test_a_larger_limit_is_used_after_a_replacement() -> None:
    with opened() as db:
        db.execute(f"{STREAMS}CREATE QUERY q WITHIN MEMORY '15 kB' AS {PAIRS}")
        db.start()
        rows = Rows(db)
        *_, small = rows.push(1200)
        db.execute(f"CREATE OR REPLACE QUERY q WITHIN MEMORY '60 kB' AS {PAIRS}")
        *_, large = rows.push(5200)
    assert small is not None
    assert small.expected is not None
    assert large is not None
    assert large.expected is not None
    assert large.expected < small.expected / 2
