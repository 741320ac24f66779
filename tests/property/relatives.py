"""Plans that have much in common with another one, as the queries of one service do."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    SetOperation,
    column,
    inputs_of,
    with_inputs,
)
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.tree import Call
from headrace.schema import BOOLEAN, unique_names


@st.composite
def relatives(draw: st.DrawFn, plan: Plan) -> Plan:
    """A plan with joins turned round, other aggregates of the last groups, other columns and a filter."""

    def turned(part: Plan) -> Plan:
        below = with_inputs(part, tuple(map(turned, inputs_of(part))))
        return _commuted(below) if isinstance(below, Join) and draw(st.booleans()) else below

    found = turned(plan)
    if isinstance(found, Aggregate) and draw(st.booleans()):
        columns = [column(found.input, place) for place in range(len(found.input.schema))]
        calls = [resolve_aggregate("COUNT", None), *(resolve_aggregate("MIN", one) for one in columns)]
        some = draw(st.lists(st.sampled_from(calls), min_size=1, unique=True))
        found = replace(found, aggregates=tuple((f"m{place}", one) for place, one in enumerate(some)))
    if len(found.schema) and draw(st.integers(0, 3)):
        places = draw(st.lists(st.integers(0, len(found.schema) - 1), min_size=1, max_size=3))
        found = Project(found, tuple((f"r{place}", column(found, one)) for place, one in enumerate(places)))
    if len(found.schema) and draw(st.booleans()):
        one = column(found, draw(st.integers(0, len(found.schema) - 1)))
        found = Filter(found, Call("IS NOT NULL", (one,), BOOLEAN))
    return found


@st.composite
def above(draw: st.DrawFn, plan: Plan, other: Plan | None = None) -> Plan:
    """An operator with state over one plan or two, which looks at one instant at a time."""
    columns = [column(plan, place) for place in range(len(plan.schema))]
    if other is not None and types_of(other) == types_of(plan) and draw(st.booleans()):
        return SetOperation(plan, other, draw(st.sampled_from(SetKind)))
    if other is not None:
        names = tuple(unique_names([*plan.schema.names, *other.schema.names]))
        others = [column(other, place) for place in range(len(other.schema))]
        pairs = [(one, two) for one in columns for two in others if one.type == two.type]
        chosen = draw(st.lists(st.sampled_from(pairs), max_size=1)) if pairs else []
        plan = Join(plan, other, tuple(chosen), None, names)
        columns = [column(plan, place) for place in range(len(plan.schema))]
    if not columns or draw(st.integers(0, 3)) == 0:
        return Distinct(plan)
    keys = draw(st.lists(st.sampled_from(columns), max_size=2))
    calls = [resolve_aggregate("COUNT", None), *(resolve_aggregate("MIN", one) for one in columns)]
    some = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=2))
    named = tuple((f"g{place}", key) for place, key in enumerate(keys))
    return Aggregate(plan, named, tuple((f"a{place}", one) for place, one in enumerate(some)))


def types_of(plan: Plan) -> list[object]:
    """The types of a plan's columns."""
    return [field.type for field in plan.schema]


def _commuted(join: Join) -> Plan:
    """The same pairs of a join whose inputs are in the other order."""
    left, right = len(join.left.schema), len(join.right.schema)
    if join.residual is not None:
        return join
    pairs = tuple((other, one) for one, other in join.equalities)
    names = tuple(unique_names([*join.right.schema.names, *join.left.schema.names]))
    other = Join(join.right, join.left, pairs, None, names)
    named = zip(join.names, [*range(right, right + left), *range(right)], strict=True)
    return Project(other, tuple((name, column(other, place)) for name, place in named))
