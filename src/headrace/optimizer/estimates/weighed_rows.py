"""Rows with their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.algebra.nodes import Plan, Project, Shed, column
from headrace.algebra.properties import walk
from headrace.expressions.tree import Column
from headrace.schema import unique_names
from headrace.time import Duration


class KeptSpan(NamedTuple):
    """The window of the rows: as of `LargestWeight`."""

    size: Duration
    slide: Duration
    offset: Duration


@dataclass(frozen=True)
class WeighedRows:
    """Rows with their weights.

    Attributes:
        plan: the rows; of its columns the last but one is the weight, and the last how many rows of its
            instant a row stands for that were kept for each other's sake.
        span: the window.
        clustered: whether the last column is what the key of a pair has drawn, in the place of that number.
    """

    plan: Plan
    span: KeptSpan
    clustered: bool = False

    def over(self, plan: Plan) -> WeighedRows:
        """The rows of a plan above these that keeps their last columns."""
        return replace(self, plan=plan)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes by which rows are kept."""
        shed = (node for node in walk(self.plan) if isinstance(node, Shed))
        return tuple(dict.fromkeys(name for node in shed for name in node.sizes))


def projected(plan: Project, below: Plan, kept_columns: int = 2) -> Plan:
    """A projection over rows that have got more columns, which keeps these.

    Args:
        plan: the projection, as it was over the rows before.
        below: the rows.
        kept_columns: how many of their last columns are kept.
    """
    width = len(below.schema)
    kept = ((below.schema[place].name, column(below, place)) for place in range(width - kept_columns, width))
    items = (*plan.items, *kept)
    names = unique_names([name for name, _ in items])
    return Project(below, tuple(zip(names, (part for _, part in items), strict=True)))


def beyond(part: Column, width: int, more: int = 2) -> Column:
    """A column of a pair whose left row has got more columns.

    Args:
        part: the column.
        width: how many the left row had.
        more: how many it has got.
    """
    return part if part.index < width else replace(part, index=part.index + more)
