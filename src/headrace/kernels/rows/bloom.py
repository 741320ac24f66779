"""Timed Bloom filters: cells that say for how long some value that has them is there."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from headrace.elements import Float64Array, Int64Array
from headrace.kernels.jit import BYTES, BYTES_OUT, INT, INT1, INT1_OUT, inner, kernel

BEFORE: Final = 0
AFTER: Final = 1
LASTING: Final = 2
"""When rows are looked up, and whether they are there for longer than an instant."""


@inner
def _odds(cells, start, width, each, kind, span):  # type: ignore[no-untyped-def]
    """The part of a new value that is missed; see `look_up`."""
    longer = np.zeros(257, dtype=np.int64)
    for cell in range(start, start + width):
        longer[cells[cell]] += 1
    # How many cells are live for so many granules more.
    for left in range(255, 0, -1):
        longer[left] += longer[left + 1]
    if kind != LASTING:
        return (longer[1] / width) ** each
    total = 0.0
    for left in range(1, min(span, 255) + 1):
        total += (longer[left] / width) ** each
    return total / max(span, 1)


@kernel(INT1, INT1, INT1, INT1, BYTES, INT1, INT, INT, INT1_OUT, BYTES_OUT)
def look_up(
    blocks: Int64Array,
    instants: Int64Array,
    now: Int64Array,
    ends: Int64Array,
    enters: npt.NDArray[np.uint8],
    probes: Int64Array,
    width: int,
    kind: int,
    bases: Int64Array,
    cells: npt.NDArray[np.uint8],
) -> tuple[Int64Array, Float64Array]:
    """Until when the values of rows are there by the rows before them, as some cells of a block tell.

    Args:
        blocks: int64[n], the block of each row; those of one block are together, in order of instants.
        instants: int64[n].
        now: int64[n], the granule of each instant.
        ends: int64[n], the granule up to which each row is there.
        enters: uint8[n], 1 for rows that enter.
        probes: int64[n * k], the cells of each row.
        width: the number of cells of a block.
        kind: `BEFORE` or `LASTING` where rows are looked up before those of their instant enter, and `AFTER`.
        bases: int64[b], of each block the granule from which its cells count; changed.
        cells: uint8[b * width], of each how many granules behind the base a value is there; changed.

    Returns:
        Of each row the granule up to which its value is live, that of its instant where it is not (int64[n]);
        and the part of a new value that is expected to be missed in its block (float64[n]): the odds that all
        its cells are live, for `LASTING` on average over the time for which it is there.
    """
    count = len(blocks)
    each = len(probes) // max(count, 1)
    found, missed = np.zeros(count, dtype=np.int64), np.zeros(count)
    first = 0
    while first < count:
        block, now_at = blocks[first], now[first]
        last = first
        while last < count and blocks[last] == block and instants[last] == instants[first]:
            last += 1
        start = block * width
        passed = now_at - bases[block]
        for cell in range(start, start + width):
            cells[cell] = max(cells[cell] - passed, 0)
        bases[block] = now_at
        for turn in range(2):
            if turn == (kind == AFTER):
                odds = _odds(cells, start, width, each, kind, ends[first] - now_at)
                for row in range(first, last):
                    least = cells[start + probes[row * each]]
                    for probe in range(1, each):
                        least = min(least, cells[start + probes[row * each + probe]])
                    found[row] = now_at + least
                    missed[row] = odds
            else:
                for row in range(first, last):
                    if enters[row]:
                        for probe in range(each):
                            cell = start + probes[row * each + probe]
                            cells[cell] = max(cells[cell], ends[row] - now_at)
        first = last
    return found, missed
