"""Aggregates over frames of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import Aggregate, Over, Source
from headrace.elements import Batch, Int64Array
from headrace.expressions.tree import AggregateCall
from headrace.kernels.frames import frame_starts, running_sums, subtract_columns
from headrace.operators.aggregates.accumulators import accumulate, is_invertible, layout_of
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.aggregates.sum_values import evaluate
from headrace.operators.contract import Progress, Report, evaluate_all
from headrace.operators.state.keys import encode_keys, hash_rows
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.steps import StepArea, Steps
from headrace.operators.state.sum_columns import SumColumns
from headrace.operators.windows.arrived import Answers, Arrived, Instants
from headrace.time import BEGINNING, INFINITY, TimeDomain


def is_running_sum(call: AggregateCall, frame: RangeFrame) -> bool:
    """Whether an aggregate over a frame is a difference of running sums."""
    return is_invertible(call) and not call.distinct and frame.size.length < INFINITY


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

    def step(self, arrived: Arrived | None, window: tuple[int, int]) -> Answers:
        """The aggregates for new rows, if there are any."""
        longest = max(frame.size.length for frame in self._frames)
        # A frame of the horizon, or of a later instant, starts after this one.
        dead = max(window[1], BEGINNING + longest) - longest
        found = {} if arrived is None else self._answers(arrived, dead)
        self._area.expire(dead)
        return found

    def _answers(self, arrived: Arrived, dead: int) -> Answers:
        """The aggregates; steps up to an instant need not be stored."""
        instants = arrived.instants
        stored = self._area.stored(arrived.hashes, arrived.keys)
        own = self._own(arrived.rows)
        names = (*self._ints, *sorted({*own.limbs, *(name for steps in stored for name in steps.limbs)}))
        own = own.with_limbs(names[len(self._ints) :])
        bases = _totals(stored, names, len(arrived.hashes))
        running = running_sums(
            arrived.by_time, arrived.codes, instants.numbers, instants.first, own.values, bases
        )
        new = self._steps(instants, running, names)
        self._append(arrived, new, dead)
        result: Answers = {}
        for frame, calls in self._frames.items():
            found = _differences([*stored, new], instants, frame.size.length, running, names)
            sums = SumColumns(found.T, own.limbs)
            for call in calls:
                result[frame, call] = instants.per_row(evaluate(self._layout, call, sums))
        return result

    def _own(self, rows: Batch) -> SumColumns:
        """What each row adds."""
        arguments = [part for entry in self._layout.of_elements for part in entry.inputs]
        _, columns = evaluate_all(arguments, rows, self._report)
        return accumulate(self._layout, columns, rows.w)

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


class RangeValues:
    """Any aggregates over the last instants, or over all so far.

    They are those of a grouped aggregation of rows that are valid for so many instants: chronons are not
    coalesced, so that a segment starts at every instant of a new row.

    Args:
        node: the partitions.
        frame: the frame.
        calls: the aggregates.
        report: receives what fails.
    """

    def __init__(self, node: Over, frame: RangeFrame, calls: list[AggregateCall], report: Report) -> None:
        self._frame, self._calls = frame, calls
        rows = Source("rows", node.input.schema, "", TimeDomain.INTEGER)
        keys = tuple((f"k{place}", key) for place, key in enumerate(node.keys))
        named = tuple((f"a{place}", call) for place, call in enumerate(calls))
        self._width = len(keys)
        grouped = Aggregate(rows, keys, named)
        self._groups = AggregateOperator(grouped, combined=False, insert_only=True, report=report)

    @property
    def areas(self) -> dict[str, Area]:
        """The aggregation's state."""
        return dict(self._groups.areas)

    def step(self, arrived: Arrived | None, window: tuple[int, int]) -> Answers:
        """The aggregates for new rows, if there are any."""
        if arrived is not None:
            rows, size = arrived.rows, self._frame.size.length
            te = np.full(len(rows), INFINITY) if size == INFINITY else rows.ts + size
            self._groups.process(0, Batch(rows.payload, rows.ts, te, rows.w))
        found = self._groups.advance(Progress((window[0],), (window[1],)))
        if arrived is None:
            return {}
        at = pa.array(self._segments(arrived, found)[arrived.instants.numbers])
        columns = (column.take(at) for column in found.payload.columns[self._width :])
        return {(self._frame, call): values for call, values in zip(self._calls, columns, strict=True)}

    def _segments(self, arrived: Arrived, found: Batch) -> Int64Array:
        """The segment that starts at each instant; int64[m]."""
        instants = arrived.instants
        fresh = np.flatnonzero(found.w > 0)
        theirs = [column.take(pa.array(fresh)) for column in found.payload.columns[: self._width]]
        ours = [key.take(pa.array(instants.codes)) for key in arrived.keys]
        columns = [pa.concat_arrays(pair) for pair in zip(theirs, ours, strict=True)]
        columns.append(pa.array(np.concatenate([found.ts[fresh], instants.times])))
        codes = encode_keys(columns, hash_rows(columns, len(columns[-1]))).codes
        segments = np.zeros(int(codes.max()) + 1, dtype=np.int64)
        segments[codes[: len(fresh)]] = fresh
        return segments[codes[len(fresh) :]]
