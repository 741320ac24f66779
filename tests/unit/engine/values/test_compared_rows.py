"""Queries that compare ARRAYs and STRUCTs: in conditions, joins, subqueries and partitions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headrace as hr

_PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])
_ROWS = pa.table(
    {
        "ts": [1, 1, 1, 1, 1],
        "id": [1, 2, 3, 4, 5],
        "p": pa.array([(1, "x"), (1, None), (1, None), None, (2, "x")], _PAIR),
        "l": [[1, 2], [1], None, [1, 2], []],
    }
)


def _answer(text: str) -> list[Any]:
    """The rows that are valid at 1, as tuples without names."""
    with hr.connect(runner="inline") as db:
        db.stream("s", _ROWS, timestamp="ts")
        query = db.query(text)
        assert not db.run().failed
        return sorted(tuple(row.values()) for row in query.snapshot(at=1).to_pylist())


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("p = (1, 'x')", [1]),
        ("p <> (1, 'x')", [2, 3, 5]),
        ("p < (1, 'x')", [2, 3]),
        ("p IN ((1, 'x'), (2, 'x'))", [1, 5]),
        ("(id, SIZE(l)) IN ((1, 2), (2, 2), (5, 0))", [1, 5]),
        ("p IS NOT DISTINCT FROM NULL", [4]),
        ("l BETWEEN ARRAY(1) AND ARRAY(1, 2)", [1, 2, 4]),
        ("l = ARRAY(1, 2)", [1, 4]),
    ],
)
def test_conditions(condition: str, ids: list[int]) -> None:
    assert _answer(f"SELECT id FROM s WHERE {condition}") == [(number,) for number in ids]


@pytest.mark.parametrize("condition", ["a.p = b.p", "(a.p, 1) = (b.p, 1) AND a.p IS NOT NULL"])
def test_joins_find_equal_values_but_null(condition: str) -> None:
    # Within STRUCTs NULL is equal to NULL, so 2 and 3 find each other; 4 finds nobody.
    pairs = [(1, 1), (2, 2), (2, 3), (3, 2), (3, 3), (5, 5)]
    assert _answer(f"SELECT a.id, b.id AS other FROM s a JOIN s b ON {condition}") == pairs


def test_joins_compare_by_order() -> None:
    assert _answer("SELECT a.id, b.id AS other FROM s a JOIN s b ON a.l > b.l") == [
        *((1, 2), (1, 5), (2, 5), (4, 2), (4, 5)),
    ]


def test_subqueries_read_values_of_the_rows_around() -> None:
    counted = "(SELECT COUNT(*) FROM s b WHERE b.l = s.l)"
    assert _answer(f"SELECT id, {counted} AS n FROM s") == [(1, 2), (2, 1), (3, 0), (4, 2), (5, 1)]
    assert _answer("SELECT id FROM s WHERE p IN (SELECT p FROM s WHERE id IN (2, 4))") == [(2,), (3,)]
    assert _answer("SELECT id FROM s WHERE l = (SELECT MAX(l) FROM s)") == [(1,), (4,)]


def test_null_is_a_partition_of_its_own() -> None:
    found = _answer("SELECT id, COUNT(*) OVER (PARTITION BY p) AS n FROM s WINDOW(RANGE 1)")
    assert found == [(1, 1), (2, 2), (3, 2), (4, 1), (5, 1)]
