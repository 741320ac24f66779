"""What each kind of change of the plan comes to; one function for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from headrace.runtime.driver.change.beginning.boundary import boundary_of
from headrace.runtime.driver.change.beginning.newcomer import newcomers
from headrace.runtime.driver.change.beginning.provenance import provenance_of
from headrace.runtime.driver.change.common_operators import Inheritance, inherited
from headrace.runtime.driver.change.migration.exchange import Begun
from headrace.runtime.driver.change.placement import placed
from headrace.runtime.driver.change.redefinition import redefined
from headrace.runtime.driver.change.tuning import tuned
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import (
    JoinRun,
    Placement,
    PlanChange,
    Redefine,
    Rename,
    Replace,
    Tune,
)
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.gap import Gap, with_gap


def turn_of(present: Present, change: PlanChange) -> Turn:
    """What a change of the plan comes to.

    Args:
        present: the run before it.
        change: what is asked for.

    Raises:
        PlanError: all of the answer is final that is to be replaced.
        UserError: a query has no state that it could take over.
        StoreError: something cannot be written.
    """
    match change:
        case Redefine():
            return redefined(present, change)
        case Replace():
            return _replaced(present, change)
        case JoinRun():
            return _joined(present, change)
        case Rename():
            return _renamed(present, change)
        case Tune():
            return tuned(present, change)
        case Placement():
            return placed(present, change)
        case _:
            assert_never(change)


def _replaced(present: Present, change: Replace) -> Turn:
    """Another plan answers from some instant on, below which the old answer holds; or it starts anew."""
    wanted, name = change.wanted, change.name
    (one,) = newcomers(present, wanted, (name,), {}, {}, change.goes_on)
    match found := provenance_of(one):
        case Begun(queries=queries, adopted=adopted, given=given):
            turn = replace(present.turn_to(wanted, queries), adopted=adopted, given=given)
        case Inheritance():
            turn = inherited(present, wanted, name, found, goes_on=change.goes_on)
        case _:
            turn = redefined(present, Redefine(wanted), [(one, found)])
    at = boundary_of(one, found).at
    return replace(turn, queries=_sized_from(present, turn.queries, name, at))


def _sized_from(present: Present, queries: QuerySet, name: str, at: int) -> QuerySet:
    """The queries, with what is known of the instant from which on the windows of one are others.

    They are others also where answers no longer look back as far: by the new plan those of before would
    name fewer sizes than they may have. Where answers look back further, these name more, which holds.

    Args:
        present: the run before the change.
        queries: those after it.
        name: the identity of the query.
        at: the first instant that its new plan answers.
    """
    if name not in present.known.queries.answered or name not in queries.answered:
        return queries
    before, after = (dict(known.sizes_of(name).windows) for known in (present.known.queries, queries))
    if before.keys() == after.keys() and all(back <= after[tuning] for tuning, back in before.items()):
        return queries
    return queries.having(name, sized_from=at)


def _joined(present: Present, change: JoinRun) -> Turn:
    """A query goes on that was brought to the present; one that was paused is so no more."""
    wanted, found = change.wanted, change.found
    queries = present.joined(wanted, found.query, found.adoption, goes_on=found.goes_on)
    # Of windows that were there when it began to catch up its rows have had the sizes since then.
    queries = queries.with_tunings({**found.tunings, **queries.tunings})
    lacks, begins = _gaps_until(found.exact, queries.records[found.query].gaps), found.adoption.answers_from
    was = present.known.queries.paused.get(found.query)
    lacks = with_gap(lacks, Gap(begins if was is None else was.heartbeat, begins, found.exact))
    queries = _sized_from(present, queries.having(found.query, gaps=lacks), found.query, begins)
    return replace(present.turn_to(wanted, queries), joining=found)


def _gaps_until(exact: int, gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Gaps of an answer that is that over all rows from an instant on."""
    found: tuple[Gap, ...] = ()
    for gap in gaps:
        until = None if gap.exact is None else min(gap.exact, max(exact, gap.begin))
        found = with_gap(found, Gap(gap.begin, gap.end, until))
    return found


def _renamed(present: Present, change: Rename) -> Turn:
    """A query goes on under another name."""
    known = present.known.queries
    queries = known.called({**known.names, change.query: change.name})
    description = change.description or present.known.description
    return replace(present.turn(queries), description=description)
