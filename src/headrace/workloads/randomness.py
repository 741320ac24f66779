"""Random numbers by counter: the n-th number of a series is a hash of (seed, series, n).

Any slice of a series can be computed anywhere, in any order, on any machine, with the same result: that is
what lets tasks generate their own part of a workload. The hash is SplitMix64 (Steele, Lea and Flood, *Fast
Splittable Pseudorandom Number Generators*, OOPSLA 2014); all arithmetic is on integers and therefore exact.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array

BitsArray = npt.NDArray[np.uint64]

_GAMMA: Final = 0x9E3779B97F4A7C15
_FIRST_FACTOR: Final = 0xBF58476D1CE4E5B9
_SECOND_FACTOR: Final = 0x94D049BB133111EB
_MASK: Final = 2**64 - 1


def draw(seed: int, series: str, numbers: Int64Array) -> BitsArray:
    """64 random bits for each number of the series of that name.

    Args:
        seed: any integer, taken modulo 2**64; another seed gives other series.
        series: the name of the series; series of different names are independent.
        numbers: int64[n], places in the series, not negative.
    """
    state = _key(seed, zlib.crc32(series.encode()))
    return splitmix64(state, numbers)


def splitmix64(state: int, numbers: Int64Array) -> BitsArray:
    """The outputs of SplitMix64 at those places, counted from 0, of the sequence that starts at `state`."""
    bits = numbers.astype(np.uint64)
    bits += np.uint64(1)
    bits *= np.uint64(_GAMMA)
    bits += np.uint64(state & _MASK)
    shifted = bits >> np.uint64(30)
    bits ^= shifted
    bits *= np.uint64(_FIRST_FACTOR)
    np.right_shift(bits, np.uint64(27), out=shifted)
    bits ^= shifted
    bits *= np.uint64(_SECOND_FACTOR)
    np.right_shift(bits, np.uint64(31), out=shifted)
    bits ^= shifted
    return bits


def below(bits: BitsArray, bound: int | Int64Array) -> Int64Array:
    """Uniform integers in [0, bound) from the upper 32 bits; `1 <= bound < 2**31`."""
    limit = np.uint64(bound) if isinstance(bound, int) else bound.astype(np.uint64)
    scaled = bits >> np.uint64(32)
    scaled *= limit
    scaled >>= np.uint64(32)
    return scaled.view(np.int64)


def choice(bits: BitsArray, count: int) -> Int64Array:
    """Uniform integers in [0, count) from the lower 16 bits, which `below` leaves unused; `count < 2**16`."""
    scaled = bits & np.uint64(0xFFFF)
    scaled *= np.uint64(count)
    scaled >>= np.uint64(16)
    return scaled.view(np.int64)


def modulo(bits: BitsArray, bound: int) -> Int64Array:
    """Integers in [0, bound) for a bound up to 2**62, uniform to within `bound / 2**64`."""
    return (bits % np.uint64(bound)).view(np.int64)


def _key(seed: int, series: int) -> int:
    """Where a series starts; mixed twice, so that neighbouring seeds and series lie far apart."""
    first = splitmix64(seed, np.zeros(1, dtype=np.int64))
    return int(splitmix64(int(first[0]) ^ series, np.zeros(1, dtype=np.int64))[0])
