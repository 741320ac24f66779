"""A running plan is exchanged for another that answers the same (GenMig; thesis, chapter 29).

At an instant T the new plan takes over from the old one: the old plan answers below T, over inputs clipped
below it, the new plan from T on, over inputs clipped to what lies there, and the union of both is the
query's answer. T is chosen so that whatever has entered the old plan ends at T or before. So the new plan
needs none of the old one's state, and the old one can go when the heartbeat has passed T:

    Join                     Union of 2                          Join
      TimeWindow a             Join                                TimeWindow b
      TimeWindow b     ->        Clip BELOW T: TimeWindow a   ->   TimeWindow a
                                 Clip BELOW T: TimeWindow b
                               Join
                                 Clip FROM T: TimeWindow b
                                 Clip FROM T: TimeWindow a

That holds for operators whose answer at an instant depends on their inputs' contents at that instant alone
(snapshot-reducible ones, and those that show the instant's window). The largest such part of a plan is its
*box*. Windows, sessions, OVER, ISTREAM and the like look at other instants: those below the box are read by
both plans, those above it read the union.

Clipped results of the two do not touch, so that nothing has to fuse them (the thesis' algorithm 27): a row
that both plans yield is one that goes on, in two elements.

A plan is also exchanged for one of another meaning: the old answer holds below T and the new one from T on.
Then both plans are boxes as a whole, since what is above would mix what the two say; and operators that are
the same in both, and the rows of which end, are inputs of both boxes, which keep their state:

    Filter n > 5                 Union of 2                                Filter n > 3
      Aggregate a COUNT n  ->      Filter n > 5                       ->     Aggregate a COUNT n
                                     Clip BELOW T: Aggregate a COUNT n
                                   Filter n > 3
                                     Clip FROM T: Aggregate a COUNT n

Rows of a relation, of a window of rows or of an unbounded window may never end. A join with rows that do end
needs no clip on that side: where the other side has no rows, it has none. So both plans read such a side
*whole*, and the joins of the new one begin with what those of the old one keep of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.nodes import (
    Clip,
    Coalesce,
    Dstream,
    EventSource,
    Finalize,
    GapFill,
    Granularity,
    Istream,
    Join,
    Lifetime,
    Plan,
    Relation,
    RowWindow,
    SessionAggregate,
    SessionWindow,
    Source,
    TimeWindow,
    Union,
    inputs_of,
    with_inputs,
)
from headrace.algebra.properties import (
    POINTWISE,
    granule_start,
    is_stateful,
    lifetime_start,
    names_read,
    parameters_of,
    slide_start,
    walk,
)
from headrace.errors import PlanError
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Migration:
    """The exchange of a plan for another with the same content, or with another one.

    Attributes:
        old: the plan so far.
        new: the plan from then on.
        at: where the new one takes over (instant); whatever has entered the old box ends there or before.
        is_another: whether the new plan means something else.

    Raises:
        PlanError: the plans cannot be exchanged, whatever the instant; the message says why.
    """

    old: Plan
    new: Plan
    at: int
    is_another: bool = False

    def __post_init__(self) -> None:
        boxes = self.boxes
        if boxes[0].schema != boxes[1].schema:
            raise PlanError("the plans yield other columns")
        if set(names_read(self.old)) != set(names_read(self.new)):
            raise PlanError("the plans do not read the same streams")
        known = {part for entry in entries(boxes[0]) for part in walk(entry) if is_stateful(part)}
        known.update(part for part in self.common if is_stateful(part))
        for entry in entries(boxes[1], self.common):
            other = next((part for part in walk(entry) if is_stateful(part) and part not in known), None)
            if other is not None:
                raise PlanError(
                    f"the plans differ below {type(entry).__name__}, which looks at more than one instant",
                    hint="only what lies above windows, sessions, OVER and ISTREAM is exchanged",
                )

    @cached_property
    def boxes(self) -> tuple[Plan, Plan]:
        """The parts of both plans that are exchanged, under what is the same in both."""
        return (self.old, self.new) if self.is_another else _boxes(self.old, self.new)

    @cached_property
    def common(self) -> frozenset[Plan]:
        """The operators in both boxes that go on for both, and all of whose rows end."""
        if not self.is_another:
            return frozenset()
        old, new = (
            {part for part in walk(box) if isinstance(part, POINTWISE) and is_stateful(part)}
            for box in self.boxes
        )
        ends = ((part, ends_by(part, dict.fromkeys(names_read(part), 0))) for part in old & new)
        return frozenset(part for part, end in ends if end < INFINITY)

    @cached_property
    def parts(self) -> tuple[Plan, Plan]:
        """The old box over what lies below the instant, and the new one over what lies from it on."""
        old, new = self.boxes
        return (
            clipped(old, BEGINNING, self.at, self.common),
            clipped(new, self.at, INFINITY, self.common),
        )

    @cached_property
    def plan(self) -> Plan:
        """The plan while both run."""
        return self.around(Union(self.parts))

    def around(self, box: Plan) -> Plan:
        """What is the same in both plans over another box."""
        return _around(self.old, self.boxes[0], box)


def entries(box: Plan, common: Collection[Plan] = ()) -> tuple[Plan, ...]:
    """The inputs of a box that are clipped: the first nodes from above that look at more than one instant.

    Leaves are among them; what is read whole is not.

    Args:
        box: the box.
        common: operators that are inputs of it too.
    """
    return tuple(
        part for part, _ in _reached(box, common) if not isinstance(part, POINTWISE) or part in common
    )


def whole_sides(box: Plan, common: Collection[Plan] = ()) -> dict[int, int]:
    """The joins of a box one side of which is not clipped, by id, each with that side's port.

    Rows of that side may have no end, and those of the other side all have one.

    Args:
        box: the box.
        common: operators that are inputs of it.
    """
    return {id(part): port for part, port in _reached(box, common) if port is not None}


def _reached(box: Plan, common: Collection[Plan]) -> list[tuple[Plan, int | None]]:
    """The parts of a box and its inputs but for what is read whole, top down, each with the port of that."""
    known: dict[int, bool] = {}

    def is_open(part: Plan) -> bool:
        """Whether some rows of a part may have no end."""
        if id(part) not in known:
            if part in common:
                known[id(part)] = False
            elif isinstance(part, POINTWISE):
                sides = [is_open(below) for below in inputs_of(part)]
                known[id(part)] = all(sides) if isinstance(part, Join) else any(sides)
            else:
                known[id(part)] = ends_by(part, dict.fromkeys(names_read(part), 0)) == INFINITY
        return known[id(part)]

    found: dict[int, tuple[Plan, int | None]] = {}
    ahead = [box]
    while ahead:
        part = ahead.pop()
        if id(part) in found:
            continue
        below = inputs_of(part) if isinstance(part, POINTWISE) and part not in common else ()
        open_sides = [is_open(one) for one in below]
        whole = open_sides.index(True) if isinstance(part, Join) and sum(open_sides) == 1 else None
        found[id(part)] = part, whole
        ahead.extend(one for port, one in reversed([*enumerate(below)]) if port != whole)
    return list(found.values())


def clipped(box: Plan, begin: int, end: int, common: Collection[Plan] = ()) -> Plan:
    """A box over its inputs' contents at the instants of `[begin, end)`.

    Args:
        box: the box.
        begin, end: the instants.
        common: operators that are inputs of it.
    """
    whole = whole_sides(box, common)
    known: dict[int, Plan] = {}

    def over(part: Plan) -> Plan:
        # What is used twice stays one object, or chains of joins would double with every link.
        if id(part) not in known:
            is_inside = isinstance(part, POINTWISE) and part not in common
            known[id(part)] = inside(part) if is_inside else Clip(part, begin, end)
        return known[id(part)]

    def inside(part: Plan) -> Plan:
        kept = whole.get(id(part))
        below = enumerate(inputs_of(part))
        return with_inputs(part, tuple(one if port == kept else over(one) for port, one in below))

    return over(box)


def takeover(old: Plan, latest: Mapping[str, int]) -> int:
    """The first instant at which a new plan can take over: the largest end of what has entered the box.

    The thesis takes the latest start at any input and the length of the window (algorithm 25), and the end
    timestamps inside the box as a shorter way (29.4.2); this is in between, by each input's own windows.

    Args:
        old: the plan that runs.
        latest: per stream the largest timestamp that has come, those above the heartbeat included (instants),
            BEGINNING before the first.

    Returns:
        An instant, BEGINNING if nothing has come.

    Raises:
        PlanError: some of what has entered may have no end.
    """
    return _last_end(box_of(old), latest)


def takeover_of(migration: Migration, latest: Mapping[str, int]) -> int:
    """The same for a plan that means something else, which lacks nothing from there on.

    Args:
        migration: the exchange, at any instant.
        latest: as of `takeover`.

    Raises:
        PlanError: some of what has entered either of the plans may have no end.
    """
    return max(_last_end(box, latest) for box in migration.boxes)


def _last_end(box: Plan, latest: Mapping[str, int]) -> int:
    found = BEGINNING
    for entry in entries(box):
        end = ends_by(entry, latest)
        if end == INFINITY:
            raise PlanError(
                f"rows of {_named(entry)} have no end, so that a new plan could never take over from the old "
                "one's state",
                hint="give the window a RANGE, or drop the query and create it anew",
            )
        found = max(found, end)
    return found


def ends_by(plan: Plan, latest: Mapping[str, int]) -> int:
    """The instant by which all elements have ended that a plan can have emitted, INFINITY if some may never.

    Args:
        plan: an input of a box, or a part of one.
        latest: per stream the largest timestamp that has come (instants), BEGINNING before the first.
    """
    match plan:
        case EventSource(lasting=True):
            return INFINITY
        case Source(name=name):
            return BEGINNING if latest[name] == BEGINNING else latest[name] + 1
        case Relation() | RowWindow():
            return INFINITY
        case Coalesce() | Finalize() if not plan.is_chronon:
            # An element of a row that goes on is open until the row has ended.
            return INFINITY
        case _:
            ends = [ends_by(below, latest) for below in inputs_of(plan)]
            # There is no pair without a row of both.
            end = min(ends) if isinstance(plan, Join) else max(ends)
            return end if end in (BEGINNING, INFINITY) else _end_above(plan, end)


def box_of(plan: Plan) -> Plan:
    """The largest part of a plan that can be exchanged.

    Raises:
        PlanError: there is none.
    """
    return _boxes(plan, plan)[0]


def _boxes(old: Plan, new: Plan) -> tuple[Plan, Plan]:
    while not isinstance(old, POINTWISE) and inputs_of(old) and _is_same_node(old, new):
        (old,), (new,) = inputs_of(old), inputs_of(new)
    if not isinstance(old, POINTWISE):
        raise PlanError("the plan has nothing above its windows that could be exchanged")
    return old, new


def _end_above(plan: Plan, end: int) -> int:
    """When the elements of a node end at the latest whose input's have all ended at an instant."""
    match plan:
        case TimeWindow(size=size, slide=slide, offset=offset):
            if size.length == INFINITY:
                return INFINITY
            return slide_start(end - 1 + size.length, slide.length, offset.length)
        case Lifetime(granule=granule, shift=shift):
            if plan.fixed is None or plan.fixed == INFINITY:
                return INFINITY
            return lifetime_start(end - 1, granule.length, shift) + plan.fixed
        case SessionWindow(gap=gap) | SessionAggregate(gap=gap):
            # A session ends a gap after its last row; from its last instant on it is shown for a gap.
            return end + 2 * (gap.length - 1)
        case Granularity(longest=granule):
            return granule_start(end, granule.length)
        case GapFill(step=step, longest=longest):
            return granule_start(end - 1, step.length) + longest.length + 1
        case Istream() | Dstream():
            return end + 1
        case Clip(end=last):
            return min(end, last)
        case _:
            return end


def _named(entry: Plan) -> str:
    match entry:
        case Relation(name=name):
            return f"the relation {name}"
        case TimeWindow():
            return "an unbounded window"
        case Lifetime():
            return "a LIFETIME without a fixed end"
        case RowWindow():
            return "a window of rows"
        case _:
            return type(entry).__name__.upper()


def _is_same_node(one: Plan, other: Plan) -> bool:
    return type(one) is type(other) and parameters_of(one) == parameters_of(other)


def _around(plan: Plan, box: Plan, other: Plan) -> Plan:
    if plan is box:
        return other
    (below,) = inputs_of(plan)
    return with_inputs(plan, (_around(below, box, other),))
