"""Murmur3 of 128 bits (Appleby): its first 63 bits, as Apache DataSketches hashes values."""

from __future__ import annotations

import numpy as np

from headrace.elements import Int64Array
from headrace.kernels.jit import BYTES, INT1, OFFSETS, inlined, kernel

_FIRST = np.uint64(0x87C37B91114253D5)
_SECOND = np.uint64(0x4CF5AD432745937F)
_SEED = np.uint64(9001)


@inlined
def _turned(word, bits):  # type: ignore[no-untyped-def]
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@inlined
def _ended(word):  # type: ignore[no-untyped-def]
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@inlined
def _finished(first, second, size):  # type: ignore[no-untyped-def]
    first, second = first ^ size, second ^ size
    first += second
    second += first
    return np.int64((_ended(first) + _ended(second)) >> np.uint64(1))


@kernel(INT1)
def murmur_of_words(words: Int64Array) -> Int64Array:
    """The hash of each word of 8 bytes, from 0 to 2^63 - 1; int64[n]."""
    hashes = np.empty(len(words), dtype=np.int64)
    for row in range(len(words)):
        word = _turned(np.uint64(words[row]) * _FIRST, 31) * _SECOND
        hashes[row] = _finished(_SEED ^ word, _SEED, np.uint64(8))
    return hashes


@kernel(OFFSETS, BYTES)
def murmur_of_bytes(offsets: np.ndarray, data: np.ndarray) -> Int64Array:
    """The hash of each string of a column, from 0 to 2^63 - 1; int64[n].

    Args:
        offsets: int32[n + 1], of the strings (Arrow offsets).
        data: their bytes.
    """
    hashes = np.empty(len(offsets) - 1, dtype=np.int64)
    for row in range(len(hashes)):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        first, second = _SEED, _SEED
        at = start
        while at + 16 <= end:
            one, other = _word(data, at, at + 8), _word(data, at + 8, at + 16)
            first ^= _turned(one * _FIRST, 31) * _SECOND
            first = (_turned(first, 27) + second) * np.uint64(5) + np.uint64(0x52DCE729)
            second ^= _turned(other * _SECOND, 33) * _FIRST
            second = (_turned(second, 31) + first) * np.uint64(5) + np.uint64(0x38495AB5)
            at += 16
        first ^= _turned(_word(data, at, min(at + 8, end)) * _FIRST, 31) * _SECOND
        second ^= _turned(_word(data, at + 8, end) * _SECOND, 33) * _FIRST
        hashes[row] = _finished(first, second, np.uint64(end - start))
    return hashes


@inlined
def _word(data, begin, end):  # type: ignore[no-untyped-def]
    """Some bytes as a word, the lowest one first; 0 of none."""
    word = np.uint64(0)
    for place in range(end - 1, begin - 1, -1):
        word = (word << np.uint64(8)) | np.uint64(data[place])
    return word
