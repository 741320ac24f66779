"""Queries that are paused: their operators go, and their answers stay as they were until they are resumed.

A paused query has a heartbeat in every record, which does not move. What it has said about instants from that
heartbeat on is taken back in the epoch that pauses it, since nobody will correct it any more. Once it is
resumed, its operators begin anew, with the rows that come from then on, and its answer goes on from the
heartbeat that its streams have by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from headrace.elements import Batch, encode
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.described_query import Paused
from headrace.runtime.journal.description import Description
from headrace.runtime.journal.forms import Form
from headrace.runtime.journal.records import EpochResults
from headrace.runtime.results.carried import held_from
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import BEGINNING

_NO_NODE = 0
"""What has yielded the elements that end an answer: no operator has."""


@dataclass(frozen=True)
class KnownQuery:
    """A query that is answered, as far as pausing it has to know it.

    Attributes:
        identity: that of its plan.
        start: the epoch from which on it answers.
        form: what readers have to know of it.
    """

    identity: str
    start: int
    form: Form


def known_to(queries: QuerySet, description: Description, names: Iterable[str]) -> dict[str, KnownQuery]:
    """Those of some queries that are of a run, and may be paused."""
    return {
        name: KnownQuery(_identity(description, name), queries.start_of(name), form_of(queries.plans[name]))
        for name in names
        if name in queries.plans
    }


def _identity(description: Description, query: str) -> str:
    """The identity of a query's plan; nothing where there is no store that has it."""
    return description.answered[query].identity if query in description.answered else ""


def known_in(present: Description) -> dict[str, KnownQuery]:
    """The queries of a store that may be paused: whatever a run knows of them."""
    return {
        name: KnownQuery(one.identity, one.start, one.form)
        for name, one in present.answered.items()
        if one.form is not None
    }


def paused_now(
    names: Iterable[str],
    known: Mapping[str, KnownQuery],
    results: Sequence[EpochResults],
    epoch: int,
    keeping: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> dict[str, Paused]:
    """Those of some queries that were answered up to now, as they are paused.

    Args:
        names: the queries that are not to be answered.
        known: those that were.
        results: those of the epochs that are kept, in order.
        epoch: the one that pauses them.
        keeping: per query the streams whose rows are kept meanwhile.
    """
    return {
        name: Paused(
            *(one.identity, one.start, epoch, _heartbeat(name, results), one.form),
            keeps=keeping.get(name, ()),
        )
        for name in names
        if (one := known.get(name)) is not None
    }


def _heartbeat(name: str, results: Sequence[EpochResults]) -> int:
    """Up to where a query has spoken (instant); of one that has failed, before it did."""
    answered = (part.heartbeats[name] for part in reversed(results) if name in part.heartbeats)
    return next(answered, BEGINNING)


def ended_answers(
    paused: Mapping[str, Paused], store: Store, results: Sequence[EpochResults], file: str
) -> dict[str, tuple[ResultRef, ...]]:
    """What takes back all that queries have said about instants from their heartbeats on.

    Args:
        paused: the queries that are paused now.
        store: where results lie.
        results: those of the epochs that are kept, in order.
        file: the name of the file to write, below the folder for results.
    """
    writer = SegmentWriter(store, f"results/{file}")
    found: dict[str, tuple[ResultRef, ...]] = {}
    for name, one in paused.items():
        parts = [part for part in results if part.epoch >= one.start and name in part.heartbeats]
        if not parts:
            continue
        reader = ResultReader(name, one.form, store, parts, parts[-1].carried.get(name), one.start)
        rest = held_from(reader.yielded(), one.heartbeat)
        if len(rest):
            taken_back = Batch(rest.payload, rest.ts, rest.te, -rest.w)
            part = writer.add(encode(taken_back))
            found[name] = (ResultRef(_NO_NODE, part, len(rest), int(rest.ts.max())),)
    writer.close()
    return found
