"""Queries that read no stream: SELECT without FROM, VALUES, and series of numbers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from waiting import wait_for


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 1 + 1 AS x, 'a' AS y", [(2, "a")]),
        ("SELECT 1 AS x UNION ALL SELECT 2", [(1,), (2,)]),
        ("SELECT COUNT(*) AS n", [(1,)]),
        ("VALUES (1, 'a'), (2.5, NULL)", [(Decimal("1.0"), "a"), (Decimal("2.5"), None)]),
        ("SELECT y FROM (VALUES (1, 'a'), (2, 'b')) AS t (x, y) WHERE x > 1", [("b",)]),
        ("WITH t (x) AS (VALUES 1, 2) SELECT SUM(x) AS total FROM t", [(3,)]),
        ("SELECT SUM(i) AS total FROM GENERATE_SERIES(1, 4) AS g (i)", [(10,)]),
        ("SELECT * FROM UNNEST(ARRAY('a', 'b')) AS t (x)", [("a",), ("b",)]),
        (
            "SELECT v, y FROM s JOIN (VALUES (1, 'one'), (3, 'three')) AS t (x, y) ON v = x",
            [(1, "one"), (3, "three")],
        ),
        ("SELECT v FROM s WHERE v IN (VALUES (1), (2))", [(1,), (2,)]),
        ("SELECT v - (SELECT 1) AS before FROM s", [(0,), (1,), (2,)]),
        ("SELECT v FROM s WHERE EXISTS (SELECT 1)", [(1,), (2,), (3,)]),
    ],
)
def test_answers(text: str, rows: list[tuple[object, ...]]) -> None:
    with hr.connect("inline") as db:
        db.stream("s", pa.table({"ts": [1, 2, 3], "v": [1, 2, 3]}), timestamp="ts")
        query = db.query(text)
        db.run()
        found = query.history().drop_columns(["valid_from", "valid_to"])
    assert sorted(map(repr, zip(*found.to_pydict().values(), strict=True))) == sorted(map(repr, rows))


def test_they_hold_for_ever_and_again_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        with hr.connect("inline", storage=tmp_path / "store") as db:
            db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts")
            query = db.query("SELECT 1 AS x", name="q")
            db.start()
            wait_for(lambda: db["q"].changes().num_rows)
            assert query.history().to_pylist() == [{"x": 1, "valid_from": None, "valid_to": None}]


def test_rows_of_different_lengths() -> None:
    with (
        hr.connect("inline") as db,
        pytest.raises(hr.UserError, match="1:16: this row has 1 values"),
    ):
        db.query("VALUES (1, 2), (3)")
