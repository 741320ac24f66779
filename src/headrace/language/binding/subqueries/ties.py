"""Subqueries that read the rows around them anywhere, as queries over the values that they read.

Such a subquery is answered once for each of the different values that it reads of the rows around it. They
are columns, the *ties*, in front of every FROM in it; what it groups, sorts and limits, it does for each
tie; and the rows around it are joined with its answer by the ties (Neumann and Kemper, "Unnesting Arbitrary
Queries", BTW 2015, whose D are the values).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.algebra.failure import can_fail
from headrace.algebra.nodes import Distinct, Join, Plan, Project, column, project
from headrace.algebra.streams import is_stream, so_far
from headrace.errors import Position
from headrace.expressions.functions.functions import resolve
from headrace.expressions.tree import Call, Column, Expression, shift_columns, walk
from headrace.language.binding.columns import OuterColumn, is_own
from headrace.language.binding.scope import BoundTable, Outer, Scope, check_domains
from headrace.schema import unique_names


@dataclass(frozen=True)
class Around:
    """What a query is bound within.

    Attributes:
        outer: the tables around it.
        values: the different values that it reads of their rows, which precede every FROM in it.
        tables: what its SELECTs have in FROM, as far as that is bound already, by the `id` of the syntax.
    """

    outer: Outer
    values: Plan | None = None
    tables: Mapping[int, BoundTable] = field(default_factory=dict)

    @property
    def ties(self) -> int:
        """How many columns are in front."""
        return 0 if self.values is None else len(self.values.schema)

    def before(self, bound: BoundTable, position: Position) -> BoundTable:
        """The rows of a FROM, with the values in front."""
        scope = replace(bound.scope, outer=self.outer)
        if self.values is None:
            return BoundTable(bound.plan, scope)
        check_domains(self.values, bound.plan, position)
        names = unique_names([*self.values.schema.names, *bound.plan.schema.names])
        # Values of an instant are answered at that instant, others over all rows so far.
        rows = bound.plan if is_stream(self.values) else so_far(bound.plan)
        plan = Join(self.values, rows, (), None, tuple(names))
        return BoundTable(plan, scope.shifted(self.ties))


def moved_out(scope: Scope) -> Outer:
    """What is around a subquery whose conditions on the rows around it, if any, are moved out of it."""
    return Outer(scope, _outer_column)


def around_values(scope: Scope, rows: Plan, columns: Sequence[int]) -> Around:
    """What is around a subquery that is answered for each value of some columns of the rows around it.

    Args:
        scope: the tables around it.
        rows: their rows, of all instants so far where it is about these.
        columns: those that it reads.
    """
    places = {index: place for place, index in enumerate(columns)}

    def seen(outer: Column) -> Column:
        return replace(outer, index=places[outer.index])

    items = tuple((rows.schema.names[index], column(rows, index)) for index in columns)
    return Around(Outer(scope, seen), Distinct(project(rows, items)))


def equal_to_ties(conjuncts: Iterable[Expression], ties: int) -> dict[int, tuple[Expression, Expression]]:
    """By tie, a conjunct that makes it equal to an expression of the other columns, and that expression."""
    found: dict[int, tuple[Expression, Expression]] = {}
    for conjunct in conjuncts:
        match conjunct:
            case Call(function="=", arguments=(one, other)):
                for tie, part in ((one, other), (other, one)):
                    if is_own(tie) and tie.index < ties and _is_apart(part, ties):
                        found.setdefault(tie.index, (conjunct, part))
            case _:
                pass
    return found


def without_values(
    plan: Plan, equals: Mapping[int, tuple[Expression, Expression]], ties: int
) -> tuple[Plan, Callable[[Expression], Expression]]:
    """The rows of a FROM that make up its ties themselves, if all of them are equal to something of the rows.

    Returns:
        The plan, and what becomes of a condition: the ties are equal to themselves where they are not NULL.
    """
    if not isinstance(plan, Join) or not 0 < ties == len(equals):
        return plan, lambda condition: condition
    parts = [shift_columns(equals[place][1], -ties) for place in range(ties)]
    rows = [column(plan.right, place) for place in range(len(plan.right.schema))]
    project = Project(plan.right, tuple(zip(plan.names, [*parts, *rows], strict=True)))
    filled = {
        conjunct: resolve("IS NOT NULL", (column(project, place),)) for place, (conjunct, _) in equals.items()
    }
    return project, lambda condition: _with_conjuncts(condition, filled)


def _with_conjuncts(condition: Expression, others: Mapping[Expression, Expression]) -> Expression:
    match condition:
        case Call(function="AND", arguments=arguments):
            return replace(condition, arguments=tuple(_with_conjuncts(part, others) for part in arguments))
        case _:
            return others.get(condition, condition)


def _is_apart(part: Expression, ties: int) -> bool:
    columns = (below for below in walk(part) if isinstance(below, Column))
    return not can_fail(part) and all(is_own(column) and column.index >= ties for column in columns)


def columns_around(rows: Plan, places: Iterable[int]) -> list[OuterColumn]:
    """Columns of the rows around a subquery, as its conditions on them read them."""
    return [_outer_column(column(rows, place)) for place in places]


def _outer_column(outer: Column) -> OuterColumn:
    return OuterColumn(outer.index, outer.name, outer.type)
