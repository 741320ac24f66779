"""The ages of rows: how long before the instant at which a row is there one of its columns lies.

The timestamp of a stream's row has the age 0 at the row's instant. In a window of ten instants it has an age
from 0 to 9, and the end of a tumbling window is one instant after the last one of the window, an age of -1.
From ages follow the windows of joins and groups: rows that a condition on timestamps tells apart need not be
remembered, and a group of whose keys one has a known age is complete at its instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

from headrace.algebra.kinds import JoinKind, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Distinct,
    Filter,
    GapFill,
    Istream,
    Join,
    Lifetime,
    OuterJoin,
    Over,
    Plan,
    Project,
    Rstream,
    Sample,
    SemiJoin,
    SessionWindow,
    SetOperation,
    Source,
    TimeWindow,
    TopK,
    Union,
    Unnest,
    WindowBounds,
)
from headrace.algebra.streams import shows_windows
from headrace.algebra.unbounded import without_unbounded_window
from headrace.expressions.functions.functions import literal, resolve
from headrace.expressions.tree import Call, Column, Expression, Literal
from headrace.language.binding.distances import sum_of
from headrace.schema import TIMESTAMP
from headrace.time import INFINITY


class Age(NamedTuple):
    """The least and the greatest age of the values of a column.

    Attributes:
        least: the least age in instants.
        most: the greatest one; None where there is none.
        nullable: whether a value may be NULL instead.
    """

    least: int
    most: int | None
    nullable: bool = False

    def older(self, least: int, most: int | None) -> Age:
        """The age so much later, at least and at most."""
        return self._replace(
            least=self.least + least, most=None if self.most is None or most is None else self.most + most
        )


def ages_of(plan: Plan) -> Mapping[int, Age]:
    """The columns of which it is known how old their values are, in every row at every instant, if not NULL.

    Args:
        plan: a bound plan.

    Returns:
        By place: the instant at which a row is there, less the value.
    """
    return _ages(plan, fresh=False)


def exact_ages(plan: Plan) -> Mapping[int, int]:
    """The columns whose values say at which instant a row is there: they are that instant less a constant."""
    ages = ages_of(plan).items()
    return {place: age.least for place, age in ages if age.least == age.most and not age.nullable}


def instant_columns(plan: Plan) -> frozenset[int] | None:
    """Columns that together say at which instant a row of a stream is there; None where none are known."""
    exact = exact_ages(plan)
    if exact:
        return frozenset([min(exact)])
    match plan:
        case Istream() | Filter() | Sample() | TimeWindow():
            return instant_columns(plan.input)
        case Join(left=left, right=right):
            ours, theirs = instant_columns(left), instant_columns(right)
            if ours is None or theirs is None:
                return None
            return ours | {len(left.schema) + place for place in theirs}
        case Project(input=below, items=items):
            needed = instant_columns(below)
            kept = {item.index: place for place, (_, item) in enumerate(items) if isinstance(item, Column)}
            if needed is None or not needed <= kept.keys():
                return None
            return frozenset(kept[place] for place in needed)
        case _:
            return None


def tells_instant(expressions: Iterable[Expression], plan: Plan) -> bool:
    """Whether rows of different instants differ in some of these expressions over the rows of a plan."""
    exact = exact_ages(plan)
    for part in expressions:
        found = sum_of(part)
        if found is not None and found.is_exact and len(found.columns) == 1:
            ((place, _),) = found.columns
            if place in exact:
                return True
    return False


def moved_by(moment: Expression, instants: int) -> Expression:
    """A point in time so many instants later."""
    if moment.type == TIMESTAMP:
        return resolve("TIMESTAMPADD", (literal("MICROSECOND"), literal(instants), moment))
    return resolve("+" if instants >= 0 else "-", (moment, literal(abs(instants))))


def _ages(plan: Plan, *, fresh: bool) -> Mapping[int, Age]:
    """The ages; `fresh` for those that rows have at the instant from which on they are there."""
    match plan:
        case Source(schema=schema, timestamp=timestamp):
            place = schema.find(timestamp)
            return {} if place is None or not plan.is_chronon else {place: Age(0, 0)}
        case Istream(input=below):
            stream = without_unbounded_window(below)
            return _ages(below, fresh=True) if stream is None else _ages(stream, fresh=False)
        case Filter() | Sample() | Distinct():
            return _ages(plan.input, fresh=fresh)
        case TopK() | Over() | Rstream():
            return _ages(plan.input, fresh=False)
        case Unnest(input=below, kept=kept):
            found = _ages(below, fresh=fresh)
            return {to: found[place] for to, place in enumerate(kept) if place in found}
        case Project(input=below, items=items):
            return _mapped(_ages(below, fresh=fresh), [item for _, item in items])
        case Aggregate(input=below, keys=keys):
            # A group is there anew whenever a row of it leaves, but for those of a window with its bounds.
            fresh = fresh and shows_windows(below)
            return _mapped(_ages(below, fresh=fresh), [key for _, key in keys])
        case GapFill(time=time):
            return {time: Age(0, 0)}
        case TimeWindow() | Lifetime() | WindowBounds() | SessionWindow():
            return _of_window(plan, fresh=fresh)
        case Join() | OuterJoin() | SemiJoin() | Union() | SetOperation():
            return _of_several(plan)
        case _:
            return {}


def _of_window(
    plan: TimeWindow | Lifetime | WindowBounds | SessionWindow, *, fresh: bool
) -> Mapping[int, Age]:
    width = len(plan.input.schema)
    match plan:
        case TimeWindow(input=below, size=size, slide=slide):
            # A row of a window that slides may come late by all but one instant of the slide.
            longest = None if size.length == INFINITY else size.length - 1 + slide.length - 1
            if fresh:
                longest = slide.length - 1
            return _older(_ages(below, fresh=False), 0, longest)
        case Lifetime(input=below, shift=shift, granule=granule):
            fixed = plan.fixed
            if fixed is None or granule.length != 1:
                return {}
            longest = None if fixed == INFINITY else shift + fixed - 1
            return _older(_ages(below, fresh=False), shift, shift if fresh else longest)
        case WindowBounds(input=below, size=size, slide=slide):
            last = -1 if fresh else slide.length - 2
            bounds = {width: Age(size.length - 1, last + size.length), width + 1: Age(-1, last)}
            # What is below is the window of the same length: its rows come with it.
            return {**_ages(below, fresh=False), **bounds}
        case SessionWindow(gap=gap):
            return {width + 1: Age(-1, -1 if fresh else gap.length - 2)}


def _of_several(plan: Join | OuterJoin | SemiJoin | Union | SetOperation) -> Mapping[int, Age]:
    match plan:
        case SemiJoin(left=left):
            return ages_of(left)
        case Union(inputs=inputs):
            return _either([ages_of(below) for below in inputs])
        case SetOperation(left=left, right=right, kind=kind):
            kept = [left] if kind in (SetKind.EXCEPT, SetKind.EXCEPT_ALL) else [left, right]
            return _either([ages_of(below) for below in kept])
        case Join(left=left, right=right) | OuterJoin(left=left, right=right):
            if isinstance(plan, Join):
                return _of_pairs(plan)
            padded = (JoinKind.RIGHT, JoinKind.FULL), (JoinKind.LEFT, JoinKind.FULL)
            found = {}
            for first, side, lost in zip((0, len(left.schema)), (left, right), padded, strict=True):
                for place, age in ages_of(side).items():
                    found[first + place] = age._replace(nullable=age.nullable or plan.kept in lost)
            return found


def _of_pairs(plan: Join) -> Mapping[int, Age]:
    """The ages in a join's pairs, where columns that are equal are of the same age."""
    width = len(plan.left.schema)
    found = {**ages_of(plan.left), **{width + place: age for place, age in ages_of(plan.right).items()}}
    for one, other in plan.equalities:
        match plain_equality(one, other):
            case Column(index=first), Column(index=second) if {first, width + second} <= found.keys():
                pair = found[first], found[width + second]
                if not any(age.nullable for age in pair):
                    least = max(age.least for age in pair)
                    most = [age.most for age in pair if age.most is not None]
                    found[first] = found[width + second] = Age(least, min(most, default=None))
            case _:
                pass
    return found


