"""The rows of a stream that are judged by their position, as a task of level 0 counts them."""

from __future__ import annotations

import pyarrow as pa

from headrace.elements import Int64Array
from headrace.heartbeats.bounded import Judgement
from headrace.heartbeats.counting import Counting
from headrace.heartbeats.skew import Bounds
from headrace.runtime.tasks.messages import EpochWork


class CountedRows:
    """The rows of one stream, of which one task has all in an epoch, in order.

    Args:
        work: the epoch.
        stream: the stream's name.
        bounds: those of the stream with itself that count rows.
    """

    def __init__(self, work: EpochWork, stream: str, bounds: Bounds) -> None:
        place, disorder = work.time.names.index(stream), work.streams[stream].timing.disorder
        self._positions = work.time.state.positions(place, bounds, disorder)

    @property
    def counting(self) -> tuple[Counting, ...]:
        """What the rows so far will promise by each of the bounds."""
        return self._positions.counting

    def judge(self, rows: pa.RecordBatch, times: Int64Array) -> Judgement:
        """Judge consecutive rows, each by those before it.

        Args:
            rows: the rows.
            times: int64[n], their timestamps, none out of range.
        """
        found, self._positions = self._positions.judge(times)
        return found
