"""The longest disorder: what is longer is refused where it is written, with one that is taken."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import UserError

ROWS = pa.table({"ts": [3, 1], "k": [1, 2]})
MOST = 2**62 - 2


def counted(disorder: object) -> int:
    with hr.connect(runner="inline") as db:
        db.stream("s", ROWS, timestamp="ts", disorder=disorder)  # type: ignore[arg-type]
        query = db.query("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]")
        db.run()
        return int(query.latest()["n"][0].as_py())


@pytest.mark.parametrize("disorder", [MOST + 1, MOST + 2, 2**63 - 1, 2**63, 10**30])
def test_of_data(disorder: int) -> None:
    with pytest.raises(UserError, match="too long") as caught:
        counted(disorder)
    assert caught.value.hint == f"write {MOST}, the most, or less"
    assert counted(MOST) == 2


@pytest.mark.parametrize("disorder", [str(MOST + 1), str(MOST + 2), str(10**30)])
def test_of_a_declared_stream(disorder: str) -> None:
    with hr.connect(runner="inline") as db:
        text = "CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts DISORDER "
        with pytest.raises(UserError, match="too long") as caught:
            db.execute(text + disorder)
        assert caught.value.position is not None
        db.execute(f"{text}{MOST}")
        db.query("SELECT k FROM p")
        db.start()
        db.push("p", {"ts": 2**62 - 1, "k": 1})
        db.push("p", {"ts": 1, "k": 1})
        assert db.stop().dead_letters == 0


@pytest.mark.parametrize("disorder", ["53375996 DAYS", "4611686018427387903 MICROSECONDS", timedelta.max])
def test_of_a_stream_timed_by_timestamps(disorder: object) -> None:
    rows = pa.table({"ts": pa.array([2, 1], pa.timestamp("us", "UTC"))})
    with hr.connect(runner="inline") as db:
        with pytest.raises(UserError, match="too long"):
            db.stream("s", rows, timestamp="ts", disorder=disorder)  # type: ignore[arg-type]
        db.stream("s", rows, timestamp="ts", disorder="53375995 DAYS")
        query = db.query("SELECT ts FROM s")
        db.run()
        assert len(query.history()) == 2
