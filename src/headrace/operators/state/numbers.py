"""Numbers for the keys of consecutive batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array
from headrace.kernels.rows.numbering import enter, look_up
from headrace.operators.state.keys import encode_keys, equal_rows, hash_rows, key_values, normalise


class Numbers:
    """Numbers of keys, which a later batch finds again: 0, 1, 2, ...

    Keys are equal as in SQL's grouping. A look takes one pass over the hashes of a batch and one to verify
    that the keys are equal; keys that share a hash with another one are found by their values in Python.

    Args:
        keys: those that are known, normalised and each once; its place is its number.
    """

    def __init__(self, keys: pa.Array) -> None:
        self.keys = keys.slice(0, 0)
        self._hashes = np.empty(0, dtype=np.int64)
        self._table = _empty_table(1)
        self._collided: dict[object, int] = {}
        self._add(keys, hash_rows([keys], len(keys)))

    def __len__(self) -> int:
        return len(self.keys)

    def of(self, column: pa.Array) -> Int64Array:
        """The number of each row's key; those that have none get the next ones. int64[n]."""
        column = normalise(column)
        hashes = hash_rows([column], len(column))
        numbers = np.empty(len(column), dtype=np.int64)
        if look_up(hashes, self._table, numbers):
            rows = np.flatnonzero(numbers < 0)
            new = column.take(pa.array(rows))
            codes = encode_keys([new], hashes[rows])
            numbers[rows] = len(self) + codes.codes
            self._add(new.take(pa.array(codes.first)), hashes[rows[codes.first]])
        wrong = np.flatnonzero(~equal_rows([column], None, [self.keys], numbers))
        if len(wrong):
            numbers[wrong] = list(self._of_collided(column.take(pa.array(wrong)), hashes[wrong]))
        return numbers

    def _add(self, keys: pa.Array, hashes: Int64Array) -> None:
        """Give keys that have no numbers the next ones."""
        known = len(self)
        self.keys = pa.concat_arrays([self.keys, keys])
        self._hashes = np.append(self._hashes, hashes)
        if 2 * len(self) > len(self._table):
            self._table = _empty_table(len(self))
            known = 0
        places = enter(self._hashes, known, self._table)
        if len(places):
            values = key_values(self.keys.take(pa.array(places)))
            self._collided |= dict(zip(values, places.tolist(), strict=True))

    def _of_collided(self, keys: pa.Array, hashes: Int64Array) -> Iterator[int]:
        """The numbers of keys that have the hashes of others."""
        for place, value in enumerate(key_values(keys)):
            if value not in self._collided:
                self._add(keys.slice(place, 1), hashes[place : place + 1])
            yield self._collided[value]


def _empty_table(keys: int) -> Int64Array:
    """A table for `headrace.kernels.rows.numbering` with room for so many keys."""
    return np.full((1 << (2 * keys).bit_length(), 2), -1, dtype=np.int64)
