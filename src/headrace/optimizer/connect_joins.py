"""Never all pairs where a condition connects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.algebra.nodes import Join, Plan, Project, column
from headrace.algebra.predicates import conjunction, conjuncts, split_equalities
from headrace.expressions.functions import resolve
from headrace.expressions.tree import Column, Expression, columns_of, shift_columns, transform_columns
from headrace.schema import unique_names


def connect_joins(plan: Plan) -> Plan:
    """Join each input with what it is connected to, where that makes fewer joins of all pairs.

    Before: `SELECT * FROM r, t, s WHERE r.a = s.a AND s.b = t.b`, which begins with all pairs of `r` and `t`
    After: `SELECT r.*, t.*, s.* FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b`

    Inner joins commute and associate at every instant (thesis, lemma 10.2). Otherwise inputs stay in the
    order of FROM. Conditions may fail on other pairs: there may be more or fewer dead letters.
    """
    if not isinstance(plan, Join):
        return plan
    inputs = _leaves(plan)
    if len(inputs) < 3 or not (before := _crossings(plan)):
        return plan
    conditions = _conditions(plan)
    widths = [len(part.schema) for part in inputs]
    starts = [sum(widths[:place]) for place in range(len(inputs))]
    owner = [place for place, width in enumerate(widths) for _ in range(width)]
    order = min(
        (_order(len(inputs), first, conditions, owner) for first in range(len(inputs))),
        key=lambda found: _crossings_of(found, conditions, owner),
    )
    if _crossings_of(order, conditions, owner) >= before:
        return plan
    joined = _Joined(inputs[order[0]], tuple(range(starts[order[0]], starts[order[0]] + widths[order[0]])))
    left = list(conditions)
    for place in order[1:]:
        columns = tuple(range(starts[place], starts[place] + widths[place]))
        usable = [part for part in left if columns_of(part) <= {*joined.columns, *columns}]
        left = [part for part in left if part not in usable]
        joined = joined.joined_with(inputs[place], columns, usable)
    places = {number: place for place, number in enumerate(joined.columns)}
    items = ((name, column(joined.plan, places[number])) for number, name in enumerate(plan.names))
    return Project(joined.plan, tuple(items))


@dataclass(frozen=True)
class _Joined:
    """Some of the inputs, joined.

    Attributes:
        plan: the join.
        columns: what each of its columns is called by the original join: its number there.
    """

    plan: Plan
    columns: tuple[int, ...]

    def joined_with(self, other: Plan, columns: tuple[int, ...], conditions: Sequence[Expression]) -> _Joined:
        """These inputs joined with another one by conditions over the original join's columns."""
        everything = (*self.columns, *columns)
        places = {number: place for place, number in enumerate(everything)}

        def moved(part: Column) -> Expression:
            return replace(part, index=places[part.index])

        parts = [transform_columns(part, moved) for part in conditions]
        equalities, rest = split_equalities(parts, len(self.columns))
        names = tuple(unique_names([*self.plan.schema.names, *other.schema.names]))
        return _Joined(Join(self.plan, other, equalities, conjunction(rest), names), everything)


def _leaves(plan: Plan) -> list[Plan]:
    """The inputs of joins upon joins, from left to right."""
    return [*_leaves(plan.left), *_leaves(plan.right)] if isinstance(plan, Join) else [plan]


def _crossings(plan: Plan) -> int:
    """How many joins of a tree of joins have no equality."""
    if not isinstance(plan, Join):
        return 0
    return (not plan.equalities) + _crossings(plan.left) + _crossings(plan.right)


def _conditions(plan: Plan) -> list[Expression]:
    """All conditions of a tree of joins, over the columns of its result."""
    if not isinstance(plan, Join):
        return []
    width = len(plan.left.schema)
    found = [*_conditions(plan.left), *(shift_columns(part, width) for part in _conditions(plan.right))]
    found += [resolve("=", (left, shift_columns(right, width))) for left, right in plan.equalities]
    return found if plan.residual is None else [*found, *conjuncts(plan.residual)]


def _order(inputs: int, first: int, conditions: Sequence[Expression], owner: Sequence[int]) -> list[int]:
    """From an input on always the first that is connected to those before it; else the first that is left."""
    order = [first]
    while len(order) < inputs:
        left = [place for place in range(inputs) if place not in order]
        order.append(next((one for one in left if _connects(order, one, conditions, owner)), left[0]))
    return order


def _crossings_of(order: Sequence[int], conditions: Sequence[Expression], owner: Sequence[int]) -> int:
    """How many joins without an equality an order of inputs makes."""
    return sum(
        not _connects(order[:number], order[number], conditions, owner) for number in range(1, len(order))
    )


def _connects(
    joined: Sequence[int], other: int, conditions: Sequence[Expression], owner: Sequence[int]
) -> bool:
    """Whether a condition is an equality between some joined inputs and another one."""
    for part in conditions:
        numbers = {owner[index] for index in columns_of(part)}
        if other in numbers and numbers <= {*joined, other} and len(numbers) > 1:
            sided = transform_columns(part, lambda one: replace(one, index=int(owner[one.index] == other)))
            if split_equalities([sided], 1)[0]:
                return True
    return False
