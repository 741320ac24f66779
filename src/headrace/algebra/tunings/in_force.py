"""The sizes that were in force for answers: which steps of its windows an answer was made with.

An answer at an instant has rows from as long before it as its windows look back, and these have the sizes of
their own instants. So the sizes that it was made with are those from there on (thesis, section 21.4, which
leaves out the size at the beginning of an answer and the length of the window).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from headrace.algebra.exactness import looks_back
from headrace.algebra.nodes import Granularity, Plan, inputs_of
from headrace.algebra.tunings.tunings import Tuned, TunedNode, Tuning, tuning_of
from headrace.elements import Int64Array
from headrace.steps import Step, StepFunction
from headrace.time import BEGINNING, INFINITY


class SizedWindow(NamedTuple):
    """A window, granules or a share of a plan, and how far an answer looks back to rows that have its sizes.

    Attributes:
        tuning: what may change.
        back: how far before an instant of the answer the rows may lie (instants); INFINITY for any length.
    """

    tuning: Tuning
    back: int


_FAR: Final = INFINITY // 2


def sized_windows(plan: Plan) -> tuple[SizedWindow, ...]:
    """The numbers of a plan that may change, each once, with the longest way back to its rows."""
    found: dict[Tuning, int] = {}
    _collect(plan, 0, found)
    return tuple(SizedWindow(tuning, back) for tuning, back in found.items())


def _collect(plan: Plan, above: int, found: dict[Tuning, int]) -> None:
    back = _together(looks_back(plan), above)
    if isinstance(plan, TunedNode) and (tuning := tuning_of(plan)) is not None:
        # A row has the granule of its own instant for as long as it is in the window below.
        rows = _together(back, looks_back(plan.input)) if isinstance(plan, Granularity) else back
        found[tuning] = max(rows, found.get(tuning, 0))
    for below in inputs_of(plan):
        _collect(below, back, found)


def _together(one: int, other: int) -> int:
    return INFINITY if max(one, other) >= _FAR else one + other


def known_steps(tuning: Tuning, tuned: Tuned | None) -> StepFunction:
    """The sizes that are known of a window, the first one included, with the instants from which on they are.

    The first of them begins at BEGINNING, unless it has been forgotten.

    Args:
        tuning: says which window it is.
        tuned: the sizes after the first; None where there are none.
    """
    first = Step(BEGINNING, tuning.first)
    if tuned is None:
        return (first,)
    says_all = tuned.lacks_earlier or tuned.steps[0].begin == BEGINNING
    return tuned.steps if says_all else (first, *tuned.steps)


def left_behind(begin: int, back: int) -> int:
    """The first instant at which no row from before an instant is in an answer (instant).

    Args:
        begin: the instant.
        back: how far answers look back (instants).
    """
    if begin == BEGINNING or back >= _FAR or begin >= _FAR:
        return BEGINNING if begin == BEGINNING else INFINITY
    return begin + back


def steps_in_force(
    steps: StepFunction, back: int, begins: Int64Array, ends: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """int64[n], int64[n]: the first step that was in force for each of n answers, and the first one after.

    Args:
        steps: the steps, in order, at least one.
        back: how far the answers look back (instants).
        begins: int64[n], the first instant of each answer.
        ends: int64[n], the first instant after it.
    """
    froms = np.array([step.begin for step in steps], dtype=np.int64)
    if back >= _FAR:
        oldest = np.full(len(begins), BEGINNING, dtype=np.int64)
    else:
        oldest = np.maximum(begins, BEGINNING + back) - back
    first = np.maximum(np.searchsorted(froms, oldest, side="right") - 1, 0)
    after = np.searchsorted(froms, ends, side="left")
    return first.astype(np.int64), np.maximum(after, first).astype(np.int64)
