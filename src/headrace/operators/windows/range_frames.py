"""Aggregates over frames of time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.frames import RangeFrame
from headrace.algebra.nodes import Aggregate, Over, Source
from headrace.elements import Batch, Int64Array
from headrace.expressions.tree import AggregateCall
from headrace.kernels.frames import frame_starts, running_sums
from headrace.operators.aggregates.accumulators import accumulate, is_invertible, layout_of
from headrace.operators.aggregates.aggregate import AggregateOperator
from headrace.operators.aggregates.sum_values import evaluate
from headrace.operators.contract import Progress, Report, evaluate_all
from headrace.operators.state.keys import encode_keys, hash_rows
from headrace.operators.state.runs import HASH, TIME, Area
from headrace.operators.state.steps import StepArea, Steps
from headrace.operators.state.sum_columns import SumColumns, all_limbs, sum_arrays, sums_of
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
        found = {} if arrived is None else self._answers(arrived)
        longest = max(frame.size.length for frame in self._frames)
        # A frame of the horizon, or of a later instant, starts after this one.
        self._area.expire(max(window[1], BEGINNING + longest) - longest)
        return found

    def _answers(self, arrived: Arrived) -> Answers:
        instants = arrived.instants
        stored = self._area.stored(arrived.hashes, arrived.keys)
        own = self._own(arrived.rows)
        known = [sums_of(steps.rows, self._ints) for steps in stored]
        limbs = all_limbs([own, *known])
        known = [sums.with_limbs(limbs) for sums in known]
        bases = _totals(stored, known, len(arrived.hashes), len(self._ints) + len(limbs))
        running = running_sums(instants.numbers, instants.first, own.with_limbs(limbs).values, bases)
        new = self._append(arrived, running, limbs)
        sources = [*zip(stored, (sums.values.T for sums in known), strict=True), (new, running)]
        after = np.arange(len(instants.times)) + instants.codes + 1
        result: Answers = {}
        of_row = pa.array(instants.numbers)
        for frame, calls in self._frames.items():
            before = _sums_before(sources, instants, frame.size.length)
            sums = SumColumns((running[:, after] - before).T, limbs)
            result |= {(frame, call): evaluate(self._layout, call, sums).take(of_row) for call in calls}
        return result

    def _own(self, rows: Batch) -> SumColumns:
        """What each row adds."""
        arguments = [part for entry in self._layout.of_elements for part in entry.inputs]
        _, columns = evaluate_all(arguments, rows, self._report)
        return accumulate(self._layout, columns, rows.w)

    def _append(self, arrived: Arrived, running: Int64Array, limbs: tuple[str, ...]) -> Steps:
        """Store the running sums before each new instant, and behind the last one of each partition."""
        instants = arrived.instants
        counts = np.diff(instants.first) + 1
        highs = np.cumsum(counts)
        times = np.empty(running.shape[1], dtype=np.int64)
        times[np.arange(len(instants.times)) + instants.codes] = instants.times
        times[highs - 1] = times[highs - 2] + 1
        of_step = pa.array(np.repeat(np.arange(len(counts)), counts))
        sums = sum_arrays(self._ints, limbs, running)
        columns = {HASH: pa.array(np.repeat(arrived.hashes, counts)), TIME: pa.array(times)}
        columns |= dict(zip(self._keys, (key.take(of_step) for key in arrived.keys), strict=True))
        self._area.append(columns | sums)
        return Steps(times, highs - counts, highs - 1, pa.RecordBatch.from_pydict(sums))


def _totals(stored: Sequence[Steps], known: Sequence[SumColumns], count: int, width: int) -> Int64Array:
    """What was added up for each partition so far, or since it was last forgotten; int64[count, width]."""
    result = np.zeros((count, width), dtype=np.int64)
    for steps, sums in zip(stored, known, strict=True):
        present = np.flatnonzero(steps.lows < steps.highs)
        result[present] = sums.values[steps.highs[present] - 1]
    return result


def _sums_before(sources: Sequence[tuple[Steps, Int64Array]], instants: Instants, size: int) -> Int64Array:
    """The running sums before the frame of each instant; int64[c, m]."""
    result = np.empty((len(sources[-1][1]), len(instants.times)), dtype=np.int64)
    searched = instants.first[:-1].copy()
    for steps, sums in sources:
        found, rows = frame_starts(
            instants.first, instants.times, size, steps.lows, steps.highs, steps.times, searched
        )
        result[:, found] = sums[:, rows]
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
