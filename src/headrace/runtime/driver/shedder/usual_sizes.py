"""The usual sizes of rows of a run, by which large ones are kept more often."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from headrace.algebra.nodes import Shed
from headrace.algebra.tunings.tunings import Tuning, TuningKind, tuning_of
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.row_sizes import mean_size
from headrace.steps import WHOLE, means_at, value_at
from headrace.time import INFINITY

_ENOUGH: Final = 1_000
"""So many rows tell anew how large they are."""
_FAR: Final = 4.0
"""So many times as large, or as small, what is usual has to be for that."""
_LARGEST_EXPONENT: Final = 1023
"""No DOUBLE is a larger power of 2."""


def usual_sizes(run: PublishedRun, tunings: Iterable[Tuning]) -> dict[Tuning, dict[str, float]]:
    """The usual sizes of rows that came lately, by the names of the sizes, of those that are known.

    They are powers of 2.

    Args:
        run: what is to be seen of it.
        tunings: the shares whose rows are meant.
    """
    found: dict[Tuning, dict[str, float]] = {tuning: {} for tuning in tunings}
    for node in run.queries.graph.nodes:
        if isinstance(node.plan, Shed) and (tuning := tuning_of(node.plan)) in found:
            for name in node.plan.sizes:
                if (mean := mean_size(run.totals, name)) is not None:
                    found[tuning][name] = _rounded(mean)
    return found


def rescaled(run: PublishedRun) -> Tune | None:
    """The change by which shares that are below all go by how large rows are now; None where they do.

    Where a share was lowered before any row had come nothing was known of that, and it may have become quite
    different since.

    Args:
        run: what is to be seen of it.
    """
    known = run.queries.tunings
    shares = {one: value_at(WHOLE, tuned.steps, INFINITY) for one, tuned in known.items() if tuned.steps}
    lowered = [one for one, share in shares.items() if one.kind is TuningKind.SHARE and share < WHOLE]
    changed = {}
    for tuning, means in usual_sizes(run, lowered).items():
        before = means_at(known[tuning].scales, INFINITY)
        new = {name: mean for name, mean in means.items() if _has_moved(run, name, mean, before.get(name))}
        if new:
            changed[tuning] = new
    if not changed:
        return None
    return Tune(
        {tuning: shares[tuning] for tuning in changed},
        {tuning: known[tuning].queries for tuning in changed},
        {tuning: known[tuning].why for tuning in changed if known[tuning].why},
        changed,
    )


def _has_moved(run: PublishedRun, name: str, mean: float, before: float | None) -> bool:
    rows, _ = run.totals.sizes[name]
    return rows >= _ENOUGH and (before is None or not before / _FAR < mean < before * _FAR)


def _rounded(mean: float) -> float:
    """The power of 2 that is nearest, by its logarithm.

    In its last digits a mean depends on how rows were cut into epochs and on when these were; which power of
    2 is nearest seldom does.
    """
    return 2.0 ** min(_LARGEST_EXPONENT, round(math.log2(mean)))
