"""What is held of regions: the values that are there at each of their instants."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.operators.state.keys import hash_rows
from headrace.operators.state.live_elements import COUNT
from headrace.operators.state.region_values import counted_values_of
from headrace.operators.state.regions import Regions
from headrace.operators.state.runs import HASH, TIME
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea

CHANGES = [
    *[("a", 5, 1, 1), ("a", 5, 3, 1), ("a", 5, 6, -2), ("a", 7, 2, 1), ("a", 7, 9, -1)],
    *[("b", 5, 0, 4), ("b", 5, 8, -4), ("c", 5, 0, 1)],
]
"""Keys, values, instants, and how many copies come there."""
REGIONS = [("a", 2, 4), ("a", 5, 7), ("b", 6, 12)]


def test_a_count_lasts_from_one_change_of_a_value_to_the_next() -> None:
    area = SweepArea(Layout(("k",), ("v",), (COUNT,), netting=Netting.ACCUMULATE))
    for part in (CHANGES[::2], CHANGES[1::2]):
        keys, values, times, counts = map(list, zip(*part, strict=True))
        columns = {"k": pa.array(keys), "v": pa.array(values), TIME: pa.array(times), COUNT: pa.array(counts)}
        area.insert(columns | {HASH: pa.array(hash_rows([pa.array(keys)], len(keys)))})
    names = [pa.array(["a", "b"])]
    codes = np.array([0, 0, 1])
    starts, ends = (np.array([region[place] for region in REGIONS]) for place in (1, 2))
    found = counted_values_of(area, Regions(names, hash_rows(names, 2), codes, starts, ends))
    assert found is not None
    told = found.values
    rows = zip(*(part.to_pylist() for part in (*told.keys, *told.columns)), strict=True)
    cut = zip(rows, told.ts.tolist(), told.te.tolist(), told.w.tolist(), strict=True)
    assert sorted(cut) == [
        (("a", 5), 2, 3, 1),
        (("a", 5), 3, 4, 2),
        (("a", 5), 5, 6, 2),
        (("a", 7), 2, 4, 1),
        (("a", 7), 5, 7, 1),
        (("b", 5), 6, 8, 4),
    ]
    assert [REGIONS[code][0] for code in found.codes] == told.keys[0].to_pylist()
