"""Rows of a segment are read once whatever the cut, and so is what was rejected."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from headrace.runtime.intake.stored_rows import StoredRows, write_rows
from headrace.runtime.sources.rows.contract import Rejected
from headrace.runtime.store.segments import MemoryStore
from headrace.schema import BIGINT, STRING, Field, Schema


@pytest.mark.parametrize("rejected", [(), (Rejected("x", "is no number", "a.csv:2"),)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_any_cut_gives_everything_once(count: int, rejected: tuple[Rejected, ...]) -> None:
    store = MemoryStore()
    rows = pa.record_batch({"n": pa.array(range(count), BIGINT), "t": pa.array(["x"] * count, STRING)})
    part = write_rows(store, "segments/a", rows)
    source = StoredRows(store, part, Schema((Field("n", BIGINT), Field("t", STRING))), count, rejected)
    for cuts in ([], [0], [0, 0], [1], [1, 1], [2], [count], [1, 2, 3]):
        places = [0, *(cut for cut in cuts if cut <= source.size), source.size]
        reads = [read for cut in pairwise(places) for read in source.read(*cut, ("n",))]
        assert [n for read in reads for n in read.rows.column("n").to_pylist()] == list(range(count))
        assert [one for read in reads for one in read.rejected] == [*rejected]
