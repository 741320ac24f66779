"""Windows get another size within their bounds, from an instant on (thesis, section 21.2.1).

A row stays in a window for as long as the size says at the row's own instant. The first instant of a new
size lies above all rows that have come of the window's streams, and no lower than their heartbeats: so
nothing that was said changes, and rows that come late have the size that they would have had in time. It is
chosen once and committed, so that a restart and whoever reads the rows again go by the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.algebra.tunings.tunings import Tuned
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.journal.records import StreamPoint
from headrace.steps import with_step
from headrace.time import BEGINNING, INFINITY


def tuned(present: Present, change: Tune) -> Turn:
    """The turn of a change of sizes.

    Args:
        present: the run before it.
        change: what is asked for.
    """
    queries = present.known.queries
    found = dict(queries.tunings)
    for tuning, size in change.sizes.items():
        known = found.get(tuning)
        begin = _next_instant(map(present.point, tuning.streams))
        steps = with_step(() if known is None else known.steps, begin, size)
        found[tuning] = Tuned(steps, tuple(change.queries[tuning]), change.why.get(tuning, ""))
    return present.turn(queries.with_tunings(found))


def _next_instant(points: Iterable[StreamPoint]) -> int:
    """The first instant above all rows of some streams, BEGINNING where there is none yet."""
    found = BEGINNING
    for point in points:
        if point.time.rows:
            found = max(found, point.time.latest + 1)
        if point.heartbeat < INFINITY:
            found = max(found, point.heartbeat)
    return found
