"""The first rows of each snapshot; `headrace.algebra.nodes` says what a node is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.arity import Unary
from headrace.algebra.checks import require_columns
from headrace.errors import PlanError
from headrace.expressions.tree import Column, SortKey
from headrace.schema import BIGINT, Field, Schema


@dataclass(frozen=True)
class TopK(Unary):
    """The rows of `M(t)` that stand at some places of their group: `limit` rows, after `offset` others.

    At every instant the rows of a group stand in the order of the sort keys, and those equal in them column
    by column, NULL first and NaN last; a row of multiplicity n stands at n places. Groups are those of
    `Aggregate`; without keys there is one.

    Attributes:
        keys: the columns that make the groups.
        order: columns to sort by, the most significant first.
        limit: how many rows of a group are left, or None for all.
        offset: how many rows stand before them.
        number: the name of a column more, with each row's place, from 1; or None.
    """

    keys: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0
    number: str | None = None

    def __post_init__(self) -> None:
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            raise PlanError("LIMIT and OFFSET are not below 0")
        for key in (*self.keys, *(key.expression for key in self.order)):
            if not isinstance(key, Column):
                raise PlanError("rows are put in order by columns")
            require_columns(key, len(self.input.schema))
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the place, if it is asked for."""
        added = () if self.number is None else (Field(self.number, BIGINT),)
        return Schema((*self.input.schema, *added))
