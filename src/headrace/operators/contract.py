"""What every physical operator is: input by port, a walk of the heartbeat, state in sweep areas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, BoolArray
from headrace.expressions.evaluation.evaluate import Outcome, evaluate, predicate_mask
from headrace.expressions.tree import Expression
from headrace.operators.conditions import evaluate_condition
from headrace.operators.state.runs import Area

Report = Callable[[Batch, BoolArray, str], None]
"""Receives elements that fail: the batch, which of its elements, and the reason."""


@dataclass(frozen=True)
class OperatorProgress:
    """How far an operator's inputs have come, the same in every bucket.

    Attributes:
        before, after: per port the heartbeat at the start and at the end of the epoch (instants).
    """

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def window(self) -> tuple[int, int]:
        """The old and the new horizon of a strong operator: its smallest heartbeats."""
        return min(self.before), min(self.after)


class Operator(Protocol):
    """A physical operator of one bucket, for one epoch.

    Its life: it is made, its areas are given the runs of the last epoch that committed, `process` is called
    any number of times, `advance` once, and the runs that its areas then hold are stored. The next epoch
    makes a new one, on whatever worker. Nothing but the areas survives, and the same calls leave the same
    bytes in them.
    """

    @property
    def areas(self) -> Mapping[str, Area]:
        """The state, by name: read before the first `process`, stored after `advance`."""
        ...

    def process(self, port: int, batch: Batch) -> None:
        """Take in elements of an input; they may be in any order, and below no heartbeat of their port."""
        ...

    def advance(self, progress: OperatorProgress) -> Batch:
        """What the epoch's input and the new heartbeats yield; the operator takes in nothing after that."""
        ...


@runtime_checkable
class Holder(Operator, Protocol):
    """An operator whose state says what it has said."""

    def held_from(self, heartbeat: int) -> Batch:
        """What it has said of the instants from its heartbeat on (instant), before any input."""
        ...


def evaluate_all(
    expressions: Sequence[Expression], batch: Batch, report: Report
) -> tuple[Batch, list[pa.Array]]:
    """Evaluate expressions over a batch; elements for which one fails are reported and left out.

    Returns:
        The elements for which all expressions hold a value, and the expressions' columns for them.
    """
    outcomes = [evaluate(expression, batch.payload) for expression in expressions]
    columns = [outcome.values for outcome in outcomes]
    failed = report_failures(batch, outcomes, report)
    if failed is None:
        return batch, columns
    good = np.flatnonzero(~failed)
    return batch.take(good), [column.take(pa.array(good)) for column in columns]


def evaluate_predicate(predicate: Expression, batch: Batch, report: Report) -> Batch:
    """The elements for which a predicate is true; those for which it fails are reported and left out."""
    outcome = evaluate_condition(predicate, batch.payload)
    report_failures(batch, [outcome], report)
    return batch.filter(predicate_mask(outcome))


def report_failures(batch: Batch, outcomes: Sequence[Outcome], report: Report) -> BoolArray | None:
    """Report each element that some outcome failed for, once; which they are, or None."""
    failed: BoolArray | None = None
    for reason, mask in (failure for outcome in outcomes for failure in outcome.failures):
        fresh = mask if failed is None else mask & ~failed
        if fresh.any():
            report(batch, fresh, reason)
            failed = mask if failed is None else failed | mask
    return failed
