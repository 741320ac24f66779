"""Plans that are exchanged while a run goes on, on Spark: state lies in several buckets, which tasks read."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import Database, connect

pytestmark = pytest.mark.spark

QUERY = """CREATE QUERY q AS SELECT a.ts AS a, b.ts AS b, c.ts AS c, s.room
FROM a [RANGE 40], b [RANGE 40], c [RANGE 40], sensor s WHERE a.k = b.k AND b.m = c.m AND c.k = s.id"""


def answered(db: Database, reoptimize: bool) -> tuple[list[str], list[str]]:
    """What becomes of the plan, and the answer."""
    for name in "abc":
        db.execute(f"CREATE STREAM {name} (k BIGINT, m BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    db.execute(QUERY)
    db.start()
    told = []
    for begin in (0, 50, 100):
        for name, sign in (("a", 1), ("b", 1), ("c", -1)):
            rows = [{"k": at % 3, "m": at % 25 and sign * at, "ts": at} for at in range(begin, begin + 50)]
            db.push(name, rows)
        if reoptimize and not begin:
            told = str(db.execute("ALTER QUERY q REOPTIMIZE")[0]).splitlines()
    for name in "abc":
        db.heartbeat(name, 1_000)
    return told, sorted(map(str, db["q"].history().to_pylist()))


def test_a_plan_is_exchanged(spark: Any) -> None:
    rooms = [(0, "hall"), (1, "roof"), (2, "cellar")]
    with connect(spark=spark, buckets=3) as db:
        db.relation("sensor", spark.createDataFrame(rooms, "id BIGINT, room STRING"), key="id")
        told, found = answered(db, reoptimize=True)
        assert told[0] == "q joins in another order:"
    with connect(runner="inline") as db:
        db.relation("sensor", spark.createDataFrame(rooms, "id BIGINT, room STRING"), key="id")
        assert answered(db, reoptimize=False) == ([], found)
    assert found


def test_a_query_that_is_replaced_keeps_its_groups(spark: Any) -> None:
    groups = "SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k"
    with connect(spark=spark, buckets=3) as db:
        db.execute("CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query(f"{groups} HAVING COUNT(*) > 1", name="q")
        db.start()
        db.push("s", [{"k": at % 7, "ts": at} for at in range(20)])
        most = f"SELECT MAX(n) AS most, COUNT(*) AS keys FROM ({groups}) AS g"
        db.execute(f"CREATE OR REPLACE QUERY q AS {most}")
        db.push("s", [{"k": 6, "ts": at} for at in range(20, 23)])
        # There are two of 6 below 20, and three of each of the others.
        assert [db["q"].snapshot(at).to_pylist() for at in (19, 20, 21)] == [
            [{"most": n, "keys": 7}] for n in (3, 3, 4)
        ]
