"""Identities of operators: digests of their plans, by which state is found again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from headrace.algebra.arrival import Unit
from headrace.algebra.nodes import (
    ApproximateAggregate,
    BoundedRowWindow,
    Draw,
    Granularity,
    LargestWeight,
    LimitedJoin,
    Match,
    Plan,
    Remember,
    SemanticDrop,
    SessionWindow,
    Shed,
    TimeWindow,
    Weighing,
    inputs_of,
)
from headrace.algebra.properties import (
    parameters_of,
)
from headrace.lowering.graph import Merge
from headrace.time import BEGINNING

STATE_FORMAT = 7
"""Part of every state's identity: raise it when the layout of state changes."""


def identity(plan: Plan, start: int = 1) -> str:
    """A digest that names the state of a plan's operator, the same in every process.

    Args:
        plan: the operator's.
        start: the epoch from which on it has seen its input.
    """
    return identity_at(digest_of(plan, {}), start)


def shape(plan: Plan) -> str:
    """The `Node.shape` of the operator of a plan without outer joins and with constants as data."""
    return shape_of(digest_of(plan, {}))


def identities(plan: Plan, start: int, merges: Iterable[Merge] = ()) -> dict[int, str]:
    """What names the state of each part of a plan, by its `id`.

    Args:
        plan: what a query is carried out as.
        start: the epoch from which on the query answers.
        merges: as `lower` takes them.
    """
    merged = {(merge.shape, merge.start): merge.into for merge in merges}
    digests: dict[int, str] = {}
    found: dict[int, str] = {}

    def add(part: Plan, start: int) -> None:
        if id(part) not in found:
            digest = digest_of(part, digests)
            start = merged.get((shape_of(digest), start), start)
            found[id(part)] = identity_at(digest, start)
            for below in inputs_of(part):
                add(below, start)

    add(plan, start)
    return found


def shape_of(digest: str) -> str:
    """What `Node.shape` says of a plan with that digest."""
    return digest[:16]


def digest_of(plan: Plan, known: dict[int, str]) -> str:
    """The digest of a plan; `known` has those of other plans that are still there, by their ids."""
    if id(plan) not in known:
        known[id(plan)] = _digest(plan, [digest_of(below, known) for below in inputs_of(plan)])
    return known[id(plan)]


def identity_at(digest: str, start: int) -> str:
    """The identity of an operator with this digest that starts with this epoch."""
    return hashed(f"{digest} since {start}" if start > 1 else digest)[:16]


def _digest(plan: Plan, inputs: Sequence[str]) -> str:
    """A digest of a node and, through those of its inputs, of all below it, each part looked at once."""
    return hashed(f"{STATE_FORMAT} {type(plan).__name__} {named_by(plan)!r} {' '.join(inputs)}")


def named_by(plan: Plan) -> tuple[object, ...]:
    """The parameters of a node that say which one it is: predicates that are matched are data.

    What approximate aggregates may be off is named beside them, whose names are those of exact ones.
    A memory that is a length of time is named as it was when there were no others, a session of any length as
    when there was none of a longest length, and a window of one size, or a granularity of one granule, as
    when none had bounds. What is within bounds is named by these, and the sizes that it has had are data; so
    are shares that are kept.
    """
    match plan:
        case Match(number=number):
            return (number,)
        case Remember(length=length, unit=Unit.TIME, floor=floor) if floor == BEGINNING:
            return (length,)
        case SessionWindow(gap=gap, keys=keys, longest=None):
            return gap, keys
        case TimeWindow(size=size, slide=slide, offset=offset, smallest=None):
            return size, slide, offset
        case TimeWindow(size=size, slide=slide, offset=offset, smallest=smallest):
            return size, slide, offset, smallest
        case BoundedRowWindow(rows=rows, keys=keys, smallest=least):
            return rows, keys, least
        case Granularity(granule=granule, coarsest=None):
            return (granule,)
        case Granularity(granule=granule, coarsest=coarsest):
            return granule, coarsest
        case Weighing() | LimitedJoin():
            return _named_by_share(plan)
        case ApproximateAggregate(aggregates=aggregates):
            return (*parameters_of(plan), tuple(call.within for _, call in aggregates))
        case _:
            return parameters_of(plan)


def _named_by_share(plan: Weighing | LimitedJoin) -> tuple[object, ...]:
    match plan:
        case LargestWeight(size=size, slide=slide, offset=offset, streams=streams, loss=loss, sizes=sizes):
            return (size, slide, offset, streams, loss, *((sizes,) if sizes else ()))
        case Shed(streams=streams, loss=loss, number=number, sizes=sizes, keys=keys):
            return (streams, loss, number, *((sizes, keys) if sizes or keys else ()))
        case SemanticDrop(streams=streams, loss=loss, place=place):
            return streams, loss, place
        case Draw(streams=streams, loss=loss, number=number, of=of):
            return streams, loss, number, of
    assert isinstance(plan, LimitedJoin)
    remembered = tuple((rows.number, rows.draw, rows.instant) for rows in plan.remembered)
    return plan.equalities, plan.residual, plan.names, plan.streams, plan.loss, remembered, plan.of


def hashed(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
