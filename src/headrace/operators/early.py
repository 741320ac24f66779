"""What an operator says beyond its heartbeat, and how that changes.

An operator is made from its state, but told that the heartbeat were at the horizon, and what it stores is
thrown away. What it yields is what it would say if nothing else came. Done with the state before an epoch up
to the old horizon, and with the state after it up to the new one, the difference is what has to be said now:

    what the operator yields in the epoch
    + beyond(state after, up to the new horizon) - beyond(state before, up to the old horizon)

(CEDR, CIDR 2007, section 4: the same operator serves every level of consistency.) So no operator knows of
horizons, all levels read one state, and a commit holds nothing about what was said early.

Where much more waits beyond the heartbeat than comes, the same difference is made of what changes, as far as
the operator allows it (`headrace.operators.early_regions`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.elements import Batch, BoolArray, concat
from headrace.operators.contract import Operator, OperatorProgress
from headrace.operators.early_regions import Span, TimelineOperator, differences, waiting
from headrace.operators.state.counts import copy_values
from headrace.operators.state.netting import netted
from headrace.operators.state.runs import SortedRun
from headrace.operators.state.sweep_area import SweepArea
from headrace.schema import Schema

Runs = Mapping[str, Sequence[SortedRun]]
"""The state of an operator by the names of its areas."""

FAR: Final = 4
"""Where so many times as many changes wait as an epoch brings elements, what it changes is less than they."""


@dataclass(frozen=True)
class Reach:
    """What an operator knows at the start or at the end of an epoch, and how far it speaks.

    Attributes:
        runs: its state.
        heartbeats: per port, the same in every bucket (instants).
        horizons: per port, the same in every bucket; no smaller than the heartbeats (instants).
    """

    runs: Runs
    heartbeats: tuple[int, ...]
    horizons: tuple[int, ...]


@dataclass(frozen=True)
class Speaker:
    """An operator that speaks up to a horizon.

    Attributes:
        schema: of what it yields.
        make: makes the operator without state.
        make_timeline: the same if what an epoch changes is known (`early_regions`), else it gives None.
    """

    schema: Schema
    make: Callable[[], Operator]
    make_timeline: Callable[[], TimelineOperator | None]

    def speak(self, yielded: Batch, taken: Sequence[tuple[int, Batch]], before: Reach, after: Reach) -> Batch:
        """What the operator says in an epoch, corrections of what it said before included.

        Args:
            yielded: what it yields in the epoch.
            taken: what it has processed, with the ports.
            before: what it knew at the start.
            after: what it knows at the end.
        """
        changed = self.by_regions(taken, before, after, FAR)
        return self.by_forks(yielded, before, after) if changed is None else changed

    def by_forks(self, yielded: Batch, before: Reach, after: Reach) -> Batch:
        """The same by all that waits between the heartbeats and the horizons."""
        said, says = beyond(self.make, before), beyond(self.make, after)
        return corrected(self.schema, yielded, said, says)

    def by_regions(
        self, taken: Sequence[tuple[int, Batch]], before: Reach, after: Reach, far: int
    ) -> Batch | None:
        """The same by what the epoch changes, or None.

        Args:
            taken, before, after: as above.
            far: None unless so many times as many changes wait as the epoch brings elements.
        """
        held = self.make_timeline()
        if held is None:
            return None
        _restore(held, before.runs)
        span = Span(min(before.heartbeats), min(before.horizons), min(after.horizons))
        if waiting(held, span) < far * sum(len(batch) for _, batch in taken):
            return None
        entering = self._timeline()
        for port, batch in taken:
            entering.process(port, batch)
        said, says = differences(self._timeline, held, entering, span)
        return netted(concat(self.schema, [says, said.negated()]))

    def _timeline(self) -> TimelineOperator:
        operator = self.make_timeline()
        assert operator is not None
        return operator


def corrected(schema: Schema, yielded: Batch, said: Batch, says: Batch) -> Batch:
    """What has to be said so that all that is said ends in what an operator knows.

    Args:
        schema: of what it yields.
        yielded: what it yields now, for good.
        said: what it has said beyond its heartbeat.
        says: what it says there from now on.
    """
    if not len(said) and not len(says):
        return yielded
    return netted(concat(schema, [yielded, says, said.negated()]))


def runs_of(operator: Operator) -> Runs:
    """The state of an operator as it is now."""
    return {name: list(area.runs) for name, area in operator.areas.items()}


def beyond(make: Callable[[], Operator], reach: Reach) -> Batch:
    """What an operator would say if its heartbeat were at the horizon."""
    operator = make()
    _restore(operator, reach.runs)
    return operator.advance(OperatorProgress(reach.heartbeats, reach.horizons))


def hand_over(source: Operator, target: Operator, heartbeat: int) -> None:
    """Let an operator go on with the state of one of the same node at another level of consistency.

    Args:
        source: the one that has the state.
        target: the one that is to have it, which is new.
        heartbeat: of the operator (instant).
    """
    for name, area in target.areas.items():
        known = source.areas[name]
        if isinstance(area, SweepArea) and isinstance(known, SweepArea):
            # Only where nothing is ever retracted values that can never matter are left out.
            copy_values(known, area, heartbeat)
        else:
            area.runs = list(known.runs)


def unreported(batch: Batch, failed: BoolArray, reason: str) -> None:
    """A report of elements for which an expression fails: the operator itself reports them."""


def _restore(operator: Operator, state: Runs) -> None:
    for name, runs in state.items():
        operator.areas[name].runs = list(runs)
