"""The 22 questions of TPC-H over tables that fill up in time, beside DuckDB's answers at several instants."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headrace as hr
from worked.tpch import LAST, TABLES, queries, tables

INSTANTS = (9, 31, LAST)
QUERIES = queries()


@cache
def rows() -> dict[str, pa.Table]:
    return tables(seed=7)


def comparable(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in one order, with numbers as DOUBLEs; an aggregate over no rows is a row of nothing there."""
    listed = [
        tuple(float(v) if isinstance(v, Decimal | int) else v for v in row.values())
        for row in table.to_pylist()
    ]
    nothing = [row for row in listed if any(value is not None for value in row)]
    return sorted(nothing, key=repr)


def alike(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> bool:
    def same(one: Any, other: Any) -> bool:
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-5)
        return bool(one == other)

    return len(left) == len(right) and all(all(map(same, *pair)) for pair in zip(left, right, strict=True))


@pytest.mark.parametrize("number", QUERIES)
def test_every_question_has_duckdbs_answer_at_each_instant(number: int) -> None:
    with hr.connect(runner="inline") as db:
        for name, table in rows().items():
            db.stream(f"{name}_rows", table, timestamp="at")
            columns = ", ".join(TABLES[name].names[:-1])
            db.execute(f"CREATE STREAM {name} AS SELECT {columns} FROM {name}_rows WINDOW(RANGE UNBOUNDED)")
        query = db.query(QUERIES[number])
        db.run()
        ours = {instant: comparable(query.snapshot(instant)) for instant in INSTANTS}
    with duckdb.connect() as other:
        for name, table in rows().items():
            other.register(f"{name}_rows", table)
        for instant in INSTANTS:
            for name in TABLES:
                columns = ", ".join(TABLES[name].names[:-1])
                there = f'SELECT {columns} FROM {name}_rows WHERE "at" <= {instant}'
                other.execute(f"CREATE OR REPLACE VIEW {name} AS {there}")
            theirs = comparable(other.sql(QUERIES[number]).to_arrow_table())
            assert alike(ours[instant], theirs), (instant, ours[instant][:3], theirs[:3])
    assert ours[LAST], "an answer that shows something"
