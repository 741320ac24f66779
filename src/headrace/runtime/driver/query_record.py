"""The record of a query of a run: all that is known of it between two changes of the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.nodes import Plan
from headrace.lowering.lower import Holds
from headrace.optimizer.migration import Migration
from headrace.runtime.journal.described_query import PausedQuery, WarmStart
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.journal.gap import Gap
from headrace.time import BEGINNING

Reason = tuple[str, str | None]
"""Why a query failed, and what may help."""


@dataclass(frozen=True)
class Adoption:
    """The part of one that runs which a query takes over that is added.

    Attributes:
        start: since when the operators have seen their input (epoch).
        answers_from: the heartbeat from which the query answers (instant).
        plan: what it is carried out as.
    """

    start: int
    answers_from: int
    plan: Plan


@dataclass(frozen=True)
class AnsweredQuery:
    """A query that is answered, or has ended early.

    Attributes:
        plan: its optimized plan.
        start: the epoch from which on it answers.
        failed: why it has ended early; None while it goes on.
        shared: what it is carried out as to share more with those that started with it, or to take over the
            state of others; it stays so when these are gone.
        replaced: what it is carried out as now if its plan was exchanged since it began, or the exchange
            that goes on.
        warm: how it began if it took over the state of another one, was resumed or replaced.
        holds: which of its operators wait for others; None where none do.
        exchanged: the last exchange of its plan, if that was found to do less.
        level: the epoch in which it came to its level of consistency if it has had others. Since then its
            operators have state of their own, which may have become that of others.
        gaps: the instants about which it says nothing, since it was paused or replaced.
        sized_from: the first instant that is answered with the windows within bounds that its plan has; those
            before were by a plan with others, which was replaced.
        lane: the lane in which it is behind others; None of one that takes rows as they come.
    """

    plan: Plan
    start: int = 1
    failed: Reason | None = None
    shared: Plan | None = None
    replaced: Plan | Migration | None = None
    warm: WarmStart | None = None
    holds: Holds | None = None
    exchanged: PlanExchange | None = None
    level: int | None = None
    gaps: tuple[Gap, ...] = ()
    sized_from: int = BEGINNING
    lane: int | None = None

    @property
    def state_start(self) -> int:
        """The epoch since which its operators have seen their input, or have had state of their own."""
        if self.level is not None:
            return self.level
        return self.start if self.warm is None else self.warm.since

    @property
    def carried_out(self) -> Plan | None:
        """The plan that it is carried out as, if its own alone does not say it."""
        if isinstance(self.replaced, Migration):
            return self.replaced.plan
        return self.shared if self.replaced is None else self.replaced

    def at_level(self, plan: Plan, carried_out: Plan, epoch: int) -> AnsweredQuery:
        """The query at another level of consistency.

        Args:
            plan: its plan at that level.
            carried_out: what it is carried out as there.
            epoch: the one in which it comes to it.
        """
        return replace(self, plan=plan, shared=carried_out, replaced=None, level=epoch)


QueryRecord = AnsweredQuery | PausedQuery
"""A query of a run; one that was dropped has no record."""


def begun_query(
    plan: Plan, epoch: int, before: QueryRecord | None, adoption: Adoption | None
) -> AnsweredQuery:
    """The record of a query whose operators begin.

    Args:
        plan: its optimized plan.
        epoch: the one with which it begins.
        before: what it was if its answer goes on: paused, or of another plan.
        adoption: what it takes over, if it takes over anything.
    """
    warm = None if adoption is None else WarmStart(adoption.start, adoption.answers_from)
    match before:
        case PausedQuery(paused=paused) if warm is None:
            warm = WarmStart(epoch, paused.heartbeat)
        case AnsweredQuery() if warm is None:
            # From which instant on it answers is known once there is a graph.
            warm = WarmStart(epoch, BEGINNING)
    return AnsweredQuery(
        plan,
        start=epoch if before is None else before.start,
        shared=None if adoption is None else adoption.plan,
        warm=warm,
        gaps=() if before is None else before.gaps,
        sized_from=BEGINNING if before is None else before.sized_from,
    )
