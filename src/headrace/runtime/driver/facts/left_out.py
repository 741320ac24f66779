"""The rows that a query leaves out by their values, as the status of a run has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import Plan
from headrace.algebra.tunings.tunings import Tunings, size_of, thresholds_in
from headrace.language.parsing.statements.losses import loss_from
from headrace.steps import share_text
from headrace.time import BEGINNING, format_instant


@dataclass(frozen=True)
class ValuesLeftOut:
    """The values of rows that a query leaves out.

    Attributes:
        streams: the streams whose rows they are.
        loss: what the query says of its values.
        threshold: the least utility of a row that is kept (millionths).
        since: the first instant of rows for which it holds; BEGINNING if it has been no other.
        text: which rows are left out, and from when on, as a sentence.
        why: why it is so, where nobody has asked for it; else empty.
    """

    streams: tuple[str, ...]
    loss: str
    threshold: int
    since: int
    text: str
    why: str = ""


def values_left_out(plan: Plan, tunings: Tunings) -> ValuesLeftOut | None:
    """The values that a query leaves out now; None if it does not say that any matter less.

    Args:
        plan: the query's.
        tunings: what has changed.
    """
    for tuning in _thresholds_in(plan):
        known, threshold = tunings.get(tuning), size_of(tuning, tunings)
        graph = loss_from(tuning.loss).values
        assert graph is not None
        since = known.steps[-1].begin if known is not None and known.steps else BEGINNING
        when = "" if since == BEGINNING else f" from {format_instant(since, plan.domain)} on"
        least = f": they are worth less than {share_text(threshold)}" if graph.left_out(threshold) else ""
        text = f"{graph.told(threshold)}{when}{least}"
        why = "" if known is None else known.why
        return ValuesLeftOut(tuning.streams, tuning.loss, threshold, since, text, why)
    return None


_thresholds_in: Final = ByObject(thresholds_in, REMEMBERED)
