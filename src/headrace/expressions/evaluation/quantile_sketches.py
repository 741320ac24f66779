"""Sketches of quantiles over columns, in the bytes of what Apache DataSketches calls a KLL sketch.

Such a sketch has values in levels; one of level i stands for 2^i (Karnin, Lang and Liberty, *Optimal Quantile
Approximation in Streams*, FOCS 2016). Theirs compacts a level when it is full, in the order in which values
came, and flips coins; ours is a function of the values: with n of them in order, cut into blocks of 2^i, it
has the middle one of each. i is the smallest for which there are k blocks at most, and the blocks of the rest
are of falling powers of 2. So the rank of a value is off by 2^(i - 1) at most, which is less than n / k.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    failing,
    rows_of,
    spread,
)
from headrace.expressions.tree import Call, Literal
from headrace.limits import checked
from headrace.schema import BINARY

K: Final = 200
"""The size of a sketch of values where nothing is said, as in DataSketches."""
_HEAD: Final = struct.Struct("<BBBBHBB")
"""Words, version, family, flags, k, m, nothing."""
_BODY: Final = struct.Struct("<qHBB")
"""The number of values, the smallest k of all that it was made of, levels, nothing."""
_FAMILY, _M = 15, 8
_EMPTY, _SORTED, _SINGLE = 1, 2, 4
_LEVELS: Final = 61
"""The most levels in DataSketches."""
_NO_SKETCH: Final = "bytes that are no KLL sketch"

_Values: TypeAlias = np.ndarray[Any, Any]
"""int64[n] or float64[n]."""


class _NoSketchError(ValueError):
    """The bytes are not a KLL sketch."""


@dataclass(frozen=True, eq=False)
class _Sketch:
    """A sketch.

    Attributes:
        k: its size.
        least: the smallest size of all that it was made of.
        values: rising.
        weights: int64[n], the powers of 2 that these stand for.
        ends: the smallest and the largest of all values.
    """

    k: int
    least: int
    values: _Values
    weights: Int64Array
    ends: _Values

    @property
    def count(self) -> int:
        """The values that it was made of."""
        return int(self.weights.sum())

    def ranks(self) -> tuple[_Values, Int64Array]:
        """Its values, and how many of all are no greater; the ends of all stand for one each."""
        values, counts = self.values, np.cumsum(self.weights)
        if len(values) and values[0] != self.ends[0]:
            values, counts = np.append(self.ends[:1], values), np.append(np.int64(1), counts)
        if len(values) and values[-1] != self.ends[1]:
            values, counts = np.append(values, self.ends[1:]), np.append(counts, counts[-1:])
            counts[-2] -= 1
        return values, counts

    def packed(self) -> bytes:
        """Its bytes."""
        kind = "<f8" if self.values.dtype.kind == "f" else "<i8"
        if self.count < 2:
            flags, version = (_SINGLE, 2) if len(self.values) else (_EMPTY, 1)
            return _HEAD.pack(2, version, _FAMILY, flags, self.k, _M, 0) + self.values.astype(kind).tobytes()
        order = np.argsort(self.weights, kind="stable")
        sizes = np.bincount(np.frexp(self.weights.astype(np.float64))[1] - 1)
        begins = _capacity(self.k, len(sizes)) - np.cumsum(sizes[::-1])[::-1]
        head = _HEAD.pack(5, 1, _FAMILY, _SORTED, self.k, _M, 0)
        body = _BODY.pack(self.count, self.least, len(sizes), 0) + begins.astype("<i4").tobytes()
        return head + body + self.ends.astype(kind).tobytes() + self.values[order].astype(kind).tobytes()


def _capacity(k: int, levels: int) -> int:
    """The room of so many levels: k values in the highest, two thirds of that in each below, 8 at least."""
    return sum(max(_M, (2 * k * 2**depth // 3**depth + 1) // 2) for depth in range(levels))


def _made(values: _Values, weights: Int64Array, k: int, least: int, ends: _Values) -> _Sketch:
    """The sketch of values, in any order, each as often as its weight says."""
    order = np.argsort(values, kind="stable")
    values, ranks = values[order], np.cumsum(weights[order])
    count = int(ranks[-1]) if len(ranks) else 0
    level = 0
    while count >> level > k:
        level += 1
    blocks = count >> level
    places = np.arange(blocks, dtype=np.int64) * (1 << level) + (1 << level >> 1)
    sizes = np.full(blocks, 1 << level, dtype=np.int64)
    begin = blocks << level
    for lower in range(level - 1, -1, -1):
        if count >> lower & 1:
            places = np.append(places, np.int64(begin + (1 << lower >> 1)))
            sizes = np.append(sizes, np.int64(1 << lower))
            begin += 1 << lower
    return _Sketch(k, least, values[np.searchsorted(ranks, places, side="right")], sizes, ends)


def _of_values(values: _Values, k: int) -> _Sketch:
    """The sketch of values; every NaN is passed over."""
    if values.dtype.kind == "f":
        # -0 and 0 are one value.
        values = values[~np.isnan(values)] + 0.0
    ends = np.array([values.min(), values.max()]) if len(values) else values[:0]
    return _made(values, np.ones(len(values), dtype=np.int64), k, k, ends)


def _joined(parts: Sequence[_Sketch], k: int | None, kind: type) -> _Sketch:
    """The sketch of all that some were made of, as far as they tell.

    Args:
        parts: may be none.
        k: its size; that of the largest where it is None.
        kind: of values.

    Raises:
        _NoSketchError: these would be more values than a BIGINT counts.
    """
    k = k or max((one.k for one in parts), default=K)
    known = [one for one in parts if len(one.values)]
    if not known:
        return _of_values(np.empty(0, kind), k)
    if sum(one.count for one in known) >= 2**63:
        raise _NoSketchError
    ends = np.array([min(one.ends[0] for one in known), max(one.ends[1] for one in known)])
    values, weights = (
        np.concatenate([getattr(one, part) for one in known]) for part in ("values", "weights")
    )
    return _made(values, weights, k, min(k, *(one.least for one in known)), ends)


def _unpacked(data: bytes, kind: type) -> _Sketch:
    """The sketch of some bytes, of DataSketches' as well.

    Raises:
        _NoSketchError: they are not those of a sketch.
    """
    if len(data) < _HEAD.size:
        raise _NoSketchError
    words, version, family, flags, k, m, _ = _HEAD.unpack_from(data)
    if family != _FAMILY or m != _M or k < _M:
        raise _NoSketchError
    rest = data[_HEAD.size :]
    match words, version, bool(flags & _EMPTY), bool(flags & _SINGLE):
        case 2, 1, True, False if not rest:
            return _of_values(np.empty(0, kind), k)
        case 2, 2, False, True if len(rest) == 8:
            values = _values(rest, kind)
            return _Sketch(k, k, values, np.ones(1, dtype=np.int64), np.append(values, values))
        case 5, 1, False, False if len(rest) > _BODY.size:
            return _of_levels(rest, k, kind)
        case _:
            raise _NoSketchError


def _of_levels(data: bytes, k: int, kind: type) -> _Sketch:
    """The sketch of bytes behind the head, of two values or more."""
    count, least, levels, _ = _BODY.unpack_from(data)
    data = data[_BODY.size :]
    if not 1 <= levels <= _LEVELS or len(data) < 4 * levels + 24 or (len(data) - 4 * levels) % 8:
        raise _NoSketchError
    begins = np.frombuffer(data, "<i4", levels).astype(np.int64)
    found = _values(data[4 * levels :], kind)
    ends, values = found[:2], found[2:]
    sizes = np.diff(np.append(begins, begins[0] + len(values)))
    if begins[0] < 0 or (sizes < 0).any() or not _M <= least <= k:
        raise _NoSketchError
    if count < 2 or count != sum(int(size) << level for level, size in enumerate(sizes)):
        raise _NoSketchError
    if not (values >= ends[0]).all() or not (values <= ends[1]).all():
        raise _NoSketchError
    order = np.argsort(values, kind="stable")
    weights = np.repeat(np.int64(1) << np.arange(levels, dtype=np.int64), sizes)
    return _Sketch(k, least, values[order], weights[order], ends)


def _values(data: bytes, kind: type) -> _Values:
    """Numbers of 8 bytes.

    Raises:
        _NoSketchError: one is NaN.
    """
    if kind is np.int64:
        return np.frombuffer(data, "<i8").astype(np.int64)
    values = np.frombuffer(data, "<f8").astype(np.float64) + 0.0
    if np.isnan(values).any():
        raise _NoSketchError
    return values


# --- the functions -----------------------------------------------------------------------------------------


def _kind(call: Call) -> type:
    return np.float64 if call.function.endswith("_DOUBLE") else np.int64


def _k(call: Call) -> int | None:
    if len(call.arguments) < 2:
        return None
    last = call.arguments[1]
    assert isinstance(last, Literal)
    assert isinstance(last.value, int)
    return last.value


def _sketched(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    count, kind, k = rows_of(arguments), _kind(call), _k(call)
    column = spread(arguments[0], count)
    of_sketches = column.type == pa.list_(BINARY)
    found: list[bytes | None] = []
    bad = np.zeros(count, dtype=np.bool_)
    for row in checked(range(count)):
        if not column[row].is_valid:
            found.append(None)
            continue
        values = column[row].values.drop_null()
        try:
            if of_sketches:
                made = _joined([_unpacked(part, kind) for part in values.to_pylist()], k, kind)
            else:
                numbers = values.to_numpy(zero_copy_only=False) if kind is np.float64 else integers(values)
                made = _of_values(numbers, k or K)
            found.append(made.packed())
        except _NoSketchError:
            bad[row] = True
            found.append(None)
    return failing(pa.array(found, BINARY), bad, _NO_SKETCH)


def _of_sketches(function: Callable[..., Any]) -> Kernel:
    """A function of sketches and of numbers, row by row; NULL where one of them is."""

    def kernel(call: Call, arguments: Sequence[Datum]) -> KernelResult:
        count, kind = rows_of(arguments), _kind(call)
        columns = [spread(datum, count).to_pylist() for datum in arguments]
        found: list[Any] = []
        bad, outside = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        for row, parts in enumerate(checked(zip(*columns, strict=True))):
            value = None
            if None not in parts:
                try:
                    # All that is BINARY is a sketch.
                    value = function(
                        *(_unpacked(one, kind) if isinstance(one, bytes) else one for one in parts)
                    )
                except _NoSketchError:
                    bad[row] = True
                except _NoRankError:
                    outside[row] = True
            found.append(value)
        values, failures = failing(pa.array(found, call.type), bad, _NO_SKETCH)
        values, others = failing(values, outside, "a rank that is not between 0 and 1")
        return values, (*failures, *others)

    return kernel


class _NoRankError(ValueError):
    """A rank is not between 0 and 1."""


def _merged(one: _Sketch, other: _Sketch) -> bytes:
    return _joined([one, other], None, one.values.dtype.type).packed()


def _count(sketch: _Sketch) -> int:
    return sketch.count


def _quantile(sketch: _Sketch, rank: float) -> Any:
    """The smallest value for which at least that part of all values is no greater; None of no values."""
    if not 0 <= rank <= 1:
        raise _NoRankError
    values, counts = sketch.ranks()
    if not len(values):
        return None
    place = rank * sketch.count
    if sketch.count <= 10**7:
        # 0.7 of 10 values are 7, not 7.000000000000001; as in DataSketches.
        place = math.floor(place * 1e7 + 0.5) / 1e7
    return values[min(int(np.searchsorted(counts, math.ceil(place))), len(values) - 1)].item()


def _rank(sketch: _Sketch, value: Any) -> float | None:
    """The part of all values that are no greater; None of no values."""
    values, counts = sketch.ranks()
    if not len(values):
        return None
    place = len(values) if value != value else int(np.searchsorted(values, value, side="right"))
    return int(counts[place - 1]) / sketch.count if place else 0.0


KERNELS: Final[dict[str, Kernel]] = {
    f"{name}_{suffix}": kernel
    for suffix in ("BIGINT", "DOUBLE")
    for name, kernel in {
        "KLL_SKETCH": _sketched,
        "KLL_SKETCH_MERGE": _of_sketches(_merged),
        "KLL_SKETCH_GET_N": _of_sketches(_count),
        "KLL_SKETCH_GET_QUANTILE": _of_sketches(_quantile),
        "KLL_SKETCH_GET_RANK": _of_sketches(_rank),
    }.items()
}
"""The functions."""
