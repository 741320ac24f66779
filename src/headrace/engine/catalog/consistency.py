"""Up to where a query speaks, and what it remembers, by what it says of CONSISTENCY."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.algebra.arrival import Unit
from headrace.algebra.changes import Changes
from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import Plan, RefreshedRelation
from headrace.algebra.properties import relations_of, sources_of
from headrace.engine.inputs.inputs import Input
from headrace.errors import LanguageError, Position
from headrace.heartbeats.timing import Timing
from headrace.language.lengths import check_duration
from headrace.language.statements.statements import Consistency
from headrace.lowering.early import at_horizon
from headrace.lowering.memory import remembering
from headrace.time import INFINITY, Duration, TimeDomain, format_length


def at_level(
    plan: Plan, consistency: Consistency, inputs: Mapping[str, Input], *, warm: bool, new: bool
) -> Plan:
    """What a query is carried out as at a level of consistency.

    Args:
        plan: the query's, optimized.
        consistency: the level.
        inputs: the streams that are read from outside, by name.
        warm: whether it is to take over the state of a query that runs.
        new: whether the streams have to allow what it remembers. What they declare may have changed since a
            query was made; they are then remembered for as long as they allow at most.

    Raises:
        LanguageError: a length of time does not fit the streams' timestamps, BLOCK is longer than REMEMBER,
            the streams do not allow what is to be remembered, or state cannot be taken over.
    """
    streams = tuple(sorted({source.name for source in sources_of(plan)}))
    if not streams:
        # Without streams everything is final.
        return plan
    block, remember = consistency.block, consistency.remember
    _check_lengths(plan.domain, consistency)
    if remember is not None:
        # Rows by key that forgot what changed them would be wrong for ever.
        read = (inputs[name] for name in streams if name in inputs)
        timings = {one.name: one.stream.timing for one in read if not isinstance(one.stream.changes, Changes)}
        if new and consistency.memory is Unit.TIME:
            _check(timings, remember, plan.domain, consistency.position)
        if warm:
            raise LanguageError(
                "a query that does not remember all rows cannot start WARM: the state of those that run may "
                "have rows that it leaves out",
                position=consistency.position,
                hint="leave out WARM, or REMEMBER",
            )
        late = (name for name, timing in timings.items() if not timing.by_arrival)
        plan = remembering(plan, (Memory(name, remember.length, consistency.memory) for name in late))
    refreshed = {leaf.name for leaf in relations_of(plan) if isinstance(leaf, RefreshedRelation)}
    relations, unit = tuple(sorted(refreshed)), consistency.unit
    if block is None:
        return at_horizon(plan, None)
    reach = -INFINITY if consistency.maximal else block.length
    return at_horizon(plan, Horizon(streams, reach, relations, unit))


def _check_lengths(domain: TimeDomain, consistency: Consistency) -> None:
    """See that lengths of time fit the streams' timestamps, and that BLOCK is no longer than REMEMBER.

    Raises:
        LanguageError: they do not.
    """
    block, remember = consistency.block, consistency.remember
    dials = ((block, consistency.unit, "BLOCK"), (remember, consistency.memory, "REMEMBER"))
    for length, unit, what in dials:
        if length is not None and unit is Unit.TIME:
            check_duration(length, domain, what, consistency.position)
    if block is None or remember is None or consistency.unit is not consistency.memory:
        return
    if block.length > remember.length:
        how = {Unit.TIME: "", Unit.ARRIVAL: " BY ARRIVAL", Unit.ROWS: " ROWS"}[consistency.unit]
        raise LanguageError(
            f"BLOCK {block}{how} is longer than REMEMBER {remember}{how}: when it speaks, it takes no "
            "further rows",
            position=consistency.position,
            hint=f"write BLOCK {remember}{how}, or remember for longer",
        )


def _check(
    timings: Mapping[str, Timing], remember: Duration, domain: TimeDomain, position: Position | None
) -> None:
    """See that some stream of a query allows rows to be as late as the query remembers.

    Raises:
        LanguageError: none does.
    """
    most = max(map(_allowed, timings.values()), default=0)
    if remember.length > most:
        raise LanguageError(
            f"REMEMBER {remember} is longer than {_listed(timings)} allow{'s' * (len(timings) == 1)}",
            position=position,
            hint=f"write REMEMBER {format_length(most, domain)} or less, or declare a longer DISORDER",
        )


def _allowed(timing: Timing) -> int:
    """How much older than the newest row before it a row may be (instants); 0 where all are in order.

    Where values of a column are late each by itself, a row may be so much older than the newest of its value.
    """
    if timing.by_arrival:
        return 0
    return INFINITY if timing.disorder is None or timing.per is not None else max(timing.disorder, 0)


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names) or "its streams"
