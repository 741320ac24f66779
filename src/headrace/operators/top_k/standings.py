"""The order of the rows of groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import TopK
from headrace.elements import Int64Array, record_batch
from headrace.expressions.tree import Column, SortKey
from headrace.operators.aggregates.live_values import LiveChanges
from headrace.operators.state.keys import order_by
from headrace.operators.state.order import break_ties, rank_rows
from headrace.time import BEGINNING

_MARGIN: Final = 4
"""How many times the rows that are asked for, and so many more, should reach a bound."""
_NO_BOUND: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Standings:
    """Changes of rows, and the order of these rows.

    Attributes:
        changes: what changes, by row.
        numbers: int64[n], the number of each row: group after group, and in a group in order; equal rows
            share one. -1 for rows of no group.
        peers: int64[n], the smallest number of those that are equal to the row in what rows are sorted by.
        starts: int64[k + 1], where the numbers of each group start.
        first: int64[m], a row of each number.
    """

    changes: LiveChanges
    numbers: Int64Array
    peers: Int64Array
    starts: Int64Array
    first: Int64Array


def stand(plan: TopK, changes: LiveChanges, groups: int) -> Standings:
    """Number the rows of changes; those of code -1 belong to no group."""
    codes, count = changes.codes, len(changes.codes)
    ranks = _ranks(plan, changes)
    rows = np.flatnonzero(codes >= 0)
    order = rows[order_by(codes[rows], ranks[rows], groups)]
    tied = np.zeros(len(order), dtype=np.bool_)
    tied[1:] = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    order, equal = break_ties(record_batch(changes.columns, plan.input.schema, count), order, tied)
    numbers, peers = np.full((2, count), -1, dtype=np.int64)
    numbers[order] = np.cumsum(~equal) - 1
    leaders = np.maximum.accumulate(np.where(tied, 0, np.arange(len(order))))
    peers[order] = numbers[order[leaders]]
    first = order[~equal]
    return Standings(changes, numbers, peers, np.searchsorted(codes[first], np.arange(groups + 1)), first)


def within_bounds(plan: TopK, changes: LiveChanges, groups: int) -> LiveChanges:
    """The changes without rows that are, at every instant, after too many others to be shown.

    Per group a bound is guessed from what was there before: if at no instant fewer rows than are asked for
    reach it, none after it is shown. Rows that enter and leave after the bound, as the small groups
    of an aggregation do, then need not be put in order.
    """
    if plan.limit is None or plan.ranking is Ranking.DENSE_RANK or not sorted_by(plan.order):
        return changes
    wanted = plan.offset + plan.limit
    ranks, codes = _ranks(plan, changes), changes.codes[changes.value]
    by_change, times, counts = ranks[changes.value], changes.times, changes.counts
    base = np.flatnonzero(times == BEGINNING)
    base = base[order_by(codes[base], by_change[base], groups)]
    enough = base[_running(codes[base], counts[base]) >= _MARGIN * (wanted + _MARGIN)]
    bounds = np.full(groups, _NO_BOUND)
    # The first of each group is written last.
    bounds[codes[enough[::-1]]] = by_change[enough[::-1]]
    near = np.flatnonzero(by_change <= bounds[codes])
    near = near[order_by(codes[near], times[near], groups)]
    few = _running(codes[near], counts[near]) < wanted
    few[:-1] &= (np.diff(codes[near]) != 0) | (np.diff(times[near]) != 0)
    bounds[codes[near[few]]] = _NO_BOUND
    kept = np.flatnonzero(by_change <= bounds[codes])
    if len(kept) == len(codes):
        return changes
    rows = np.where(ranks <= bounds[changes.codes], changes.codes, -1)
    return replace(changes, codes=rows, value=changes.value[kept], times=times[kept], counts=counts[kept])


def _running(codes: Int64Array, counts: Int64Array) -> Int64Array:
    """The running sums of counts inside each run of equal codes."""
    sums = np.cumsum(counts)
    fresh = np.append(True, np.diff(codes) != 0)[: len(codes)]
    before = np.where(fresh, sums - counts, 0)
    return sums - before[np.maximum.accumulate(np.where(fresh, np.arange(len(codes)), 0))]


def _ranks(plan: TopK, changes: LiveChanges) -> Int64Array:
    """Numbers in the order of what rows are sorted by."""
    keys = sorted_by(plan.order)
    if not keys:
        return np.zeros(len(changes.codes), dtype=np.int64)
    return rank_rows([changes.columns[place] for place, _ in keys], [key for _, key in keys])


def sorted_by(keys: Iterable[SortKey]) -> list[tuple[int, SortKey]]:
    """The keys that distinguish rows, with their columns: NULLs of no type are all the same."""
    columns = ((key.expression, key) for key in keys)
    return [
        (place.index, key)
        for place, key in columns
        if isinstance(place, Column) and not pa.types.is_null(place.type)
    ]
