"""Bodies as plans: each operator once, with the columns that any of the queries reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import assert_never, cast

from headrace.algebra.nodes import (
    Aggregate,
    Filter,
    Join,
    NestedAggregate,
    Plan,
    Project,
    Union,
    column,
    inputs_of,
    project,
    with_inputs,
)
from headrace.algebra.predicates import conjunction
from headrace.expressions.tree import (
    AggregateCall,
    Expression,
    columns_of,
    expressions_of,
    transform_call,
    transform_columns,
)
from headrace.lowering.sharing.bodies import (
    END,
    NUMBER,
    START,
    Body,
    BodyReading,
    Bounded,
    ComputedBody,
    Filtered,
    GroupedBody,
    LeafBody,
    NestedBody,
    Paired,
    TimedBody,
    United,
    WholeBody,
    inputs_read,
    paired,
)
from headrace.schema import Field, Schema, unique_names

ColumnPlaces = dict[int, int]
"""The places of a body's columns in a plan, by their numbers."""


class Writing:
    """Plans for some of the readings of bodies.

    Args:
        bodies: all of them, those of inputs before those of what reads them.
        wanted: the readings for which there will be plans.
    """

    def __init__(self, bodies: Sequence[Body], wanted: Iterable[BodyReading]) -> None:
        self._bodies = bodies
        self._needed: list[set[int]] = [set() for _ in bodies]
        self._written: dict[int, tuple[Plan, ColumnPlaces]] = {}
        self._parts: dict[tuple[int, tuple[int, ...]], Plan] = {}
        used = set[int]()
        for reading in wanted:
            self._needed[reading.body].update(reading.columns)
            used.add(reading.body)
        for number in reversed(range(len(bodies))):
            if number in used:
                used.update(inputs_read(bodies[number].what))
                self._need_of_inputs(number)

    def plan(self, reading: BodyReading, names: Sequence[str]) -> Plan:
        """A reading as a plan, its columns under the given names."""
        if isinstance(self._bodies[reading.body].what, TimedBody | Bounded):
            plan = self._part(reading.body, tuple(dict.fromkeys(reading.columns)))
            places = {number: place for place, number in enumerate(dict.fromkeys(reading.columns))}
        else:
            plan, places = self._whole(reading.body)
        items = (column(plan, places[number]) for number in reading.columns)
        return project(plan, tuple(zip(names, items, strict=True)))

    def _need_of_inputs(self, number: int) -> None:
        """Note which columns of its inputs a body needs, all that reads the body itself being known."""
        body = self._bodies[number]
        columns = [body.columns[place] for place in self._needed[number]]
        match body.what:
            case Filtered(input=below, parts=parts):
                self._needed[below].update(cast(list[int], columns), _read(parts))
            case TimedBody(input=below) | Bounded(input=below):
                self._needed[below].update(one for one in cast(list[int], columns) if one >= 0)
            case ComputedBody(input=below, failing=failing):
                self._needed[below] |= _read((*cast(list[Expression], columns), *failing))
            case Paired() as what:
                for side, below in ((False, what.left), (True, what.right)):
                    self._needed[below].update(self._of_side(what, number, side))
            case GroupedBody(input=below) | NestedBody(input=below):
                self._needed[below] |= self._grouped_columns(number)
            case United(inputs=inputs):
                for place, below in enumerate(inputs):
                    self._needed[below].update(one[place] for one in cast(list[tuple[int, ...]], columns))
            case WholeBody(inputs=readings):
                for reading in readings:
                    self._needed[reading.body].update(reading.columns)
            case LeafBody():
                pass
            case _:
                assert_never(body.what)

    def _of_side(self, what: Paired, number: int, side: bool) -> list[int]:
        """The columns of one input that a join keeps: those that are read, its keys, and the condition's."""
        body = self._bodies[number]
        read = [cast(tuple[bool, int], body.columns[place]) for place in self._needed[number]]
        found = {one for mine, one in read if mine == side}
        found |= _read(pair[side] for pair in what.equalities)
        if what.residual is not None:
            found |= {one // 2 for one in columns_of(what.residual) if one % 2 == side}
        return sorted(found)

    def _calls(self, number: int) -> dict[int, AggregateCall]:
        """The aggregates that a query asks for or that can fail, by number; at least one without keys."""
        body = self._bodies[number]
        assert isinstance(body.what, GroupedBody | NestedBody)
        found = {place: call for place, call in enumerate(body.columns) if isinstance(call, AggregateCall)}
        kept = {
            place: call
            for place, call in found.items()
            if place in self._needed[number]
            or (isinstance(body.what, GroupedBody) and call in body.what.failing)
        }
        return kept if kept or body.what.keys else dict([next(iter(found.items()))])

    def _grouped_columns(self, number: int) -> set[int]:
        what = self._bodies[number].what
        assert isinstance(what, GroupedBody | NestedBody)
        calls = self._calls(number).values()
        return _read((*what.keys, *(part for call in calls for part in expressions_of(call))))

    def _part(self, number: int, columns: tuple[int, ...]) -> Plan:
        """A plan with just these columns of a body, in this order."""
        key = number, columns
        if key not in self._parts:
            self._parts[key] = self._make_part(number, columns)
        return self._parts[key]

    def _make_part(self, number: int, columns: tuple[int, ...]) -> Plan:
        body = self._bodies[number]
        match body.what:
            case TimedBody(kind=kind, parameters=parameters, input=below):
                make = cast(Callable[..., Plan], kind)
                return make(self._part(below, self._below(body, columns)), *parameters)
            case Bounded(kind=kind, parameters=parameters, input=below):
                kept = tuple(part for part in columns if part not in self._bounds(body))
                bounded = kind(self._part(below, self._below(body, kept)), *parameters)
                places = {one: place for place, one in enumerate(kept)}
                places |= {one: len(kept) + place for place, one in enumerate(self._bounds(body))}
                return _picked(bounded, [places[one] for one in columns])
            case _:
                plan, places = self._whole(number)
                return _picked(plan, [places[one] for one in columns])

    def _below(self, body: Body, columns: Iterable[int]) -> tuple[int, ...]:
        return tuple(cast(int, body.columns[one]) for one in columns)

    def _bounds(self, body: Body) -> tuple[int, int]:
        """The numbers of the columns that hold the start and the end of the window."""
        return body.number(START, "window_start"), body.number(END, "window_end")

    def _whole(self, number: int) -> tuple[Plan, ColumnPlaces]:
        """A plan with all columns of a body that somebody reads, and where they are."""
        if number not in self._written:
            self._written[number] = self._write(number)
        return self._written[number]

    def _write(self, number: int) -> tuple[Plan, ColumnPlaces]:
        body = self._bodies[number]
        needed = sorted(self._needed[number])
        match body.what:
            case LeafBody(node=node):
                schema = Schema(tuple(cast(Field, body.columns[one]) for one in needed))
                return replace(node, schema=schema), _places(needed)
            case Filtered() as filtered:
                return self._filter(body, filtered, needed)
            case TimedBody() | Bounded():
                return self._part(number, tuple(needed)), _places(needed)
            case ComputedBody(input=below, failing=failing):
                wanted = [cast(Expression, body.columns[one]) for one in needed]
                unread = [part for part in failing if part not in wanted]
                plan, moved = self._input(below, _read((*wanted, *unread)))
                names = unique_names([*(body.names[one] for one in needed), *("unread" for _ in unread)])
                items = (_over(part, plan, moved) for part in (*wanted, *unread))
                return Project(plan, tuple(zip(names, items, strict=True))), _places(needed)
            case Paired() as what:
                return self._join(number, what)
            case GroupedBody() | NestedBody() as what:
                return self._aggregate(number, what)
            case United(inputs=inputs):
                numbers = [cast(tuple[int, ...], body.columns[one]) for one in needed]
                parts = (tuple(one[place] for one in numbers) for place in range(len(inputs)))
                return Union(tuple(map(self._part, inputs, parts))), _places(needed)
            case WholeBody(inputs=readings):
                named = (below.schema.names for below in inputs_of(body.example))
                plans = tuple(map(self.plan, readings, named))
                places = {one: cast(int, place) for one, place in enumerate(body.columns)}
                return with_inputs(body.example, plans), places
            case _:
                assert_never(body.what)

    def _filter(self, body: Body, what: Filtered, needed: Sequence[int]) -> tuple[Plan, ColumnPlaces]:
        read = _read(what.parts) | set(self._below(body, needed))
        if isinstance(self._bodies[what.input].what, GroupedBody):
            # What picks a group is next to its aggregate, where its result can be one with others'.
            plan, moved = self._whole(what.input)
        else:
            plan, moved = self._input(what.input, read)
        predicate = conjunction(_over(part, plan, moved) for part in what.parts)
        assert predicate is not None
        places = {one: moved[cast(int, body.columns[one])] for one in needed}
        return Filter(plan, predicate), places

    def _join(self, number: int, what: Paired) -> tuple[Plan, ColumnPlaces]:
        sides = [self._of_side(what, number, side) for side in (False, True)]
        left, right = self._part(what.left, tuple(sides[0])), self._part(what.right, tuple(sides[1]))
        mine, yours = _places(sides[0]), _places(sides[1])
        equalities = tuple(
            (_over(one, left, mine), _over(other, right, yours)) for one, other in what.equalities
        )
        names = unique_names([*left.schema.names, *right.schema.names])
        pairs = {paired(False, one): place for one, place in mine.items()}
        pairs |= {paired(True, one): len(mine) + place for one, place in yours.items()}
        join = Join(left, right, equalities, None, tuple(names))
        if what.residual is not None:
            join = replace(join, residual=_over(what.residual, join, pairs))
        columns = [cast(tuple[bool, int], column) for column in self._bodies[number].columns]
        places = {one: pairs[paired(*columns[one])] for one in self._needed[number]}
        return join, places

    def _aggregate(self, number: int, what: GroupedBody | NestedBody) -> tuple[Plan, ColumnPlaces]:
        body = self._bodies[number]
        plan, moved = self._input(what.input, self._grouped_columns(number))
        calls = self._calls(number)
        keys = {body.number(place, f"k{place}"): key for place, key in enumerate(what.keys)}
        names = unique_names([body.names[one] for one in (*keys, *calls)])
        named = tuple(zip(names, (_over(key, plan, moved) for key in keys.values()), strict=False))
        aggregates = tuple(
            (name, transform_call(call, lambda part: _over(part, plan, moved)))
            for name, call in zip(names[len(keys) :], calls.values(), strict=True)
        )
        if isinstance(what, GroupedBody):
            return Aggregate(plan, named, aggregates, what.settled), _places((*keys, *calls))
        *_, last = unique_names([*names, "window"])
        made = NestedAggregate(plan, what.shorter, named, aggregates, last)
        return made, _places((*keys, *calls, body.number(NUMBER, "window")))

    def _input(self, number: int, columns: Iterable[int]) -> tuple[Plan, ColumnPlaces]:
        wanted = tuple(sorted(columns))
        return self._part(number, wanted), _places(wanted)


def _picked(plan: Plan, places: Sequence[int]) -> Plan:
    names = unique_names([plan.schema[place].name for place in places])
    return project(plan, tuple(zip(names, (column(plan, place) for place in places), strict=True)))


def _over(expression: Expression, plan: Plan, places: ColumnPlaces) -> Expression:
    """An expression over a body as one over its plan."""
    return transform_columns(expression, lambda part: column(plan, places[part.index]))


def _read(expressions: Iterable[Expression]) -> set[int]:
    return set[int]().union(*(columns_of(part) for part in expressions))


def _places(numbers: Iterable[int]) -> ColumnPlaces:
    return {number: place for place, number in enumerate(numbers)}
