"""Aggregates of the same groups in one operator: which of them can be, so that it is less work.

What travels to an aggregate is added up before by group and window. Counts and sums are one row for each. An
aggregate that needs values (MAX, MEDIAN, COUNT(DISTINCT x)) has them as further columns: where the outermost
values are enough, as for MIN and MAX, one or two rows are left, otherwise one for each different value. Two
that need values of different columns would send a row for each combination, and are less work apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.lowering.sharing.bodies import Bodies, GroupedBody, Instead


def sums_beside_extremes(bodies: Bodies, present: Iterable[int]) -> dict[int, int]:
    """For each aggregation that needs sums alone one of the same groups with MIN and MAX, if there is one.

    Args:
        bodies: all of them.
        present: the numbers of those that are used.
    """
    grouped = {
        number: what
        for number in sorted(present)
        if isinstance(what := bodies.bodies[number].what, GroupedBody)
    }
    with_extremes: dict[GroupedBody, int] = {}
    for number, what in grouped.items():
        if what.order is not None and what.apart is None:
            with_extremes.setdefault(replace(what, values=(), order=None), number)
    return {number: with_extremes[what] for number, what in grouped.items() if what in with_extremes}


def beside(bodies: Bodies, number: int, other: int) -> Instead:
    """The results of one aggregation among those of another one of the same groups."""
    body, target = bodies.bodies[number], bodies.bodies[other]
    named = zip(body.columns, body.names, strict=True)
    return Instead(other, tuple(target.number(column, name) for column, name in named))
