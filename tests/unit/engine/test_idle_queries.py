"""A push costs what its own queries cost: operators that have nothing to do are passed over."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.operators.create import create_operator


def test_a_push_runs_the_operators_of_its_own_queries_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def noted(plan: Any, *args: Any) -> Any:
        made.append(type(plan).__name__)
        return create_operator(plan, *args)

    monkeypatch.setattr("headrace.runtime.tasks.level.create_operator", noted)
    with hr.connect(runner="inline") as db:
        for name in "axy":
            db.execute(f"CREATE STREAM {name} (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts")
        small = db.query("SELECT k, COUNT(*) AS n FROM a [RANGE 10] GROUP BY k", name="small")
        for place in range(10):
            db.query(
                f"SELECT x.k FROM x [RANGE {10 + place}] JOIN y [RANGE {11 + place}] ON x.k = y.k",
                name=f"join{place}",
            )
        db.start()
        for name in "axy":
            db.push(name, pa.table({"ts": [1], "k": [1]}))
        made.clear()
        db.push("a", pa.table({"ts": [2], "k": [1]}))
        assert made == ["Aggregate"]
        # What waits in the others is not forgotten.
        db.push("x", pa.table({"ts": [50], "k": [1]}))
        db.push("y", pa.table({"ts": [50], "k": [1]}))
        assert made.count("Join") >= 10
        assert db["join0"].history().num_rows == 1
        assert small.history()["n"].to_pylist() == [1]