def plain_equality(one: Expression, other: Expression) -> tuple[Expression, Expression]:
    """The sides of an equality without what makes NULLs equal."""
    match one, other:
        case (
            Call(function="COALESCE", arguments=(first, Literal() as least)),
            Call(function="COALESCE", arguments=(second, Literal() as same)),
        ) if least == same:
            return first, second
        case _:
            return one, other


def _mapped(below: Mapping[int, Age], items: Sequence[Expression]) -> Mapping[int, Age]:
    """The ages of expressions: a column more or less a constant is that much younger or older."""
    found: dict[int, Age] = {}
    for place, item in enumerate(items):
        terms = sum_of(item)
        if terms is None or len(terms.columns) != 1:
            continue
        ((read, count),) = terms.columns
        if count == 1 and read in below:
            found[place] = below[read].older(floor(-terms.most), ceil(-terms.least))
    return found


def _older(ages: Mapping[int, Age], least: int, most: int | None) -> Mapping[int, Age]:
    return {place: age.older(least, most) for place, age in ages.items()}


def _either(inputs: Sequence[Mapping[int, Age]]) -> Mapping[int, Age]:
    """The ages of the rows of several inputs, of which each is of one."""
    found: dict[int, Age] = {}
    for place in frozenset.intersection(*(frozenset(ages) for ages in inputs)):
        least, most, nullable = zip(*(ages[place] for ages in inputs), strict=True)
        found[place] = Age(min(least), None if None in most else max(most), any(nullable))
    return found
