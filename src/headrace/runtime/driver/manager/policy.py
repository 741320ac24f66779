"""Which numbers within bounds are to be in force, so that a run stays within its limits: a pure function.

The heuristic of the thesis (section 23.3): one fraction for all windows and granules, with a reserve of a
fifth. Steps of a tenth say which granules there are; between two steps the sizes of windows are found by
bisection. The thesis leaves open what happens where nothing fits, and when numbers change back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from headrace.elements import BoolArray, Int64Array
from headrace.runtime.driver.manager.load import Load

USED: Final = 0.8
"""So much of a limit is given out: the rest is for what comes until a change has taken effect."""
TOO_MUCH: Final = 0.9
"""Less is asked for when more than this part of a limit is expected."""
TOO_LITTLE: Final = 0.7
"""More is asked for when less than this part of a limit would be expected with more."""
PARTS: Final = 100
"""Into so many parts the way from what needs the least to what needs the most is cut."""
STEPS: Final = 10
"""Granules are looked for on so many steps of the way."""


@dataclass(frozen=True, eq=False)
class Knobs:
    """The numbers that may change: sizes of windows, and granules.

    Attributes:
        least: int64[k], those with which the least is needed: the smallest sizes and the coarsest granules.
        most: int64[k], those with which the most is needed.
        values: int64[k], those in force.
        settled: bool[k], whether the last change of each has taken effect.
        places: int64[g], which of them are granules.
        steps: int64[STEPS + 1, g], the granules so many steps of the way from the coarsest to the finest.
    """

    least: Int64Array
    most: Int64Array
    values: Int64Array
    settled: BoolArray
    places: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    steps: Int64Array = field(default_factory=lambda: np.zeros((STEPS + 1, 0), dtype=np.int64))

    def at(self, point: Point) -> Int64Array:
        """int64[k]: the numbers so far on the way from what needs the least to what needs the most."""
        whole, rest = np.divmod(self.most - self.least, PARTS)
        found: Int64Array = self.least + whole * point.part + rest * point.part // PARTS
        found[self.places] = self.steps[point.step]
        return found

    def lesser(self, some: Int64Array, others: Int64Array) -> Int64Array:
        """int64[k]: of two numbers the one with which less is needed."""
        found: Int64Array = np.minimum(some, others)
        found[self.places] = np.maximum(some, others)[self.places]
        return found


class Point(NamedTuple):
    """A place on the way from what needs the least to what needs the most.

    Attributes:
        step: of granules, from 0 to `STEPS`.
        part: of windows, from 0 to `PARTS`.
    """

    step: int
    part: int


LEAST_POINT: Final = Point(0, 0)
MOST_POINT: Final = Point(STEPS, PARTS)


def given_out(limit: float, working: float = 0.0) -> float:
    """So much of a limit is given out at most.

    Args:
        limit: how much there may be (bytes, or cores).
        working: how much of it an epoch works with.
    """
    return USED * max(0.0, limit - working)


@dataclass(frozen=True, eq=False)
class Budget:
    """A limit, and what is expected to be needed of it.

    Attributes:
        load: what is expected as a function of the numbers that may change.
        limit: how much there may be (bytes, or cores).
        working: how much of it an epoch works with.
    """

    load: Load
    limit: float
    working: float = 0.0

    @property
    def free(self) -> float:
        """The rest of the limit, of which the shares of this module are parts."""
        return max(0.0, self.limit - self.working)


@dataclass(frozen=True)
class Needs:
    """The part of a limit that is expected to be needed.

    Attributes:
        now: with the numbers that have been in force so far.
        expected: with those that are to be in force.
        least, most: with those that need the least, and the most.
        missing: how much too little the limit without its reserve is for the least, 0 if it is not.
    """

    now: float
    expected: float
    least: float
    most: float
    missing: float


@dataclass(frozen=True, eq=False)
class Decision:
    """The numbers that are to be in force.

    Attributes:
        point: how far from what needs the least to what needs the most all would be: as far as the estimate
            for that is within the limits, without the reserve.
        values: int64[k], the numbers that are to be in force.
        needs: what is expected, for each budget.
        tightest: the number of the budget of which the largest part is needed with the numbers so far.
    """

    point: Point
    values: Int64Array
    needs: tuple[Needs, ...]
    tightest: int


def decided(budgets: Sequence[Budget], knobs: Knobs) -> Decision:
    """The numbers that are to be in force.

    They ask for less as soon as too much is expected, which depends on what has come and not on whether an
    earlier change has had its effect. They ask for more only where too little is expected, and each only
    when its last change has taken effect. So they do not go to and fro while rows come as they do.

    Args:
        budgets: the limits; the one that allows the least decides.
        knobs: the numbers that may change.
    """
    point = _furthest(lambda point: _fits(budgets, knobs.at(point), USED))
    values = _changed(budgets, knobs, None if _fits(budgets, knobs.values, TOO_MUCH) else point)
    needs = tuple(_needs(budget, knobs, values) for budget in budgets)
    parts = [
        need.now / budget.free if budget.free else np.inf for need, budget in zip(needs, budgets, strict=True)
    ]
    return Decision(point, values, needs, int(np.argmax(parts)))


def _needs(budget: Budget, knobs: Knobs, values: Int64Array) -> Needs:
    now, expected, least, most = map(budget.load.at, (knobs.values, values, knobs.least, knobs.most))
    return Needs(now, expected, least, most, max(0.0, least - USED * budget.free))


def _fits(budgets: Sequence[Budget], values: Int64Array, share: float) -> bool:
    return all(budget.load.at(values) <= share * budget.free for budget in budgets)


def _changed(budgets: Sequence[Budget], knobs: Knobs, point: Point | None) -> Int64Array:
    """int64[k]: the numbers from now on.

    Args:
        budgets: the limits.
        knobs: the numbers that may change.
        point: how far they may be where too much is expected; None where it is not.
    """
    held = knobs.values if point is None else knobs.lesser(knobs.values, knobs.at(point))

    def at(point: Point) -> Int64Array:
        """The numbers where those that may ask for more are so far."""
        found: Int64Array = np.where(knobs.settled, knobs.at(point), held)
        return found

    def fitting(share: float) -> Int64Array:
        return at(_furthest(lambda point: _fits(budgets, at(point), share)))

    if point is None:
        modest = fitting(TOO_LITTLE)
        if (knobs.lesser(modest, knobs.values) == modest).all():
            return knobs.values
    return fitting(USED)


def _furthest(fits: Callable[[Point], bool]) -> Point:
    """The furthest point that fits, where one does that is less far; the first one where none does.

    First the step of granules, with windows as far; then the part of windows, up to the next step.
    """
    if fits(MOST_POINT):
        return MOST_POINT
    step = next((step for step in reversed(range(STEPS)) if fits(_on(step))), None)
    if step is None:
        return LEAST_POINT
    low, high = _on(step).part, _on(step + 1).part
    while high - low > 0:
        middle = (low + high + 1) // 2
        if fits(Point(step, middle)):
            low = middle
        else:
            high = middle - 1
    return Point(step, low)


def _on(step: int) -> Point:
    """Windows as far as a step of granules."""
    return Point(step, PARTS * step // STEPS)
