"""A number as a step function of application time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from headrace.elements import Int64Array


class Step(NamedTuple):
    """From an instant on a number is another one.

    Attributes:
        begin: the first instant at which it is (instant).
        value: what it is then.
    """

    begin: int
    value: int


class Scale(NamedTuple):
    """From an instant on rows usually have other sizes.

    Attributes:
        begin: the first instant at which they have (instant).
        means: by the name of a size what it is on average, in the order of the names.
    """

    begin: int
    means: tuple[tuple[str, float], ...]


StepFunction = tuple[Step, ...]
"""The changes of a number, each of a later instant than those before it."""

WHOLE: Final = 1_000_000
"""A share is a number of millionths: this is all."""


def value_at(first: int, steps: StepFunction, instant: int) -> int:
    """The number at an instant.

    Args:
        first: what it is before the first step.
        steps: its changes.
        instant: the instant.
    """
    return next((step.value for step in reversed(steps) if step.begin <= instant), first)


def share_text(share: int) -> str:
    """A share as it is written: 0.3 for 300,000 millionths."""
    return f"{share / WHOLE:.6f}".rstrip("0").rstrip(".")


def values_at(first: int, steps: StepFunction, instants: Int64Array) -> Int64Array:
    """int64[n]: the number at each of n instants.

    Args:
        first: what it is before the first step.
        steps: its changes.
        instants: int64[n].
    """
    begins = np.array([step.begin for step in steps], dtype=np.int64)
    values = np.array([first, *(step.value for step in steps)], dtype=np.int64)
    found: Int64Array = values[np.searchsorted(begins, instants, side="right")]
    return found


def least_between(first: int, steps: StepFunction, since: Int64Array, until: Int64Array) -> Int64Array:
    """int64[n]: the smallest value that a number has in each of n closed intervals.

    Args:
        first: what it is before the first step.
        steps: its changes, of which there are few.
        since, until: int64[n], the first and the last instant of each; where the last one comes before the
            first, the value at the first.
    """
    found = values_at(first, steps, since)
    for step in steps:
        inside = (since < step.begin) & (step.begin <= until)
        found = np.where(inside, np.minimum(found, step.value), found)
    return found


def value_or_values(first: int, steps: StepFunction, instants: Int64Array) -> int | Int64Array:
    """The number at all of n instants, if it is the same; else int64[n], that at each.

    A batch has few rows from around a change, and a division by one number takes much less time.

    Args:
        first: what it is before the first step.
        steps: its changes.
        instants: int64[n].
    """
    if not steps or not len(instants):
        return first
    earliest, latest = int(instants.min()), int(instants.max())
    if any(earliest < step.begin <= latest for step in steps):
        return values_at(first, steps, instants)
    return value_at(first, steps, earliest)


def with_step(steps: StepFunction, begin: int, value: int) -> StepFunction:
    """The changes with a further one, which takes the place of one that begins at the same instant.

    Args:
        steps: those before it; none begins later.
        begin: the first instant of the new one (instant).
        value: the number from then on.
    """
    return (*(step for step in steps if step.begin < begin), Step(begin, value))


def steps_from(steps: StepFunction, instant: int) -> StepFunction:
    """The changes that say what a number is at an instant, where one has begun by then, and at later ones.

    Args:
        steps: all of them.
        instant: the first instant that somebody may ask for.
    """
    passed = sum(step.begin <= instant for step in steps)
    return steps[max(0, passed - 1) :]


def means_at(scales: tuple[Scale, ...], instant: int) -> dict[str, float]:
    """The usual sizes at an instant, by name: of those that are known.

    Args:
        scales: how they change, each of a later instant than those before it.
        instant: the instant.
    """
    return next((dict(scale.means) for scale in reversed(scales) if scale.begin <= instant), {})


def with_scale(scales: tuple[Scale, ...], begin: int, means: Mapping[str, float]) -> tuple[Scale, ...]:
    """The scales with what is usual from an instant on; what is not known anew stays.

    Args:
        scales: those before it; none begins later.
        begin: the first instant of the new one (instant).
        means: by the name of a size what it is on average.
    """
    known = means_at(scales, begin)
    now = {**known, **{name: mean for name, mean in means.items() if 0 < mean < math.inf}}
    if now == known:
        return scales
    return (*(one for one in scales if one.begin < begin), Scale(begin, tuple(sorted(now.items()))))


def scales_from(scales: tuple[Scale, ...], instant: int) -> tuple[Scale, ...]:
    """The scales that say what is usual at an instant and at later ones; see `steps_from`."""
    passed = sum(scale.begin <= instant for scale in scales)
    return scales[max(0, passed - 1) :]
