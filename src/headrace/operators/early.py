"""What an operator says beyond its heartbeat, and how that changes.

An operator is made from its state, but told that the heartbeat were at the horizon, and what it stores is
thrown away. What it yields is what it would say if nothing else came. Done with the state before an epoch up
to the old horizon, and with the state after it up to the new one, the difference is what has to be said now:

    what the operator yields in the epoch
    + beyond(state after, up to the new horizon) - beyond(state before, up to the old horizon)

(CEDR, CIDR 2007, section 4: the same operator serves every level of consistency.) So no operator knows of
horizons, all levels read one state, and a commit holds nothing about what was said early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headrace.elements import Batch, BoolArray, concat
from headrace.operators.contract import Operator, Progress
from headrace.operators.state.netting import netted
from headrace.operators.state.runs import Run
from headrace.schema import Schema

Runs = Mapping[str, Sequence[Run]]
"""The state of an operator by the names of its areas."""


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


def speak(schema: Schema, make: Callable[[], Operator], yielded: Batch, before: Reach, after: Reach) -> Batch:
    """What an operator says in an epoch, corrections of what it said before included.

    Args:
        schema: of what it yields.
        make: makes the operator without state.
        yielded: what it yields in the epoch.
        before: what it knew at the start.
        after: what it knows at the end.
    """
    said, says = _beyond(make, before), _beyond(make, after)
    if not len(said) and not len(says):
        return yielded
    unsaid = Batch(said.payload, said.ts, said.te, -said.w)
    return netted(concat(schema, [yielded, says, unsaid]))


def runs_of(operator: Operator) -> Runs:
    """The state of an operator as it is now."""
    return {name: list(area.runs) for name, area in operator.areas.items()}


def _beyond(make: Callable[[], Operator], reach: Reach) -> Batch:
    """What an operator would say if its heartbeat were at the horizon."""
    operator = make()
    for name, runs in reach.runs.items():
        operator.areas[name].runs = list(runs)
    return operator.advance(Progress(reach.heartbeats, reach.horizons))


def unreported(batch: Batch, failed: BoolArray, reason: str) -> None:
    """A report of elements for which an expression fails: the operator itself reports them."""
