"""Queries that begin or go on over kept rows say at any level what others say that were always there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM t (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 1 RETAIN ALL
"""
OTHERS = "CREATE QUERY s_all AS SELECT k FROM s; CREATE QUERY t_all AS SELECT k FROM t"
TEXTS = (
    "SELECT k, SUM(v) AS x FROM s [RANGE 7] GROUP BY k",
    "SELECT k, COUNT(*) AS x FROM s [RANGE 4] GROUP BY k",
    "SELECT k, MAX(v) AS x FROM s [RANGE 10 SLIDE 5] GROUP BY k",
    "SELECT k, COUNT(DISTINCT v) AS x FROM s [RANGE UNBOUNDED] GROUP BY k",
    "SELECT s.k, MAX(t.v) AS x FROM s [RANGE 5] JOIN t [RANGE 6] ON s.k = t.k GROUP BY s.k",
    "SELECT k, v AS x FROM s [RANGE 4] EXCEPT SELECT k, v FROM t [RANGE 6]",
    "SELECT s.k, SUM(y + v) AS x FROM s [RANGE 5] LEFT JOIN r ON s.k = r.k GROUP BY s.k",
)
LEVELS = ("STRONG", "MIDDLE", "(BLOCK 2)", "(BLOCK 3 ROWS)")
PUSHES = st.lists(
    st.tuples(st.sampled_from("st"), st.integers(0, 2), st.integers(0, 9), st.integers(-1, 3)),
    min_size=1,
    max_size=8,
)
CHANGES = st.sampled_from(["replace", "pause", "keep", "create"])
STEPS = st.lists(
    st.tuples(PUSHES, CHANGES, st.integers(0, 2), st.integers(0, 3), PUSHES),
    min_size=1,
    max_size=4,
)
Rows = list[tuple[str, int, int, int]]


@pytest.mark.parametrize("stored", [False, True])
@examples(6, 60)
@given(st.lists(st.sampled_from(TEXTS), min_size=3, max_size=3, unique=True), STEPS)
def test_they_say_what_those_say_that_have_been_there_all_the_time(
    tmp_path_factory: pytest.TempPathFactory,
    stored: bool,
    texts: list[str],
    steps: list[tuple[Rows, str, int, int, Rows]],
) -> None:
    storage: Path | None = tmp_path_factory.mktemp("store") if stored else None
    text, level, now = 0, 0, {"s": 0, "t": 0}
    db = opened(storage)
    try:
        db.execute(f"{STREAMS}; CREATE QUERY q AS {texts[0]}; {OTHERS}")
        for number, one in enumerate(texts):
            for place, waiting in enumerate(LEVELS):
                db.execute(f"CREATE QUERY first_{number}_{place} CONSISTENCY {waiting} AS {one}")
        db.start()
        for before, change, other, level_after, meanwhile in steps:
            push(db, before, now)
            if change in ("pause", "keep"):
                db.execute(f"ALTER QUERY q PAUSE{' KEEPING INPUT' * (change == 'keep')}")
                push(db, meanwhile, now)
                if stored:
                    db.close()
                    db = opened(storage)
                    db.start()
                db.execute("ALTER QUERY q RESUME")
            elif change == "replace":
                text, level = other, level_after
                db.execute(f"CREATE OR REPLACE QUERY q CONSISTENCY {LEVELS[level]} AS {texts[text]}")
            else:
                text, level = other, level_after
                db.execute(f"DROP QUERY q; CREATE QUERY q CONSISTENCY {LEVELS[level]} AS {texts[text]}")
            compare(db, f"first_{text}_{level}")
            push(db, meanwhile, now)
            compare(db, f"first_{text}_{level}")
        assert db["q"].gaps().num_rows == 0
    finally:
        db.close()


def opened(storage: Path | None) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage)
    db.relation("r", [{"k": 0, "y": 5}, {"k": 1, "y": 6}])
    return db


def push(db: hr.Database, rows: Rows, now: dict[str, int]) -> None:
    """Push rows in two parts, some of them somewhat older than the ones before."""
    found: dict[str, list[dict[str, int]]] = {"s": [], "t": []}
    for stream, k, v, step in rows:
        now[stream] = max(now[stream] + step, 0)
        found[stream].append({"k": k, "v": v, "ts": now[stream]})
    for stream, some in found.items():
        for part in (some[: len(some) // 2], some[len(some) // 2 :]):
            if part:
                db.push(stream, part)


def compare(db: hr.Database, other: str) -> None:
    """The answer is that of another query up to its horizon, from where it is not final yet."""
    query, first = db["q"], db[other]
    assert query.heartbeat >= first.heartbeat
    if not other.endswith("3"):
        # What a stream had brought some rows ago is known from the change on.
        assert query.horizon >= first.horizon
    for at in range(query.heartbeat, min(query.horizon, first.horizon, query.heartbeat + 20)):
        assert rows_at(query, at) == rows_at(first, at), (at, other)


def rows_at(query: hr.Query, instant: int) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in query.snapshot(instant).to_pylist())
