"""Running sums as steps: differences are the sums between instants, whatever was merged and forgotten."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import integers
from headrace.operators.state.keys import hash_rows
from headrace.operators.state.runs import HASH, TIME
from headrace.operators.state.steps import StepArea
from how_many import examples

KEYS = (0, 1, 2)


def hashes_of(keys: list[int], collide: bool) -> np.ndarray:
    column = pa.array(keys, pa.int64())
    return np.zeros(len(keys), dtype=np.int64) if collide else hash_rows([column], len(keys))


def append(area: StepArea, added: dict[int, list[int]], totals: dict[int, int], collide: bool) -> None:
    """Steps before one row at each of some instants of each key, and behind the last of them."""
    found = []
    for key, instants in added.items():
        for instant in instants:
            found.append((key, instant, totals[key]))
            totals[key] += 1
        found += [(key, instants[-1] + 1, totals[key])] if instants else []
    hashes = hashes_of([key for key, *_ in found], collide)
    keys, times, sums = np.array(found, dtype=np.int64).reshape(-1, 3).T
    order = np.lexsort((times, keys, hashes))
    keys, times, sums = (pa.array(part[order]) for part in (keys, times, sums))
    area.append({HASH: pa.array(hashes[order]), TIME: times, "k": keys, "n": sums})


def before(area: StepArea, instant: int, collide: bool) -> dict[int, int]:
    """The first sum after an instant that the area has of each key."""
    keys = sorted(KEYS, key=lambda key: hashes_of([key], collide)[0])
    result: dict[int, int] = {}
    for steps in area.stored(hashes_of(keys, collide), [pa.array(keys, pa.int64())]):
        sums = integers(steps.rows.column("n"))
        for key, low, high in zip(keys, steps.lows, steps.highs, strict=True):
            later = [row for row in range(low, high) if steps.times[row] > instant]
            if later:
                result.setdefault(key, int(sums[later[0]]))
    return result


epochs = st.lists(st.fixed_dictionaries({key: st.sets(st.integers(0, 4)) for key in KEYS}), max_size=12)


@examples(17)
@given(epochs, st.integers(1, 12), st.booleans())
def test_differences_of_steps_are_what_lies_between(
    parts: list[dict[int, set[int]]], size: int, collide: bool
) -> None:
    area, known = StepArea(("k",), ("n",)), {key: list[int]() for key in KEYS}
    for epoch, part in enumerate(parts):
        added = {key: sorted(5 * epoch + instant for instant in part[key]) for key in KEYS}
        append(area, added, {key: latest(area, key, collide) for key in KEYS}, collide)
        for key in KEYS:
            known[key] += added[key]
        now = 5 * epoch + 5
        area.expire(now - size)
        for start in range(now - size, now):
            starts = before(area, start, collide)
            for key in KEYS:
                expected = sum(start < instant for instant in known[key])
                last = latest(area, key, collide)
                assert (last - starts[key] if key in starts else 0) == expected, (key, start)


def latest(area: StepArea, key: int, collide: bool) -> int:
    """All that was added up for a key, or since it was forgotten."""
    found = area.stored(hashes_of([key], collide), [pa.array([key], pa.int64())])
    return int(integers(found[-1].rows.column("n"))[found[-1].highs[0] - 1]) if found else 0
