"""The rows of a stream that are kept of a share, the draws by which, and the largest weight in a window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.nodes import Draw, LargestWeight, Shed
from headrace.elements import Batch, BoolArray, Float64Array, Int64Array, record_batch, take_rows
from headrace.kernels.rows.sampling import SALT, folded
from headrace.operators.state.keys import hash_rows, normalise
from headrace.steps import WHOLE, values_at
from headrace.time import INFINITY, MIN_INSTANT


def shed(node: Shed, batch: Batch) -> Batch:
    """The rows that are kept, each with its draw and its weight.

    A retraction has the payload and the instant of what it retracts, and so the same draw.

    Args:
        node: the plan node.
        batch: chronons.
    """
    count, hashes = len(batch), _drawn(batch, node.number)
    shares = values_at(WHOLE, node.steps, batch.ts)
    added = [pa.array(hashes), pa.array(WHOLE / shares)]
    whole = batch.with_payload(record_batch([*batch.payload.columns, *added], node.schema, count))
    return whole.filter(_kept(hashes, shares)) if node.steps else whole


def with_draws(node: Draw, batch: Batch) -> Batch:
    """Rows with what says for how long a join remembers them.

    Args:
        node: the plan node.
        batch: chronons.
    """
    added = [pa.array(_drawn(batch, node.number)), pa.array(batch.ts)]
    return batch.with_payload(record_batch([*batch.payload.columns, *added], node.schema, len(batch)))


def _drawn(batch: Batch, number: int) -> Int64Array:
    """int64[n]: the draw of each row, by its payload, its instant and a number."""
    count = len(batch)
    hashes = hash_rows([normalise(column) for column in batch.payload.columns], count)
    salt, numbers = (np.full(count, word, dtype=np.int64) for word in (SALT, number))
    for words in (salt, batch.ts, numbers):
        hashes = folded(hashes, words)
    return hashes


def _kept(draws: Int64Array, shares: Int64Array) -> BoolArray:
    """Whether each draw is in its share; bool[n]."""
    found, places = np.unique(shares, return_inverse=True)
    kept: BoolArray = draws.view(np.uint64) <= last_draws(found)[places]
    return kept


def last_draws(shares: Int64Array) -> npt.NDArray[np.uint64]:
    """uint64[n]: the largest draw that is in each share (millionths)."""
    return np.array([int(share) * 2**64 // WHOLE - 1 for share in shares.tolist()], dtype=np.uint64)


def with_largest_weight(node: LargestWeight, batch: Batch) -> Batch:
    """Elements with the largest weight of their windows, cut where it changes.

    Args:
        node: the plan node.
        batch: elements that end no later than the heartbeat.
    """
    begins, weights = _weights(node)
    first = np.searchsorted(begins, batch.ts, side="right")
    pieces = np.maximum(np.searchsorted(begins, batch.te, side="left") - first, 0) + 1
    rows = np.repeat(np.arange(len(batch)), pieces)
    places = first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    cuts = np.concatenate([[-INFINITY], begins, [INFINITY]])
    ts, te = np.maximum(batch.ts[rows], cuts[places]), np.minimum(batch.te[rows], cuts[places + 1])
    payload = batch.payload if len(rows) == len(batch) else take_rows(batch.payload, rows)
    columns = [*payload.columns, pa.array(weights[places])]
    return Batch(record_batch(columns, node.schema, len(rows)), ts, te, batch.w[rows])


def _weights(node: LargestWeight) -> tuple[Int64Array, Float64Array]:
    """int64[k]: where the largest weight may change (instants); float64[k + 1]: before, between and after."""
    slide, offset, size = node.slide.length, node.offset.length, node.size.length
    steps = np.array([max(step.begin, MIN_INSTANT) for step in node.steps], dtype=np.int64)
    # A step comes into the window when that ends at it or later, and leaves when it begins there or later.
    leaving = steps[:0] if size == INFINITY else steps + size - 1
    ends = np.concatenate([steps, leaving])
    begins: Int64Array = np.unique(-(-(ends + 1 - offset) // slide) * slide + offset - 1)
    weights = [1.0]
    for last in begins.tolist():
        first = MIN_INSTANT if size == INFINITY else max(last - size + 1, MIN_INSTANT)
        inside = steps[(steps > first) & (steps <= last)]
        shares = values_at(WHOLE, node.steps, np.append(inside, first))
        weights.append(WHOLE / int(shares.min()))
    return begins, np.array(weights)
