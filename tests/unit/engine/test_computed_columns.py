"""Columns that CREATE STREAM computes of those of the input, and streams that are timed by them."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UserError

ROWS = """when,at,price,note
03/02/2024 10:00,1706954400,1.50,a
03/02/2024 10:05,1706954700,2.00,b
next week,1706954701,3.00,c
03/02/2024 10:07,1706954820,x,d
03/02/2024 10:09,1706954940,4.00,e
"""
STREAM = """
CREATE STREAM sale (`when` STRING, at BIGINT, price DECIMAL(6, 2), note STRING,
    ts AS TO_TIMESTAMP(`when`, 'dd/MM/yyyy HH:mm'), cents AS CAST(price * 100 AS BIGINT))
  FROM csv OPTIONS (path 'sales.csv') TIMESTAMP BY ts"""


def answered(folder: Path, text: str, query: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    (folder / "sales.csv").write_text(ROWS)
    with chdir(folder), hr.connect(runner="inline", epoch_rows=2) as db:
        db.execute(text)
        found = db.query(query)
        db.run()
        return found.history().to_pylist(), db.dead_letters().to_pylist()


def test_a_stream_is_timed_by_text_in_a_format_of_its_own(tmp_path: Path) -> None:
    rows, letters = answered(tmp_path, STREAM, "SELECT note, cents FROM sale")
    assert [(row["note"], row["cents"]) for row in rows] == [("a", 150), ("b", 200), ("e", 400)]
    assert [str(row["valid_from"])[14:16] for row in rows] == ["00", "05", "09"]
    reasons = {str(letter["reason"]): str(letter["row"]) for letter in letters}
    assert list(reasons) == [
        "price is not a valid DECIMAL(6, 2): 'x'",
        "ts cannot be computed: the text does not fit the pattern of TO_TIMESTAMP",
    ]
    assert "next week" in reasons["ts cannot be computed: the text does not fit the pattern of TO_TIMESTAMP"]


def test_the_other_columns_may_be_those_of_the_input(tmp_path: Path) -> None:
    options = "FROM csv OPTIONS (path 'sales.csv')"
    text = f"CREATE STREAM sale (ts AS TIMESTAMP_SECONDS(at)) {options} TIMESTAMP BY ts"
    rows, letters = answered(tmp_path, text, "SELECT ts, note FROM sale WHERE note <> 'b'")
    assert [(row["note"], row["ts"] == row["valid_from"]) for row in rows] == [
        ("a", True), ("c", True), ("d", True), ("e", True)
    ]  # fmt: skip
    assert not letters


def test_a_store_has_what_is_computed(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text(ROWS)
    settings: dict[str, Any] = {"runner": "inline", "storage": tmp_path / "store"}
    for _ in range(2):
        with chdir(tmp_path), hr.connect(**settings) as db:
            db.execute(f"{STREAM}; CREATE QUERY q AS SELECT ts, note FROM sale WHERE cents > 150")
            db.run()
            (shown,) = (str(answer) for answer in db.execute("SHOW CREATE STREAM sale"))
            assert "ts AS TO_TIMESTAMP(`when`, 'dd/MM/yyyy HH:mm')" in shown
            assert db["q"].history()["note"].to_pylist() == ["b", "e"]


@pytest.mark.parametrize(
    ("column", "message"),
    [("x AS nobody + 1", "nobody"), ("x AS SUM(at)", "SUM cannot be used in a computed column")],
)
def test_what_cannot_be_computed_is_named(tmp_path: Path, column: str, message: str) -> None:
    text = f"CREATE STREAM sale (at BIGINT, {column}) FROM csv OPTIONS (path 'sales.csv') TIMESTAMP BY at"
    with pytest.raises(UserError, match=message):
        answered(tmp_path, text, "SELECT * FROM sale")
