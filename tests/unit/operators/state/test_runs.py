"""When runs are merged: there are few, and no merge is of most rows; and small ones are like large ones."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import encode_rows, read_rows
from headrace.operators.state import runs as module
from headrace.operators.state.runs import HASH, TIER, TIME, SortedRun, is_tier_full


def run_of(rows: int) -> SortedRun:
    return SortedRun(None, lambda: pytest.fail("no run is looked at"), rows, (0, 0, 0))


@dataclass
class Grown:
    """What comes of runs of those sizes, appended one by one.

    Attributes:
        runs: those that there are at the end, and how many at most.
        merges: how many rows each merge was of, and how many there were in all.
    """

    sizes: list[int]

    def __post_init__(self) -> None:
        self.runs: list[SortedRun] = []
        self.most = 0
        self.merges: list[tuple[int, int]] = []
        for size in self.sizes:
            self.runs.append(run_of(size))
            while is_tier_full(self.runs):
                merged = sum(run.rows for run in self.runs[-TIER:])
                self.merges.append((merged, sum(run.rows for run in self.runs)))
                self.runs[-TIER:] = [run_of(merged)]
            self.most = max(self.most, len(self.runs))


@given(st.lists(st.integers(1, 3_000), max_size=400), st.sampled_from([1, 100, 10**9]))
def test_runs_are_few_and_no_merge_is_of_most_rows(sizes: list[int], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", few)
        grown = Grown(sizes)
    assert all(merged <= max(few, rows // TIER) for merged, rows in grown.merges)
    assert grown.most <= 16 + TIER * (sum(sizes) + 1).bit_length()


def test_many_small_runs_become_few_large_ones() -> None:
    grown = Grown([5_000] * 200)
    assert len(grown.runs) < 20
    # Each row is merged a few times, and never with most of the others.
    assert sum(merged for merged, _ in grown.merges) < 4 * 200 * 5_000
    assert max(merged for merged, _ in grown.merges) <= 200 * 5_000 // TIER


@pytest.mark.parametrize("beside", [None, {b"marks": b"1 2"}])
def test_small_runs_are_what_large_ones_are(beside: dict[bytes, bytes] | None) -> None:
    """Their rows are made wider once; nobody sees that, down to the bytes that are written."""
    columns = {HASH: [1, 1, 300], TIME: [7, 9, 7], "k": ["a", None, "c"], "v": [5, 5, 5], "x": [1, None, 3]}
    made = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})
    rows = read_rows(encode_rows(made.replace_schema_metadata(beside)))
    found = []
    for small in (0, 4096):
        run = SortedRun(None, lambda: rows, 3, (7, 10, 0))
        with patch.object(module, "_SMALL", small):
            looked = (run.take(np.array([2, 0])), run.take(np.array([1]), ("v", "k")), run.slice(1, 2))
            assert run.batch.schema.metadata == beside
            found.append((*looked, *run.columns(tuple(columns)), run.batch, encode_rows(run.batch)))
    assert found[0] == found[1]
    assert found[0][-2].equals(made.replace_schema_metadata(beside), check_metadata=True)
