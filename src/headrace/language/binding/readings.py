"""The readings of a text: windows that are not written, and the rows that ISTREAM and its like are of."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from headrace.algebra.nodes import Dstream, Istream, Plan, Rstream
from headrace.algebra.streams import as_stream, is_stream, of_instants, so_far
from headrace.errors import Position
from headrace.language.binding.ages import exact_ages
from headrace.language.binding.scope import Scope
from headrace.language.binding.windows import granular, windowed
from headrace.language.defaults import Defaults, answer_of, with_default_window
from headrace.language.syntax import NowFrame, WindowClause

_STREAMS: Final[dict[str, type[Istream | Dstream | Rstream]]] = {
    "ISTREAM": Istream,
    "DSTREAM": Dstream,
    "RSTREAM": Rstream,
}


def table_under(
    plan: Plan,
    window: WindowClause | None,
    scope: Scope,
    defaults: Defaults,
    position: Position,
    bare: bool = False,
    streams: bool | None = None,
) -> Plan:
    """A table under its window, or under what the defaults put in its place.

    Args:
        plan: the table.
        window: what is written after it.
        scope: its columns.
        defaults: what holds where nothing is written.
        position: where it is.
        bare: whether it gets no window by default, since it is read in order of time.
        streams: whether it is a stream; None for a query in FROM, of which that is seen.
    """
    frame = None if window is None else window.frame
    if window is not None and isinstance(frame, NowFrame) and window.granule is not None:
        # The granules are of what the window of an instant yields, and no rows of events.
        rows = replace(window, granule=None, coarsest=None)
        return granular(table_under(plan, rows, scope, defaults, position, bare, streams), window)
    if streams is None and defaults is Defaults.CQL and (window is not None or bare):
        plan = answer_of(plan, defaults)
    if streams is None:
        streams = is_stream(plan)
    match defaults:
        case Defaults.SQL:
            found = windowed(plan, window, scope)
            if isinstance(frame, NowFrame):
                return of_instants(as_stream(found) if streams else found)
            written = frame is not None or (window is not None and window.granule is not None)
            return as_stream(found) if streams and not written else found
        case Defaults.CQL:
            window = with_default_window(window, position) if streams and not bare else window
            return of_instants(windowed(plan, window, scope))
        case Defaults.PIPES:
            return of_instants(windowed(plan, window, scope))


def streamed(operator: str, plan: Plan, defaults: Defaults) -> Plan:
    """ISTREAM, DSTREAM or RSTREAM of a query; PIPES looks at its events of one instant alone."""
    found = _STREAMS[operator](so_far(plan))
    return of_instants(found) if defaults is Defaults.PIPES else found


def compared(left: Plan, right: Plan) -> tuple[Plan, Plan]:
    """The inputs of a set operation: all rows of streams so far, unless equal rows are of one instant."""
    ours, theirs = exact_ages(left), exact_ages(right)
    timed = any(theirs.get(place) == age for place, age in ours.items())
    return (left, right) if is_stream(left) and is_stream(right) and timed else (so_far(left), so_far(right))
