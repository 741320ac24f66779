"""The rows of a stream that are kept of a share, the draws by which, and the largest weight in a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.nodes import Draw, LargestWeight, Shed
from headrace.elements import Batch, BoolArray, Float64Array, Int64Array, record_batch, take_rows
from headrace.kernels.rows.sampling import SALT, folded
from headrace.operators.state.keys import hash_rows, normalise
from headrace.steps import WHOLE, means_at, value_at, values_at
from headrace.time import INFINITY, MIN_INSTANT


def shed(node: Shed, batch: Batch) -> Batch:
    """The rows that are kept, each with its draw and its weight.

    A retraction has the payload and the instant of what it retracts, and so the same draw.

    Args:
        node: the plan node.
        batch: chronons.
    """
    count, columns = len(batch), batch.payload.columns
    hashes = _drawn(batch, node.drawn_places, () if node.keys else (node.number,))
    shares = values_at(WHOLE, node.steps, batch.ts)
    weights = WHOLE / shares
    kept = _kept(hashes, shares)
    for rows, sizes in _sized(node, batch):
        weights[rows], kept[rows] = _by_size(sizes, shares[rows], hashes[rows])
    added = [pa.array(hashes), pa.array(weights)]
    whole = batch.with_payload(record_batch([*columns, *added], node.schema, count))
    return whole.filter(kept) if node.steps else whole


def with_draws(node: Draw, batch: Batch) -> Batch:
    """Rows with what says for how long a join remembers them.

    Args:
        node: the plan node.
        batch: chronons.
    """
    draws = _drawn(batch, range(len(batch.payload.columns)), (node.number,))
    added = [pa.array(draws), pa.array(batch.ts)]
    return batch.with_payload(record_batch([*batch.payload.columns, *added], node.schema, len(batch)))


def _drawn(batch: Batch, places: Iterable[int], numbers: Sequence[int]) -> Int64Array:
    """int64[n]: the draw of each row.

    Args:
        batch: the rows.
        places: the columns by which it is.
        numbers: further words of the hash. With any of them the instant is a word, too.
    """
    count = len(batch)
    found = hash_rows([normalise(batch.payload.columns[place]) for place in places], count)
    words = [np.full(count, SALT, dtype=np.int64)]
    if numbers:
        words += [batch.ts, *(np.full(count, number, dtype=np.int64) for number in numbers)]
    for word in words:
        found = folded(found, word)
    return found


def _kept(draws: Int64Array, shares: Int64Array) -> BoolArray:
    """Whether each draw is in its share; bool[n]."""
    found, places = np.unique(shares, return_inverse=True)
    kept: BoolArray = draws.view(np.uint64) <= last_draws(found)[places]
    return kept


def last_draws(shares: Int64Array) -> npt.NDArray[np.uint64]:
    """uint64[n]: the largest draw that is in each share (millionths)."""
    return np.array([int(share) * 2**64 // WHOLE - 1 for share in shares.tolist()], dtype=np.uint64)


def _sized(node: Shed, batch: Batch) -> Iterator[tuple[Int64Array, Float64Array]]:
    """The rows that have sizes: their places, and how many times the usual size each has."""
    if not (node.scales and node.sizes and node.steps):
        return
    begins = np.array([scale.begin for scale in node.scales], dtype=np.int64)
    scales = np.searchsorted(begins, batch.ts, side="right") - 1
    for number in np.unique(scales[scales >= 0]).tolist():
        rows = np.flatnonzero(scales == number)
        found, means = np.zeros(len(rows)), dict(node.scales[number].means)
        known = [pair for pair in zip(node.sizes, node.size_places, strict=True) if pair[0] in means]
        for name, place in known:
            # A row without a value adds nothing to a sum; one that is no number would make it none.
            values = batch.payload.columns[place].fill_null(0.0).to_numpy(zero_copy_only=False)[rows]
            found += np.where(np.isnan(values), np.inf, np.abs(values)) / means[name]
        if known:
            yield rows, found / len(known)


def _by_size(sizes: Float64Array, shares: Int64Array, draws: Int64Array) -> tuple[Float64Array, BoolArray]:
    """The weights of rows of some sizes, and whether they are kept; float64[n] and bool[n]."""
    weights = 1.0 + 2 * (WHOLE - shares) / shares / (1.0 + sizes)
    certain = (sizes * shares >= 2 * WHOLE) | (weights == 1.0)
    weights[certain] = 1.0
    lasts = (2.0**64 / np.where(certain, 2.0, weights)).astype(np.uint64)
    kept: BoolArray = certain | (draws.view(np.uint64) < lasts)
    return weights, kept


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
    known = {*(step.begin for step in node.steps), *(scale.begin for scale in node.scales if node.sizes)}
    steps = np.array(sorted({max(begin, MIN_INSTANT) for begin in known}), dtype=np.int64)
    # A step comes into the window when that ends at it or later, and leaves when it begins there or later.
    leaving = steps[:0] if size == INFINITY else steps + size - 1
    ends = np.concatenate([steps, leaving])
    begins: Int64Array = np.unique(-(-(ends + 1 - offset) // slide) * slide + offset - 1)
    weights = [1.0]
    for last in begins.tolist():
        first = MIN_INSTANT if size == INFINITY else max(last - size + 1, MIN_INSTANT)
        inside = steps[(steps > first) & (steps <= last)].tolist()
        weights.append(max(_largest(node, instant) for instant in (*inside, first)))
    return begins, np.array(weights)


def _largest(node: LargestWeight, instant: int) -> float:
    """The largest weight that a row of an instant may have."""
    share = value_at(WHOLE, node.steps, instant)
    if means_at(node.scales, instant).keys().isdisjoint(node.sizes):
        return WHOLE / share
    return 1.0 + 2 * (WHOLE - share) / share
