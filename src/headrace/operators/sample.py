"""Samples: how many of the equal rows of an instant are taken, the same in every process and for ever."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from headrace.algebra.nodes import Sample
from headrace.elements import Batch, Int64Array
from headrace.kernels.rows.sampling import SALT, folded, sampled_counts
from headrace.operators.presence import PresenceOperator
from headrace.operators.state.timeline import Points


class SampleOperator(PresenceOperator):
    """A sample of the rows (timeline family; CQL, section 2.1).

    Definition:
        At t, of a payload that is n times in `M(t)` those numbers below n whose hash is in the sampled part
        of all: of the payload, the number, and t where the node is timed.

    Retractions:
        Lower the payload's count, and take back what its last number has added, if that was sampled.

    State:
        Per payload its count at the heartbeat; per element, or instant, what leaves at its end.

    Example:
        50 percent, timed, heartbeat 20; the hash takes the first of two rows at 1, and b of those at 3:

        ====== ======= ==        ====== ======= ==
        x      [ts,te)  w        x      [ts,te)  w
        ====== ======= ==        ====== ======= ==
        a      [1,2)    +        a      [1,2)    +
        a      [1,2)    +        b      [3,4)    +
        a      [3,4)    +
        b      [3,4)    +
        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: Sample) -> None:
        super().__init__(node)
        self._percent = node.percent
        self._timed = node.timed
        self._coalesce = not node.is_chronon

    def _emit(self, points: Points) -> Batch:
        bases = len(points.covered)
        codes = np.concatenate([points.codes, np.arange(bases)])
        hashes = folded(points.hashes, np.full(bases, SALT, dtype=np.int64))
        if self._timed:
            # Every point is of an instant of its own; no chronon is left at a horizon.
            instants = np.concatenate([points.times, np.zeros(bases, dtype=np.int64)])
            hashes, codes = folded(hashes[codes], instants), np.arange(len(codes))
        return self._emit_counts(points, taken(hashes, codes, points.counts, self._percent), self._coalesce)


def taken(hashes: Int64Array, codes: Int64Array, counts: Int64Array, percent: Decimal) -> Int64Array:
    """How many of so many equal rows are in a sample; int64[n].

    Args:
        hashes: int64[k], salted, of the different rows.
        codes, counts: int64[n], of which of them there are how many.
        percent: how many of a hundred are sampled, above 0 and up to 100.
    """
    part = int(percent * 2**64 / 100)
    if not part:
        return np.zeros(len(counts), dtype=np.int64)
    last = np.uint64(part - 1).astype(np.int64)
    return sampled_counts(hashes, codes, np.ascontiguousarray(counts), int(last))
