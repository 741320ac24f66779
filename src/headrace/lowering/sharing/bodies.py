"""Bodies: what an operator computes, whichever of its columns somebody reads.

Pruning gives every query the columns that it reads and no others, so that two queries over one join have two
different plans as soon as their SELECT lists differ. A body is the join without regard to that: its columns
are numbered as queries come to read them, and a plan is a body with some of its columns in some order. Joins
whose inputs are written in either order have one body, and so have aggregates over the same groups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from headrace.algebra.failure import aggregate_can_fail, can_fail
from headrace.algebra.nodes import (
    Aggregate,
    Clip,
    Filter,
    Granularity,
    Join,
    LimitedJoin,
    Plan,
    Project,
    Relation,
    Rstream,
    Sample,
    Source,
    Split,
    TimeWindow,
    Union,
    WindowBounds,
    inputs_of,
)
from headrace.algebra.predicates import Equality, conjuncts
from headrace.algebra.properties import is_stateful, parameters_of
from headrace.expressions.tree import AggregateCall, Column, Expression, transform_call, transform_columns
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.schema import Schema
from headrace.time import Duration

START, END = -1, -2
"""The columns that `WindowBounds` adds, among those of its input."""

NUMBER = -3
"""The column of `NestedBody` that says of which window a row is."""


@dataclass(frozen=True)
class BodyReading:
    """A plan as a part of a body.

    Attributes:
        body: the body's number.
        columns: for each column of the plan its number among the body's.
    """

    body: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Instead:
    """A body as the rows of another one for which conditions are true.

    Attributes:
        body: the other one.
        columns: for each column of the body its number in the other one.
        parts: the conditions, over the other one's columns.
    """

    body: int
    columns: tuple[int, ...]
    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class LeafBody:
    """A source or a relation, without columns here; a column is known by its name."""

    node: Source | Relation


@dataclass(frozen=True)
class Filtered:
    """The rows of a body for which all parts are true; a column is known by its number in the input."""

    input: int
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class TimedBody:
    """A body whose rows are valid at other instants; a column is known by its number in the input."""

    kind: type[TimeWindow | Granularity | Split | Clip | Rstream]
    parameters: tuple[object, ...]
    input: int


@dataclass(frozen=True)
class Bounded:
    """A body with the bounds of windows; a column is known by its number in the input, `START` or `END`."""

    kind: type[WindowBounds]
    parameters: tuple[Duration, ...]
    input: int


@dataclass(frozen=True)
class ComputedBody:
    """Expressions over a body; a column is known by its expression.

    Attributes:
        failing: those that can fail, which are computed though nobody reads them.
    """

    input: int
    failing: tuple[Expression, ...]


@dataclass(frozen=True)
class Paired:
    """A join; a column is known by its side and its number there, which conditions give as `paired` says."""

    left: int
    right: int
    equalities: tuple[Equality, ...]
    residual: Expression | None


@dataclass(frozen=True)
class GroupedBody:
    """An aggregation; a column is known by the place of its key, or by its aggregate.

    Attributes:
        failing: the aggregates that can fail: they end or fail for those queries only that ask for them.
        values: what the aggregates need values of, beside sums: all of them, or the outermost ones alone.
        order: how these are sorted, each descending or not, with NULL first or not; None where all count.
        apart: the aggregates whose results are not shown together with others, or None; see `_alone`.
    """

    input: int
    keys: tuple[Expression, ...]
    settled: bool
    failing: frozenset[AggregateCall]
    values: tuple[Expression, ...]
    order: tuple[tuple[bool, bool], ...] | None
    apart: frozenset[AggregateCall] | None


@dataclass(frozen=True)
class NestedBody:
    """Aggregates over windows that end together; a column is known as one of `GroupedBody`, or `NUMBER`.

    Attributes:
        input: the longest window.
        shorter: the sizes of the others, from the longest.
        keys: over the input.
        calls: the aggregates, over the input.
    """

    input: int
    shorter: tuple[Duration, ...]
    keys: tuple[Expression, ...]
    calls: frozenset[AggregateCall]


@dataclass(frozen=True)
class United:
    """A union; a column is known by its numbers in the inputs."""

    inputs: tuple[int, ...]


@dataclass(frozen=True)
class WholeBody:
    """A node that looks at whole rows, and so has just these inputs; a column is known by its place."""

    kind: type[Plan]
    parameters: tuple[object, ...]
    inputs: tuple[BodyReading, ...]


What = (
    LeafBody
    | Filtered
    | TimedBody
    | Bounded
    | ComputedBody
    | Paired
    | GroupedBody
    | NestedBody
    | United
    | WholeBody
)


@dataclass
class Body:
    """What an operator computes, and the columns of it that are read.

    Attributes:
        what: what it computes, over the bodies of its inputs.
        example: the first plan that was found to be a part of it.
        keeps_state: whether its operator keeps state.
        columns: what its columns are, by number.
        names: what they are called, by number.
        readers: the numbers of the different plans that are parts of it, those apart that only pick columns.
    """

    what: What
    example: Plan
    keeps_state: bool
    columns: list[Hashable] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    readers: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, column: Hashable, name: str) -> int:
        """The number of a column, which is added if it is new."""
        if column not in self._numbers:
            self._numbers[column] = len(self.columns)
            self.columns.append(column)
            self.names.append(name)
        return self._numbers[column]


class Bodies:
    """The bodies of some plans, those of inputs before those of what reads them.

    Attributes:
        bodies: by number.
    """

    def __init__(self) -> None:
        self.bodies: list[Body] = []
        self._numbers: dict[What, int] = {}
        self._plans: dict[Hashable, int] = {}
        self._readings: list[BodyReading] = []
        self._known: dict[int, tuple[Plan, int]] = {}
        self._instead: dict[int, Callable[[], Instead]] = {}

    def put_instead(self, number: int, instead: Callable[[], Instead]) -> None:
        """Take plans for a part of another body, from now on.

        Args:
            number: the body of which they would be parts.
            instead: the other body, asked for when all columns of the first one are known.
        """
        self._instead[number] = instead

    def add(self, plan: Plan) -> int:
        """The number of a plan, the same for equal plans; its body is added with those below it."""
        if id(plan) not in self._known:
            # The plan is kept, so that no other can get its id.
            self._known[id(plan)] = plan, self._add(plan)
        return self._known[id(plan)][1]

    def put(self, what: What, example: Plan) -> int:
        """The number of a body with state, which is added if it is new."""
        if what not in self._numbers:
            self._numbers[what] = len(self.bodies)
            self.bodies.append(Body(what, example, keeps_state=True))
        return self._numbers[what]

    def find(self, what: What) -> int | None:
        """The number of a body, if there is one."""
        return self._numbers.get(what)

    def forget(self) -> None:
        """Take away the plans, and keep the bodies with their numbers."""
        for known in (self._plans, self._readings, self._known):
            known.clear()
        for body in self.bodies:
            body.readers.clear()

    def used(self, numbers: Iterable[int]) -> set[int]:
        """Bodies with all bodies below them, by number."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += inputs_read(self.bodies[number].what)
        return found

    def reading(self, number: int) -> BodyReading:
        """A plan as a part of its body, by the plan's number."""
        return self._readings[number]

    def _add(self, plan: Plan) -> int:
        inputs = tuple(map(self.add, inputs_of(plan)))
        key = (type(plan), parameters_of(plan), inputs)
        if key not in self._plans:
            self._plans[key] = len(self._readings)
            self._readings.append(self._read(plan, [self._readings[below] for below in inputs]))
        return self._plans[key]

    def _read(self, plan: Plan, inputs: Sequence[BodyReading]) -> BodyReading:
        below = inputs[0] if inputs else None
        match plan:
            case Source(schema=schema) | Relation(schema=schema):
                leaf = LeafBody(replace(plan, schema=Schema(())))
                return self._part(plan, leaf, tuple(schema))
            case Filter(predicate=predicate):
                assert below is not None
                parts = _sorted(over(part, below.columns) for part in conjuncts(predicate))
                return self._part(plan, Filtered(below.body, parts), below.columns)
            case TimeWindow() | Granularity() | Split() | Clip() | Rstream():
                assert below is not None
                return self._part(plan, TimedBody(type(plan), parameters_of(plan), below.body), below.columns)
            case WindowBounds(size=size, slide=slide, offset=offset):
                assert below is not None
                bounded = Bounded(type(plan), (size, slide, offset), below.body)
                return self._part(plan, bounded, (*below.columns, START, END))
            case Project():
                assert below is not None
                return self._project(plan, below)
            case Join() if not isinstance(plan, LimitedJoin):
                return self._join(plan, *inputs)
            case Aggregate():
                assert below is not None
                return self._aggregate(plan, below)
            case Union():
                united = United(tuple(part.body for part in inputs))
                return self._part(plan, united, tuple(zip(*(part.columns for part in inputs), strict=True)))
            case _:
                whole = WholeBody(type(plan), parameters_of(plan), tuple(inputs))
                return self._part(plan, whole, tuple(range(len(plan.schema))))

    def _project(self, plan: Project, below: BodyReading) -> BodyReading:
        items = tuple(over(item, below.columns) for _, item in plan.items)
        picked = tuple(item.index for item in items if isinstance(item, Column))
        if len(picked) == len(items):
            return BodyReading(below.body, picked)
        failing = tuple(dict.fromkeys(filter(can_fail, items)))
        return self._part(plan, ComputedBody(below.body, failing), items)

    def _join(self, plan: Join, left: BodyReading, right: BodyReading) -> BodyReading:
        pairs = [(over(one, left.columns), over(other, right.columns)) for one, other in plan.equalities]
        columns = [(False, one) for one in left.columns] + [(True, one) for one in right.columns]
        residual = plan.residual
        if residual is not None:
            residual = over(residual, [paired(*one) for one in columns])
        what, swapped = join_of(left.body, right.body, pairs, residual)
        return self._instead_of(
            plan, self._part(plan, what, [(side != swapped, one) for side, one in columns])
        )

    def _instead_of(self, plan: Plan, reading: BodyReading) -> BodyReading:
        """A part of a body, or of another one that is read instead of it."""
        if reading.body not in self._instead:
            return reading
        instead = self._instead[reading.body]()
        self.bodies[instead.body].readers.add(len(self._readings))
        columns = tuple(instead.columns[one] for one in reading.columns)
        if not instead.parts:
            return BodyReading(instead.body, columns)
        return self._part(plan, Filtered(instead.body, _sorted(instead.parts)), columns)

    def _aggregate(self, plan: Aggregate, below: BodyReading) -> BodyReading:
        keys = tuple(over(key, below.columns) for _, key in plan.keys)
        calls = [transform_call(call, lambda part: over(part, below.columns)) for _, call in plan.aggregates]
        failing = frozenset(filter(aggregate_can_fail, calls))
        apart = frozenset(calls) if _alone(plan) else None
        values, order = _values(plan)
        read = tuple(over(value, below.columns) for value in values)
        what = GroupedBody(below.body, keys, plan.settled, failing, read, order, apart)
        return self._instead_of(plan, self._part(plan, what, (*range(len(keys)), *calls)))

    def _part(self, plan: Plan, what: What, columns: Sequence[Hashable]) -> BodyReading:
        if what not in self._numbers:
            self._numbers[what] = len(self.bodies)
            self.bodies.append(Body(what, plan, is_stateful(plan)))
        number = self._numbers[what]
        body = self.bodies[number]
        body.readers.add(len(self._readings))
        named = zip(columns, plan.schema.names, strict=True)
        return BodyReading(number, tuple(body.number(column, name) for column, name in named))


