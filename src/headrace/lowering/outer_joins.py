"""Semi-, anti- and outer joins, written as joins, set operations and unions, for which there are operators.

Semi-join: the left rows that occur in a join. An equality alone is joined with the different keys of the
right input, so that every left row has one partner at most; otherwise the join's left columns show which rows
to keep (thesis, equations 8.11 and 8.16, with the matching made existential). Outer join: the join, and the
rows that do not occur in it beside NULLs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.algebra.kinds import JoinKind, SetKind
from headrace.algebra.nodes import (
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
    SetOperation,
    Union,
    column,
    inputs_of,
    pair_schema,
    with_inputs,
)
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.expressions.tree import Expression, Literal, columns_of, shift_columns
from headrace.schema import Field


def expand(plan: Plan) -> Plan:
    """The plan without semi-, anti- and outer joins, with the same content at every instant."""
    known: dict[int, Plan] = {}

    def expanded(part: Plan) -> Plan:
        # What is used twice stays one object, or chains of joins would double with every link.
        if id(part) not in known:
            known[id(part)] = _expand(with_inputs(part, tuple(map(expanded, inputs_of(part)))))
        return known[id(part)]

    return expanded(plan)


def _expand(plan: Plan) -> Plan:
    match plan:
        case SemiJoin():
            return _semi_join(plan)
        case OuterJoin():
            return _outer_join(plan)
        case _:
            return plan


def _semi_join(plan: SemiJoin) -> Plan:
    sides = _Sides.of(plan)
    if sides.both is None:
        keys = tuple((f"k{place}", right) for place, (_, right) in enumerate(plan.equalities))
        partners = Distinct(Project(sides.right, keys))
        pairs = ((left, column(partners, place)) for place, (left, _) in enumerate(plan.equalities))
        names = _names(sides.left, partners)
        matching = _columns(Join(sides.left, partners, tuple(pairs), None, names), plan.schema.fields, 0)
        return SetOperation(plan.left, matching, SetKind.EXCEPT_STRICT) if plan.anti else matching
    names = pair_schema(plan).names
    join = Join(sides.left, sides.right, plan.equalities, sides.both, names)
    matching = _columns(join, plan.schema.fields, 0)
    if plan.anti:
        return SetOperation(plan.left, matching, SetKind.EXCEPT_STRICT)
    return SetOperation(sides.left, matching, SetKind.INTERSECT_STRICT)


def _outer_join(plan: OuterJoin) -> Plan:
    sides = _Sides.of(plan)
    join = Join(sides.left, sides.right, plan.equalities, sides.both, plan.names)
    width = len(plan.left.schema)
    parts: list[Plan] = [join]
    if plan.kind is not JoinKind.RIGHT:
        matching = _columns(join, plan.left.schema.fields, 0)
        parts.append(_padded(plan, SetOperation(plan.left, matching, SetKind.EXCEPT_STRICT), 0))
    if plan.kind is not JoinKind.LEFT:
        matching = _columns(join, plan.right.schema.fields, width)
        parts.append(_padded(plan, SetOperation(plan.right, matching, SetKind.EXCEPT_STRICT), width))
    return Union(tuple(parts))


@dataclass(frozen=True)
class _Sides:
    """The inputs under the conditions that read one of them only, and the condition that reads both."""

    left: Plan
    right: Plan
    both: Expression | None

    @classmethod
    def of(cls, plan: SemiJoin | OuterJoin) -> _Sides:
        width = len(plan.left.schema)
        parts = () if plan.residual is None else conjuncts(plan.residual)
        left = [part for part in parts if all(index < width for index in columns_of(part))]
        right = [part for part in parts if part not in left and min(columns_of(part)) >= width]
        both = conjunction(part for part in parts if part not in left and part not in right)
        moved = [shift_columns(part, -width) for part in right]
        return cls(_filtered(plan.left, left), _filtered(plan.right, moved), both)


def _filtered(plan: Plan, parts: Sequence[Expression]) -> Plan:
    predicate = conjunction(parts)
    return plan if predicate is None else Filter(plan, predicate)


def _columns(plan: Plan, fields: Sequence[Field], start: int) -> Plan:
    """The columns of a join that come from one input, under that input's names."""
    items = ((field.name, column(plan, start + place)) for place, field in enumerate(fields))
    return Project(plan, tuple(items))


def _padded(plan: OuterJoin, rows: Plan, start: int) -> Plan:
    """Rows of one input among the columns of the join, NULL in the others."""
    items: list[tuple[str, Expression]] = [(field.name, Literal(None, field.type)) for field in plan.schema]
    for place in range(len(rows.schema)):
        items[start + place] = (plan.names[start + place], column(rows, place))
    return Project(rows, tuple(items))


def _names(left: Plan, right: Plan) -> tuple[str, ...]:
    return tuple(f"c{place}" for place in range(len(left.schema) + len(right.schema)))
