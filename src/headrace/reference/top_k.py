"""The definition of top-k: the rows of a content in order, and those at some places."""

from __future__ import annotations

from collections import Counter, defaultdict

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
        numbered = list(enumerate(_sorted(rows, plan.order), 1))
        end = len(rows) if plan.limit is None else plan.offset + plan.limit
        for place, row in numbered[plan.offset : end]:
            content[row if plan.number is None else (*row, place)] += 1
    return content


def _sorted(rows: list[Payload], keys: tuple[SortKey, ...]) -> list[Payload]:
    """The rows in the order of the keys, those that are equal in them column by column."""
    result = sorted(rows, key=lambda row: tuple(map(order, row)))
    for key in reversed(keys):
        assert isinstance(key.expression, Column)
        place = key.expression.index
        result.sort(key=lambda row: order(row[place]), reverse=key.descending)
        result.sort(key=lambda row: (row[place] is None) != key.nulls_first)
    return result
