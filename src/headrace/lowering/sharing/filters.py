"""Filters that were pushed below a join, taken back where the join is wanted without them anyway.

The optimizer puts a condition on one input below the join, so that it has fewer rows to meet. But where
another query has the join of all rows, those few can be picked from its result:

    SELECT * FROM r [RANGE 10], s [RANGE 10] WHERE r.a = s.a AND r.b > 3
    SELECT * FROM r [RANGE 10], s [RANGE 10], t [RANGE 10] WHERE r.a = s.a AND s.b = t.b

are one join of r and s, with a filter above it for the first query (Motwani et al., CIDR 2003, figure 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from headrace.algebra.failure import can_fail
from headrace.expressions.tree import Expression
from headrace.lowering.sharing.bodies import (
    Bodies,
    Filtered,
    Instead,
    Paired,
    TimedBody,
    join_of,
    moved,
    paired,
)


def wider_joins(bodies: Bodies, number: int) -> Iterator[Instead]:
    """The joins that are there from whose results filters pick those of a join, the widest first."""
    what = bodies.bodies[number].what
    assert isinstance(what, Paired)
    for left in _ways(bodies, what.left):
        for right in _ways(bodies, what.right):
            if left.parts or right.parts:
                found = _join(bodies, number, left, right)
                if found is not None:
                    yield found


def _ways(bodies: Bodies, number: int) -> tuple[Instead, ...]:
    """A body as filters above another one, if there is such a one, and by itself."""
    found = _unfiltered(bodies, number)
    return (
        (_itself(bodies, number),) if found is None or not found.parts else (found, _itself(bodies, number))
    )


def _itself(bodies: Bodies, number: int) -> Instead:
    return Instead(number, tuple(range(len(bodies.bodies[number].columns))))


def _unfiltered(bodies: Bodies, number: int) -> Instead | None:
    """A body as filters above one without them; None where that one is not there."""
    body = bodies.bodies[number]
    match body.what:
        case Filtered(input=below, parts=parts) if not any(map(can_fail, parts)):
            found = _unfiltered(bodies, below)
            if found is None:
                return None
            columns = tuple(found.columns[one] for one in cast(Sequence[int], body.columns))
            above = (moved(part, found.columns.__getitem__) for part in parts)
            return Instead(found.body, columns, (*found.parts, *above))
        case TimedBody(kind=kind, parameters=parameters, input=below):
            found = _unfiltered(bodies, below)
            other = None if found is None else bodies.find(TimedBody(kind, parameters, found.body))
            if found is None or other is None:
                return None
            names = bodies.bodies[found.body].names
            numbers = [bodies.bodies[other].number(one, name) for one, name in enumerate(names)]
            columns = tuple(numbers[found.columns[one]] for one in cast(Sequence[int], body.columns))
            return Instead(other, columns, tuple(moved(part, numbers.__getitem__) for part in found.parts))
        case Paired():
            return next(wider_joins(bodies, number), _itself(bodies, number))
        case _:
            return _itself(bodies, number)


def _join(bodies: Bodies, number: int, left: Instead, right: Instead) -> Instead | None:
    """A join as filters above that of two other bodies; None where that one is not there."""
    body, sides = bodies.bodies[number], (left, right)
    assert isinstance(body.what, Paired)

    def on(side: int, part: Expression) -> Expression:
        return moved(part, sides[side].columns.__getitem__)

    def of_pair(one: int) -> int:
        return paired(one % 2 == 1, sides[one % 2].columns[one // 2])

    equalities = [(on(0, one), on(1, other)) for one, other in body.what.equalities]
    residual = None if body.what.residual is None else moved(body.what.residual, of_pair)
    what, swapped = join_of(left.body, right.body, equalities, residual)
    other = bodies.find(what)
    if other is None:
        return None

    def column(side: int, one: int) -> int:
        name = bodies.bodies[sides[side].body].names[one]
        return bodies.bodies[other].number(((side == 1) != swapped, one), name)

    read = cast(Sequence[tuple[bool, int]], body.columns)
    columns = tuple(column(side, sides[side].columns[one]) for side, one in read)
    parts = tuple(
        moved(part, lambda one, side=side: column(side, one))  # type: ignore[misc]
        for side in (0, 1)
        for part in sides[side].parts
    )
    return Instead(other, columns, parts)
