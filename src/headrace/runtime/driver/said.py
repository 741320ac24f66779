"""What queries that run have said so far."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.driver.merging import Holding
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader


def reader_of(query: str, holding: Holding, results: Sequence[EpochResults]) -> ResultReader:
    """Reads the answer of a query that runs.

    Args:
        query: its name.
        holding: the queries that run.
        results: those of the epochs that are kept, in order.
    """
    plan, start = holding.queries.plans[query], holding.queries.start_of(query)
    parts = [part for part in results if part.epoch >= start and query in part.heartbeats]
    carried = results[-1].carried.get(query) if results else None
    return ResultReader(query, form_of(plan), holding.store, parts, carried, start)
