"""Sums over frames of time: over the last instants, or over all so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import Over
from headrace.elements import Batch, Int64Array
from headrace.expressions.tree import AggregateCall
from headrace.kernels.instants.frames import frame_starts, running_sums, subtract_columns
from headrace.operators.aggregates.accumulators import SumLayout, accumulate, is_invertible, layout_of
from headrace.operators.aggregates.sum_values import evaluate
from headrace.operators.contract import Report, evaluate_all
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.steps import StepArea, Steps
from headrace.operators.state.sum_columns import SumColumns, all_limbs, sum_arrays, sums_of
from headrace.operators.state.sweep_area import Layout, Netting, SweepArea
from headrace.operators.windows.arrived import Arrived, FrameValues, Instants
from headrace.time import BEGINNING, INFINITY, Duration


def is_running_sum(call: AggregateCall) -> bool:
    """Whether an aggregate is read off sums that every row adds to."""
    return is_invertible(call) and not call.distinct


class RangeSums:
    """Aggregates over the last instants that are sums: what was added up by now less what was by then.

    Args:
        node: the partitions.
        frames: the aggregates.
        report: receives what fails.
    """

    def __init__(self, node: Over, frames: dict[RangeFrame, list[AggregateCall]], report: Report) -> None:
        self._frames, self._report = frames, report
        self._layout = layout_of(tuple(dict.fromkeys(call for calls in frames.values() for call in calls)))
        self._keys = tuple(f"__k{place}" for place in range(len(node.keys)))
        self._ints = tuple(f"__i{place}" for place in range(self._layout.width))
        self._area = StepArea(self._keys, self._ints)

    @property
    def areas(self) -> dict[str, Area]:
        """The running sums of the last instants."""
        return {"sums": self._area}

    def step(self, arrived: Arrived | None, window: tuple[int, int]) -> FrameValues:
        """The aggregates for new rows, if there are any."""
        longest = max(frame.size.length for frame in self._frames)
        # A frame of the horizon, or of a later instant, starts after this one.
        dead = max(window[1], BEGINNING + longest) - longest
        found = {} if arrived is None else self._answers(arrived, dead)
        self._area.expire(dead)
        return found

    def _answers(self, arrived: Arrived, dead: int) -> FrameValues:
        """The aggregates; steps up to an instant need not be stored."""
        instants = arrived.instants
        stored = self._area.stored(arrived.hashes, arrived.keys)
        own = _added(self._layout, arrived.rows, self._report)
        names = (*self._ints, *sorted({*own.limbs, *(name for steps in stored for name in steps.limbs)}))
        own = own.with_limbs(names[len(self._ints) :])
        bases = _totals(stored, names, len(arrived.hashes))
        running = running_sums(
            arrived.by_time, arrived.codes, instants.numbers, instants.first, own.values, bases
        )
        new = self._steps(instants, running, names)
        self._append(arrived, new, dead)
        result: FrameValues = {}
        for frame, calls in self._frames.items():
            found = _differences([*stored, new], instants, frame.size.length, running, names)
            sums = SumColumns(found.T, own.limbs)
            for call in calls:
                result[frame, call] = instants.per_row(evaluate(self._layout, call, sums))
        return result

    def _steps(self, instants: Instants, running: Int64Array, names: tuple[str, ...]) -> Steps:
        """The running sums before each new instant, and behind the last one of each partition."""
        highs = instants.first[1:] + np.arange(1, len(instants.first))
        times = np.empty(running.shape[1], dtype=np.int64)
        times[instants.steps] = instants.times
        times[highs - 1] = times[highs - 2] + 1
        lows = np.concatenate([[0], highs[:-1]])
        return Steps(
            times, lows, highs, pa.RecordBatch.from_arrays(list(map(pa.array, running)), names=names)
        )

    def _append(self, arrived: Arrived, steps: Steps, dead: int) -> None:
        """Store steps, but not those that are dead if these are most of them."""
        of_step = np.repeat(np.arange(len(arrived.hashes)), steps.highs - steps.lows)
        rows, times = steps.rows, steps.times
        alive = np.flatnonzero(times > dead)
        if 2 * len(alive) < len(times):
            of_step, rows, times = of_step[alive], rows.take(pa.array(alive)), times[alive]
        columns = {HASH: pa.array(arrived.hashes[of_step]), TIME: pa.array(times)}
        keys = (key.take(pa.array(of_step)) for key in arrived.keys)
        columns |= dict(zip(self._keys, keys, strict=True))
        self._area.append(columns | dict(zip(rows.schema.names, rows.columns, strict=True)))


class RunningTotals:
    """Aggregates over all rows so far that are sums: what was added up by now.

    Args:
        node: the partitions.
        calls: the aggregates.
        report: receives what fails.
    """

    def __init__(self, node: Over, calls: list[AggregateCall], report: Report) -> None:
        self._calls, self._report = calls, report
        self._layout = layout_of(tuple(calls))
        self._keys = tuple(f"__k{place}" for place in range(len(node.keys)))
        ints = tuple(f"__i{place}" for place in range(self._layout.width))
        self._area = SweepArea(Layout(self._keys, ints=ints, netting=Netting.REPLACE))

    @property
    def areas(self) -> dict[str, Area]:
        """What was added up for each partition, for ever."""
        return {"totals": self._area}

    def step(self, arrived: Arrived | None, window: tuple[int, int]) -> FrameValues:
        """The aggregates for new rows, if there are any."""
        found = {} if arrived is None else self._answers(arrived)
        self._area.expire(window[1])
        return found

    def _answers(self, arrived: Arrived) -> FrameValues:
        instants, ints = arrived.instants, self._area.layout.ints
        own = _added(self._layout, arrived.rows, self._report)
        places, rows = self._area.gather(arrived.hashes, arrived.keys)
        known = None if rows is None else sums_of(rows, ints)
        limbs = own.limbs if known is None else all_limbs([own, known])
        bases = np.zeros((len(arrived.hashes), len(ints) + len(limbs)), dtype=np.int64)
        if known is not None:
            # Rows come oldest run first, so that the newest row of a partition is the one that stays.
            bases[places] = known.with_limbs(limbs).values
        running = running_sums(
            arrived.by_time, arrived.codes, instants.numbers, instants.first,
            own.with_limbs(limbs).values, bases,
        )  # fmt: skip
        totals = running[:, instants.first[1:] + np.arange(len(arrived.hashes))]
        columns = {HASH: pa.array(arrived.hashes), TIME: pa.array(np.zeros(len(arrived.hashes), np.int64))}
        columns |= dict(zip(self._keys, arrived.keys, strict=True))
        self._area.insert(columns | sum_arrays(ints, limbs, totals))
        sums = SumColumns(running[:, instants.steps + 1].T, limbs)
        frame = RangeFrame(Duration(INFINITY))
        values = ((call, evaluate(self._layout, call, sums)) for call in self._calls)
        return {(frame, call): instants.per_row(column) for call, column in values}


def _added(layout: SumLayout, rows: Batch, report: Report) -> SumColumns:
    """What each row adds."""
    arguments = [part for entry in layout.of_elements for part in entry.inputs]
    _, columns = evaluate_all(arguments, rows, report)
    return accumulate(layout, columns, rows.w)


def _totals(stored: Sequence[Steps], names: tuple[str, ...], count: int) -> Int64Array:
    """What was added up for each partition so far, or since it was forgotten; int64[count, len(names)]."""
    result = np.zeros((count, len(names)), dtype=np.int64)
    for steps in stored:
        present = np.flatnonzero(steps.lows < steps.highs)
        result[present] = steps.sums(names, steps.highs[present] - 1).T
    return result


def _differences(
    sources: Sequence[Steps], instants: Instants, size: int, running: Int64Array, names: tuple[str, ...]
) -> Int64Array:
    """What was added up by each instant less what was before its frame; int64[c, m].

    Args:
        sources: steps, older ones first; the last ones are the new ones.
        instants: the new instants.
        size: how many instants a frame holds.
        running: the sums of the new steps.
        names: their names.
    """
    result = np.empty((len(names), len(instants.times)), dtype=np.int64)
    searched, after = instants.first[:-1].copy(), instants.steps + 1
    for steps in sources:
        found, rows = frame_starts(
            instants.first, instants.times, size, steps.lows, steps.highs, steps.times, searched
        )
        before = running if steps is sources[-1] else steps.sums(names, rows)
        rows = rows if steps is sources[-1] else np.arange(len(rows))
        subtract_columns(found, rows, before, after, running, result)
    return result
