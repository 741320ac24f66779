"""The meaning of CORRELATED PAIRS: means over granules, a window of them, and its pairs, row by row."""

from __future__ import annotations

from math import gcd

from headrace.algebra.nodes import (
    Aggregate,
    Filter,
    Istream,
    Plan,
    Project,
    TimeWindow,
    Unnest,
    WindowBounds,
    column,
    project,
)
from headrace.errors import LanguageError, Position
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.coercion import is_numeric, literal, make_cast
from headrace.expressions.functions import functions
from headrace.expressions.tree import Expression, Literal
from headrace.language.binding.granules import refuse_between_granules
from headrace.language.binding.scalars.context import located
from headrace.language.binding.scope import BoundTable, Scope, ScopeTable, renamed
from headrace.language.binding.windows import chronons, windowed
from headrace.language.lengths import check_duration
from headrace.language.syntax import PairsTable, RangeWindowFrame
from headrace.schema import DOUBLE, UNKNOWN, quote, sql_type
from headrace.time import MICROSECONDS, Duration

_LARGEST = 1.7976931348623157e308
"""The largest double; what is not finite is no value."""


def correlated_pairs(item: PairsTable, data: BoundTable) -> BoundTable:
    """The pairs of the series of a table.

    Args:
        item: what is written.
        data: the query of the series.

    Raises:
        LanguageError: the query has no series and value, the lengths do not fit each other or the time of the
            series, or no pair could have values enough.
    """
    lengths = _Lengths(item, data.plan)
    named = _series(item, data.plan)
    with located(item.position):
        step = lengths.step
        bounds = WindowBounds(TimeWindow(named, step, step), step, step)
        end = len(bounds.schema) - 1
        mean = resolve_aggregate("AVG", column(bounds, 1))
        keys = (("series", column(bounds, 0)), ("at", column(bounds, end)))
        means = Istream(Aggregate(bounds, keys, (("value", mean),)))
        window = TimeWindow(means, lengths.size, lengths.slide)
        call = resolve_aggregate(
            "CORRELATED_PAIRS",
            *(column(window, place) for place in range(3)),
            *(literal(step.length), _threshold(item.above), _threshold(item.below)),
            *(literal(lengths.lags), literal(lengths.fewest)),
        )
        pairs = Aggregate(window, (), (("pairs", call),))
        names = ("first", "second", "correlation", "lag")
        # As the text of the plan is read again: what is not used below is left out later.
        rows: Plan = Unnest(pairs, column(pairs, 0), (0,), names)
        listed = names if item.lag is not None else names[:-1]
        plan = project(rows, tuple((name, column(rows, place)) for place, name in enumerate(listed, 1)))
    alias = None if item.alias is None else item.alias.text
    columns = tuple((field.name, column(plan, place)) for place, field in enumerate(plan.schema))
    scope = Scope((ScopeTable(alias, None, columns),), functions=data.scope.functions)
    return renamed(BoundTable(windowed(plan, item.window, scope), scope), item.columns)


def _threshold(value: float | None) -> Expression:
    return Literal(value, DOUBLE)


def _series(item: PairsTable, plan: Plan) -> Plan:
    """The rows that count: a series that is not NULL, and a finite value of it."""
    position = item.data.position
    if len(plan.schema) != 2:
        listed = ", ".join(quote(name) for name in plan.schema.names)
        raise LanguageError(
            "CORRELATED PAIRS OF takes a query of two columns, the series and its value, "
            f"not {len(plan.schema)}: {listed}",
            position=position,
            hint="list both: SELECT device, value FROM ...; a series of several columns is STRUCT(a, b)",
        )
    dtype = plan.schema[1].type
    if not (is_numeric(dtype) or dtype == UNKNOWN):
        raise LanguageError(
            f"the values of series are numbers, and {quote(plan.schema[1].name)} is {sql_type(dtype)}",
            position=position,
            hint="the series comes first and its value last: SELECT device, value FROM ...",
        )
    rows = chronons(plan, position)
    with located(position):
        value = make_cast(column(rows, 1), DOUBLE)
        named = Project(rows, (("series", column(rows, 0)), ("value", value)))
        size = functions.resolve("ABS", (column(named, 1),))
        known = functions.resolve("IS NOT NULL", (column(named, 0),))
        finite = functions.resolve("<=", (size, literal(_LARGEST)))
        return Filter(named, functions.resolve("AND", (known, finite)))


