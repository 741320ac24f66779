"""The status of a run: how far its streams, queries and operators are, and what holds them back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from headrace.algebra.arrival import NO_PAST, Past
from headrace.algebra.nodes import Relation, Source
from headrace.algebra.properties import names_read
from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.estimated import DisorderChange
from headrace.lowering.behind import declared_name
from headrace.lowering.graph import Graph
from headrace.operators.hold import WAITING
from headrace.runtime.driver.facts.left_out import ValuesLeftOut, values_left_out
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.remembered import MemoryOfQuery, memories_of
from headrace.runtime.driver.facts.sizes import WindowStatus, window_statuses
from headrace.runtime.journal.exchanges import PlanExchange
from headrace.runtime.journal.gap import Gap
from headrace.runtime.journal.records import EpochResults, RelationContent, Totals
from headrace.runtime.results.release import settled_until
from headrace.time import BEGINNING, INFINITY, TimeDomain


@dataclass(frozen=True)
class SlowestValue:
    """The value that holds back a stream of which each value of a column has a bound of its own.

    Attributes:
        column: the column.
        value: it as a literal of SQL, or the beginning of it.
        latest: its newest timestamp (instant), `BEGINNING` for a listed value that has not come.
        reaches: the heartbeat that the values leave the stream when all are idle, if no row comes (instant),
            `BEGINNING` if none; they become idle one after the other, and nobody is further than the last.
    """

    column: str
    value: str
    latest: int
    reaches: int


@dataclass(frozen=True)
class SkewStatus:
    """How far a stream is behind others, as it is estimated.

    Attributes:
        streams: the others.
        behind: how much older than the newest row of the others its rows are (instants); None until enough
            have come. The bound in force is the largest of the streams that share it.
        changes: the last changes, and when they were.
        wait: after how long the bound holds (microseconds of counted time).
    """

    streams: tuple[str, ...]
    behind: int | None
    changes: tuple[DisorderChange, ...]
    wait: int = 0


@dataclass(frozen=True)
class RowsKept:
    """How much there is of the rows of a stream that are kept.

    Attributes:
        rows: how many there are.
        size: how many bytes their files have.
        since: from which instant on all rows are there; BEGINNING if none is gone.
    """

    rows: int
    size: int
    since: int


@dataclass(frozen=True)
class StreamStatus:
    """How far a stream has been read.

    Attributes:
        name: the stream.
        domain: what its instants count.
        position: up to where it has been read, in its source's unit.
        share: the part of it that has been read, from 0 to 1; None if it never ends.
        rows, late, rejected: rows that were used; that came too late; that could not be read.
        dropped: pushed rows that were dropped, by its OVERFLOW.
        rate: rows per second of wall-clock time, smoothed; None before any time has passed.
        heartbeat: no later row is older (instant); `BEGINNING` before any has come, `INFINITY` at the end.
        latest: the newest timestamp that was read (instant), `BEGINNING` if there was none.
        disorder: by how much a row may be older than the newest one (instants); None for any age.
        idle_after: without rows for so long it holds no others back (microseconds), or None.
        timeout: without rows of any for so long all that came is final, with the windows that hold it
            (microseconds), or None.
        age: the seconds of wall-clock time since the heartbeat last moved.
        problem: why it was given up, or None.
        estimated: whether the disorder is estimated; it is None until enough rows have come.
        disorder_changes: the last changes of an estimated disorder, and when they were.
        slowest: the value of the column named by PER that holds the stream back; None if none does.
        by_arrival: whether the clock times its rows, and moves its heartbeat.
        skews: how far it is behind other streams, where that is estimated.
        waits: how much of the time of WAIT was left at the last commit (microseconds of time that counts), in
            which values may still come and `slowest` is None; None before the first row, and afterwards.
        idle: whether it was idle at the last commit, by its IDLE AFTER.
        content: what was read last of a relation that is refreshed, or None.
        retained: what there is of its rows that are kept; None if none are to be.
        past: what it had brought before, as far as queries look back to that.
        trouble: why it cannot be read for now, while that is tried again, or None.
        behind: how far rows may be behind the clock, which then moves its heartbeat (microseconds), or None.
        overdue: of the late rows the changes of a relation that count since they came; no dead letters.
    """

    name: str
    domain: TimeDomain
    position: int
    share: float | None
    rows: int
    late: int
    rejected: int
    rate: float | None
    heartbeat: int
    latest: int
    disorder: int | None
    idle_after: int | None
    timeout: int | None
    age: float
    problem: str | None
    estimated: bool = False
    disorder_changes: tuple[DisorderChange, ...] = ()
    slowest: SlowestValue | None = None
    by_arrival: bool = False
    skews: tuple[SkewStatus, ...] = ()
    waits: int | None = None
    idle: bool = False
    content: RelationContent | None = None
    retained: RowsKept | None = None
    past: Past = NO_PAST
    dropped: int = 0
    trouble: str | None = None
    behind: int | None = None
    overdue: int = 0


@dataclass(frozen=True)
class Waiting:
    """Where a query's heartbeat comes from: a node of its plan, on the way from the query to a stream.

    Attributes:
        node: the node's number.
        heartbeat: that of its output (instant).
    """

    node: int
    heartbeat: int


@dataclass(frozen=True)
class QueryStatus:
    """How far a query is.

    Attributes:
        name: what the query is called.
        id: the query, by its identity.
        domain: what its instants count.
        reads: the streams that it reads.
        changes: the elements that it has yielded, corrections included.
        rate: elements per second of wall-clock time, smoothed; None before any time has passed.
        heartbeat: below it the answer is final (instant); `BEGINNING` if nothing is, `INFINITY` if all is.
        horizon: below it the answer is said, final or not (instant); that is the heartbeat unless the query's
            CONSISTENCY says more.
        latest: the newest timestamp that was read of its streams (instant), `BEGINNING` if there was none.
        lag: how far the heartbeat is behind that (instants); None if nothing is final or was read.
        held_by: the stream whose heartbeat the query waits for; None if it has ended or failed.
        chain: the nodes from the query's result to that stream, each the one that the node before waits for.
        unreleased: at most so many elements have been yielded that wait for the heartbeat.
        failed: why it has ended early, or None.
        hint: what may help one that has, or None.
        exchanged: the last time that its plan was exchanged for a better one, or None.
        departures: how many rows it has left out that are in time for their streams, by its REMEMBER; None if
            it takes all of them.
        gaps: the instants about which it says nothing, since it was paused or replaced.
        windows: those of its windows whose size may change.
        memory: what its joins keep and miss, where that is limited.
        values: the rows that it leaves out by their values, where it says what these are worth.
    """

    name: str
    id: str
    domain: TimeDomain
    reads: tuple[str, ...]
    changes: int
    rate: float | None = None
    heartbeat: int = BEGINNING
    horizon: int = BEGINNING
    latest: int = BEGINNING
    lag: int | None = None
    held_by: str | None = None
    chain: tuple[Waiting, ...] = ()
    unreleased: int = 0
    failed: str | None = None
    hint: str | None = None
    exchanged: PlanExchange | None = None
    departures: int | None = None
    gaps: tuple[Gap, ...] = ()
    windows: tuple[WindowStatus, ...] = ()
    memory: MemoryOfQuery | None = None
    values: ValuesLeftOut | None = None

    @property
    def advice(self) -> str:
        """The ways on for a query that has failed."""
        again = f"ALTER QUERY {self.name} RESUME tries it again"
        return again if self.hint is None else f"{self.hint}; {again}"

    @property
    def watermark(self) -> int:
        """The output watermark (instant): up to where rows in order take nothing back of what is said.

        That of a reader with output `final` who begins now (CEDR, *Operator Algorithm Design for Speculative
        Stream Processing*, theorem 10).
        """
        return settled_until(self.heartbeat, self.horizon)


@dataclass(frozen=True)
class OperatorStatus:
    """What an operator has done, and holds.

    Attributes:
        number: its place in the graph.
        domain: what its instants count.
        level: the stage that it runs in.
        text: what it does.
        inputs: the numbers of the operators that it reads.
        identity: names it across changes of the plan.
        rows_in: the rows that came to it; where they were added up before they travelled, what travelled.
        rows_out: the rows that it yielded, corrections included.
        endless: how many of those have no end.
        lifetime: for how long the others are valid on average (instants), smoothed; None without others.
        first, last: when the earliest and the latest row yielded begins (instants); None before any.
        rates: rows in and out per second of wall-clock time, smoothed; None before any time has passed.
        selectivity: rows out per row in, smoothed; None before any came.
        seconds: of tasks, all together.
        share: its part of the seconds of all operators, from 0 to 1.
        state_rows, state_bytes: what it keeps, with what waits.
        heartbeat: that of its output (instant).
        waits_for: the numbers of the operators that it waits for besides its inputs.
        waiting_rows: the rows that wait for them, as they came.
        waiting_since: when the earliest of these begins (instant); None without any.
    """

    number: int
    domain: TimeDomain
    level: int
    text: str
    inputs: tuple[int, ...]
    identity: str
    rows_in: int
    rows_out: int
    endless: int
    lifetime: float | None
    first: int | None
    last: int | None
    rates: tuple[float, float] | None
    selectivity: float | None
    seconds: float
    share: float
    state_rows: int
    state_bytes: int
    heartbeat: int
    waits_for: tuple[int, ...] = ()
    waiting_rows: int = 0
    waiting_since: int | None = None


@dataclass(frozen=True)
class PausedStatus:
    """A query that is not answered until it is resumed.

    Attributes:
        name: the query.
        domain: what its instants count.
        epoch: the one that has paused it.
        heartbeat: up to where its answer is final meanwhile (instant).
        keeps: the streams whose rows are kept for it.
    """

    name: str
    domain: TimeDomain
    epoch: int
    heartbeat: int
    keeps: tuple[str, ...]


def chain_of(graph: Graph, node: int, heartbeats: Sequence[int]) -> tuple[Waiting, ...]:
    """The way from a node to the stream that its heartbeat comes from: of several inputs the smallest.

    Args:
        graph: the query graph.
        node: the number of the node.
        heartbeats: of every node's output (instants).
    """
    found = [Waiting(node, heartbeats[node])]
    while inputs := graph.nodes[found[-1].node].inputs:
        below = min((edge.producer for edge in inputs), key=lambda producer: heartbeats[producer])
        found.append(Waiting(below, heartbeats[below]))
    return tuple(found)


def query_statuses(reading: PublishedRun, results: Sequence[EpochResults]) -> Iterator[QueryStatus]:
    """How far each query is.

    Args:
        reading: what is to be seen of the run.
        results: those that are kept, in order and without gaps.
    """
    queries, totals, graph = reading.queries, reading.totals, reading.queries.graph
    tally, outputs = reading.statistics.queries, dict(graph.outputs)
    # What waits for others than its inputs holds no answer back.
    heartbeats = graph.free_heartbeats(*_reached(reading))
    recent = dict(zip(tally.keys, tally.recent.tolist(), strict=True))
    kept = results[: bisect_left(results, totals.epochs + 1, key=lambda part: part.epoch)]
    # Queries of one shape have the same node.
    way_of = cache(lambda node: _way(reading, node, heartbeats))
    remembering = {query for names in graph.memories.values() for query in names}
    memories = memories_of(reading)
    for query, plan in queries.plans.items():
        changes, name = totals.emitted.get(query, 0), queries.name_of(query)
        if query in queries.failed:
            reads = names_read(plan)
            message, hint = queries.failed[query]
            latest = _latest(totals, reads)
            yield QueryStatus(
                name, query, plan.domain, reads, changes, latest=latest, failed=message, hint=hint
            )
            continue
        way = way_of(graph.node_of(outputs[query]))
        heartbeat = way.chain[0].heartbeat
        passed, some = recent[query]
        yield QueryStatus(
            name=name,
            id=query,
            domain=plan.domain,
            reads=way.reads,
            changes=changes,
            rate=some / passed if passed else None,
            heartbeat=heartbeat,
            horizon=max(heartbeat, kept[-1].reach(query) if kept else BEGINNING),
            latest=way.latest,
            lag=None if BEGINNING in (heartbeat, way.latest) else max(0, way.latest - heartbeat),
            held_by=way.held_by if heartbeat != INFINITY else None,
            chain=way.chain,
            unreleased=_unreleased(query, heartbeat, kept),
            exchanged=queries.exchanged.get(query),
            departures=totals.departures.get(query, 0) if query in remembering else None,
            gaps=tuple(queries.gaps.get(query, ())),
            windows=window_statuses(plan, queries.tunings),
            memory=memories.get(query),
            values=values_left_out(plan, queries.tunings),
        )


@dataclass(frozen=True)
class _Way:
    """What holds for every query whose result a node is.

    Attributes:
        chain, reads, latest, held_by: as of `QueryStatus`.
    """

    chain: tuple[Waiting, ...]
    reads: tuple[str, ...]
    latest: int
    held_by: str


def _way(reading: PublishedRun, node: int, heartbeats: Sequence[int]) -> _Way:
    graph = reading.queries.graph
    chain = chain_of(graph, node, heartbeats)
    source = graph.nodes[chain[-1].node].plan
    assert isinstance(source, Source | Relation)
    below = (graph.nodes[number].plan for number in sorted(graph.below(node)))
    # One that is behind reads its streams by names that nobody has declared.
    names = (declared_name(plan.name) for plan in below if isinstance(plan, Source | Relation))
    reads = tuple(dict.fromkeys(names))
    return _Way(chain, reads, _latest(reading.totals, reads), declared_name(source.name))


def _latest(totals: Totals, streams: Sequence[str]) -> int:
    """The last instant at which something is new that was read of some streams."""
    return max((totals.arrivals.get(stream, Arrivals()).newest for stream in streams), default=BEGINNING)


def operator_statuses(reading: PublishedRun) -> Iterator[OperatorStatus]:
    """What each operator has done, and holds, in the order of the graph."""
    graph, statistics = reading.queries.graph, reading.statistics
    heartbeats, states = graph.heartbeats(*_reached(reading)), _states(reading)
    everything = float(statistics.operators.total[:, -1].sum()) or 1.0
    rows = zip(
        graph.nodes, statistics.operators.total.tolist(), statistics.operators.recent.tolist(),
        statistics.first.tolist(), statistics.last.tolist(), strict=True,
    )  # fmt: skip
    for text, (node, total, recent, first, last) in zip(reading.queries.texts, rows, strict=True):
        _, rows_in, rows_out, endless, _, _, seconds = total
        passed, some_in, some_out, some_endless, lifetimes, _, _ = recent
        ended = some_out - some_endless
        held = states.get(node.identity, _Kept())
        yield OperatorStatus(
            number=node.number,
            domain=node.plan.domain,
            level=node.level,
            text=text,
            inputs=tuple(edge.producer for edge in node.inputs),
            identity=node.identity,
            rows_in=int(rows_in),
            rows_out=int(rows_out),
            endless=int(endless),
            lifetime=lifetimes / ended if ended else None,
            first=first if rows_out else None,
            last=last if rows_out else None,
            rates=(some_in / passed, some_out / passed) if passed else None,
            selectivity=some_out / some_in if some_in else None,
            seconds=seconds,
            share=seconds / everything,
            state_rows=held.rows,
            state_bytes=held.size,
            heartbeat=heartbeats[node.number],
            waits_for=node.waits_for,
            waiting_rows=held.waiting,
            waiting_since=held.since,
        )


def _reached(reading: PublishedRun) -> tuple[dict[str, int], dict[str, int], dict[str, Past]]:
    """The heartbeats of the streams, their largest timestamps, and what they had brought before."""
    points = {name: reading.points[name] for name in reading.streams}
    return (
        {name: point.heartbeat for name, point in points.items()},
        {name: point.time.latest for name, point in points.items()},
        {name: point.past for name, point in points.items()},
    )


def paused_statuses(reading: PublishedRun) -> Iterator[PausedStatus]:
    """The queries that are paused, by name."""
    name_of = reading.queries.name_of
    for query, one in sorted(reading.queries.paused.items(), key=lambda known: name_of(known[0])):
        yield PausedStatus(name_of(query), one.form.domain, one.since, one.heartbeat, one.keeps)


def _unreleased(query: str, heartbeat: int, results: Sequence[EpochResults]) -> int:
    """At most how many elements of a query wait for its heartbeat: those of all parts in which one may."""
    if not results:
        return 0
    begin = max(0, results[-1].since.get(query, results[-1].epoch) - results[0].epoch)
    refs = (ref for part in results[begin:] for ref in part.results.get(query, ()))
    return sum(ref.rows for ref in refs if ref.latest >= heartbeat and not ref.at_once)


@dataclass(frozen=True)
class _Kept:
    """What an operator keeps, in all its buckets.

    Attributes:
        rows, size: the rows and the bytes.
        waiting: how many of the rows wait for other operators.
        since: when the earliest of these begins (instant), or None.
    """

    rows: int = 0
    size: int = 0
    waiting: int = 0
    since: int | None = None


def _states(reading: PublishedRun) -> dict[str, _Kept]:
    """What is kept, by the identities of the operators."""
    found: dict[str, _Kept] = {}
    for (identity, _), manifest in reading.state.items():
        known = found.get(identity, _Kept())
        runs = [run for area in manifest.values() for run in area]
        waiting = [run for name, area in manifest.items() if name.startswith(WAITING) for run in area]
        since = [run.first for run in waiting] + ([] if known.since is None else [known.since])
        found[identity] = _Kept(
            known.rows + sum(run.rows for run in runs),
            known.size + sum(run.part.length for run in runs),
            known.waiting + sum(run.rows for run in waiting),
            min(since, default=None),
        )
    return found
