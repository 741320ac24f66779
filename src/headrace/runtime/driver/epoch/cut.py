"""What the next epoch takes, and what its tasks have to know."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.runtime.driver.epoch.committed import Committed
from headrace.runtime.driver.epoch.inputs import columns_of, inputs_of, promises_of
from headrace.runtime.driver.facts.working_set import fitting_rows
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.letters import letters_to_take
from headrace.runtime.intake.shares import (
    MOST_HELD,
    MOST_PASSED,
    assignments,
    grown_rows,
    has_bounded,
    next_share,
    relations_to_read,
)
from headrace.runtime.intake.streams import Intake
from headrace.runtime.tasks.messages import EpochWork


def reads_relations(last: Committed) -> bool:
    """Whether a relation has to be read before any row of a stream."""
    return bool(relations_to_read(last.streams, last.points))


def share_of(last: Committed) -> dict[str, Intake]:
    """What the next epoch takes of the bounded streams, as a function of how far they have been read."""
    streams, share = last.refresher.readable(last.readings), dict[str, Intake]()
    if has_bounded(streams):
        most = MOST_HELD if last.queries.graph.levels else MOST_PASSED
        rows = last.settings.epoch_rows or grown_rows(streams, last.points, most)
        fitting = fitting_rows(last.totals, last.settings)
        rows = rows if fitting is None else min(rows, fitting)
        share = next_share(streams, last.points, rows, last.settings.epoch_bytes)
    letters = {} if reads_relations(last) else letters_to_take(last.streams, last.points, last.store)
    return {**last.refresher.begin(share, last.readings), **letters}


def work_of(last: Committed, queries: QuerySet, intakes: Mapping[str, Intake], parts: int) -> EpochWork:
    """What the tasks of the next epoch have to know.

    Args:
        last: the run as of its last commit.
        queries: those that are answered, without those that fail with it.
        intakes: what it takes of each stream; a stream that is not named brings nothing.
        parts: into how many parts its rows are cut, at most.
    """
    clock = max(last.settings.clock.now(), last.clock)
    taken = {name: intakes.get(name, Intake(0)) for name in last.streams}
    inputs = inputs_of(
        last.streams, last.points, last.timings(), taken, columns_of(last.queries, last.declared), clock
    )
    whole = [name for name, stream in last.streams.items() if stream.timing.is_read_whole(name)]
    return EpochWork(
        epoch=last.totals.epochs + 1,
        token=last.token,
        graph=queries.graph,
        buckets=last.buckets,
        tasks=min(parts, last.buckets),
        streams=inputs.streams,
        relations=inputs.relations,
        assignments=assignments(intakes, parts, whole),
        state=last.state,
        store=last.store,
        keep_results=last.settings.keep_results,
        time=last.time.epoch(promises_of(taken), clock, intakes),
        clock=clock,
        pasts={name: last.points[name].past for name in queries.graph.dials},
        timeout=last.settings.timeout,
        names=queries.names,
    )
