"""The joins that answer what subqueries ask of the rows around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import (
    Distinct,
    Filter,
    Join,
    OuterJoin,
    Plan,
    Project,
    SemiJoin,
    Union,
    column,
    project,
)
from headrace.algebra.nulls import null_safe_equalities
from headrace.algebra.predicates import Equality, conjunction, conjuncts, split_equalities
from headrace.algebra.properties import is_constant
from headrace.algebra.streams import so_far
from headrace.expressions.functions.functions import make_case, resolve
from headrace.expressions.tree import Call, Column, Expression, Literal, shift_columns, transform_columns
from headrace.language.binding.columns import InnerColumn, SubqueryPlace, own_columns, places_in
from headrace.language.binding.related import related
from headrace.language.binding.subqueries.questions import (
    Matching,
    Single,
    SubqueryPart,
    _test,
    asked_of,
    change_part,
)
from headrace.schema import BOOLEAN, unique_names


def keep(plan: Plan, conditions: Iterable[Expression], parts: Sequence[SubqueryPart]) -> Plan:
    """The rows for which all conditions are true; a condition that is one subquery costs one semi-join."""
    given = list(conditions)
    plain = conjunction(part for part in given if not places_in(part))
    rows = _Rows(plan if plain is None else Filter(plan, plain), parts)
    for condition in given:
        if places_in(condition):
            rows.keep(condition)
    return _narrowed(rows.plan, plan)


def extend(
    plan: Plan, expressions: Sequence[Expression], parts: Sequence[SubqueryPart]
) -> tuple[Plan, list[Expression]]:
    """The plan with a column more for each subquery, and the expressions over it."""
    rows = _Rows(plan, parts)
    for expression in expressions:
        rows.answer(expression)
    return rows.plan, [rows.over(expression) for expression in expressions]


class _Rows:
    """Rows, and the columns that answer the subqueries that were joined to them so far."""

    def __init__(self, plan: Plan, parts: Sequence[SubqueryPart]) -> None:
        self.plan = plan
        self._original = plan
        self._parts = parts
        self._answers: dict[int, Column] = {}

    def answer(self, expression: Expression) -> None:
        """Join the subqueries that an expression reads, and distinguish NULL from FALSE."""
        self._answer(expression, exact=places_in(expression))

    def over(self, expression: Expression) -> Expression:
        """An expression over the rows, with the answers in their places."""
        return transform_columns(expression, self._resolved)

    def keep(self, condition: Expression) -> None:
        """Leave out the rows for which a condition is not true."""
        match _without_double_not(condition):
            case SubqueryPlace(index=place) if isinstance(self._parts[place], Matching):
                self._keep_matching(self._matching(place), anti=False)
            case Call(function="NOT", arguments=(SubqueryPlace(index=place),)) if isinstance(
                self._parts[place], Matching
            ):
                self._keep_matching(self._matching(place), anti=True)
            case other:
                self._answer(other, exact=places_in(other) - _true_only(other))
                self.plan = Filter(self.plan, self.over(other))

    def _matching(self, place: int) -> Matching:
        part = self._parts[place]
        assert isinstance(part, Matching)
        self._answer_within(part)
        return part

    def _answer_within(self, part: SubqueryPart) -> None:
        """Join the subqueries that a subquery's operands read, which must be of these rows."""
        for expression in asked_of(part):
            self.answer(expression)

    def _keep_matching(self, part: Matching, *, anti: bool) -> None:
        if not anti:
            self.plan = self._semi_join(part, _test(part), anti=False)
            return
        for tests in _not_false(part.test):
            self.plan = self._semi_join(part, tests, anti=True)

    def _semi_join(self, part: SubqueryPart, tests: tuple[Expression, ...], *, anti: bool) -> Plan:
        equalities, residual = self._conditions(part, tests)

        def joined(kind: JoinKind, one: Plan, other: Plan, swapped: bool) -> Plan:
            return SemiJoin(one, other, equalities, residual, kind is JoinKind.ANTI)

        kind = JoinKind.ANTI if anti else JoinKind.SEMI
        return related(kind, self.plan, part.plan, self._met(equalities, residual), joined)

    def _met(self, equalities: Iterable[Equality], residual: Expression | None) -> list[Expression]:
        """The conditions on the rows and those of a subquery that match, whose columns follow."""
        width = len(self.plan.schema)
        equal = [Call("=", (one, shift_columns(other, width)), BOOLEAN) for one, other in equalities]
        return [*equal, *([] if residual is None else conjuncts(residual))]

    def _conditions(
        self, part: SubqueryPart, tests: tuple[Expression, ...] = ()
    ) -> tuple[tuple[Equality, ...], Expression | None]:
        joined = [self.over(test) for test in (*part.conditions, *tests)]
        parts = [single for test in joined for single in conjuncts(test) if single != Literal(True, BOOLEAN)]
        equalities, rest = split_equalities(parts, len(self.plan.schema))
        return equalities, conjunction(rest)

    def _resolved(self, part: Column) -> Column:
        match part:
            case SubqueryPlace(index=place):
                return self._answers[place]
            case InnerColumn(index, name, dtype):
                return Column(index + len(self.plan.schema), name, dtype)
            case _:
                return part

    def _answer(self, expression: Expression, exact: frozenset[int]) -> None:
        """Join the subqueries that an expression reads; only exact ones distinguish NULL from FALSE."""
        for place in sorted(places_in(expression) - self._answers.keys()):
            match self._parts[place]:
                case Single() as part:
                    self._answer_within(part)
                    self._add(place, self._with_value(part))
                case Matching():
                    matching = self._matching(place)
                    self._add(place, self._with_truth(matching, three_valued=place in exact))

    def _add(self, place: int, plan: Plan) -> None:
        self.plan = plan
        self._answers[place] = column(plan, len(plan.schema) - 1)

    def _with_value(self, part: Single) -> Plan:
        equalities, residual = self._conditions(part)
        names = tuple(unique_names([*self.plan.schema.names, *part.plan.schema.names]))

        def joined(kind: JoinKind, one: Plan, other: Plan, swapped: bool) -> Plan:
            if kind is JoinKind.ANTI:
                return SemiJoin(one, other, equalities, residual, anti=True)
            if kind is JoinKind.INNER:
                return Join(one, other, equalities, residual, names)
            return OuterJoin(one, other, equalities, residual, names, kind)

        met = self._met(equalities, residual)
        join = related(JoinKind.LEFT, self.plan, part.plan, met, joined)
        return _with_column(join, len(self.plan.schema), "value", self.over(part.value))

    def _with_truth(self, part: Matching, *, three_valued: bool) -> Plan:
        """The rows with TRUE, FALSE or NULL, which is asked once for each of the values that are read."""
        width = len(self.plan.schema)
        if not is_constant(part.plan):
            self.plan, self._original = so_far(self.plan), so_far(self._original)
        read = (own_columns(self.over(expression)) for expression in asked_of(part))
        columns = sorted(index for index in frozenset[int]().union(*read) if index < width)
        marks = self._marks(part, columns, three_valued=three_valued)
        equalities = tuple(null_safe_equalities((column(self.plan, index) for index in columns), marks))
        names = tuple(unique_names([*self.plan.schema.names, *marks.schema.names]))
        join = OuterJoin(self.plan, marks, equalities, None, names, JoinKind.LEFT)
        mark = column(join, len(join.schema) - 1)
        truth = resolve("IS NOT NULL", (mark,))
        if three_valued and part.test is not None:
            truth = make_case(((mark, mark), (truth, Literal(None, BOOLEAN))), Literal(False, BOOLEAN))
        return _with_column(join, width, "matches", truth)

    def _marks(self, part: Matching, columns: Sequence[int], *, three_valued: bool) -> Plan:
        """The different values of some columns with TRUE if the test holds, with FALSE if it is unknown."""
        # The answers of subqueries before this one are not joined once more, unless it reads them.
        rows = self._original if max(columns, default=0) < len(self._original.schema) else self.plan
        items = tuple((rows.schema.names[index], column(rows, index)) for index in columns)
        values = _Rows(Distinct(project(rows, items or (("any", Literal(True, BOOLEAN)),))), ())

        def moved(read: Column) -> Column:
            if isinstance(read, InnerColumn):
                return read
            return Column(columns.index(self._resolved(read).index), read.name, read.type)

        asked = change_part(part, lambda expression: transform_columns(expression, moved))
        true = _test(asked)
        marked = [(values._semi_join(asked, true, anti=False), True)]
        if three_valued and true:
            rest = _Rows(values._semi_join(asked, true, anti=True), ())
            marked.append((rest._semi_join(asked, (resolve("IS NULL", true),), anti=False), False))
        plans = [_with_column(plan, len(columns), "mark", Literal(mark, BOOLEAN)) for plan, mark in marked]
        return plans[0] if len(plans) == 1 else Union(tuple(plans))


