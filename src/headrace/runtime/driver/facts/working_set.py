"""The memory that epochs work with beside state: the rows that they read, and all that operators yield.

What an epoch has worked with follows from what its operators have counted, times the widths of their columns,
as if all were there at once. Nodes without state pass columns on, and count for nothing. Level 0 works batch
by batch and needs less. It is part of the counters that
each commit has, so that the size of the next epoch is a function of positions and commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from headrace.algebra.by_object import ByObject
from headrace.algebra.properties import is_stateful
from headrace.elements import Float64Array
from headrace.lowering.costs import yielded_bytes
from headrace.lowering.graph import Graph
from headrace.runtime.driver.settings import Managing, RunSettings
from headrace.runtime.journal.records import Totals
from headrace.runtime.tasks.counts import together
from headrace.runtime.tasks.messages import TaskReport

EPOCH_PART: Final = 0.25
"""So much of a limit of memory an epoch may work with."""
FEW_ROWS: Final = 100
"""No epoch is made smaller than that, and one that is says nothing of what a row takes."""
_FADES: Final = 0.998
"""A larger epoch of before counts so much less after each."""


def worked_with(
    totals: Totals, graph: Graph, reports: Sequence[TaskReport], rows: int
) -> tuple[float, float]:
    """`Totals.working` and `Totals.working_row` after an epoch.

    Args:
        totals: the counters before it.
        graph: what it has carried out.
        reports: of its tasks.
        rows: how many rows it has taken.
    """
    counts = together((report.counts for report in reports if report.counts is not None), len(graph.nodes))
    size = float(counts.given @ _widths(graph))
    each = size / rows if rows >= FEW_ROWS else 0.0
    return max(size, _FADES * totals.working), max(each, _FADES * totals.working_row)


def fitting_rows(totals: Totals, settings: RunSettings) -> int | None:
    """About how many rows the next epoch may take, so that what it works with fits; any number if None.

    Args:
        totals: the counters of the last commit.
        settings: how the run cuts its input.
    """
    limit = settings.memory_limit
    if limit is None or settings.managing is not Managing.ACT or not totals.working_row:
        return None
    return max(FEW_ROWS, int(EPOCH_PART * limit / totals.working_row))


def _widths_of(graph: Graph) -> Float64Array:
    counts = [not node.inputs or is_stateful(node.plan) for node in graph.nodes]
    sizes = [yielded_bytes(node) for node in graph.nodes]
    return np.where(counts, np.array(sizes, dtype=np.float64), 0.0)


_widths: Final = ByObject(_widths_of, 8)
