"""Users' code travels to Spark's workers, and fails there as it does here."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace import Database, connect

pytestmark = pytest.mark.spark


def answers(db: Database) -> tuple[list[Any], list[Any], Any]:
    offset = 3

    # A lambda, a closure and a local class: nothing that a worker could import.
    db.function("shifted", lambda values: pc.add(values, offset), arguments=["BIGINT"], returns="BIGINT")
    db.function(
        "inverse", lambda values: pc.divide_checked(60, values), arguments=["BIGINT"], returns="BIGINT"
    )

    class Product:
        def initialize(self) -> int:
            return offset

        def accumulate(self, state: int, value: int) -> int:
            return state * value

        def merge(self, state: int, other: int) -> int:
            return state * other // offset

        def evaluate(self, state: int) -> int:
            return state // offset

    db.aggregate("product", Product, arguments=["BIGINT"], returns="BIGINT")
    db.aggregate("broken", Product, arguments=["BIGINT"], returns="BOOLEAN")
    rows = {
        "ts": list(range(40)),
        "k": [place % 3 for place in range(40)],
        "v": [place % 7 for place in range(40)],
    }
    db.stream("r", pa.table(rows), timestamp="ts")
    query = db.query("SELECT k, product(shifted(v)) AS p, MAX(v) AS m FROM r [RANGE 9] GROUP BY k")
    db.query("SELECT inverse(v) AS i FROM r")
    db.query("SELECT broken(v) FROM r [RANGE 3]", name="broken")
    failed = db.run().failed
    letters = [(letter["query"], letter["reason"], letter["row"]) for letter in db.dead_letters().to_pylist()]
    return query.history().to_pylist(), sorted(letters), failed


def test_users_code_on_spark(spark: Any) -> None:
    with connect(runner="inline", epoch_rows=15) as db:
        expected = answers(db)
    with connect(spark=spark, epoch_rows=15) as db:
        found = answers(db)
    assert found == expected
    history, letters, failed = expected
    assert len(history) > 10
    assert len(letters) == 6
    assert [name for name, _, _ in failed] == ["broken"]
