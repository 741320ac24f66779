"""Joins upon joins as one thing: what is joined, by which conditions, whatever the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from headrace.algebra.nodes import Filter, Join, LimitedJoin, Plan, Project, column, inputs_of, project
from headrace.algebra.predicates import conjunction, conjuncts, split_equalities
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Column, Expression, columns_of, shift_columns, transform_columns
from headrace.schema import unique_names

JoinOrder: TypeAlias = "int | tuple[JoinOrder, JoinOrder]"
"""In which order inputs are joined, by their numbers: `((0, 2), 1)` joins 0 with 2, and that with 1."""

Orders: TypeAlias = tuple[JoinOrder, ...]
"""The orders of all joins of three inputs or more in a plan, those further up first."""


def inputs_named(order: JoinOrder) -> tuple[int, ...]:
    """The numbers of the inputs in an order, from left to right."""
    return (order,) if isinstance(order, int) else (*inputs_named(order[0]), *inputs_named(order[1]))


@dataclass(frozen=True)
class JoinGraph:
    """Inner joins upon each other, with nothing in between but projects that leave out or rename columns.

    Attributes:
        inputs: what is joined, from left to right.
        conditions: all conditions, over the columns of all inputs; each reads two inputs or more.
        outputs: which of those columns each column of the result is.
        order: in which order the plan joins the inputs.
    """

    inputs: tuple[Plan, ...]
    conditions: tuple[Expression, ...]
    outputs: tuple[int, ...]
    order: JoinOrder

    def part(self, place: int) -> JoinedPart:
        """One input."""
        start = sum(len(below.schema) for below in self.inputs[:place])
        width = len(self.inputs[place].schema)
        return JoinedPart(place, self.inputs[place], tuple(range(start, start + width)))

    def joined(self, left: JoinedPart, right: JoinedPart) -> JoinedPart:
        """Two parts joined by all conditions that read both and nothing else."""
        columns = (*left.columns, *right.columns)
        places = {number: place for place, number in enumerate(columns)}
        usable = (part for part in self.conditions if _is_between(columns_of(part), left, right))
        parts = [mapped(part, places) for part in usable]
        equalities, rest = split_equalities(parts, len(left.columns))
        names = tuple(unique_names([*left.plan.schema.names, *right.plan.schema.names]))
        join = Join(left.plan, right.plan, equalities, conjunction(rest), names)
        return JoinedPart((left.order, right.order), join, columns)

    def joined_in(self, order: JoinOrder) -> JoinedPart:
        """All inputs that an order names, joined in that order."""
        if isinstance(order, int):
            return self.part(order)
        left, right = order
        return self.joined(self.joined_in(left), self.joined_in(right))

    def planned(self, order: JoinOrder, names: tuple[str, ...]) -> Plan:
        """The plan that joins in another order, with the same columns under the given names."""
        whole = self.joined_in(order)
        places = {number: place for place, number in enumerate(whole.columns)}
        items = (
            (name, column(whole.plan, places[number]))
            for name, number in zip(names, self.outputs, strict=True)
        )
        return project(whole.plan, tuple(items))

    def whole(self) -> Plan:
        """The plan with all columns of all inputs, joined in the graph's own order."""
        names = unique_names([name for below in self.inputs for name in below.schema.names])
        everything = tuple(range(len(names)))
        return replace(self, outputs=everything).planned(self.order, tuple(names))


@dataclass(frozen=True)
class JoinedPart:
    """Some of the inputs of a join graph, joined.

    Attributes:
        order: in which order.
        plan: the join.
        columns: which column of the graph each of its columns is.
    """

    order: JoinOrder
    plan: Plan
    columns: tuple[int, ...]

    @property
    def is_connected(self) -> bool:
        """Whether its last join has an equality."""
        return isinstance(self.plan, Join) and self.plan.equalities != ()


def join_graph(plan: Plan) -> JoinGraph:
    """What a join, with the joins that it is over, puts together; columns may be left out above it."""
    inputs: list[Plan] = []
    owner: list[int] = []
    conditions: list[Expression] = []

    def flat(part: Plan) -> tuple[tuple[int, ...], JoinOrder]:
        """Which column of the graph each column of a part is, and the part's order."""
        if not is_joined(part):
            columns = range(len(owner), len(owner) + len(part.schema))
            owner.extend([len(inputs)] * len(columns))
            inputs.append(part)
            return tuple(columns), len(inputs) - 1
        if isinstance(part, Project):
            below, order = flat(part.input)
            return tuple(below[item.index] for _, item in part.items if isinstance(item, Column)), order
        assert isinstance(part, Join)
        (left, first), (right, second) = flat(part.left), flat(part.right)
        found = (*left, *right)
        conditions.extend(mapped(condition, found) for condition in _conditions(part))
        return found, (first, second)

    outputs, order = flat(plan)
    between = []
    for condition in conditions:
        read = {owner[index] for index in columns_of(condition)}
        if len(read) > 1:
            between.append(condition)
        else:
            # A condition of constants may be asked of any input, also of one without columns.
            place = min(read, default=0)
            moved = shift_columns(condition, -owner.index(place)) if read else condition
            inputs[place] = Filter(inputs[place], moved)
    return JoinGraph(tuple(inputs), tuple(between), outputs, order)


def mapped(expression: Expression, places: Mapping[int, int] | Sequence[int]) -> Expression:
    """An expression over columns that are at other places."""
    return transform_columns(expression, lambda part: replace(part, index=places[part.index]))


def is_joined(plan: Plan) -> bool:
    """Whether a plan is a join, or one of which columns are left out or renamed."""
    while isinstance(plan, Project) and all(isinstance(item, Column) for _, item in plan.items):
        plan = plan.input
    return may_be_ordered(plan)


def may_be_ordered(plan: Plan) -> TypeGuard[Join]:
    """Whether a plan is a join that may become another one in an order of joins."""
    return isinstance(plan, Join) and not isinstance(plan, LimitedJoin)


def crossings(plan: Plan) -> int:
    """How many joins there are without an equality, where joins are upon each other."""
    if not is_joined(plan):
        return 0
    alone = isinstance(plan, Join) and not plan.equalities
    return alone + sum(map(crossings, inputs_of(plan)))


def _conditions(plan: Join) -> list[Expression]:
    """The conditions of one join, over its columns."""
    width = len(plan.left.schema)
    found = [resolve("=", (left, shift_columns(right, width))) for left, right in plan.equalities]
    return found if plan.residual is None else [*found, *conjuncts(plan.residual)]


def _is_between(read: frozenset[int], left: JoinedPart, right: JoinedPart) -> bool:
    """Whether a condition that reads some columns can be asked of two parts, and of neither alone."""
    ours, theirs = frozenset(left.columns), frozenset(right.columns)
    return read <= ours | theirs and not (read <= ours or read <= theirs)
