"""The plans of queries that are added together, written so that they share what they have in common.

`lower` makes one operator of equal plans. Here plans become equal that differ only in which columns are read,
in which aggregates of a group, or in the order of a join's inputs:

    SELECT r.x FROM r [RANGE 10], s [RANGE 10] WHERE r.a = s.a
    SELECT s.y FROM s [RANGE 10], r [RANGE 10] WHERE r.a = s.a

are two projections of one join, which has both columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from headrace.algebra.nodes import Plan
from headrace.lowering.constants import constants_as_data
from headrace.lowering.outer_joins import expand
from headrace.lowering.sharing.bodies import Bodies, BodyReading, Instead, Paired
from headrace.lowering.sharing.filters import wider_joins
from headrace.lowering.sharing.groups import beside, sums_beside_extremes
from headrace.lowering.sharing.weighing import Look, Weighed, shows_nothing, weighed
from headrace.lowering.sharing.windows import nest, nested_windows, one_window
from headrace.lowering.sharing.writing import Writing
from headrace.schema import unique_names


@dataclass(frozen=True)
class SharingChoice:
    """What was decided about a join with filters below it that is wanted without them as well.

    Attributes:
        join: it, with its filters below.
        wider: the join without.
        weighed: what both are expected to do; None where nothing was known, and the wider one is shared.
    """

    join: Plan
    wider: Plan
    weighed: Weighed | None

    @property
    def is_shared(self) -> bool:
        """Whether the filters were put above the wider join."""
        return self.weighed is None or self.weighed.is_shared


@dataclass(frozen=True)
class Shared:
    """What queries have in common beyond equal plans.

    Attributes:
        plans: for each query that shares more than it would by its own plan, another plan with the same
            answer, its outer joins expanded and its constants as data. Other queries keep theirs.
        choices: what was decided about filters below joins.
    """

    plans: dict[str, Plan]
    choices: tuple[SharingChoice, ...] = ()


def share(queries: Mapping[str, Plan], look: Look = shows_nothing) -> Shared:
    """See what queries have in common.

    Args:
        queries: optimized plans by query name, of queries that start together.
        look: says what is expected of operators.
    """
    plans = {name: constants_as_data(expand(plan))[0] for name, plan in sorted(queries.items())}
    sharing = _Sharing(plans, look)
    together = _together(sharing.bodies, sharing.readings)
    writing = Writing(sharing.bodies.bodies, (sharing.readings[name] for name in together))
    found = {name: writing.plan(sharing.readings[name], queries[name].schema.names) for name in together}
    assert all(found[name].schema == queries[name].schema for name in together)
    return Shared(found, tuple(sharing.choices.values()))


class _Sharing:
    """Plans as parts of bodies, some filters put above joins that are wanted without them.

    Args:
        plans: by query name.
        look: says what is expected of operators.

    Attributes:
        bodies: of the plans.
        readings: the plans as parts of them.
        choices: what was decided about filters, by the numbers of the join and the wider join.
    """

    def __init__(self, plans: Mapping[str, Plan], look: Look) -> None:
        self._look = look
        self.bodies = Bodies()
        self.choices: dict[tuple[int, int], SharingChoice] = {}
        self.readings = self._read(plans)
        while self._put_sums_beside_extremes() or self._take_filters_back() or self._nest_windows():
            self.bodies.forget()
            self.readings = self._read(plans)

    def _read(self, plans: Mapping[str, Plan]) -> dict[str, BodyReading]:
        return {name: self.bodies.reading(self.bodies.add(plan)) for name, plan in plans.items()}

    def _put_sums_beside_extremes(self) -> bool:
        """See that sums are computed beside MIN and MAX of the same groups; whether any were not."""
        found = sums_beside_extremes(self.bodies, self._present())
        for number, other in found.items():
            self.bodies.put_instead(number, partial(beside, self.bodies, number, other))
        return bool(found)

    def _present(self) -> set[int]:
        return self.bodies.used(reading.body for reading in self.readings.values())

    def _nest_windows(self) -> bool:
        """See that groups of windows of several lengths are one operator; whether any were not."""
        found = nested_windows(self.bodies, sorted(self._present()))
        for group in found:
            nested = nest(self.bodies, group)
            for place, part in enumerate(group):
                self.bodies.put_instead(part.number, partial(one_window, self.bodies, nested, group, place))
        return bool(found)

    def _take_filters_back(self) -> bool:
        """Put filters above joins that are wanted without them; whether any more were found."""
        bodies = self.bodies
        present = self._present()
        joins = [number for number in sorted(present) if isinstance(bodies.bodies[number].what, Paired)]
        wider = {
            one: [other.body for other in wider_joins(bodies, one) if other.body in present] for one in joins
        }
        self._weigh([(number, other) for number, others in wider.items() for other in others])
        found = False
        for number, others in wider.items():
            # One whose own filters are taken back needs no operator of its own.
            shared = (one for one in others if not wider[one] and self.choices[number, one].is_shared)
            if (other := next(shared, None)) is not None:
                bodies.put_instead(number, partial(_again, bodies, number, other))
                found = True
        return found

    def _weigh(self, pairs: Sequence[tuple[int, int]]) -> None:
        """See what joins and wider ones are expected to do, with one look at the streams for all of them."""
        new = [pair for pair in pairs if pair not in self.choices]
        plans = [(self._whole(number), self._whole(other)) for number, other in new]
        for pair, (join, wider), found in zip(new, plans, weighed(plans, self._look), strict=True):
            self.choices[pair] = SharingChoice(join, wider, found)

    def _whole(self, number: int) -> Plan:
        """A body as a plan with all columns that anybody reads."""
        body = self.bodies.bodies[number]
        reading = BodyReading(number, tuple(range(len(body.columns))))
        return Writing(self.bodies.bodies, [reading]).plan(reading, unique_names(body.names))


def _again(bodies: Bodies, number: int, other: int) -> Instead:
    """One join as filters above another one, with all columns that it has by now."""
    return next(one for one in wider_joins(bodies, number) if one.body == other)


def _together(bodies: Bodies, readings: Mapping[str, BodyReading]) -> list[str]:
    """The queries with operators in common that their plans do not show, and those that share with them.

    An operator with more columns is another operator also to queries that have equal plans of it.
    """
    kept = {body: _stateful_in(bodies, body) for body in {reading.body for reading in readings.values()}}
    waiting = {part for found in kept.values() for part in found if len(bodies.bodies[part].readers) > 1}
    seen: set[int] = set()
    chosen: set[int] = set()
    while waiting:
        seen |= waiting
        new = {body for body, found in kept.items() if body not in chosen and found & waiting}
        chosen |= new
        waiting = set[int]().union(*(kept[body] for body in new)) - seen
    return [name for name, reading in readings.items() if reading.body in chosen]


def _stateful_in(bodies: Bodies, body: int) -> set[int]:
    """The bodies with state among one and all below it."""
    return {part for part in bodies.used([body]) if bodies.bodies[part].keeps_state}
