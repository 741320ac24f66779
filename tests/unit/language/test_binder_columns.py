"""The binder's own kinds of columns: none equals a plan's column, and no plan takes one."""

from __future__ import annotations

import pytest

from auctions import plan_of
from headrace.algebra.nodes import Filter, Project, column, project
from headrace.errors import PlanError
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column, transform_columns
from headrace.language.binding.columns import (
    InnerColumn,
    OuterColumn,
    SubqueryPlace,
    own_columns,
    places_in,
    reads_outer,
)
from headrace.schema import BIGINT

TICK = plan_of("SELECT * FROM tick [RANGE 5]")
KINDS = (OuterColumn, InnerColumn, SubqueryPlace)


def test_kinds_of_columns_are_different_at_the_same_place() -> None:
    assert len({kind(0, "id", BIGINT) for kind in (Column, *KINDS)}) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_no_plan_takes_a_column_of_the_binder(kind: type[Column]) -> None:
    part = kind(0, "id", BIGINT)
    with pytest.raises(PlanError, match="beyond the 4 of its input"):
        Filter(TICK, resolve("=", (part, column(TICK, 0))))
    with pytest.raises(PlanError, match="beyond the 4 of its input"):
        Project(TICK, (("id", part),))
    items = tuple((name, column(TICK, place)) for place, name in enumerate(TICK.schema.names))
    with pytest.raises(PlanError, match="beyond the 4 of its input"):
        project(TICK, (("id", part), *items[1:]))


def test_an_expression_knows_whose_columns_it_reads() -> None:
    outer, place = OuterColumn(0, "id", BIGINT), SubqueryPlace(2, "value", BIGINT)
    expression = resolve("+", (resolve("+", (outer, place)), Column(1, "at", BIGINT)))
    assert own_columns(expression) == {1}
    assert reads_outer(expression)
    assert places_in(expression) == {2}
    moved = transform_columns(expression, lambda part: Column(part.index, part.name, part.type))
    assert own_columns(moved) == {0, 1, 2}
    assert not reads_outer(moved)
