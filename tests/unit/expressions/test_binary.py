"""BINARY in queries: casts, comparisons, keys and the rows that fail."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError


def _answers(text: str) -> tuple[list[tuple[object, ...]], list[str]]:
    """The rows of a query over some bytes, and why others failed."""
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1, 2, 3, 4], "b": [b"a", b"\xff", None, b"b"]}), timestamp="ts")
        query = db.query(text)
        assert not db.run().failed
        rows = [tuple(row.values())[:-2] for row in query.history().to_pylist()]
        return rows, [row["reason"] for row in db.dead_letters().to_pylist()]


def test_bytes_that_are_no_text_fail() -> None:
    rows, reasons = _answers("SELECT CAST(b AS STRING) AS t FROM s")
    assert rows == [("a",), (None,), ("b",)]
    assert reasons == ["invalid cast from BINARY to STRING"]
    assert _answers("SELECT ts, TRY_CAST(b AS STRING) AS t FROM s")[0][1:3] == [(2, None), (3, None)]


def test_conditions_and_joins_compare_bytes() -> None:
    assert _answers("SELECT b FROM s WHERE b > X'61' AND b <> 'c'")[0] == [(b"\xff",), (b"b",)]
    assert _answers("SELECT a.b FROM s a JOIN s b ON a.b = b.b")[0] == [(b"a",), (b"\xff",), (b"b",)]


def test_null_is_a_partition_of_its_own() -> None:
    text = "SELECT b, COUNT(*) OVER (PARTITION BY b) AS n FROM s WINDOW(RANGE 1)"
    assert _answers(text)[0] == [(b"a", 1), (b"\xff", 1), (None, 1), (b"b", 1)]


@pytest.mark.parametrize("text", ["CAST(5 AS BINARY)", "CAST(X'41' AS BIGINT)", "DATE '2024-01-01' = X'41'"])
def test_other_types_are_no_bytes(text: str) -> None:
    with pytest.raises(LanguageError, match="BINARY"), hr.connect(runner="inline") as db:
        db.query(f"SELECT {text} AS x")
