"""A query that fails when a change hurries it is not changed: whoever asked for the change hears of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace as hr
from waiting import wait_until

LARGE = 2**62
SUMS = "SELECT k, SUM(v) AS x FROM s [RANGE UNBOUNDED] GROUP BY k"
COUNTS = "SELECT k, COUNT(*) AS x FROM s [RANGE UNBOUNDED] GROUP BY k"
CHANGES = (
    f"CREATE OR REPLACE QUERY r AS {COUNTS}",
    "CREATE OR REPLACE QUERY r AS SELECT k FROM s",
    "ALTER QUERY r PAUSE",
    "ALTER QUERY r PAUSE KEEPING INPUT",
    "ALTER QUERY r SET CONSISTENCY MIDDLE",
    "ALTER QUERY r REOPTIMIZE",
)
WAYS_ON = (CHANGES[0], "ALTER QUERY r RESUME", "DROP QUERY r")


@pytest.fixture
def db() -> Iterator[hr.Database]:
    """A database with a query that will fail as soon as it takes what waits for it."""
    with hr.connect(runner="inline", threads=1) as made:
        made.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        made.execute(f"CREATE QUERY a AS SELECT k FROM s; CREATE QUERY r WEIGHT 0 AS {SUMS}")
        made.start()
        for at in range(3):
            made.push("s", {"k": 1, "v": LARGE, "ts": at})
        yield made


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", WAYS_ON)
def test_it_has_failed_and_the_ways_on_are_those_of_any_that_has(
    db: hr.Database, change: str, way: str
) -> None:
    before = db["r"].schema
    with pytest.raises(hr.UserError, match=r"^r has failed meanwhile: SUM overflows BIGINT") as refused:
        db.execute(change)
    assert refused.value.hint == (
        "replace it, try it again with ALTER QUERY r RESUME, or drop it: DROP QUERY r"
    )
    assert db.status.query("r").failed == "SUM overflows BIGINT"
    assert db["r"].schema == before
    assert not db.served.paused("r")
    db.execute(way)
    db.push("s", {"k": 2, "v": 1, "ts": 4})
    db.heartbeat("s", 9)
    if way != "DROP QUERY r":
        db.execute("ALTER QUERY r SET (WEIGHT DEFAULT)")
        wait_until(lambda: db["r"].latest().to_pylist()[-1:], [{"k": 2, "x": 1}])
    assert db["a"].heartbeat == 9


def test_what_does_not_touch_it_goes_on(db: hr.Database) -> None:
    db.execute("ALTER QUERY r SET (WEIGHT 1)")
    db.execute(f"CREATE QUERY z AS {COUNTS}; ALTER QUERY a PAUSE; DROP QUERY r")
    assert [query.name for query in db.queries] == ["z", "a"]
