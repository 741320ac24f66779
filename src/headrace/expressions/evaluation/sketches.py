"""Theta sketches over columns: what Apache DataSketches calls a compact, ordered theta sketch, in its bytes.

A sketch has the smallest hashes of some values, 2^bits at most, and the theta below which it has all of them.
So it is the bottom-k sample of the distinct values (Cohen and Kaplan, PODC 2007), and that of a union follows
from the samples of its parts alone (Dasgupta, Lang, Rhodes and Thaler, *A Framework for Estimating Stream
Expression Cardinalities*, ICDT 2016). DataSketches' own have between k and 2k hashes, by the order in which
values came; it reads these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array, integers
from headrace.expressions.evaluation.values import (
    Datum,
    Kernel,
    KernelResult,
    failing,
    fine,
    rows_of,
    spread,
)
from headrace.expressions.tree import Call, Literal
from headrace.kernels.rows.murmur import murmur_of_bytes, murmur_of_words
from headrace.limits import checked
from headrace.schema import BIGINT, BINARY

MOST_BITS: Final = 26
"""The logarithm of the number of hashes that a sketch has at most."""
_ALL: Final = 2**63 - 1
"""The theta of a sketch that has all hashes."""
_HEAD: Final = np.dtype(
    [("words", "u1"), ("version", "u1"), ("family", "u1"), ("sizes", "<u2"), ("flags", "u1"), ("seed", "<u2")]
)
_EMPTY, _COMPACT = 0x04, 0x1A
_SEED: Final = 0x93CC
"""Of the seed 9001, with which all that are to be joined are hashed."""


class _NoSketchError(ValueError):
    """The bytes are not a theta sketch."""


@dataclass(frozen=True, eq=False)
class _Sketch:
    """A sketch.

    Attributes:
        theta: below which it has all hashes.
        hashes: int64[n], rising.
    """

    theta: int
    hashes: Int64Array

    def below(self, theta: int) -> Int64Array:
        """Its hashes below a theta."""
        return self.hashes if theta >= self.theta else self.hashes[: np.searchsorted(self.hashes, theta)]

    def cut(self, bits: int) -> _Sketch:
        """The part of it with 2^bits hashes at most."""
        most = 1 << bits
        return self if len(self.hashes) <= most else _Sketch(int(self.hashes[most]), self.hashes[:most])

    def packed(self) -> bytes:
        """Its bytes."""
        is_part, count = self.theta < _ALL, len(self.hashes)
        words = 3 if is_part else 1 if count < 2 else 2
        flags = _COMPACT if count or is_part else _COMPACT | _EMPTY
        head = np.array([(words, 3, 3, 0, flags, _SEED)], dtype=_HEAD).tobytes()
        if words > 1:
            head += np.array([count, 0], dtype="<u4").tobytes()
        if is_part:
            head += np.array([self.theta], dtype="<i8").tobytes()
        return head + self.hashes.astype("<i8").tobytes()


def _unpacked(data: bytes) -> _Sketch:
    """The sketch of some bytes, of DataSketches' as well: with its seed.

    Raises:
        _NoSketchError: they are none.
    """
    if len(data) < _HEAD.itemsize:
        raise _NoSketchError
    head = np.frombuffer(data, _HEAD, 1)[0]
    words = int(head["words"])
    if (head["version"], head["family"], head["seed"]) == (4, 3, _SEED) and words in (1, 2):
        return _uncompressed(data[8:], words, *divmod(int(head["sizes"]), 256)[::-1])
    if (
        len(data) % 8
        or (head["version"], head["family"], head["seed"]) != (3, 3, _SEED)
        or not 1 <= words <= 3
    ):
        raise _NoSketchError
    numbers = np.frombuffer(data, "<i8").astype(np.int64)
    if len(numbers) < words:
        raise _NoSketchError
    count = int(numbers[1] & 0xFFFFFFFF) if words > 1 else 0 if head["flags"] & _EMPTY else 1
    theta = int(numbers[2]) if words > 2 else _ALL
    hashes = np.sort(numbers[words:])
    if len(hashes) != count:
        raise _NoSketchError
    return _checked(_Sketch(theta, hashes))


def _uncompressed(data: bytes, words: int, size: int, place: int) -> _Sketch:
    """The sketch of bytes as Spark writes them, in which hashes are told by their differences.

    Args:
        data: behind the first word.
        words: 2 where the theta comes next.
        size: of each difference (bits), the highest first.
        place: of the number of hashes (bytes).
    """
    theta = _ALL
    if words == 2:
        if len(data) < 8:
            raise _NoSketchError
        theta, data = int(np.frombuffer(data, "<i8", 1)[0]), data[8:]
    count = int.from_bytes(data[:place], "little")
    if not 1 <= size <= 63 or len(data) != place + (count * size + 7) // 8:
        raise _NoSketchError
    bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=place), count=count * size).reshape(count, size)
    differences = bits.astype(np.int64) @ (np.int64(1) << np.arange(size - 1, -1, -1))
    hashes = np.cumsum(differences)
    # Beyond 63 bits they would begin anew below 0.
    if count and (hashes < 1).any():
        raise _NoSketchError
    return _checked(_Sketch(theta, hashes))


def _checked(sketch: _Sketch) -> _Sketch:
    """A sketch, if its hashes rise, from above 0 to below theta; the theta of all may be one of them.

    Raises:
        _NoSketchError: they do not, or the theta is not above 0.
    """
    hashes, theta = sketch.hashes, sketch.theta
    if theta < 1:
        raise _NoSketchError
    if len(hashes):
        last = int(hashes[-1])
        if hashes[0] < 1 or (last >= theta and not last == theta == _ALL) or (np.diff(hashes) <= 0).any():
            raise _NoSketchError
    return sketch


def _union(sketches: Sequence[_Sketch], bits: int) -> _Sketch:
    theta = min((one.theta for one in sketches), default=_ALL)
    parts = [one.below(theta) for one in sketches]
    return _Sketch(theta, np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)).cut(bits)


def _hashes(_: Call, arguments: Sequence[Datum]) -> KernelResult:
    column = arguments[0]
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        filled = column.cast(BINARY).fill_null(b"")
        offsets, data = filled.buffers()[1:3]
        places = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1]
        found = murmur_of_bytes(places, np.frombuffer(data or b"", np.uint8))
    elif pa.types.is_floating(column.type):
        # -0 and 0 are one value, and so is every NaN.
        values = pc.add(column, 0.0).fill_null(0.0).to_numpy(zero_copy_only=False)
        found = murmur_of_words(np.where(np.isnan(values), np.nan, values).view(np.int64))
    else:
        found = murmur_of_words(np.ascontiguousarray(integers(column.fill_null(0))))
    return fine(pa.array(found, BIGINT, mask=column.is_null().to_numpy(zero_copy_only=False)))


def _sketched(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    count = rows_of(arguments)
    column, bits = spread(arguments[0], count), _bits(call)
    of_sketches = call.arguments[0].type == pa.list_(BINARY)
    found: list[bytes | None] = []
    bad, worse = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    for row in checked(range(count)):
        if not column[row].is_valid:
            found.append(None)
            continue
        values = column[row].values.drop_null()
        if of_sketches:
            made = _of_sketches(values.to_pylist(), bits)
            bad[row] = made is None
        else:
            hashes = np.unique(integers(values))
            worse[row] = len(hashes) > 0 and hashes[0] < 1
            made = None if worse[row] else _Sketch(_ALL, hashes).cut(bits).packed()
        found.append(made)
    values, failures = failing(pa.array(found, BINARY), bad, _SKETCH)
    values, others = failing(values, worse, "a hash that is not above 0")
    return values, (*failures, *others)


def _of_sketches(parts: Sequence[bytes], bits: int) -> bytes | None:
    try:
        return _union([_unpacked(part) for part in parts], bits).packed()
    except _NoSketchError:
        return None


def _bits(call: Call) -> int:
    last = call.arguments[-1]
    assert isinstance(last, Literal)
    assert isinstance(last.value, int)
    return last.value


_SKETCH: Final = "bytes that are no theta sketch"


def _of_sets(function: Callable[[Call, Sequence[_Sketch]], bytes | int]) -> Kernel:
    """A function of one sketch or two, row by row."""

    def kernel(call: Call, arguments: Sequence[Datum]) -> KernelResult:
        count = rows_of(arguments)
        columns = [
            spread(datum, count).to_pylist()
            for datum, part in zip(arguments, call.arguments, strict=True)
            if part.type == BINARY
        ]
        found: list[bytes | int | None] = []
        bad = np.zeros(count, dtype=np.bool_)
        for row, parts in enumerate(checked(zip(*columns, strict=True))):
            try:
                found.append(None if None in parts else function(call, [_unpacked(part) for part in parts]))
            except _NoSketchError:
                bad[row] = True
                found.append(None)
        return failing(pa.array(found, call.type), bad, _SKETCH)

    return kernel


def _intersection(_: Call, sketches: Sequence[_Sketch]) -> bytes:
    left, right = sketches
    theta = min(left.theta, right.theta)
    return _Sketch(theta, np.intersect1d(left.below(theta), right.below(theta))).cut(MOST_BITS).packed()


def _difference(_: Call, sketches: Sequence[_Sketch]) -> bytes:
    left, right = sketches
    theta = min(left.theta, right.theta)
    return _Sketch(theta, np.setdiff1d(left.below(theta), right.below(theta))).cut(MOST_BITS).packed()


def _estimate(_: Call, sketches: Sequence[_Sketch]) -> int:
    (sketch,) = sketches
    count = len(sketch.hashes)
    # A half is rounded up, as Spark does.
    return count if sketch.theta == _ALL else (count * 2**64 + sketch.theta) // (2 * sketch.theta)


KERNELS: Final[dict[str, Kernel]] = {
    "THETA_HASH": _hashes,
    "THETA_SKETCH": _sketched,
    "THETA_UNION": _of_sets(lambda call, sketches: _union(sketches, _bits(call)).packed()),
    "THETA_INTERSECTION": _of_sets(_intersection),
    "THETA_DIFFERENCE": _of_sets(_difference),
    "THETA_SKETCH_ESTIMATE": _of_sets(_estimate),
}
"""The functions."""
