"""The state that is expected of windows not yet full, or of another size, is about what there will be."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.runtime.driver.manager.managed import Managed

WINDOW = "WINDOW(RANGE MIN 200, MAX 400)"
KINDS = {
    "added": f"SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s {WINDOW} GROUP BY k",
    "kinds": f"SELECT DISTINCT k, v FROM s {WINDOW}",
    "beside a fixed window": f"SELECT a.k, b.v FROM s {WINDOW} a JOIN r [RANGE 150] b ON a.v = b.v",
    "of two windows": f"SELECT a.k, b.v FROM s {WINDOW} a JOIN r {WINDOW} b ON a.v = b.v",
    "above a join": f"SELECT a.v, COUNT(*) AS n FROM s {WINDOW} a JOIN r {WINDOW} b ON a.k = b.k "
    "GROUP BY a.v",
    "united": f"SELECT DISTINCT v FROM (SELECT v FROM s UNION ALL SELECT v FROM r) {WINDOW}",
}


def push(db: hr.Database, begin: int, end: int) -> None:
    for first in range(begin, end, 50):
        for stream in ("s", "r"):
            numbers = range(first * 2, first * 2 + 100)
            rows = ({"k": at * 7 % 211, "v": at * 7919 % 4001, "ts": at // 2} for at in numbers)
            db.push(stream, list(rows))


def managed(db: hr.Database) -> Managed:
    found = db.status.managed
    assert found is not None
    return found


@pytest.mark.slow("fills windows of several kinds")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_expected_comes_about(kind: str) -> None:
    with hr.connect(runner="inline", buckets=2, memory_limit="1 GB", manager="advise") as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5")
        db.execute("CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        db.execute(f"CREATE QUERY q AS {KINDS[kind]}")
        db.start()
        push(db, 0, 200)
        early = managed(db).expected
        push(db, 200, 800)
        full, with_half = managed(db).used, managed(db).least
        assert early / 2 <= full <= early * 2, (early, full)
        assert managed(db).expected == pytest.approx(full, rel=0.35)
        db.execute("ALTER QUERY q SET (WINDOW 200)")
        push(db, 800, 1400)
        half = managed(db).used
        assert with_half / 1.7 <= half <= with_half * 1.7, (with_half, half)
        assert half < 0.85 * full


def test_operators_that_are_new_count_with_the_rows_that_they_will_have() -> None:
    with hr.connect(runner="inline", buckets=2, memory_limit="1 GB") as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        db.start()
        push(db, 0, 800)
        db.execute(f"CREATE QUERY q AS {KINDS['kinds']}")
        # Nothing is kept yet, and one part of the window has come after that.
        new = managed(db).expected
        push(db, 800, 900)
        begun, used = managed(db).expected, managed(db).used
        push(db, 900, 1600)
        full = managed(db).used
        assert used < full / 2
        assert new / 2 <= full <= new * 2, (new, full)
        assert begun / 2 <= full <= begun * 2, (begun, full)


OTHERS = {
    "granules": (
        "AS SELECT g, COUNT(*) AS n FROM (SELECT k % 5 AS g, v FROM s) "
        "WINDOW(RANGE 400) GRANULARITY(COARSEST 8, FINEST 1) GROUP BY g",
        "GRANULARITY 8",
        0.6,
    ),
    "rows": ("AS SELECT DISTINCT v FROM s WINDOW(ROWS MIN 200, MAX 800)", "WINDOW 200 ROWS", 0.6),
    "rows of partitions": (
        "AS SELECT g, MAX(v) AS x FROM (SELECT k % 4 AS g, v FROM s) "
        "WINDOW(PARTITION BY g ROWS MIN 50, MAX 200) GROUP BY g",
        "WINDOW 50 ROWS",
        0.6,
    ),
    "shares": ("LOSS TOLERANT AS SELECT k, COUNT(*) AS n FROM s [RANGE 400] GROUP BY k", "KEEP 0.2", 0.8),
}


@pytest.mark.slow("fills windows of several kinds")
@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_expected_of_other_numbers_comes_about(kind: str) -> None:
    text, change, less = OTHERS[kind]
    with hr.connect(runner="inline", buckets=2, memory_limit="1 GB", manager="advise") as db:
        db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        db.execute(f"CREATE QUERY q {text}")
        db.start()
        push(db, 0, 1200)
        full, expected = managed(db).used, managed(db).expected
        assert full / 2 <= expected <= full * 2.5, (full, expected)
        db.execute(f"ALTER QUERY q SET ({change})")
        push(db, 1200, 1250)
        soon = managed(db).expected
        push(db, 1250, 2200)
        then = managed(db).used
        assert then < less * full, (then, full)
        assert soon / 2.5 <= then <= soon * 2.5, (soon, then)
