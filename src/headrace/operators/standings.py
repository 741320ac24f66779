"""In which order the rows of groups stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import TopK
from headrace.elements import Int64Array, record_batch
from headrace.expressions.tree import Column, SortKey
from headrace.operators.keys import order_by
from headrace.operators.live_values import LiveChanges
from headrace.operators.ranks import rank_rows
from headrace.operators.ties import break_ties


@dataclass(frozen=True, eq=False)
class Standings:
    """Changes of rows, and how these rows stand.

    Attributes:
        changes: what changes, by row.
        numbers: int64[n], the number of each row: group after group, and in a group as rows stand; equal rows
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
    keys = sorted_by(plan.order)
    ranks = np.zeros(count, dtype=np.int64)
    if keys:
        ranks = rank_rows([changes.columns[place] for place, _ in keys], [key for _, key in keys])
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


def sorted_by(keys: Iterable[SortKey]) -> list[tuple[int, SortKey]]:
    """The keys that tell rows apart, with their columns: NULLs of no type are all the same."""
    columns = ((key.expression, key) for key in keys)
    return [
        (place.index, key)
        for place, key in columns
        if isinstance(place, Column) and not pa.types.is_null(place.type)
    ]
