"""Up to where a query speaks, and what it remembers, by what it says of CONSISTENCY."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.algebra.arrival import Unit
from headrace.algebra.changes import Changes
from headrace.algebra.horizon import Horizon
from headrace.algebra.nodes import Plan, RefreshedRelation
from headrace.algebra.properties import relations_of, sources_of
from headrace.engine.inputs import Input
from headrace.errors import LanguageError, Position
from headrace.heartbeats.timing import Timing
from headrace.language.catalog import check_duration
from headrace.language.statements import Consistency
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
    by_time = consistency.unit is Unit.TIME
    for length, what in ((block if by_time else None, "BLOCK"), (remember, "REMEMBER")):
        if length is not None:
            check_duration(length, plan.domain, what, consistency.position)
    if remember is not None:
        if by_time and block is not None and block.length > remember.length:
            raise LanguageError(
                f"BLOCK {block} is longer than REMEMBER {remember}: when it speaks, it takes no further rows",
                position=consistency.position,
                hint=f"write BLOCK {remember}, or remember for longer",
            )
        # Rows by key that forgot what changed them would be wrong for ever.
        read = (inputs[name] for name in streams if name in inputs)
        timings = {one.name: one.stream.timing for one in read if not isinstance(one.stream.changes, Changes)}
        if new:
            _check(timings, remember, plan.domain, consistency.position)
        if warm:
            raise LanguageError(
                "a query that does not remember all rows cannot start WARM: the state of those that run may "
                "have rows that it leaves out",
                position=consistency.position,
                hint="leave out WARM, or REMEMBER",
            )
        late = (name for name, timing in timings.items() if not timing.by_arrival)
        plan = remembering(plan, dict.fromkeys(late, remember.length))
    refreshed = {leaf.name for leaf in relations_of(plan) if isinstance(leaf, RefreshedRelation)}
    relations, unit = tuple(sorted(refreshed)), consistency.unit
    if block is None:
        return at_horizon(plan, None)
    reach = -INFINITY if consistency.maximal else block.length
    return at_horizon(plan, Horizon(streams, reach, relations, unit))


def _check(
    timings: Mapping[str, Timing], remember: Duration, domain: TimeDomain, position: Position | None
) -> None:
    """See that some stream of a query allows rows to be as late as the query remembers.

    Raises:
        LanguageError: none does, or one says otherwise how late its rows may be.
    """
    for name, timing in timings.items():
        for clause, is_said in _other_bounds(timing):
            if is_said:
                raise LanguageError(
                    f"a query cannot remember {name} for less than it allows: that is said by {clause}, "
                    "and not by DISORDER alone",
                    position=position,
                    hint=f"declare {name} with DISORDER and a length of time, or leave out REMEMBER",
                )
    most = max(map(_allowed, timings.values()), default=0)
    if remember.length > most:
        raise LanguageError(
            f"REMEMBER {remember} is longer than {_listed(timings)} allow{'s' * (len(timings) == 1)}",
            position=position,
            hint=f"write REMEMBER {format_length(most, domain)} or less, or declare a longer DISORDER",
        )


def _other_bounds(timing: Timing) -> Iterable[tuple[str, bool]]:
    """What else than a length of time may say how late the rows of a stream are, and whether it does."""
    return (
        ("DISORDER n ROWS", timing.rows is not None),
        ("PER", timing.per is not None),
        ("LATENCY", timing.latency > 0),
        ("a disorder that is estimated", timing.estimated is not None),
    )


def _allowed(timing: Timing) -> int:
    """How much older than the newest row before it a row may be (instants); 0 where all are in order."""
    if timing.by_arrival:
        return 0
    return INFINITY if timing.disorder is None else max(timing.disorder, 0)


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names) or "its streams"
