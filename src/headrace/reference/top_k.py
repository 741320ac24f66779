"""The definition of top-k: the rows of a content in order, and those at some places."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import assert_never

from headrace.algebra.kinds import Ranking
from headrace.algebra.nodes import TopK
from headrace.expressions.tree import Column, SortKey
from headrace.reference.contents import Content, Payload, order


def first_rows(plan: TopK, below: Content) -> Content:
    """The rows of each group that are left, with their places if the plan asks for them."""
    groups: dict[Payload, list[Payload]] = defaultdict(list)
    for row in below.elements():
        groups[tuple(row[key.index] for key in plan.keys)].append(row)
    content: Content = Counter()
    for rows in groups.values():
        for row, place in _places(plan, _sorted(rows, plan.order)):
            if place > plan.offset and (plan.limit is None or place <= plan.offset + plan.limit):
                content[row if plan.number is None else (*row, place)] += 1
    return content


def _places(plan: TopK, rows: list[Payload]) -> Iterator[tuple[Payload, int]]:
    """Sorted rows, each with its place."""
    keys = [_key(plan.order, row) for row in rows]
    for number, row in enumerate(rows):
        match plan.ranking:
            case Ranking.ROW_NUMBER:
                yield row, number + 1
            case Ranking.RANK:
                yield row, keys.index(keys[number]) + 1
            case Ranking.DENSE_RANK:
                yield row, len(set(keys[: number + 1]))
            case _:
                assert_never(plan.ranking)


def _key(keys: tuple[SortKey, ...], row: Payload) -> Payload:
    """What a row is sorted by."""
    assert all(isinstance(key.expression, Column) for key in keys)
    return tuple(row[key.expression.index] for key in keys if isinstance(key.expression, Column))


def _sorted(rows: list[Payload], keys: tuple[SortKey, ...]) -> list[Payload]:
    """The rows in the order of the keys, those that are equal in them column by column."""
    result = sorted(rows, key=lambda row: tuple(map(order, row)))
    for key in reversed(keys):
        assert isinstance(key.expression, Column)
        place = key.expression.index
        result.sort(key=lambda row: order(row[place]), reverse=key.descending)
        result.sort(key=lambda row: (row[place] is None) != key.nulls_first)
    return result
