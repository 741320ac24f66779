"""What an answer looks like, and at which instants a query yields its stream."""

from __future__ import annotations

import numpy as np

from headrace.algebra.nodes import (
    Filter,
    Granularity,
    Plan,
    Project,
    Rstream,
    TimeWindow,
    TopK,
    WindowBounds,
)
from headrace.algebra.properties import names_read
from headrace.algebra.tunings.in_force import sized_windows
from headrace.elements import Batch, Int64Array
from headrace.errors import UserError
from headrace.runtime.journal.forms import Form
from headrace.time import INFINITY


def form_of(plan: Plan) -> Form:
    """What readers of a query's results have to know of its plan."""
    return Form(
        plan.schema,
        plan.domain,
        _steps_of(plan),
        plan.order if isinstance(plan, TopK) else (),
        names_read(plan),
        sized_windows(plan),
    )


def stream_instants(name: str, form: Form) -> tuple[int, int]:
    """At which instants a query yields its stream: all, or those of the slide or granule under an RSTREAM.

    Returns:
        How far apart they lie, and by how much they lie above multiples of that.

    Raises:
        UserError: the query yields no stream of instants.
    """
    if form.steps is None:
        raise UserError(
            f"{name} is not a stream: its rows are valid for longer than an instant",
            hint="wrap the query in ISTREAM(...) or DSTREAM(...), or in RSTREAM(...) over a window with "
            "a SLIDE or a GRANULARITY, or ask for the history",
        )
    return form.steps


def _steps_of(plan: Plan) -> tuple[int, int] | None:
    if isinstance(plan, Rstream):
        return _step_of(plan)
    return (1, 0) if plan.is_chronon else None


def _step_of(plan: Plan) -> tuple[int, int] | None:
    """When the window below an RSTREAM changes: its slide or granule, and their phase; or None."""
    below = plan
    while isinstance(below, Rstream | Filter | Project):
        below = below.input
    if hasattr(below, "input") and not isinstance(below, TimeWindow | WindowBounds | Granularity):
        below = below.input
        while isinstance(below, Filter | Project):
            below = below.input
    match below:
        case TimeWindow() | WindowBounds() if below.slide.length > 1:
            return below.slide.length, below.offset.length - 1
        case Granularity(longest=granule):
            # Within bounds the content is exact at these, whatever granules there are.
            return granule.length, 0
        case _:
            return None


def expanded(final: Batch, step: int, phase: int) -> tuple[Int64Array, Int64Array]:
    """The instants k * step + phase (all, for step 1) in each interval: the row and the instant of each."""
    bounded = np.concatenate([final.ts, final.te[final.te != INFINITY]])
    end = int(bounded.max()) if len(bounded) else 0
    first = -(-(final.ts - phase) // step)
    last = -(-(np.minimum(final.te, end) - phase) // step)
    counts = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(final)), counts)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, (first[rows] + offsets) * step + phase
