"""Elements of which several say the same, added up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.elements import Batch
from headrace.operators.state.keys import encode_keys, hash_rows, normalise


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
