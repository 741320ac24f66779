"""Windows get another size within their bounds, or granules another length (thesis, section 21.2).

A row stays in a window for as long as the size says at the row's own instant. The first instant of a new
size lies above all rows that have come of the window's streams, and no lower than their heartbeats: so
nothing that was said changes, and rows that come late have the size that they would have had in time. It is
chosen once and committed, so that a restart and whoever reads the rows again go by the same.

Sizes are forgotten that only rows had which nobody can ask for: none such can come or be read again, and all
answers that are kept are about later instants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.algebra.tunings.tunings import Tuned, Tuning, TuningKind, first_instant
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.intake.streams import LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.steps import scales_from, steps_from, value_at, with_scale, with_step
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
        asked = BEGINNING if known is None else _first_asked(present, change, tuning)
        known_steps = () if known is None else steps_from(known.steps, asked)
        lacks = known is not None and (known.lacks_earlier or len(known_steps) < len(known.steps))
        unseen = _next_instant(map(present.point, tuning.streams))
        begin = first_instant(tuning, known_steps, unseen, size)
        # Rows may have another usual size while the share stays.
        stays = tuning.kind is TuningKind.SHARE and value_at(tuning.first, known_steps, begin) == size
        steps = known_steps if stays else with_step(known_steps, begin, size)
        scales = () if known is None else scales_from(known.scales, asked)
        scales = with_scale(scales, begin, change.means.get(tuning, {}))
        users, why = tuple(change.queries[tuning]), change.why.get(tuning, "")
        found[tuning] = Tuned(steps, users, why, lacks, scales)
    return present.turn(queries.with_tunings(found))


def _first_asked(present: Present, change: Tune, tuning: Tuning) -> int:
    """The first instant of which rows may come or be read again, or be part of an answer that is kept."""
    streams = [(present.declared.get(name), present.point(name)) for name in tuning.streams]
    if any(not isinstance(stream, LiveStream) or point.retained is not None for stream, point in streams):
        return BEGINNING
    first = min(point.heartbeat for _, point in streams)
    results = present.known.results
    if present.settings.keep_results:
        carried = results[-1].carried if results else {}
        said = (carried[name].boundary if name in carried else BEGINNING for name in change.queries[tuning])
        first = min((first, *said))
    return BEGINNING if first == BEGINNING else first - _back(present, change, tuning)


def _back(present: Present, change: Tune, tuning: Tuning) -> int:
    """The longest way from an answer back to rows by whose sizes it was made (instants)."""
    if tuning.kind is TuningKind.ROWS:
        # Rows leave windows of rows by the sizes of later ones, whenever these come.
        return 0
    backs = (
        window.back
        for query in change.queries[tuning]
        for window in present.known.queries.sizes_of(query).windows
        if window.tuning == tuning and window.back < _NEVER
    )
    return max(backs, default=0) + tuning.largest + tuning.slide


_NEVER: Final = INFINITY // 2


def _next_instant(points: Iterable[StreamPoint]) -> int:
    """The first instant above all rows of some streams, BEGINNING where there is none yet."""
    found = BEGINNING
    for point in points:
        if point.time.rows:
            found = max(found, point.time.latest + 1)
        if point.heartbeat < INFINITY:
            found = max(found, point.heartbeat)
    return found
