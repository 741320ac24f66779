"""What an epoch changed in a query's answer."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.elements import Batch


@dataclass(frozen=True, eq=False)
class Change:
    """What one epoch changed in a query's answer.

    Attributes:
        epoch: its number.
        heartbeat: up to where the answer is final after it (instant).
        horizon: up to where it is said; beyond the heartbeat it may change (instant).
        elements: what was released, in order of `ts`; may be empty.
        rows: the same as in `changes`: `epoch`, the payload, `valid_from`, `valid_to`, `change`.
        departures: how many rows of the epoch the query has left out that are in time for their streams: it
            remembers less than these allow.
        watermark: the output watermark (instant): the largest `valid_to` of all that was given so far, which
            for output `final` is up to where all is given (CEDR, *Operator Algorithm Design for Speculative
            Stream Processing*, definition 10 and theorem 10). BEGINNING before the first row.
    """

    epoch: int
    heartbeat: int
    horizon: int
    elements: Batch
    rows: pa.Table
    departures: int
    watermark: int


def watermark_after(before: int, given: Batch) -> int:
    """The output watermark after more elements (instant).

    Args:
        before: what it was.
        given: the elements.
    """
    return max(before, int(given.te.max())) if len(given) else before
