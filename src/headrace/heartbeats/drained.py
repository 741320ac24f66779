"""Wall-clock time that counts: time in which the system had taken everything that the sources had.

LATENCY, IDLE AFTER, TIMEOUT and bounds with a wait conclude something from the rows that have *not* come.
They may do so only from rows that are not still waiting in front of us: in the queue of pushes, at a
broker, in files that have not been read. Each stream therefore has a clock of its own that runs only while
it is caught up, and all of them stop while nobody looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.elements import Int64Array


@dataclass(frozen=True, eq=False)
class DrainedClocks:
    """How much time has counted for each of some streams.

    Attributes:
        counted: int64[streams] (microseconds), from 0 on; never goes back.
        caught_up: bool[streams], whether at the last look everything was taken.
        reading: of the clock at the last look (microseconds), None before the first of a run.
    """

    counted: Int64Array
    caught_up: NDArray[np.bool_]
    reading: int | None = None

    @classmethod
    def stopped(cls, counted: Sequence[int] | Int64Array) -> DrainedClocks:
        """The clocks as a run begins: the time since they last counted, in which nobody looked, does not."""
        return cls(np.array(counted, dtype=np.int64), np.zeros(len(counted), dtype=bool))

    @classmethod
    def running(cls, counted: Sequence[int] | Int64Array) -> DrainedClocks:
        """Clocks that show some time, with all streams caught up."""
        return cls(np.array(counted, dtype=np.int64), np.ones(len(counted), dtype=bool))

    def look(self, now: int, caught_up: Sequence[bool], longest: int) -> DrainedClocks:
        """The clocks after a look at the time and at the sources.

        The time since the last look counts for a stream that was caught up then and is now. More than
        `longest` of it does not count: the system was busy with an epoch, or suspended, or the clock was set.
        So a long pause costs waiting and never makes a row late. A clock that is set back counts nothing,
        once; one that is set forward can count `longest` too much, once. A monotonic clock cannot be set, and
        does as well as the wall clock, since the first look of a run counts nothing.

        Args:
            now: the clock (microseconds), read when the rows of the epoch have been taken, so that none of
                them came later.
            caught_up: per stream, whether everything has been taken that it had at that moment.
            longest: how much time counts at most (microseconds): at least the usual time between looks, or
                time counts too slowly.
        """
        passed = 0 if self.reading is None else min(max(now - self.reading, 0), longest)
        still = np.array(caught_up, dtype=bool)
        return DrainedClocks(self.counted + passed * (self.caught_up & still), still, now)
