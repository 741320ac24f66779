"""The page for people from other systems: the two queries of each block give one answer."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr

_PAGE = Path(__file__).parents[3] / "docs" / "coming-from.md"
_BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAIRS = [
    [part.strip() for part in block.split(";") if part.strip()] for block in _BLOCK.findall(_PAGE.read_text())
]
_MINUTES = (0, 2, 3, 3, 7, 11, 12, 19, 31, 33)


def _bids() -> pa.Table:
    begin = dt.datetime(2024, 5, 1, 9, tzinfo=dt.UTC)
    return pa.table(
        {
            "ts": [begin + dt.timedelta(minutes=minute) for minute in _MINUTES],
            "auction": [1, 2, 1, 2, 1, 2, 3, 3, 1, 1],
            "item": ["pen", "cup", "pen", "cup", None, "cup", "pot", "pot", "pen", "pen"],
            "bidder": ["ann", "bob", "bob", "cid", "ann", "cid", "ann", "bob", "ann", "ann"],
            "price": [10, 40, 12, 15, 18, 45, 7, 7, 20, 20],
        }
    )


def test_there_are_blocks_of_two() -> None:
    assert len(PAIRS) > 10
    assert all(len(pair) == 2 for pair in PAIRS)


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_their_text_means_ours(theirs: str, ours: str) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("bid", _bids(), timestamp="ts")
        one, other = db.query(theirs), db.query(ours)
        assert not db.run().failed
        found, expected = one.history(), other.history()
    assert found.num_rows > 1
    assert found.column_names == expected.column_names
    assert found.to_pylist() == expected.to_pylist()
