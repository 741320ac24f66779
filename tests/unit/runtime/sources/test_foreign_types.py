"""Types of Arrow and pandas that are not ours: UUIDs as texts, views as what they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr

ONE = UUID(int=5)
TEXT = "00000000-0000-0000-0000-000000000005"


def _arrow(values: list[Any], dtype: pa.DataType) -> pa.Table:
    return pa.table({"ts": pa.array(range(len(values))), "u": pa.array(values, dtype)})


CASES: dict[str, tuple[Callable[[], Any], str, list[Any]]] = {
    "pandas uuid": (lambda: pd.DataFrame({"ts": [0, 1], "u": [ONE, None]}), "STRING", [TEXT, None]),
    "arrow uuid": (lambda: _arrow([ONE.bytes, None], pa.uuid()), "STRING", [TEXT, None]),
    "sliced uuid": (
        lambda: _arrow([b"\0" * 16, None, ONE.bytes], pa.uuid()).slice(1),
        "STRING",
        [None, TEXT],
    ),
    "dictionaries": (lambda: [{"ts": 0, "u": ONE}, {"ts": 1, "u": None}], "STRING", [TEXT, None]),
    "list of uuid": (
        lambda: pa.table(
            {"ts": [0], "u": pa.ListArray.from_arrays([0, 1], pa.array([ONE.bytes], pa.uuid()))}
        ),
        "ARRAY<STRING>",
        [[TEXT]],
    ),
    "string view": (lambda: _arrow(["long" * 9, None], pa.string_view()), "STRING", ["long" * 9, None]),
    "binary view": (lambda: _arrow([b"long" * 9, None], pa.binary_view()), "BINARY", [b"long" * 9, None]),
    "list of views": (lambda: _arrow([[b"a"]], pa.list_(pa.binary_view())), "ARRAY<BINARY>", [[b"a"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_tables_that_are_registered_and_pushed(name: str) -> None:
    made, dtype, values = CASES[name]
    with hr.connect(runner="inline") as db:
        db.stream("s", made(), timestamp="ts")
        db.query("SELECT u FROM s", "q")
        db.execute(f"CREATE STREAM p (ts BIGINT, u {dtype}) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY pushed CONSISTENCY MIDDLE AS SELECT u FROM p")
        db.start()
        db.push("p", made())
        assert [row["u"] for row in db.queries["pushed"].changes().to_pylist()] == values
        db.stop()
        assert [row["u"] for row in db["q"].history().to_pylist()] == values


def test_files(tmp_path: Any) -> None:
    pq.write_table(_arrow([ONE.bytes, None], pa.uuid()), tmp_path / "s.parquet")
    with pa.ipc.new_file(tmp_path / "s.arrow", CASES["arrow uuid"][0]().schema) as writer:
        writer.write_table(CASES["arrow uuid"][0]())
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s FROM arrow OPTIONS (path '{tmp_path}/s.arrow') TIMESTAMP BY ts")
        query = db.query("SELECT u FROM s", "q")
        db.run()
        assert [row["u"] for row in query.history().to_pylist()] == [TEXT, None]
