"""Subqueries in expressions: what they ask of the rows around them, and the joins that answer it.

While an expression is bound, a subquery in it is a place: a column numbered from `PLACE` on. Columns of the
rows around a subquery are numbered from `OUTER` on inside it. Afterwards `keep` and `extend` turn the places
into semi-joins, anti-joins and outer joins with the subquery's rows; what tied the subquery to the rows
around it becomes their condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import (
    Distinct,
    Filter,
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
from headrace.errors import LanguageError, Position
from headrace.expressions.functions import make_case, resolve
from headrace.expressions.tree import Call, Column, Expression, Literal, columns_of, transform_columns
from headrace.language.scope import OUTER, Scope
from headrace.language.syntax import Query, TopQuery
from headrace.schema import BIGINT, BOOLEAN, unique_names

INNER: Final = 1 << 21
"""In what a subquery asks, its own column i is column `INNER + i`."""
PLACE: Final = 1 << 22
"""What the k-th subquery of an expression answers is column `PLACE + k`."""


class EntangledError(Exception):
    """A subquery reads the rows around it where its conditions on them cannot be moved out of it."""


@dataclass(frozen=True)
class Inner:
    """A bound subquery.

    Attributes:
        plan: its rows, before the SELECT list.
        conditions: conditions between them and the row around it, whose columns start at `OUTER`.
        items: the SELECT list, over the same columns.
        single: whether it has no more than one row for each row around it.
        zeros: the columns that are 0, and not NULL, where it has none: counts.
    """

    plan: Plan
    conditions: tuple[Expression, ...]
    items: tuple[tuple[str, Expression], ...]
    single: bool
    zeros: frozenset[int] = frozenset()


Nest = Callable[[Query, Plan, Scope], Inner]
"""Binds a subquery over the rows around it."""


@dataclass(frozen=True)
class Matching:
    """Whether some row satisfies the conditions and the test; NULL if for none it is more than unknown."""

    plan: Plan
    conditions: tuple[Expression, ...]
    test: Expression | None


@dataclass(frozen=True)
class Single:
    """A value of the only row that satisfies the conditions; its columns are NULL where there is none."""

    plan: Plan
    conditions: tuple[Expression, ...]
    value: Expression


Part = Matching | Single


class Nesting:
    """Collects the subqueries of a clause.

    Attributes:
        parts: what they ask, by place.
    """

    def __init__(self, bind: Callable[[Query], Inner]) -> None:
        self._bind = bind
        self.parts: list[Part] = []

    def exists(self, query: Query) -> Expression:
        """The place that says whether a subquery has a row, which a LIMIT does not change."""
        while isinstance(query, TopQuery) and query.limit != 0 and query.offset == 0:
            query = query.query
        inner = self._bind(query)
        return self._place(Matching(inner.plan, _seen(inner.conditions), None), "matches", BOOLEAN)

    def some(
        self, query: Query, width: int, test: Callable[[Sequence[Expression]], Expression], position: Position
    ) -> Expression:
        """The place that says whether a test holds for some row, by SQL's three values.

        Args:
            query: the subquery.
            width: how many columns it must have.
            test: the test of its columns.
            position: where it stands, for errors.

        Raises:
            LanguageError: it has another number of columns.
        """
        inner = self._bind(query)
        _require_width(inner, width, position)
        tested = test(_seen(item for _, item in inner.items))
        return self._place(Matching(inner.plan, _seen(inner.conditions), tested), "matches", BOOLEAN)

    def value(self, query: Query, position: Position) -> Expression:
        """The place of the value of a subquery of one column and at most one row.

        Raises:
            LanguageError: it has more columns, or may have more rows.
        """
        inner = self._bind(query)
        _require_width(inner, 1, position)
        if not inner.single:
            raise LanguageError(
                "the subquery may have more than one row",
                position=position,
                hint="aggregate in it, such as SELECT MAX(x) ..., or compare with = ANY (...)",
            )
        ((name, item),) = inner.items
        (value,) = _seen([transform_columns(item, lambda part: _or_zero(part, inner.zeros))])
        return self._place(Single(inner.plan, _seen(inner.conditions), value), name, value.type)

    def _place(self, part: Part, name: str, dtype: object) -> Expression:
        if part not in self.parts:
            self.parts.append(part)
        return Column(PLACE + self.parts.index(part), name, dtype)


def reads_outer(expression: Expression) -> bool:
    """Whether an expression reads the row around its subquery."""
    return any(OUTER <= index < INNER for index in columns_of(expression))


def places_in(expression: Expression) -> frozenset[int]:
    """The places of subqueries that an expression reads."""
    return frozenset(index - PLACE for index in columns_of(expression) if index >= PLACE)


def columns_read(part: Part) -> frozenset[int]:
    """The columns that what a subquery asks reads, its own and places among them."""
    value = (part.value,) if isinstance(part, Single) else _test(part)
    return frozenset[int]().union(*map(columns_of, (*part.conditions, *value)))


def places_of(part: Part) -> frozenset[int]:
    """The places of subqueries that what a subquery asks reads."""
    return frozenset(index - PLACE for index in columns_read(part) if index >= PLACE)


def change_part(part: Part, change: Callable[[Expression], Expression]) -> Part:
    """What a subquery asks, with its expressions changed."""
    conditions = tuple(map(change, part.conditions))
    match part:
        case Matching(test=test):
            return Matching(part.plan, conditions, None if test is None else change(test))
        case Single(value=value):
            return Single(part.plan, conditions, change(value))


def keep(plan: Plan, conditions: Iterable[Expression], parts: Sequence[Part]) -> Plan:
    """The rows for which all conditions are true; a condition that is one subquery costs one semi-join."""
    given = list(conditions)
    plain = conjunction(part for part in given if not places_in(part))
    rows = _Rows(plan if plain is None else Filter(plan, plain), parts)
    for condition in given:
        if places_in(condition):
            rows.keep(condition)
    return _narrowed(rows.plan, plan)


def extend(
    plan: Plan, expressions: Sequence[Expression], parts: Sequence[Part]
) -> tuple[Plan, list[Expression]]:
    """The plan with a column more for each subquery, and the expressions over it."""
    rows = _Rows(plan, parts)
    for expression in expressions:
        rows.answer(expression)
    return rows.plan, [rows.over(expression) for expression in expressions]


class _Rows:
    """Rows, and the columns that answer the subqueries that were joined to them so far."""

    def __init__(self, plan: Plan, parts: Sequence[Part]) -> None:
        self.plan = plan
        self._original = plan
        self._parts = parts
        self._answers: dict[int, Column] = {}

    def answer(self, expression: Expression) -> None:
        """Join the subqueries that an expression reads, and tell NULL from FALSE."""
        self._answer(expression, exact=places_in(expression))

    def over(self, expression: Expression) -> Expression:
        """An expression over the rows, with the answers in their places."""
        return transform_columns(expression, self._resolved)

    def keep(self, condition: Expression) -> None:
        """Leave out the rows for which a condition is not true."""
        match _without_double_not(condition):
            case Column(index=index) if index >= PLACE and isinstance(self._parts[index - PLACE], Matching):
                self._keep_matching(self._matching(index), anti=False)
            case Call(function="NOT", arguments=(Column(index=index),)) if index >= PLACE and isinstance(
                self._parts[index - PLACE], Matching
            ):
                self._keep_matching(self._matching(index), anti=True)
            case other:
                self._answer(other, exact=places_in(other) - _true_only(other))
                self.plan = Filter(self.plan, self.over(other))

    def _matching(self, index: int) -> Matching:
        part = self._parts[index - PLACE]
        assert isinstance(part, Matching)
        for expression in (*part.conditions, *_test(part)):
            self.answer(expression)
        return part

    def _keep_matching(self, part: Matching, *, anti: bool) -> None:
        if not anti:
            self.plan = self._semi_join(part, _test(part), anti=False)
            return
        for tests in _not_false(part.test):
            self.plan = self._semi_join(part, tests, anti=True)

    def _semi_join(self, part: Part, tests: tuple[Expression, ...], *, anti: bool) -> Plan:
        equalities, residual = self._conditions(part, tests)
        return SemiJoin(self.plan, part.plan, equalities, residual, anti)

    def _conditions(
        self, part: Part, tests: tuple[Expression, ...] = ()
    ) -> tuple[tuple[Equality, ...], Expression | None]:
        joined = [self.over(test) for test in (*part.conditions, *tests)]
        parts = [single for test in joined for single in conjuncts(test) if single != Literal(True, BOOLEAN)]
        equalities, rest = split_equalities(parts, len(self.plan.schema))
        return equalities, conjunction(rest)

    def _resolved(self, part: Column) -> Column:
        if part.index >= PLACE:
            return self._answers[part.index - PLACE]
        if part.index >= INNER:
            return replace(part, index=part.index - INNER + len(self.plan.schema))
        return part

    def _answer(self, expression: Expression, exact: frozenset[int]) -> None:
        """Join the subqueries that an expression reads; only for exact ones NULL is told from FALSE."""
        for place in sorted(places_in(expression) - self._answers.keys()):
            match self._parts[place]:
                case Single() as part:
                    for below in (*part.conditions, part.value):
                        self.answer(below)
                    self._add(place, self._with_value(part))
                case Matching():
                    matching = self._matching(PLACE + place)
                    self._add(place, self._with_truth(matching, three_valued=place in exact))

    def _add(self, place: int, plan: Plan) -> None:
        self.plan = plan
        self._answers[place] = column(plan, len(plan.schema) - 1)

    def _with_value(self, part: Single) -> Plan:
        equalities, residual = self._conditions(part)
        names = tuple(unique_names([*self.plan.schema.names, *part.plan.schema.names]))
        join = OuterJoin(self.plan, part.plan, equalities, residual, names, JoinKind.LEFT)
        return _with_column(join, len(self.plan.schema), "value", self.over(part.value))

    def _with_truth(self, part: Matching, *, three_valued: bool) -> Plan:
        """The rows with TRUE, FALSE or NULL, which is asked once for each of the values that are read."""
        width = len(self.plan.schema)
        read = (columns_of(self.over(expression)) for expression in (*part.conditions, *_test(part)))
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
            if INNER <= read.index < PLACE:
                return read
            return replace(read, index=columns.index(self._resolved(read).index))

        asked = change_part(part, lambda expression: transform_columns(expression, moved))
        true = _test(asked)
        marked = [(values._semi_join(asked, true, anti=False), True)]
        if three_valued and true:
            rest = _Rows(values._semi_join(asked, true, anti=True), ())
            marked.append((rest._semi_join(asked, (resolve("IS NULL", true),), anti=False), False))
        plans = [_with_column(plan, len(columns), "mark", Literal(mark, BOOLEAN)) for plan, mark in marked]
        return plans[0] if len(plans) == 1 else Union(tuple(plans))


def _test(part: Part) -> tuple[Expression, ...]:
    return () if not isinstance(part, Matching) or part.test is None else (part.test,)


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
        case Column(index=index) if index >= PLACE:
            return frozenset([index - PLACE])
        case Call(function="AND" | "OR", arguments=arguments):
            positive = [_true_only(part) for part in arguments]
            others = (places_in(part) - own for part, own in zip(arguments, positive, strict=True))
            return frozenset[int]().union(*positive) - frozenset[int]().union(*others)
        case _:
            return frozenset()


def _seen(expressions: Iterable[Expression]) -> tuple[Expression, ...]:
    """A subquery's expressions as the rows around it see them."""

    def moved(part: Column) -> Column:
        if part.index >= PLACE:
            raise AssertionError("a subquery's own subqueries are joined before")
        index = part.index - OUTER if part.index >= OUTER else part.index + INNER
        return replace(part, index=index)

    return tuple(transform_columns(expression, moved) for expression in expressions)


def _or_zero(part: Column, zeros: frozenset[int]) -> Expression:
    return resolve("COALESCE", (part, Literal(0, BIGINT))) if part.index in zeros else part


def _require_width(inner: Inner, width: int, position: Position) -> None:
    if len(inner.items) != width:
        raise LanguageError(
            f"the subquery has {len(inner.items)} column{'s' * (len(inner.items) > 1)}, not {width}",
            position=position,
            hint="list as many columns in its SELECT as it is compared with",
        )
