"""Which rows of a stream are too late for queries that remember it for less than it allows.

A row that is in time for them is in time for the stream, too. So they are judged among the rows that are, by
position as these are, and how certain a task can be of its judgements follows from the shortest memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from headrace.algebra.arrival import NO_PAST
from headrace.algebra.memory import ALL, Memory
from headrace.elements import Int64Array
from headrace.heartbeats.bounded import Arrivals, judge_in_order, judge_together
from headrace.runtime.tasks.messages import EpochWork

Left = Mapping[Memory, Int64Array]
"""By the memory, the places of the rows that it leaves out, increasing."""


class Memories:
    """Judges consecutive rows of a stream for queries that remember it for less than it allows.

    Args:
        work: the epoch.
        stream: the stream's name.
        before: the largest timestamp of the epoch's rows before these that is known (instant), BEGINNING for
            none.
    """

    def __init__(self, work: EpochWork, stream: str, before: int) -> None:
        known = work.streams[stream]
        newest = max(known.latest, before) if known.in_order else known.latest
        self._judges = {}
        for memory in work.graph.memories if known.replayed is None else ():
            if memory.stream == stream:
                past = work.pasts.get(stream, NO_PAST)
                heartbeat = memory.reached(known.heartbeat, newest, past)
                # What a memory looks back to was committed before the epoch, so that no row of it matters.
                by_rows_before = known.in_order and memory.dial is None and memory.length != ALL
                self._judges[memory] = (
                    partial(judge_in_order, heartbeat=heartbeat, disorder=memory.length)
                    if by_rows_before
                    else partial(judge_together, heartbeat=heartbeat)
                )

    def judge(self, times: Int64Array, seen: Arrivals) -> tuple[Left, Arrivals]:
        """What each memory leaves out, and the summary that says how certain that is.

        Args:
            times: int64[n], the timestamps of the rows that are in time for the stream.
            seen: the summary of all rows.
        """
        found = {memory: judge(times) for memory, judge in self._judges.items()}
        certain = min((seen.certain, *(one.arrivals.certain for one in found.values())))
        return {memory: one.late for memory, one in found.items()}, replace(seen, certain=certain)
