"""Queries that come and go, are paused and resumed, begin warm or anew, or go on at other levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from headrace.elements import Batch
from headrace.lowering.early import horizon_of
from headrace.runtime.driver.change.content.larger_windows import Shift, shift_of
from headrace.runtime.driver.change.content.relation_index import given_to, with_indices, written
from headrace.runtime.driver.change.content.relation_sides import without_reading
from headrace.runtime.driver.change.level import going_on, level_changes, spoken
from headrace.runtime.driver.change.pause import (
    ended_answers,
    exact_anew_at,
    known_to,
    lacking,
    paused_now,
    resumed,
    said_for_good,
)
from headrace.runtime.driver.change.replace import begun_anew, taken_back
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import Redefine
from headrace.runtime.driver.change.warm import TakenOver, adopt, begin
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.streams import check_not_rewritten
from headrace.runtime.journal.description import Paused
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import INFINITY


def redefined(present: Present, change: Redefine, anew: Collection[str] = ()) -> Turn:
    """What a change of the queries comes to; what goes on keeps its state.

    Args:
        present: the run before it.
        change: what is asked for.
        anew: the queries whose plans are others, which start anew, while their answers go on.

    Raises:
        UserError: a query has no state that it could take over.
        StoreError: something cannot be written.
    """
    wanted, known = change.wanted, present.known
    epoch, prefix, before = present.epoch, present.prefix, present.holding()
    kept = present.settings.keep_results
    taken_over = adopted(present, change)
    stopped, paused = _paused(present, change)
    levels = level_changes(before, wanted.plans)
    anew = [name for name in anew if name not in levels]
    changed = known.queries.changed(
        wanted.plans,
        epoch,
        present.settings.look,
        {name: found.adoption for name, found in taken_over.items()}
        | said_for_good(wanted.plans, known.queries.paused, epoch),
        wanted.holds,
        paused,
        {name: level.new for name, level in levels.items()},
        anew,
    ).called(wanted.names)
    shifts = shifts_of(present, change, changed, anew)
    exacts = {name: shift.exact for name, shift in shifts.items()}
    changed = changed.with_records({name: replace(changed.answered[name], shared=None) for name in shifts})
    changed = resumed(changed, epoch, known.queries, present.point, exacts)
    changed = begun_anew(changed, epoch, anew, before, known.results, exacts)
    new = [name for name in changed.plans if changed.start_of(name) == epoch]
    changed = lacking(changed, new, known.queries, present.point, exacts)
    changed = going_on(changed, known.queries, levels)
    queries, given = without_reading(changed, before, epoch)
    queries = with_indices(queries, before, epoch)
    at_once = given_to(queries, before, given, epoch, f"{prefix}-rows")
    said = spoken(levels, before, queries, known.results, f"{prefix}-level", kept)
    given |= {**at_once.state, **said.state}
    for name, shift in shifts.items():
        given |= shift.state(name, before, queries.graph, f"{prefix}-shifted")
    queries = present.merging.merged(present.holding(queries, given))
    for name in queries.inputs.keys() - known.points.keys():
        check_not_rewritten(queries.inputs[name], wanted.streams.get(queries.inputs[name]))
    begins = _written(present, queries, at_once.results) | {**said.results}
    if kept:
        begins |= taken_back(anew, before, queries, known.results, begins, f"{prefix}-replaced")
    for place, (name, found) in enumerate(taken_over.items()):
        beginning = begin(name, found, before, queries, known.results, f"{prefix}-warm{place}")
        begins[name] = beginning.results
        given |= beginning.state
    end = ended_answers(stopped, present.store, known.results, f"{prefix}-paused")
    return replace(present.turn_to(wanted, queries), begins=begins, given=given, ended=end)


def adopted(present: Present, change: Redefine) -> dict[str, TakenOver]:
    """What the new queries take over that begin warm."""
    known, kept = present.known, present.settings.keep_results
    return {
        name: adopt(name, derived, horizon_of(change.wanted.plans[name]), known.queries, known.results, kept)
        for name, derived in change.warm.items()
    }


def shifts_of(
    present: Present, change: Redefine, changed: QuerySet, anew: Collection[str] = ()
) -> dict[str, Shift]:
    """The state of larger windows with which a query begins that begins with a change, if they hold it.

    Of several that begin together each may be carried out as a part of what all share, so these begin
    without.

    Args:
        present: the run before it.
        change: what is asked for.
        changed: the queries from the change on.
        anew: those whose plans are others.
    """
    paused, wanted = present.known.queries.paused, change.wanted
    began = [
        name
        for name in changed.plans
        if changed.start_of(name) == present.epoch or name in paused or name in anew
    ]
    if len(began) != 1 or not present.known.totals.epochs:
        return {}
    (name,) = began
    one, plan = changed.answered[name], changed.plans[name]
    if name in change.warm or name in change.empty or (one.warm and one.warm.answers_from == INFINITY):
        return {}
    shift = shift_of(present.holding(), plan, waits=name in wanted.holds)
    return {name: shift} if shift is not None and shift.exact < exact_anew_at(plan, present.point) else {}


def _paused(present: Present, change: Redefine) -> tuple[dict[str, Paused], dict[str, Paused]]:
    """The queries that are paused now, and all that are paused from now on."""
    queries, to_pause = present.known.queries, change.wanted.to_pause
    known = change.known
    if known is None:
        known = known_to(queries, present.known.description, to_pause)
    stopped = paused_now(to_pause, known, present.known.results, present.epoch, change.keeping)
    stayed = {name: one for name, one in queries.paused.items() if name in to_pause}
    new = {name: one for name, one in stopped.items() if name not in stayed}
    return new, {**stopped, **stayed}


def _written(
    present: Present, queries: QuerySet, results: Mapping[str, Batch]
) -> dict[str, tuple[ResultRef, ...]]:
    """Where it is written what new queries yield at once."""
    if not results or not present.settings.keep_results:
        return {}
    return written(queries.graph, results, SegmentWriter(present.store, f"results/{present.prefix}-rows"))
