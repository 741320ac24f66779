"""The first rows of each snapshot; `headrace.algebra.nodes` says what a node is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.arity import Unary
from headrace.algebra.checks import require_columns
from headrace.algebra.kinds import Ranking
from headrace.errors import PlanError
from headrace.expressions.tree import Column, SortKey
from headrace.schema import BIGINT, Field, Schema


@dataclass(frozen=True)
class TopK(Unary):
    """The rows of `M(t)` that have some places in their group: from `offset + 1` to `offset + limit`.

    At every instant the rows of a group stand in the order of the sort keys, and those equal in them column
    by column, NULL first and NaN last. By ROW_NUMBER a row of multiplicity n has n places; by RANK and
    DENSE_RANK rows that are equal in the sort keys share one, so that there may be more than `limit` rows.
    Groups are those of `Aggregate`; without keys there is one.

    Attributes:
        keys: the columns that make the groups.
        order: columns to sort by, the most significant first.
        limit: how many places of a group are left, or None for all.
        offset: how many places come before them.
        number: the name of a column more, with each row's place, from 1; or None.
        ranking: how places are counted.
    """

    keys: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0
    number: str | None = None
    ranking: Ranking = Ranking.ROW_NUMBER

    def __post_init__(self) -> None:
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            raise PlanError("LIMIT and OFFSET are not below 0")
        if self.ranking is not Ranking.ROW_NUMBER and not self.order:
            raise PlanError(f"{self.ranking.value} needs something to sort by")
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
