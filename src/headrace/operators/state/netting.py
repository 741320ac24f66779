"""Elements of which several say the same, added up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, concat
from headrace.operators.state.keys import encode_keys, hash_rows, normalise
from headrace.schema import Schema


def without_pairs(schema: Schema, batch: Batch) -> Batch:
    """The same content without elements that are added and taken back, in order of `ts`.

    At one instant what is taken back comes first, so that who applies it by key loses no row.

    Args:
        schema: of the elements.
        batch: they.
    """
    taken_back = batch.w < 0
    if taken_back.all() or not taken_back.any():
        return batch.take(np.argsort(batch.ts, kind="stable"))
    columns = [normalise(column) for column in batch.payload.columns]
    columns += [pa.array(batch.ts), pa.array(batch.te)]
    codes = encode_keys(columns, hash_rows(columns, len(batch))).codes
    both = (np.bincount(codes, taken_back) > 0) & (np.bincount(codes, ~taken_back) > 0)
    rest = batch
    if both.any():
        rest = concat(schema, [batch.filter(~both[codes]), netted(batch.filter(both[codes]))])
    return rest.take(np.lexsort((rest.w > 0, rest.ts)))


def netted(batch: Batch) -> Batch:
    """The same content with equal elements added up, in order of `ts`, and what is taken back first."""
    columns = [normalise(column) for column in batch.payload.columns]
    columns += [pa.array(batch.ts), pa.array(batch.te)]
    codes = encode_keys(columns, hash_rows(columns, len(batch)))
    sums = np.zeros(len(codes), np.int64)
    np.add.at(sums, codes.codes, batch.w)
    kept = np.flatnonzero(sums)
    kept = kept[np.lexsort((sums[kept], batch.ts[codes.first[kept]]))]
    rest = batch.take(codes.first[kept])
    return Batch(rest.payload, rest.ts, rest.te, sums[kept])
