"""Rows that can be among the first of a snapshot, where nothing is ever retracted.

A row that has k better rows beside it for as long as it is there is never shown, whatever else comes; so it
needs neither to travel nor to wait in state.
"""

from __future__ import annotations

import numpy as np

from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import TopK, column
from headrace.elements import Batch, BoolArray
from headrace.expressions.tree import SortKey
from headrace.kernels.values.skyband import best_so_far, cut_where_one_ends
from headrace.operators.aggregates.live_values import LiveChanges
from headrace.operators.state.keys import encode_keys, hash_rows, normalise, order_by
from headrace.operators.state.live_elements import LiveElements, LiveRows, Pool
from headrace.operators.state.order import rank_rows
from headrace.operators.state.sweep_area import SweepArea
from headrace.operators.state.timeline import Points
from headrace.operators.top_k.standings import Standings, sorted_by, stand
from headrace.time import BEGINNING


def reachable(plan: TopK, batch: Batch) -> Batch:
    """The elements of a batch that are among the first of a snapshot of it, and maybe some others.

    What is not among the first of some elements is not among the first of more. Rows are compared by what
    they are sorted by first: that costs little, and leaves few but where many are equal in it.
    """
    first = _first_key(plan)
    if first is None:
        return batch
    keys = [normalise(batch.payload.column(key.index)) for key in plan.keys]
    groups = encode_keys(keys, hash_rows(keys, len(batch)))
    ranks = rank_rows([batch.payload.column(first[0])], [first[1]])
    by_start = order_by(groups.codes, batch.ts, len(groups))
    # In a block the rows that are there at an instant are the first to start, or the last to end.
    blocks, count = cut_where_one_ends(by_start, groups.codes, batch.ts, batch.te)
    by_end = order_by(blocks, batch.te, count)[::-1].copy()
    return batch.filter(
        best_so_far(by_start, blocks, ranks, _rows(plan)) | best_so_far(by_end, blocks, ranks, _rows(plan))
    )


def _first_key(plan: TopK) -> tuple[int, SortKey] | None:
    """What rows are compared by first, with its column; None where nothing distinguishes places."""
    keys = list(plan.order)
    if plan.ranking is Ranking.ROW_NUMBER:
        keys += (SortKey(column(plan.input, place)) for place in range(len(plan.input.schema)))
    return next(iter(sorted_by(keys)), None)


class Skyband:
    """The rows that are or will be among the first of their group, where none is retracted.

    Args:
        plan: which ones are the first.
        keys: the names of the key columns in state.
    """

    def __init__(self, plan: TopK, keys: tuple[str, ...]) -> None:
        self._plan = plan
        self._elements = LiveElements(keys, len(plan.input.schema))

    @property
    def values(self) -> SweepArea:
        """The rows."""
        return self._elements.area

    def take_in(self, rows: LiveRows, points: Points | None, window: tuple[int, int]) -> Standings | None:
        """Take in elements; all changes below the new horizon to rows that may be shown, if there are."""
        before, horizon = window
        if points is None:
            self._elements.keep(rows, None, horizon)
            return None
        pool = self._elements.pooled(rows, points)
        standings = stand(self._plan, _changes(pool, before, horizon), len(points.covered))
        self._elements.keep(rows, self._needed(pool, standings, horizon), horizon)
        return standings

    def _needed(self, pool: Pool, standings: Standings, horizon: int) -> BoolArray:
        """Which elements may be among the first later on: all that start then, and of the others the skyband.

        The last instant that was answered counts: its answer may have to be taken back.
        """
        waits = (pool.codes < 0) | (pool.starts >= horizon)
        live = np.flatnonzero(~waits & (pool.ends >= horizon))
        by_end = live[order_by(pool.codes[live], pool.ends[live], len(standings.starts) - 1)][::-1].copy()
        ranks = standings.numbers if self._plan.ranking is Ranking.ROW_NUMBER else standings.peers
        return waits | best_so_far(by_end, pool.codes, ranks, _rows(self._plan))


def _changes(pool: Pool, before: int, horizon: int) -> LiveChanges:
    due = np.flatnonzero((pool.codes >= 0) & (pool.starts < horizon))
    over = due[pool.ends[due] < horizon]
    starts = pool.starts[due]
    return LiveChanges(
        pool.columns,
        pool.codes,
        np.concatenate([due, over]),
        np.concatenate([np.where(starts < before, BEGINNING, starts), pool.ends[over]]),
        np.concatenate([pool.counts[due], -pool.counts[over]]),
    )


def _rows(plan: TopK) -> int:
    """How many rows of a group matter."""
    assert plan.limit is not None
    return plan.offset + plan.limit