def _with_column(plan: Plan, width: int, name: str, value: Expression) -> Plan:
    """The first columns of a plan and one more."""
    names = unique_names([*plan.schema.names[:width], name])
    return Project(
        plan, tuple(zip(names, [*(column(plan, place) for place in range(width)), value], strict=True))
    )


def _narrowed(plan: Plan, original: Plan) -> Plan:
    width = len(original.schema)
    if len(plan.schema) == width:
        return plan
    items = ((name, column(plan, place)) for place, name in enumerate(original.schema.names))
    return Project(plan, tuple(items))


def _not_false(test: Expression | None) -> list[tuple[Expression, ...]]:
    """Tests that together hold if the given one is true or unknown; none of them is ever unknown itself."""
    match test:
        case None:
            return [()]
        case Call(function="=", arguments=(one, other)):
            # One by one, since an equality finds its partners by hash, and NULLs are few.
            return [(test,), (resolve("IS NULL", (other,)),), (resolve("IS NULL", (one,)),)]
        case Call(function="NOT", arguments=(inner,)):
            return [(_is_not(inner, True),)]
        case _:
            return [(_is_not(test, False),)]


def _is_not(test: Expression, truth: bool) -> Expression:
    same = resolve("IS NOT DISTINCT FROM", (test, Literal(truth, BOOLEAN)))
    return resolve("NOT", (same,))


def _without_double_not(condition: Expression) -> Expression:
    match condition:
        case Call(function="NOT", arguments=(Call(function="NOT", arguments=(inner,)),)):
            return _without_double_not(inner)
        case _:
            return condition


def _true_only(condition: Expression) -> frozenset[int]:
    """The places for which it does not matter to the condition's truth whether they are FALSE or NULL."""
    match condition:
        case SubqueryPlace(index=place):
            return frozenset([place])
        case Call(function="AND" | "OR", arguments=arguments):
            positive = [_true_only(part) for part in arguments]
            others = (places_in(part) - own for part, own in zip(arguments, positive, strict=True))
            return frozenset[int]().union(*positive) - frozenset[int]().union(*others)
        case _:
            return frozenset()