def paired(side: bool, number: int) -> int:
    """A column of a pair as one number: that of a column of the left or (True) of the right input."""
    return 2 * number + side


def join_of(
    left: int, right: int, equalities: Iterable[Equality], residual: Expression | None
) -> tuple[Paired, bool]:
    """A join of two bodies, that with the smaller number on the left; and whether they had to change sides.

    Args:
        left, right: the inputs.
        equalities: pairs of an expression over the left and one over the right input.
        residual: over both, with columns as `paired` gives them, or None.
    """
    swapped = left > right
    if swapped:
        left, right = right, left
        equalities = [(other, one) for one, other in equalities]
        if residual is not None:
            residual = moved(residual, lambda one: one ^ 1)
    return Paired(left, right, tuple(sorted(dict.fromkeys(equalities), key=repr)), residual), swapped


def moved(expression: Expression, number: Callable[[int], int]) -> Expression:
    """An expression over a body as one over another body."""
    return transform_columns(expression, lambda part: replace(part, index=number(part.index)))


def over(expression: Expression, columns: Sequence[int]) -> Expression:
    """An expression over a plan as one over its body, where columns have no names.

    Args:
        expression: over the plan's columns.
        columns: for each of these the number in the body.
    """
    return transform_columns(expression, lambda part: Column(columns[part.index], "", part.type))


