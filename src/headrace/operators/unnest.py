"""UNNEST: an element for each value of an ARRAY or entry of a MAP."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Unnest
from headrace.elements import Batch, BoolArray, record_batch, take_rows
from headrace.nested import fields_of, offsets_of
from headrace.operators.contract import Report, evaluate_all


def unnested(node: Unnest, batch: Batch, report: Report) -> Batch:
    """Every element as often as it has values, with the values beside its columns.

    Args:
        node: the plan node.
        batch: elements of its input.
        report: receives the elements for which the ARRAY or MAP cannot be computed; they are left out.
    """
    good, (column,) = evaluate_all([node.values], batch, report)
    offsets = offsets_of(column).astype(np.int64)
    sizes = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, np.diff(offsets))
    counts = np.maximum(sizes, 1) if node.outer else sizes
    rows = np.repeat(np.arange(len(good)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    there: BoolArray = within < sizes[rows]
    places = pa.array(offsets[rows] + within, mask=~there)
    added = [part.take(places) for part in _parts(node, column)]
    if node.ordinality is not None:
        added.append(pa.array(within + 1, mask=~there))
    kept = node.input.schema.select(node.kept)
    payload = take_rows(record_batch(list(map(good.payload.column, node.kept)), kept, len(good)), rows)
    columns = record_batch([*payload.columns, *added], node.schema, len(rows))
    return Batch(columns, good.ts[rows], good.te[rows], good.w[rows])


def _parts(node: Unnest, column: pa.Array) -> list[pa.Array]:
    """All values that the ARRAYs or MAPs hold, a column for each name."""
    if pa.types.is_map(column.type):
        return [column.keys, column.items]
    return [column.values] if len(node.names) == 1 else fields_of(column.values)
