"""When results are released: never above the heartbeat, or the horizon of a query that does not wait.

Operators that need not wait pass elements on as they come (decision 0001), so it is here that an element is
held back: it is released by the first epoch whose heartbeat, or horizon, has passed its start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.elements import Batch, concat
from headrace.history import canonical, clip, difference
from headrace.operators.state.netting import netted, without_pairs
from headrace.schema import Schema
from headrace.time import BEGINNING, INFINITY


class Release:
    """Holds elements back until what is said has passed their start."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._waiting = concat(schema, [])
        self._epochs = np.empty(0, np.int64)

    @property
    def oldest(self) -> int | None:
        """The oldest epoch that yielded an element which still waits, or None."""
        return int(self._epochs.min()) if len(self._epochs) else None

    def next(
        self, epoch: int, reach: int, yielded: Sequence[Batch], taken_back: Sequence[Batch] = ()
    ) -> Batch:
        """The elements of the next epoch in order of `ts`, at one instant those that are taken back first.

        What it adds and takes back again says nothing, and is left out.

        Args:
            epoch: its number.
            reach: up to where the answer is said after it (instant).
            yielded: the elements that it yielded.
            taken_back: those that count at once, since they take back what was said before.
        """
        everything = concat(self._schema, [self._waiting, *yielded])
        new = np.full(len(everything) - len(self._waiting), epoch)
        ready = everything.ts < reach
        self._waiting = everything.take(np.flatnonzero(~ready))
        self._epochs = np.concatenate([self._epochs, new])[~ready]
        released = concat(self._schema, [everything.take(np.flatnonzero(ready)), *taken_back])
        return without_pairs(self._schema, released)


def settled_until(heartbeat: int, horizon: int) -> int:
    """Up to where rows in order take nothing back of what is said (instant).

    Args:
        heartbeat: up to where the answer is final (instant).
        horizon: up to where it is said; INFINITY where that is all that follows from the rows.
    """
    # A row in order may be of the last instant that is spoken of.
    return heartbeat if horizon == INFINITY else max(heartbeat, horizon - 1)


class Settled:
    """Turns released elements into those that no input in order takes back.

    The output policy of CEDR's perfectness-preserving operators (*Operator Algorithm Design for Speculative
    Stream Processing*, sections 3.2 and 3.5): of an instant nothing is said before a later one is spoken of.
    Elements are cut there, and the rest of them waits. What has been said is corrected only where rows come
    that are older than others before them.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._kept = concat(schema, [])
        self._watermark = BEGINNING

    @property
    def watermark(self) -> int:
        """Up to where it has been said (instant): the output watermark of Theorem 10."""
        return self._watermark

    def next(self, released: Batch, heartbeat: int, horizon: int) -> Batch:
        """What the next epoch says, in order of `ts`.

        Args:
            released: the elements that it released.
            heartbeat: up to where the answer is final after it (instant).
            horizon: up to where it is said; INFINITY where that is all that follows from the rows.
        """
        self._watermark = cut = max(self._watermark, settled_until(heartbeat, horizon))
        known = concat(self._schema, [self._kept, released])
        later = known.filter(known.te > cut)
        self._kept = netted(Batch(later.payload, np.maximum(later.ts, cut), later.te, later.w))
        return difference(known.slice(0, 0), clip(known, cut))


class Finals:
    """Turns released elements into final rows of the history, each yielded once: when its end has passed.

    A row that is still open at the heartbeat is kept, and yielded when it ends, or when everything does.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._heartbeat = BEGINNING
        self._kept = concat(self._schema, [])

    def next(self, released: Batch, heartbeat: int) -> Batch:
        """The rows that ended below the new heartbeat, coalesced, in order of `ts`."""
        known = concat(self._schema, [self._kept, released])
        final = canonical(clip(known, heartbeat))
        is_open = (final.te == heartbeat) & (heartbeat != INFINITY)
        beyond = known.take(np.flatnonzero(known.te > heartbeat))
        beyond = Batch(beyond.payload, np.maximum(beyond.ts, heartbeat), beyond.te, beyond.w)
        self._kept = concat(self._schema, [final.take(np.flatnonzero(is_open)), beyond])
        self._heartbeat = heartbeat
        return final.take(np.flatnonzero(~is_open))

    def begun(self) -> Batch:
        """The rows that hold at the last heartbeat, without an end; `next` has yet to yield them."""
        opened = self.rest()
        return Batch(opened.payload, opened.ts, np.full(len(opened), INFINITY), opened.w)

    def rest(self) -> Batch:
        """The rows that are open at the last heartbeat, up to it, which `next` has not yielded."""
        return canonical(clip(self._kept, self._heartbeat))
