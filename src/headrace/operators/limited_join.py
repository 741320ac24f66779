"""Joins that remember a share of their rows: which pairs are found, and about how many are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import LimitedJoin, Plan, RememberedRows, TimeWindow
from headrace.algebra.properties import walk
from headrace.elements import Batch, BoolArray, Float64Array, Int64Array, integers
from headrace.operators.contract import OperatorProgress, Report
from headrace.operators.join import JoinOperator, JoinSide
from headrace.operators.shed import last_draws
from headrace.operators.state.runs import SortedRun
from headrace.operators.state.sweep_area import SweepArea
from headrace.steps import WHOLE, least_between
from headrace.time import BEGINNING, INFINITY

_Columns = Callable[[int], pa.Array]


class LimitedJoinOperator(JoinOperator):
    """Join of which rows are forgotten (`LimitedJoin`; STREAM, section 5.3).

    Definition:
        At t, the pairs of `Join` whose rows are each remembered from their own instant up to the newest one.

    Retractions:
        As of `JoinOperator`: what is retracted has the draw and the instant of what was said.

    State:
        Of what `JoinOperator` keeps, the elements that are remembered up to the first instant that a later
        element of the other side may have; those that are as new as that are all kept.

    Example:
        Equality on x, half of the rows of L remembered, all of R; c is not among that half:

        ====== ======= ==        ====== ======= ==        ====== ======= ==
        L.x    [ts,te)  w        R.x    [ts,te)  w        x, x   [ts,te)  w
        ====== ======= ==        ====== ======= ==        ====== ======= ==
        b      [1,9)    +        b      [2,6)    +        b, b   [2,6)    +
        c      [1,9)    +        c      [3,7)    +
        c      [5,9)    +                                 c, c   [5,7)    +
        ====== ======= ==        ====== ======= ==        ====== ======= ==
    """

    def __init__(self, node: LimitedJoin, report: Report) -> None:
        super().__init__(node, report)
        self._limited = node
        self._slacks = tuple(_longest_slide(side) - 1 for side in (node.left, node.right))

    def advance(self, progress: OperatorProgress) -> Batch:
        """The pairs in which at least one element is new."""
        found = super().advance(progress)
        for port, side in enumerate((self.left, self.right)):
            before, after = (ends[1 - port] for ends in (progress.before, progress.after))
            slack = self._slacks[1 - port]
            _forget(side, self._limited.of_side(port), _back(before, slack), _back(after, slack))
        return found

    def found(self, pairs: Batch) -> Batch:
        """Those of the pairs that match in their keys whose rows are remembered."""
        rows = self._limited.remembered
        if not len(pairs) or not any(one.steps for one in rows):
            return pairs
        column = pairs.payload.column
        newest = _newest(rows, column)
        return pairs.filter(np.logical_and.reduce([_is_kept(one, column, newest) for one in rows]))


def missed(node: LimitedJoin, batch: Batch) -> float:
    """About how many pairs were not found, by those that were (Horvitz-Thompson).

    Args:
        node: the plan node.
        batch: pairs that it has found. One that was found with probability p stands for 1 / p of them.
    """
    rows = node.remembered
    if not len(batch) or not any(one.steps for one in rows):
        return 0.0
    column = batch.payload.column
    newest = _newest(rows, column)
    weights: Float64Array = np.ones(len(batch))
    for one in rows:
        since = integers(column(one.instant))
        shares = least_between(WHOLE, one.steps, since, newest)
        weights *= np.where(since < newest, WHOLE / shares, 1.0)
    return float(((weights - 1.0) * batch.w).sum())


def _forget(side: JoinSide, rows: Sequence[RememberedRows], before: int, after: int) -> None:
    """Let go of elements that none will meet any more, since these are of instants from `after` on."""
    steps = [step for one in rows for step in one.steps]
    if not steps or after in (BEGINNING, INFINITY) or not side.area.runs:
        return
    # Of what was looked at before, others are forgotten only if shares have become smaller since.
    anew = any(before < step.begin <= after for step in steps)
    area: SweepArea = side.area

    def gone(run: SortedRun) -> BoolArray:
        def column(place: int) -> pa.Array:
            (found,) = run.columns((side.payload[place],))
            return found

        newest = _newest(rows, column)
        # What has entered just now was not looked at, however old it is.
        if run.ref is not None and not anew and int(newest.max()) < before:
            return np.zeros(run.rows, dtype=np.bool_)
        until = np.full(run.rows, after, dtype=np.int64)
        kept = np.logical_and.reduce([_is_kept(one, column, until) for one in rows])
        forgotten: BoolArray = ~kept & (newest < after)
        return forgotten

    area.forget(gone)


def _newest(rows: Sequence[RememberedRows], column: _Columns) -> Int64Array:
    """int64[n]: the newest instant of the rows of each of n pairs."""
    found: Int64Array = np.maximum.reduce([integers(column(one.instant)) for one in rows])
    return found


def _is_kept(one: RememberedRows, column: _Columns, until: Int64Array) -> BoolArray:
    """bool[n]: whether one row of each pair is remembered up to an instant, or is of that."""
    since = integers(column(one.instant))
    shares = least_between(WHOLE, one.steps, since, until)
    different, places = np.unique(shares, return_inverse=True)
    draws = integers(column(one.draw)).view(np.uint64)
    kept: BoolArray = (since >= until) | (draws <= last_draws(different)[places])
    return kept


def _longest_slide(plan: Plan) -> int:
    """The longest way from the instants of rows to where their elements begin, and one more (instants)."""
    slides = (node.slide.length for node in walk(plan) if isinstance(node, TimeWindow))
    return max(slides, default=1)


def _back(heartbeat: int, slack: int) -> int:
    """An instant so much earlier, where it is one."""
    return heartbeat if heartbeat in (BEGINNING, INFINITY) else heartbeat - slack
