"""Queries that come and go, are paused and resumed, begin, or go on at other levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.elements import Batch
from headrace.runtime.driver.change.beginning.boundary import begun_with
from headrace.runtime.driver.change.beginning.newcomer import Newcomer, newcomers
from headrace.runtime.driver.change.beginning.provenance import Finished, Provenance, provenance_of
from headrace.runtime.driver.change.content.larger_windows import Shift
from headrace.runtime.driver.change.content.relation_index import given_to, with_indices, written
from headrace.runtime.driver.change.content.relation_sides import without_reading
from headrace.runtime.driver.change.level import going_on, level_changes, spoken
from headrace.runtime.driver.change.pause import ended_answers, known_to, paused_now
from headrace.runtime.driver.change.replace import taken_back
from headrace.runtime.driver.change.turn import Present, Turn
from headrace.runtime.driver.change.wanted import Redefine
from headrace.runtime.driver.change.warm import TakenOver
from headrace.runtime.driver.change.warm import begin as begin_warm
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.streams import check_not_rewritten
from headrace.runtime.journal.described_query import Paused
from headrace.runtime.store.segments import SegmentWriter
from headrace.runtime.tasks.messages import ResultRef


def redefined(
    present: Present, change: Redefine, decided: Sequence[tuple[Newcomer, Provenance]] = ()
) -> Turn:
    """What a change of the queries comes to; what goes on keeps its state.

    Args:
        present: the run before it.
        change: what is asked for.
        decided: the queries that take the place of others, where it is decided how they begin.

    Raises:
        UserError: a query has no state that it could take over.
        StoreError: something cannot be written.
    """
    wanted, known = change.wanted, present.known
    epoch, prefix, before = present.epoch, present.prefix, present.holding()
    kept = present.settings.keep_results
    stopped, paused = _paused(present, change)
    levels = level_changes(before, wanted.plans)
    anew = [one.query for one, _ in decided if one.alike and one.query not in levels]
    names = known.queries.beginning(wanted.plans, wanted.holds, levels, anew)
    begin = [(one, found) for one, found in decided if one.query in names] or [
        (one, provenance_of(one)) for one in newcomers(present, wanted, names, change.warm, change.starts)
    ]
    taken_over = {one.query: found for one, found in begin if isinstance(found, TakenOver)}
    changed = known.queries.changed(
        wanted.plans,
        epoch,
        present.settings.look,
        {one.query: found.adoption for one, found in begin if isinstance(found, TakenOver | Finished)},
        wanted.holds,
        paused,
        {name: level.new for name, level in levels.items()},
        anew,
    ).called(wanted.names)
    shifts = {one.query: found for one, found in begin if isinstance(found, Shift)}
    changed = changed.with_records({name: replace(changed.answered[name], shared=None) for name in shifts})
    changed = begun_with(changed, begin, before)
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
    for place, (name, taken) in enumerate(taken_over.items()):
        beginning = begin_warm(name, taken, before, queries, known.results, f"{prefix}-warm{place}")
        begins[name] = beginning.results
        given |= beginning.state
    end = ended_answers(stopped, present.store, known.results, f"{prefix}-paused")
    return replace(present.turn_to(wanted, queries), begins=begins, given=given, ended=end)


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
