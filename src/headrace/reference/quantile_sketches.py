"""Sketches of quantiles: the middles of blocks of values, in the bytes of DataSketches' KLL sketches."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from headrace.reference.casts import RowError

_SKETCH = "bytes that are no KLL sketch"


@dataclass(frozen=True)
class Sketch:
    """A sketch.

    Attributes:
        k: its size.
        least: the smallest size of all that it was made of.
        pairs: values and the powers of 2 for which they stand, in order of the values.
        ends: the smallest and the largest of all values; nothing of none.
    """

    k: int
    least: int
    pairs: Sequence[tuple[Any, int]]
    ends: Sequence[Any]

    @property
    def count(self) -> int:
        """The values that it was made of."""
        return sum(weight for _, weight in self.pairs)

    def rank(self, value: Any) -> int:
        """How many of all values are no greater; one is the smallest, and one the largest of all."""
        if math.isnan(value) or value >= self.ends[1]:
            return self.count
        if value < self.ends[0]:
            return 0
        least = sum(weight for one, weight in self.pairs if one <= value)
        # The largest of all is above this one, and may be in none of the pairs.
        return max(1, least - (least == self.count))


def middles(pairs: Iterable[tuple[Any, int]], k: int) -> list[tuple[Any, int]]:
    """Of values in order, each as often as it says, the middle one of each block, and the size of the block.

    All blocks have 2^i values, with the smallest i for which these are k blocks at most; those of the rest
    have falling powers of 2.
    """
    ordered = sorted(pairs)
    total = sum(weight for _, weight in ordered)
    size = 1
    while total // size > k:
        size *= 2
    found: list[tuple[Any, int]] = []
    below = list(accumulate(weight for _, weight in ordered))
    begin, place = 0, 0
    while begin < total:
        while begin + size > total:
            size //= 2
        while below[place] <= begin + size // 2:
            place += 1
        found.append((ordered[place][0], size))
        begin += size
    return found


def packed(sketch: Sketch, kind: str) -> bytes:
    """Its bytes; the kind is that of struct, q or d."""
    count, pairs = sketch.count, sketch.pairs
    if count < 2:
        head = struct.pack("<BBBBHBB", 2, 1 + count, 15, 4 if count else 1, sketch.k, 8, 0)
        return head + struct.pack(f"<{count}{kind}", *(value for value, _ in pairs))
    levels = max(weight for _, weight in pairs).bit_length()
    rows = [[value for value, weight in pairs if weight == 1 << level] for level in range(levels)]
    room = sum(
        max(8, math.floor(2 * sketch.k * 2**depth // 3**depth / 2 + 0.5)) for depth in range(len(rows))
    )
    begins = [room - sum(len(row) for row in rows[level:]) for level in range(levels)]
    values = [*sketch.ends, *(value for row in rows for value in row)]
    head = struct.pack("<BBBBHBBqHBB", 5, 1, 15, 2, sketch.k, 8, 0, count, sketch.least, levels, 0)
    return head + struct.pack(f"<{levels}i{len(values)}{kind}", *begins, *values)


def unpacked(data: bytes, kind: str) -> Sketch:
    """The sketch of some bytes; those of none are a failure."""
    try:
        words, version, family, flags, k, m, _ = struct.unpack_from("<BBBBHBB", data)
        if family != 15 or m != 8 or k < 8:
            raise RowError(_SKETCH)
        if (words, version, flags & 5, len(data)) == (2, 1, 1, 8):
            return Sketch(k, k, [], [])
        if (words, version, flags & 5, len(data)) == (2, 2, 4, 16):
            (value,) = _numbers(data[8:], 1, kind)
            return Sketch(k, k, [(value, 1)], [value, value])
        if (words, version, flags & 5) != (5, 1, 0):
            raise RowError(_SKETCH)
        count, least, levels, _ = struct.unpack_from("<qHBB", data, 8)
        begins = struct.unpack_from(f"<{levels}i", data, 20)
        length = (len(data) - 20 - 4 * levels) // 8
        ends, values = (numbers := _numbers(data[20 + 4 * levels :], length, kind))[:2], numbers[2:]
    except struct.error:
        raise RowError(_SKETCH) from None
    if not 1 <= levels <= 61 or not values or not 8 <= least <= k:
        raise RowError(_SKETCH)
    marks = [*begins, begins[0] + len(values)]
    sizes = [after - before for before, after in pairwise(marks)]
    if begins[0] < 0 or min(sizes) < 0 or count < 2:
        raise RowError(_SKETCH)
    weights = [1 << level for level, size in enumerate(sizes) for _ in range(size)]
    if sum(weights) != count or not all(ends[0] <= value <= ends[1] for value in values):
        raise RowError(_SKETCH)
    return Sketch(k, least, sorted(zip(values, weights, strict=True)), ends)


def _numbers(data: bytes, count: int, kind: str) -> list[Any]:
    numbers = [value + 0 for value in struct.unpack(f"<{count}{kind}", data)]
    if any(math.isnan(value) for value in numbers):
        raise RowError(_SKETCH)
    return numbers


def sketch_of(values: Sequence[Any], kind: str, k: int | None = None) -> bytes:
    """KLL_SKETCH_*: the sketch of an ARRAY of values, or of all that sketches were made of; without NULLs."""
    known = [value for value in values if value is not None]
    if any(isinstance(value, bytes) for value in known):
        return packed(_joined([unpacked(value, kind) for value in known], k), kind)
    numbers = [value + 0 for value in known if not math.isnan(value)]
    size = k or 200
    ends = [min(numbers), max(numbers)] if numbers else []
    return packed(Sketch(size, size, middles(((one, 1) for one in numbers), size), ends), kind)


def _joined(parts: Sequence[Sketch], k: int | None) -> Sketch:
    size = k or max(part.k for part in parts)
    known = [part for part in parts if part.pairs]
    if sum(part.count for part in known) >= 2**63:
        raise RowError(_SKETCH)
    pairs = middles((pair for part in known for pair in part.pairs), size)
    ends = [min(part.ends[0] for part in known), max(part.ends[1] for part in known)] if known else []
    return Sketch(size, min([size, *(part.least for part in known)]), pairs, ends)


def quantile(data: bytes, rank: float, kind: str) -> Any:
    """KLL_SKETCH_GET_QUANTILE_*: the smallest value for which at least that part of all is no greater."""
    sketch = unpacked(data, kind)
    if not 0 <= rank <= 1:
        raise RowError("a rank that is not between 0 and 1")
    place = rank * sketch.count
    if sketch.count <= 10**7:
        place = math.floor(place * 1e7 + 0.5) / 1e7
    wanted = min(math.ceil(place), sketch.count)
    every = sorted({*(value for value, _ in sketch.pairs), *sketch.ends})
    return next((value for value in every if sketch.rank(value) >= wanted), None)


def rank(data: bytes, value: Any, kind: str) -> float | None:
    """KLL_SKETCH_GET_RANK_*: the part of all values that is no greater."""
    sketch = unpacked(data, kind)
    return sketch.rank(value) / sketch.count if sketch.pairs else None


def _of(kind: str) -> dict[str, Callable[..., Any]]:
    return {
        "KLL_SKETCH": lambda values, k=None: sketch_of(values, kind, k),
        "KLL_SKETCH_MERGE": lambda left, right: sketch_of([left, right], kind),
        "KLL_SKETCH_GET_N": lambda data: unpacked(data, kind).count,
        "KLL_SKETCH_GET_QUANTILE": lambda data, place: quantile(data, place, kind),
        "KLL_SKETCH_GET_RANK": lambda data, value: rank(data, value, kind),
    }


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    f"{name}_{suffix}": function
    for suffix, kind in (("BIGINT", "q"), ("DOUBLE", "d"))
    for name, function in _of(kind).items()
}
"""The functions of sketches of quantiles, for BIGINTs and for DOUBLEs."""