def inputs_read(what: What) -> tuple[int, ...]:
    """The bodies of an operator's inputs, left to right."""
    match what:
        case LeafBody():
            return ()
        case Filtered() | TimedBody() | Bounded() | ComputedBody() | GroupedBody() | NestedBody():
            return (what.input,)
        case Paired(left=left, right=right):
            return left, right
        case United(inputs=inputs):
            return inputs
        case WholeBody(inputs=readings):
            return tuple(reading.body for reading in readings)
        case _:
            assert_never(what)


def _sorted(parts: Iterable[Expression]) -> tuple[Expression, ...]:
    """Conditions in an order that does not depend on how they are written, where none can fail."""
    found = tuple(dict.fromkeys(parts))
    return found if any(map(can_fail, found)) else tuple(sorted(found, key=repr))


def _values(plan: Aggregate) -> tuple[tuple[Expression, ...], tuple[tuple[bool, bool], ...] | None]:
    """What an aggregation needs values of, and how they are sorted where the outermost are enough."""
    form = Accumulation.of(plan)
    if form.extremes is None or len(form.extremes.ends) > 1:
        return tuple(sorted(form.values, key=repr)), None
    ((ordering, _),) = form.extremes.ends
    return ordering.expressions, tuple((key.descending, key.nulls_first) for key in ordering.keys)


def _alone(plan: Aggregate) -> bool:
    """Whether results of an aggregation that is shared would be cut where only those of others change.

    Over windows that do not overlap, a group's results are all new with every window.
    """
    below: Plan = plan.input
    while isinstance(below, Filter | Project | Sample | Rstream | WindowBounds):
        below = below.input
    return not (isinstance(below, TimeWindow) and below.slide.length >= below.size.length)
