"""The sizes that rows of an answer were made with, as a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.tunings.in_force import SizedWindow, known_steps, left_behind, steps_in_force
from headrace.algebra.tunings.tunings import Tunings
from headrace.elements import Batch, Int64Array
from headrace.steps import StepFunction
from headrace.time import ALWAYS, BEGINNING

SIZES: Final = "tunings"
"""The name of the column."""


@dataclass(frozen=True)
class AnswerSizes:
    """The sizes that the windows of a query have had.

    Attributes:
        tunings: the sizes that have changed.
        windows: what may change of it.
        since: the first instant that is answered with these windows (instant); those before were answered
            by others, of a query in whose place it came. INFINITY where nothing is known any more.
    """

    tunings: Tunings = field(default_factory=dict)
    windows: Sequence[SizedWindow] = ()
    since: int = BEGINNING


def cut_by_sizes(rows: Batch, known: AnswerSizes) -> Batch:
    """Rows of an answer, cut at the instants from which on other sizes count; by their first instants.

    Args:
        rows: the rows, with the instants at which they hold.
        known: the sizes that are known.
    """
    cuts = np.unique(
        np.array(
            [
                known.since,
                *(
                    at
                    for window in known.windows
                    for step in _steps(window, known)
                    for at in (step.begin, left_behind(step.begin, window.back))
                ),
            ],
            dtype=np.int64,
        )
    )
    first = np.searchsorted(cuts, rows.ts, side="right")
    parts = np.searchsorted(cuts, rows.te, side="left") - first + 1
    taken = np.repeat(np.arange(len(rows)), parts)
    within = np.arange(len(taken)) - np.repeat(np.cumsum(parts) - parts, parts)
    begins, ends = rows.ts[taken], rows.te[taken]
    later, earlier = within > 0, within < parts[taken] - 1
    begins[later] = cuts[(first[taken] + within - 1)[later]]
    ends[earlier] = cuts[(first[taken] + within)[earlier]]
    order = np.argsort(begins, kind="stable")
    cut = rows.take(taken[order])
    return Batch(cut.payload, begins[order], ends[order], cut.w)


def _steps(window: SizedWindow, known: AnswerSizes) -> StepFunction:
    return known_steps(window.tuning, known.tunings.get(window.tuning))


def sizes_of(rows: Batch, known: AnswerSizes, instants: Callable[[Int64Array], pa.Array]) -> pa.Array:
    """list<struct>[n]: the sizes that were in force for each of n rows of an answer.

    Args:
        rows: the rows, as `cut_by_sizes` cuts them.
        known: the sizes that are known.
        instants: instants as a column has them, NULL for ALWAYS.

    Returns:
        Per row the sizes of each window, oldest first, the one at the oldest instant that counts included:
        `streams`, `kind`, `smallest`, `largest` and `size` as `headrace.tunings` has them (instants,
        microseconds of a TIMESTAMP; rows; millionths of a share), and `since`, the first instant of the size,
        NULL for the size before all changes. NULL in place of a list before `known.since`.
    """
    steps = [_steps(window, known) for window in known.windows]
    ranges = [
        steps_in_force(of, window.back, rows.ts, rows.te)
        for of, window in zip(steps, known.windows, strict=True)
    ]
    lacking = rows.ts < known.since
    counts = [np.where(lacking, 0, after - first) for first, after in ranges]
    offsets = np.concatenate([[0], np.cumsum(sum(counts, np.zeros(len(rows), np.int64)))]).astype(np.int64)
    places, filled = np.empty(offsets[-1], dtype=np.int64), offsets[:-1].copy()
    firsts = np.cumsum([0, *map(len, steps)])[:-1]
    for begin, (first, _), lengths in zip(firsts, ranges, counts, strict=True):
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places[np.repeat(filled, lengths) + within] = begin + np.repeat(first, lengths) + within
        filled += lengths
    values = _entries(known.windows, steps, instants).take(pa.array(places))
    mask = pa.array(lacking) if lacking.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=mask)


def _entries(
    windows: Sequence[SizedWindow],
    steps: Sequence[StepFunction],
    instants: Callable[[Int64Array], pa.Array],
) -> pa.Array:
    """struct[m]: all sizes of all windows, one after the other."""
    each = [(one.tuning, begin, value) for one, of in zip(windows, steps, strict=True) for begin, value in of]
    begins = np.array([max(begin, ALWAYS) for _, begin, _ in each], dtype=np.int64)
    columns = {
        "streams": pa.array([", ".join(tuning.streams) for tuning, _, _ in each], pa.string()),
        "kind": pa.array([tuning.kind.value for tuning, _, _ in each], pa.string()),
        "smallest": pa.array([tuning.smallest for tuning, _, _ in each], pa.int64()),
        "largest": pa.array([tuning.largest for tuning, _, _ in each], pa.int64()),
        "size": pa.array([value for _, _, value in each], pa.int64()),
        "since": instants(begins),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
