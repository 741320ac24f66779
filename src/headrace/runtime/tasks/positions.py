"""The rows of a stream with `DISORDER n ROWS`, as a task of level 0 counts them."""

from __future__ import annotations

import pyarrow as pa

from headrace.elements import Int64Array
from headrace.heartbeats.bounded import Judgement
from headrace.heartbeats.counting import Counting
from headrace.runtime.tasks.messages import EpochWork


class CountedRows:
    """The rows of one stream, of which one task has all in an epoch, in order.

    Args:
        work: the epoch.
        stream: the stream's name.
        rows: the number that it declares.
    """

    def __init__(self, work: EpochWork, stream: str, rows: int) -> None:
        self._positions = work.time.state.positions(work.time.names.index(stream), rows)

    @property
    def counting(self) -> Counting:
        """What the rows so far will promise."""
        return self._positions.counting

    def judge(self, rows: pa.RecordBatch, times: Int64Array) -> Judgement:
        """Judge consecutive rows, each by those before it.

        Args:
            rows: the rows.
            times: int64[n], their timestamps, none out of range.
        """
        found, self._positions = self._positions.judge(times)
        return found
