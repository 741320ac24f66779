"""A query that begins while its streams go on says from when it is exact, and is so."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE STREAM t (k BIGINT, w BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts
"""
TEXTS = (
    "SELECT k, v FROM s WHERE v > 3",
    "SELECT SUM(v) AS x FROM s [RANGE 7]",
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 5] GROUP BY k",
    "SELECT k, SUM(v) AS x FROM s [RANGE 10 SLIDE 5] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT window_start, COUNT(*) AS n FROM TUMBLE(s, 4) WHERE k = 1 GROUP BY 1, window_end",
    "SELECT window_start, COUNT(*) AS n FROM TUMBLE(s, 4) WHERE k = 2 GROUP BY 1, window_end",
    "SELECT SUM(v) AS x FROM s [ROWS 3]",
    "SELECT s.k, v, w FROM s [RANGE 4] JOIN t [RANGE 6] ON s.k = t.k",
    "SELECT k, v FROM s [RANGE 4] EXCEPT SELECT k, w FROM t [RANGE 6]",
    "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE 6 PRECEDING) AS x FROM s",
)
ROWS = st.lists(
    st.tuples(st.sampled_from("sst"), st.integers(0, 2), st.integers(0, 9), st.integers(0, 3)),
    min_size=4,
    max_size=30,
)
NEVER = None
Row = tuple[str, int, int, int]
"""The stream, the key, the value, and how much newer than the one before."""


@pytest.mark.parametrize("level", ["", "CONSISTENCY MIDDLE "])
@pytest.mark.parametrize("retain", ["", "RETAIN 6", "RETAIN ALL"])
@examples(5, 60)
@given(ROWS, ROWS, st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True))
def test_a_late_query_is_exact_from_where_it_says(
    retain: str,
    level: str,
    before: list[tuple[str, int, int, int]],
    after: list[tuple[str, int, int, int]],
    texts: list[str],
) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAMS)
        if retain:
            db.execute(f"ALTER STREAM s {retain}; ALTER STREAM t {retain}")
        for number, text in enumerate(texts):
            db.execute(f"CREATE QUERY early_{number} {level}AS {text}")
        db.query("SELECT w FROM t", name="other")
        db.start()
        ts = pushed(db, before, 0)
        now = max(db[f"early_{number}"].heartbeat for number in range(len(texts)))
        for number, text in enumerate(texts):
            told = explained(db, f"late_{number} {level}AS {text}")
            db.execute(f"CREATE QUERY late_{number} {level}AS {text}")
            gaps = db[f"late_{number}"].gaps().to_pylist()
            assert told == [gap["exact_from"] for gap in gaps]
        ts = pushed(db, after, ts)
        for stream in "st":
            db.push(stream, {"k": 0, "v" if stream == "s" else "w": 0, "ts": ts + 30})
        for number in range(len(texts)):
            early, late = db[f"early_{number}"], db[f"late_{number}"]
            gaps = late.gaps().to_pylist()
            exact = now if not gaps else gaps[-1]["exact_from"]
            assert len(gaps) <= (retain != "RETAIN ALL")
            if exact is NEVER:
                continue
            for instant in range(exact, ts + 20):
                assert rows_at(late, instant) == rows_at(early, instant), (late, instant, gaps)


def explained(db: hr.Database, made: str) -> list[int | None]:
    """From when on EXPLAIN says that a query is exact: an instant, None for never, or nothing."""
    text = str(db.execute(f"EXPLAIN CREATE QUERY {made}")[0])
    if "it will lack rows from before" in text:
        return [None]
    return [int(found) for found in re.findall(r"it is exact from (\d+) on", text)]


def pushed(db: hr.Database, rows: list[Row], ts: int) -> int:
    """Push rows in order of time but for some disorder; the newest instant."""
    for stream, k, value, step in rows:
        ts += step
        db.push(
            stream, {"k": k, "v" if stream == "s" else "w": value, "ts": ts - (step == 1 and stream == "s")}
        )
    return ts


def rows_at(query: hr.Query, instant: int) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in query.snapshot(instant).to_pylist())


def test_it_says_so_wherever_it_is_looked_at() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAMS}; CREATE QUERY a AS SELECT SUM(v) AS x FROM s [RANGE 5]")
        db.start()
        for ts in range(1, 41):
            db.push("s", {"k": 0, "v": ts, "ts": ts})
        (b,) = db.execute("CREATE QUERY b AS SELECT SUM(v) AS x FROM s [RANGE 10]")
        assert "exact from 50 on" in repr(b)
        (c,) = db.execute("CREATE QUERY c AS SELECT SUM(v) AS x FROM s")
        assert "lacks rows from before it was created" in repr(c)
        assert b.gaps().to_pylist() == [{"lacks_from": 38, "lacks_to": 38, "exact_from": 50}]
        assert c.gaps().to_pylist() == [{"lacks_from": 38, "lacks_to": 38, "exact_from": None}]
        assert "it says not all from 38 to before 50" in str(db.execute("DESCRIBE b")[0])
        assert db.status.query("b").gaps[0].exact_from == 50
        db.push("s", {"k": 0, "v": 0, "ts": 60})
        assert b"[[38, 38, 50]]" in b.history().schema.metadata.values()
        made = "w WARM AS SELECT x + 1 AS y FROM (SELECT SUM(v) AS x FROM s)"
        assert explained(db, made) == [None]
        (w,) = db.execute(f"CREATE QUERY {made}")
        assert w.gaps().to_pylist() == [{"lacks_from": 58, "lacks_to": 58, "exact_from": None}]


def test_one_that_begins_before_the_first_row_lacks_nothing() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAMS}; CREATE QUERY a AS SELECT k FROM s")
        db.start()
        (b,) = db.execute("CREATE QUERY b AS SELECT SUM(v) AS x FROM s [RANGE 10]")
        db.push("s", {"k": 0, "v": 1, "ts": 1})
        assert b.gaps().num_rows == 0


def test_one_that_fails_on_kept_rows_may_begin_without_them() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAMS}; ALTER STREAM s RETAIN ALL; CREATE QUERY a AS SELECT k FROM s")
        db.start()
        db.push("s", {"k": 0, "v": 2**62, "ts": 1})
        db.push("s", {"k": 0, "v": 2**62, "ts": 2})
        db.push("s", {"k": 0, "v": 1, "ts": 5})
        failing = "SELECT SUM(v) AS x FROM s [RANGE UNBOUNDED]"
        with pytest.raises(hr.UserError, match=r"fails on rows that were kept.*STARTING NOW leaves out"):
            db.execute(f"CREATE QUERY b AS {failing}")
        assert [query.name for query in db.queries] == ["a"]
        (b,) = db.execute(f"CREATE QUERY b STARTING NOW AS {failing}")
        assert "lacks rows from before it was created" in repr(b)
