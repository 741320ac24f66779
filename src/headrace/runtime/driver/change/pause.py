"""Queries that are paused: their operators go, and their answers stay as they were until they are resumed.

A paused query has a heartbeat in every record, which does not move. What it has said about instants from that
heartbeat on is taken back in the epoch that pauses it, since nobody will correct it any more. Once it is
resumed, its operators begin anew, with the rows that come from then on, and its answer goes on from the
heartbeat that its streams have by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from headrace.algebra.exactness import exact_anew
from headrace.algebra.nodes import Clip, Plan, Relation
from headrace.algebra.properties import sources_of
from headrace.elements import Batch, encode
from headrace.lowering.constants import constants_as_data
from headrace.lowering.early import said_from_on
from headrace.lowering.outer_joins import expand
from headrace.runtime.driver.change.migration.exchange import carried_out
from headrace.runtime.driver.query_record import Adoption, QueryRecord
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.journal.description import Description, Paused, WarmStart
from headrace.runtime.journal.forms import Form
from headrace.runtime.journal.gap import Gap, with_gap
from headrace.runtime.journal.records import EpochResults, StreamPoint
from headrace.runtime.results.carried import held_from
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import SegmentWriter, Store
from headrace.runtime.tasks.messages import ResultRef
from headrace.time import BEGINNING, INFINITY

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
        name: KnownQuery(
            description.queries.get(name, ""), queries.start_of(name), form_of(queries.plans[name])
        )
        for name in names
        if name in queries.plans
    }


def known_in(present: Description) -> dict[str, KnownQuery]:
    """The queries of a store that may be paused: whatever a run knows of them."""
    return {
        name: KnownQuery(identity, present.starts.get(name, 1), present.forms[name])
        for name, identity in present.queries.items()
        if name in present.forms
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


def said_for_good(plans: Mapping[str, Plan], paused: Mapping[str, Paused], epoch: int) -> dict[str, Adoption]:
    """Queries that go on after a pause though all of their answer was final: they have nothing more to say.

    Such are queries over relations alone, which would be read again, and said again.

    Args:
        plans: the queries that are answered from now on.
        paused: those that were paused before.
        epoch: the one that resumes them.
    """
    return {
        name: Adoption(epoch, INFINITY, constants_as_data(expand(_nothing(plans[name])))[0])
        for name, one in paused.items()
        if name in plans and one.heartbeat == INFINITY
    }


def _nothing(plan: Plan) -> Plan:
    """A plan with the same columns that yields nothing."""
    return Clip(Clip(plan, end=0), begin=0)


def resumed(
    queries: QuerySet,
    epoch: int,
    before: QuerySet,
    points: Callable[[str], StreamPoint],
    exacts: Mapping[str, int] = MappingProxyType({}),
) -> QuerySet:
    """The set with what is to be known of queries that go on after a pause.

    Args:
        queries: those that are answered from now on.
        epoch: the one that resumes them.
        before: the set before it.
        points: how far an input has been read, by its name.
        exacts: from which instants on those are exact that begin with what others hold.
    """
    names = [name for name in before.paused if name in queries.plans and name not in queries.failed]
    if not names:
        return queries
    begins = answering_from(queries, names, points)
    for name, at in begins.items():
        until = before.paused[name].heartbeat
        if at < until:
            # What a memory looks back to is not known any more. What is final is not said again.
            queries = queries.replacing({name: said_from_on(carried_out(queries, name), until)})
            begins[name] = until
    found: dict[str, QueryRecord] = {}
    for name, at in begins.items():
        record = queries.answered[name]
        exact = exacts[name] if name in exacts else exact_anew_at(record.plan, points)
        gap = Gap(before.paused[name].heartbeat, at, exact)
        found[name] = replace(record, warm=WarmStart(epoch, at), gaps=with_gap(record.gaps, gap))
    return queries.with_records(found)


def lacking(
    queries: QuerySet,
    names: Iterable[str],
    before: QuerySet,
    points: Callable[[str], StreamPoint],
    exacts: Mapping[str, int] = MappingProxyType({}),
) -> QuerySet:
    """The set with what queries lack that begin while their streams go on.

    One that begins anew has none of the rows that have come. One that takes over the state of others has
    what these have.

    Args:
        queries: those that are answered from now on.
        names: those of them that begin.
        before: the queries that run.
        points: how far an input has been read, by its name.
        exacts: from which instants on those are exact that begin with what others hold.
    """
    found: dict[str, QueryRecord] = {}
    for name, at in answering_from(queries, names, points).items():
        record = queries.answered[name]
        exact = exacts[name] if name in exacts else exact_anew_at(record.plan, points)
        if record.warm is not None:
            at, start = record.warm.answers_from, record.warm.since
            others = (one for one in before.plans if before.state_start_of(one) == start)
            known = (gap.exact for one in others for gap in before.gaps_of(one) if gap.exact is not None)
            exact = max(known, default=at)
        if at < exact:
            found[name] = replace(record, gaps=with_gap((), Gap(at, at, exact)))
    return queries.with_records(found)


def exact_anew_at(plan: Plan, points: Callable[[str], StreamPoint]) -> int:
    """The first instant from which on a plan is exact that starts anew now; INFINITY where none is known.

    Args:
        plan: the plan.
        points: how far an input has been read, by its name.
    """
    return exact_anew(plan, {source.name: points(source.name).time.latest for source in sources_of(plan)})


def answering_anew(plan: Plan, points: Callable[[str], StreamPoint]) -> int:
    """From which instant on a plan answers that starts anew now, alone.

    Args:
        plan: the plan, optimized.
        points: how far an input has been read, by its name.
    """
    ((_, at),) = answering_from(QuerySet.alone(plan), ("",), points).items()
    return at


def answering_from(
    queries: QuerySet, names: Iterable[str], points: Callable[[str], StreamPoint]
) -> dict[str, int]:
    """From which instants on queries answer that start anew now, by name.

    Args:
        queries: with these.
        names: theirs.
        points: how far an input has been read, by its name.
    """
    if not (names := list(names)):
        return {}
    graph, outputs = queries.graph, dict(queries.graph.outputs)
    relations = {node.reads for node in graph.nodes if isinstance(node.plan, Relation)}
    read = {name: points(name) for name in queries.inputs}
    # A relation, which is perhaps yet to be read again, holds no answer back.
    heartbeats = {name: INFINITY if name in relations else point.heartbeat for name, point in read.items()}
    newest = {name: point.time.latest for name, point in read.items()}
    said = graph.heartbeats(heartbeats, newest, {name: points(name).past for name in graph.dials})
    return {name: said[graph.node_of(outputs[name])] for name in names}
