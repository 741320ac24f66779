"""HASH, Murmur3 of 32 bits as Spark SQL has it, one value after the other; and theta sketches."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from headrace.reference.casts import EXACT, RowError

_BITS = 0xFFFFFFFF


def hash_of(types: Sequence[pa.DataType], values: Sequence[Any]) -> int:
    """The hash of values of some types, begun with 42; a NULL leaves it as it is."""
    running = 42
    for dtype, value in zip(types, values, strict=True):
        if value is not None:
            data, words = _words(dtype, value)
            for word in words:
                running = _rotate(running ^ _rotate(word * 0xCC9E2D51, 15) * 0x1B873593 & _BITS, 13)
                running = running * 5 + 0xE6546B64 & _BITS
            running ^= len(data)
            for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
                running = (running ^ running >> shift) * factor & _BITS
    return running - 2**32 if running >= 2**31 else running


def _rotate(word: int, bits: int) -> int:
    word &= _BITS
    return (word << bits | word >> 32 - bits) & _BITS


def _words(dtype: pa.DataType, value: Any) -> tuple[bytes, list[int]]:
    """The bytes of a value, and the words of four of them, and of each one that is left over."""
    data = _data(dtype, value)
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    return data, words + [byte - 256 & _BITS if byte > 127 else byte for byte in data[whole:]]


def _data(dtype: pa.DataType, value: Any) -> bytes:
    match value:
        case bool():
            return int(value).to_bytes(4, "little")
        case str():
            return value.encode()
        case bytes():
            return value
        case float():
            return struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
        case datetime():
            micros = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
            return micros.to_bytes(8, "little", signed=True)
        case date():
            return (value - date(1970, 1, 1)).days.to_bytes(4, "little", signed=True)
        case Decimal():
            units = int(value.scaleb(dtype.scale, EXACT))
            if dtype.precision <= 18:
                return units.to_bytes(8, "little", signed=True)
            size = (units if units >= 0 else -units - 1).bit_length() // 8 + 1
            return units.to_bytes(size, "big", signed=True)
        case _:
            return int(value).to_bytes(8, "little", signed=True)


# --- theta sketches ----------------------------------------------------------------------------------------

_WORD = 2**64 - 1
_SEED = 9001
"""That of all sketches of Apache DataSketches."""
_ALL = 2**63 - 1
"""The theta of a sketch that has all hashes."""
_SKETCH = "bytes that are no theta sketch"


def theta_hash(value: Any) -> int:
    """THETA_HASH: the first 63 bits of Murmur3 of 128 bits, as DataSketches hashes a value."""
    data = _data(pa.int64(), value)
    first = second = _SEED
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        one, other = struct.unpack_from("<QQ", data, at)
        first ^= _scrambled(one, 0x87C37B91114253D5, 31, 0x4CF5AD432745937F)
        first = (_turned(first, 27) + second) * 5 + 0x52DCE729 & _WORD
        second ^= _scrambled(other, 0x4CF5AD432745937F, 33, 0x87C37B91114253D5)
        second = (_turned(second, 31) + first) * 5 + 0x38495AB5 & _WORD
    one, other = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
    first ^= _scrambled(one, 0x87C37B91114253D5, 31, 0x4CF5AD432745937F) ^ len(data)
    second ^= _scrambled(other, 0x4CF5AD432745937F, 33, 0x87C37B91114253D5) ^ len(data)
    first = first + second & _WORD
    second = second + first & _WORD
    return (_ended(first) + _ended(second) & _WORD) >> 1


def _scrambled(word: int, factor: int, bits: int, other: int) -> int:
    return _turned(word * factor & _WORD, bits) * other & _WORD


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _WORD


def _ended(word: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
        word = (word ^ word >> 33) * factor & _WORD
    return word


def _sketch(theta: int, hashes: Iterable[int], bits: int) -> bytes:
    """The bytes of the sketch that is left of hashes below a theta, of 2^bits at most."""
    kept = sorted(set(hashes))
    if len(kept) > 2**bits:
        theta, kept = kept[2**bits], kept[: 2**bits]
    part = theta < _ALL
    words = 3 if part else 1 if len(kept) < 2 else 2
    head = struct.pack("<BBBBBBH", words, 3, 3, 0, 0, 0x1A if kept or part else 0x1E, 0x93CC)
    if words > 1:
        head += struct.pack("<II", len(kept), 0)
    if part:
        head += struct.pack("<q", theta)
    return head + struct.pack(f"<{len(kept)}q", *kept)


def _parts(data: bytes) -> tuple[int, list[int]]:
    """The theta and the hashes of a sketch."""
    try:
        words, version, family, size, place, flags, seed = struct.unpack_from("<BBBBBBH", data)
        if (version, family, seed) == (4, 3, 0x93CC) and words in (1, 2):
            (theta,) = struct.unpack_from("<q", data, 8) if words == 2 else (_ALL,)
            return _checked(theta, _differences(data[8 * words :], size, place))
        if (version, family, seed) != (3, 3, 0x93CC) or words not in (1, 2, 3):
            raise RowError(_SKETCH)
        count = struct.unpack_from("<I", data, 8)[0] if words > 1 else 0 if flags & 4 else 1
        (theta,) = struct.unpack_from("<q", data, 16) if words > 2 else (_ALL,)
        hashes = list(struct.unpack(f"<{count}q", data[8 * words :]))
    except struct.error:
        raise RowError(_SKETCH) from None
    return _checked(theta, hashes)


def _differences(data: bytes, size: int, place: int) -> list[int]:
    """Rising hashes, of a compressed sketch: their number, and the bits of what each adds to the one before.

    Args:
        data: behind the theta.
        size: of each difference (bits).
        place: of the number (bytes).
    """
    count = int.from_bytes(data[:place], "little")
    if not 1 <= size <= 63 or len(data) != place + (count * size + 7) // 8:
        raise RowError(_SKETCH)
    text = "".join(f"{byte:08b}" for byte in data[place:])
    found: list[int] = []
    for at in range(0, count * size, size):
        found.append(int(text[at : at + size], 2) + (found[-1] if found else 0))
    return found


def _checked(theta: int, hashes: list[int]) -> tuple[int, list[int]]:
    if theta < 1 or len(set(hashes)) < len(hashes):
        raise RowError(_SKETCH)
    if not all(one > 0 and _is_below(one, theta) for one in hashes):
        raise RowError(_SKETCH)
    return theta, hashes


def _is_below(word: int, theta: int) -> bool:
    """Whether a hash counts as below a theta: below that of all every hash does."""
    return word < theta or word == theta == _ALL


def theta_sketch(values: Sequence[Any], bits: int) -> bytes:
    """THETA_SKETCH: the sketch of an ARRAY of hashes, or of all that sketches were made of; without NULLs."""
    known = [value for value in values if value is not None]
    if any(isinstance(value, bytes) for value in known):
        parts = [_parts(value) for value in known]
        theta = min(one for one, _ in parts)
        return _sketch(theta, (one for _, hashes in parts for one in hashes if _is_below(one, theta)), bits)
    if any(value < 1 for value in known):
        raise RowError("a hash that is not above 0")
    return _sketch(_ALL, known, bits)


def theta_intersection(left: bytes, right: bytes) -> bytes:
    """THETA_INTERSECTION: the hashes of both below both thetas."""
    (one, hashes), (other, others) = _parts(left), _parts(right)
    theta = min(one, other)
    return _sketch(theta, (word for word in hashes if word in set(others) and _is_below(word, theta)), 26)


def theta_difference(left: bytes, right: bytes) -> bytes:
    """THETA_DIFFERENCE: the hashes of the first that the second has not, below both thetas."""
    (one, hashes), (other, others) = _parts(left), _parts(right)
    theta = min(one, other)
    return _sketch(theta, (word for word in hashes if word not in set(others) and _is_below(word, theta)), 26)


def theta_estimate(data: bytes) -> int:
    """THETA_SKETCH_ESTIMATE: its hashes over the share of all that is below theta, a half rounded up."""
    theta, hashes = _parts(data)
    return len(hashes) if theta == _ALL else math.floor(Fraction(len(hashes) * 2**63, theta) + Fraction(1, 2))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "THETA_HASH": theta_hash,
    "THETA_SKETCH": theta_sketch,
    "THETA_UNION": lambda left, right, bits=12: theta_sketch([left, right], bits),
    "THETA_INTERSECTION": theta_intersection,
    "THETA_DIFFERENCE": theta_difference,
    "THETA_SKETCH_ESTIMATE": theta_estimate,
}
"""The functions of theta sketches (Dasgupta, Lang, Rhodes and Thaler, ICDT 2016), in DataSketches' bytes."""