class _Lengths:
    """The lengths of the window, in steps that divide it.

    Args:
        item: what is written.
        plan: the series.

    Attributes:
        size, slide: of the window.
        step: the distance of the instants at which series are compared; the slide where none is written.
        lags: by up to so many steps one series may follow another.
        fewest: so many values must a pair have in common; where none is written half of those of the window,
            and no more than the longest lag leaves.

    Raises:
        LanguageError: they do not fit each other.
    """

    def __init__(self, item: PairsTable, plan: Plan) -> None:
        frame, position = item.over.frame, item.over.position
        assert isinstance(frame, RangeWindowFrame)
        step, place = (frame.slide, position) if item.step is None else item.step
        assert step is not None
        self.size, self.slide, self.step = frame.size, frame.slide or step, step
        clauses = [("RANGE", self.size, position), ("ALIGN", step, place)]
        clauses[1:1] = [] if frame.slide is None else [("SLIDE", frame.slide, position)]
        for word, length, at in clauses[: 3 if item.step is not None else 2]:
            check_duration(length, plan.domain, word, at)
            refuse_between_granules(length, plan, lambda found, word=word: f"{word} {found}", at)  # type: ignore[misc]
            if length.length < 1:
                raise LanguageError(f"{word} {length} is too short", position=at, hint=f"write {word} 1")
        self._divide(clauses, "SLIDE" if item.step is None else "ALIGN", place)
        self._values = self.size.length // step.length
        self.lags = self._lags(item, plan)
        self.fewest = self._fewest(item)

    def _divide(self, clauses: list[tuple[str, Duration, Position]], by: str, place: Position) -> None:
        """Refuse a step that does not divide the window and its slide."""
        for word, length, _ in clauses:
            if length.length % self.step.length:
                whole = _shown(gcd(self.size.length, self.slide.length, self.step.length), clauses)
                raise LanguageError(
                    f"{by} {self.step} does not divide {word} {length}",
                    position=place,
                    hint=f"write ALIGN {whole}, or lengths that are multiples of {self.step}",
                )

    def _lags(self, item: PairsTable, plan: Plan) -> int:
        if item.lag is None:
            return 0
        longest, place = item.lag
        check_duration(longest, plan.domain, "LAG UP TO", place)
        if longest.length >= self.size.length:
            raise LanguageError(
                f"LAG UP TO {longest} is not shorter than RANGE {self.size}",
                position=place,
                hint=f"write a lag that leaves values to compare, such as LAG UP TO {self.step}",
            )
        if longest.length % self.step.length:
            raise LanguageError(
                f"LAG UP TO {longest} is no multiple of {self.step}, by which the series are aligned",
                position=place,
                hint=f"write LAG UP TO {self.step}, or a finer ALIGN",
            )
        return longest.length // self.step.length

    def _fewest(self, item: PairsTable) -> int:
        most = self._values - self.lags
        if self._values < 2:
            raise LanguageError(
                f"RANGE {self.size} has one value of each series, {self.step} apart, and two are needed",
                position=item.over.position,
                hint="write a longer RANGE, or a finer ALIGN",
            )
        if item.lag is not None and most < 2:
            raise LanguageError(
                f"LAG UP TO {item.lag[0]} leaves one value of RANGE {self.size}, {self.step} apart, "
                "and two are needed",
                position=item.lag[1],
                hint=f"write a shorter lag, such as LAG UP TO {self.step}",
            )
        if item.fewest is None:
            return min(max(2, -(-self._values // 2)), most)
        fewest, place = item.fewest
        if fewest > most:
            lag = "" if item.lag is None else f" with a lag of {item.lag[0]}"
            raise LanguageError(
                f"RANGE {self.size} has {most} values {self.step} apart{lag}, and AT LEAST wants {fewest}",
                position=place,
                hint=f"write AT LEAST {most} VALUES, or fewer",
            )
        return fewest


def _shown(length: int, clauses: list[tuple[str, Duration, Position]]) -> Duration:
    """A length in the coarsest unit of those written that fits, or in microseconds."""
    units = [part.unit for _, part, _ in clauses if part.unit is not None]
    if not units:
        return Duration(length)
    fitting = [unit for unit in MICROSECONDS if length % MICROSECONDS[unit] == 0]
    return Duration(length, max(fitting, key=MICROSECONDS.__getitem__))
