"""What an estimate of a stream's disorder needs to know of its rows, beyond which of them are late."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from headrace.elements import Int64Array
from headrace.heartbeats.bounded import Judgement
from headrace.heartbeats.share import Lateness, LateTarget, lateness_of, lateness_together
from headrace.kernels.instants.disorder import furthest_behind
from headrace.runtime.tasks.reading import Judge
from headrace.runtime.tasks.task import Task


def measured(task: Task, stream: str, judge: Judge, newest: int) -> Judge:
    """A judge that also measures rows for the estimate of their stream's disorder, if there is one.

    How far a row is behind depends on the rows before it as whether it is late does. So a split that did not
    know a newer row before its first one says that it is not certain (`runtime.driver.passes`), and the
    estimate is the same however an epoch is split.

    Args:
        task: takes how far the rows are behind.
        stream: the stream's name.
        judge: which of the rows are late.
        newest: the largest timestamp before the rows that is known (instant), BEGINNING for none.
    """
    known = task.work.streams[stream]
    rule = known.timing.estimated
    if rule is None:
        return judge

    def run(rows: pa.RecordBatch, times: Int64Array) -> Judgement:
        found = judge(rows, times)
        if not len(times):
            return found
        seen = found.arrivals
        if isinstance(rule, LateTarget):
            behind = (lateness_of if known.in_order else lateness_together)(times, newest)
            task.lateness[stream] = task.lateness.get(stream, Lateness()).beside(behind)
            if known.in_order:
                seen = replace(seen, certain=min(seen.certain, max(int(times[0]), newest)))
        if known.in_order:
            seen = replace(seen, drop=furthest_behind(times)[0])
        return replace(found, arrivals=seen)

    return run
