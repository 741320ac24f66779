"""What an operator says beyond its heartbeat, and how that changes.

An operator is made from the state of the last commit, as for the epoch itself, but is told that the heartbeat
were at the horizon, and what it stores is thrown away. What it yields is what it would say if nothing else
came. Done twice, with this epoch's input up to the new horizon and without it up to the old one, the
difference is what has to be said now:

    emit(state + input, up to the new horizon) - emit(state, up to the old horizon)

(CEDR, CIDR 2007, section 4: the same operator serves every level of consistency.) So no operator knows of
horizons, all levels read one state, and a commit holds nothing about what was said early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.elements import Batch, BoolArray, concat
from headrace.history import netted
from headrace.operators.contract import Operator, Progress
from headrace.schema import Schema


@dataclass(frozen=True)
class Reach:
    """How far an operator speaks, the same in every bucket.

    Attributes:
        state: per port the heartbeat of the state (instants).
        before, after: per port the horizon at the start and at the end of the epoch (instants).
    """

    state: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def speak(
    schema: Schema, make: Callable[[], Operator], inputs: Sequence[Sequence[Batch]], reach: Reach
) -> Batch:
    """What an operator says in an epoch, corrections of what it said before included.

    Args:
        schema: of what it yields.
        make: makes it with the state of the last commit.
        inputs: per port this epoch's elements.
        reach: how far it speaks.
    """
    if reach.before == reach.after and not any(map(len, inputs)):
        return concat(schema, [])
    then, now = make(), make()
    for port, batches in enumerate(inputs):
        for batch in batches:
            now.process(port, batch)
    said = then.advance(Progress(reach.state, reach.before))
    says = now.advance(Progress(reach.state, reach.after))
    return netted(concat(schema, [says, Batch(said.payload, said.ts, said.te, -said.w)]))


def unreported(batch: Batch, failed: BoolArray, reason: str) -> None:
    """A report of elements for which an expression fails: the operator itself reports them."""
