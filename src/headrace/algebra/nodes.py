"""The logical plan: frozen nodes of a closed union, each of which refuses a malformed tree.

A node denotes a stream, that is, a multiset of payloads at every instant (its content). The docstrings give
each node's definition on contents: `M(t)` is the input's content at instant t.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from headrace.algebra.arity import Unary
from headrace.algebra.joins import AnyJoin as AnyJoin
from headrace.algebra.joins import Join as Join
from headrace.algebra.joins import OuterJoin as OuterJoin
from headrace.algebra.joins import SemiJoin as SemiJoin
from headrace.algebra.relational import Aggregate as Aggregate
from headrace.algebra.relational import Distinct as Distinct
from headrace.algebra.relational import Filter as Filter
from headrace.algebra.relational import Project as Project
from headrace.algebra.relational import Sample as Sample
from headrace.algebra.relational import SetOperation as SetOperation
from headrace.algebra.relational import Source as Source
from headrace.algebra.relational import Union as Union
from headrace.algebra.temporal import Coalesce as Coalesce
from headrace.algebra.temporal import Dstream as Dstream
from headrace.algebra.temporal import Granularity as Granularity
from headrace.algebra.temporal import Istream as Istream
from headrace.algebra.temporal import Rstream as Rstream
from headrace.algebra.temporal import Split as Split
from headrace.algebra.top_k import TopK as TopK
from headrace.algebra.windows import EVERY_INSTANT as EVERY_INSTANT
from headrace.algebra.windows import MAX_ROWS as MAX_ROWS
from headrace.algebra.windows import NO_OFFSET as NO_OFFSET
from headrace.algebra.windows import HopWindow as HopWindow
from headrace.algebra.windows import OverRows as OverRows
from headrace.algebra.windows import RowWindow as RowWindow
from headrace.algebra.windows import SessionWindow as SessionWindow
from headrace.algebra.windows import TimeWindow as TimeWindow
from headrace.algebra.windows import instant_type as instant_type
from headrace.expressions.tree import Column, Expression

Plan = (
    Source
    | Filter
    | Project
    | TimeWindow
    | HopWindow
    | RowWindow
    | SessionWindow
    | Sample
    | Granularity
    | Split
    | Coalesce
    | OverRows
    | Union
    | SetOperation
    | Join
    | OuterJoin
    | SemiJoin
    | Aggregate
    | TopK
    | Distinct
    | Istream
    | Dstream
    | Rstream
)


def inputs_of(plan: Plan) -> tuple[Plan, ...]:
    """The direct inputs, left to right."""
    match plan:
        case Source():
            return ()
        case Union(inputs=inputs):
            return inputs
        case Unary(input=below):
            return (below,)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return (plan.left, plan.right)
        case _:
            assert_never(plan)


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The same node over other inputs; the same object where nothing changed."""
    if all(new is old for new, old in zip(inputs, inputs_of(plan), strict=True)):
        return plan
    match plan:
        case Source():
            return plan
        case Union():
            return replace(plan, inputs=inputs)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return replace(plan, left=inputs[0], right=inputs[1])
        case _:
            return replace(plan, input=inputs[0])


def column(plan: Plan, index: int) -> Column:
    """A reference to a column of the plan's result."""
    return Column(index, plan.schema[index].name, plan.schema[index].type)


def project(plan: Plan, items: tuple[tuple[str, Expression], ...]) -> Plan:
    """A Project, unless it would change nothing."""
    same = [isinstance(part, Column) and part.index == index for index, (_, part) in enumerate(items)]
    if all(same) and tuple(name for name, _ in items) == plan.schema.names:
        return plan
    return Project(plan, items)
