"""The sizes that rows of a run have had lately, of those that are kept by them.

Sums are smoothed as those of `headrace.runtime.driver.facts.statistics` are, between the clock's readings
that commits have. They are among the counters of each commit, so that a restart goes on with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headrace.algebra.nodes import Shed
from headrace.lowering.graph import Graph
from headrace.runtime.driver.facts.statistics import HALF_LIFE
from headrace.runtime.journal.records import Totals
from headrace.runtime.tasks.counts import added, together
from headrace.runtime.tasks.messages import TaskReport
from headrace.time import MICROSECONDS


def sizes_after(
    totals: Totals, graph: Graph, reports: Sequence[TaskReport], passed: int
) -> Mapping[str, tuple[float, float]]:
    """`Totals.sizes` after an epoch; where it brought none, what is known stays.

    Args:
        totals: the counters before it.
        graph: what it has carried out; sizes that it does not have are forgotten.
        reports: of its tasks.
        passed: the wall-clock time since the epoch before (microseconds).
    """
    names = {name for node in graph.nodes if isinstance(node.plan, Shed) for name in node.plan.sizes}
    known = {name: sums for name, sums in totals.sizes.items() if name in names}
    counts = (report.counts for report in reports if report.counts is not None)
    brought = together(counts, len(graph.nodes)).sizes if names else {}
    if not brought:
        return known
    part = 0.5 ** (max(0, passed) / MICROSECONDS["SECOND"] / HALF_LIFE)
    smoothed = {name: (part * rows, part * total) for name, (rows, total) in known.items()}
    found = {**smoothed, **{name: added(smoothed.get(name), sums) for name, sums in brought.items()}}
    # A sum that has become infinite would stay so: it begins anew.
    return {name: (rows, total) for name, (rows, total) in found.items() if np.isfinite(total)}


def mean_size(totals: Totals, name: str) -> float | None:
    """The mean of a size of the rows that came lately; None where none has one.

    Args:
        totals: the run's counters.
        name: the size's.
    """
    rows, total = totals.sizes.get(name, (0.0, 0.0))
    return total / rows if rows > 0 and total > 0 else None
