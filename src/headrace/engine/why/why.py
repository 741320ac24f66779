"""Why a query has no output, or no newer one: what its heartbeat waits for, and where its rows are lost.

A function of a status and the time; nothing is read or run for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Final

import pyarrow as pa

from headrace.algebra.arrival import Dial, Unit
from headrace.algebra.endings import Endings
from headrace.algebra.letters import stream_of_letters
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import (
    Clip,
    Filter,
    GapFill,
    Granularity,
    Join,
    Plan,
    SessionAggregate,
    SessionWindow,
    Shed,
    TimeWindow,
)
from headrace.algebra.properties import is_stateful, names_read, output_heartbeat
from headrace.algebra.tunings.tunings import shares_in, size_of
from headrace.engine.shown.status import Status, instant_text
from headrace.engine.why.behind import behind_others
from headrace.engine.why.filters import passing_nothing
from headrace.engine.why.finding import Finding
from headrace.engine.why.sizes import other_sizes
from headrace.engine.why.unused import unused_by
from headrace.engine.why.ways import ways_on, ways_without
from headrace.lowering.behind import declared_name
from headrace.lowering.graph import Graph
from headrace.lowering.node import Node
from headrace.runtime.driver.facts.status import (
    OperatorStatus,
    PausedStatus,
    QueryStatus,
    SlowestValue,
    StreamStatus,
)
from headrace.runtime.writing.texts import count
from headrace.steps import WHOLE, share_text
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, TimeDomain, format_length


@dataclass(frozen=True, repr=False)
class Why:
    """Why a query has no output, or no newer one.

    Attributes:
        query: its name.
        findings: what there is to say, the most important first.
        chain: from the query down to the stream that holds it back, what it waits for with its heartbeat.
    """

    query: str
    findings: tuple[Finding, ...]
    chain: tuple[str, ...]

    def __str__(self) -> str:
        lines = [*map(str, self.findings), *(["it waits for:"] if self.chain else [])]
        return "\n".join([*lines, *(f"  {link}" for link in self.chain)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def why(status: Status, name: str, plan: Plan | None = None, letters: pa.Table | None = None) -> Why:
    """Why a query has no output, or no newer one.

    Args:
        status: of the run.
        name: the query's.
        plan: the query's; without it, a filter that shares an operator with others is not looked at.
        letters: the newest dead letters, oldest first, as `dead_letters` gives them; none if None.

    Raises:
        UserError: no query of that name runs.
    """
    paused = next((one for one in status.paused if one.name.lower() == name.lower()), None)
    if paused is not None:
        return Why(paused.name, (_paused(paused),), ())
    query = status.query(name)
    if query.failed is not None:
        return Why(query.name, (Finding(f"{query.name} failed: {query.failed}", query.advice),), ())
    streams = [stream for stream in status.streams if stream.name in query.reads]
    unused = () if letters is None else unused_by(query, letters)
    behind = behind_others(status, query)
    findings = [
        _how_far(query),
        *(() if behind is None else (behind,)),
        *other_sizes(status, query),
        *_shed(status, plan),
        *_forgotten(query),
        *_left_out(query),
        *_ended(status),
        *_attempt(status),
        *_inputs(streams),
        *unused,
    ]
    findings += _lost(status, query)
    findings += () if plan is None else passing_nothing(status, query, plan)
    if query.held_by is not None and behind is None:
        findings += _waiting(status, query)
    return Why(query.name, tuple(findings), tuple(_chain(status, query)))


def not_taken_in(name: str, reason: str, hint: str) -> Why:
    """Why a query is not answered that no run knows of.

    Args:
        name: the query's.
        reason: why.
        hint: what would help.
    """
    return Why(name, (Finding(f"{name} is paused: {reason}", hint),), ())


def _how_far(query: QueryStatus) -> Finding:
    changes = count(query.changes, "element")
    if query.heartbeat == INFINITY:
        return Finding(f"{query.name} has yielded {changes}, and all of it is final")
    if query.heartbeat == BEGINNING:
        return Finding(f"{query.name} has yielded {changes}, and nothing is final yet")
    until = instant_text(query.heartbeat, query.domain)
    behind = (
        "" if query.lag is None else f", {format_length(query.lag, query.domain)} behind the newest row read"
    )
    said = ""
    if query.horizon > query.heartbeat:
        said = f"; what it says from there on, below {instant_text(query.horizon, query.domain)}, may change"
    return Finding(f"{query.name} has yielded {changes}, and is final below {until}{behind}{said}")


def _shed(status: Status, plan: Plan | None) -> Iterator[Finding]:
    """The share of its rows that is kept of a query that bears loss: since when, and why."""
    for tuning in () if plan is None else shares_in(plan):
        share = size_of(tuning, status.tunings)
        if share == WHOLE:
            continue
        known = status.tunings[tuning]
        since = instant_text(known.steps[-1].begin, plan.domain) if plan is not None else ""
        when = f" from {since} on" if since else ""
        what = f"{share_text(share)} of the rows of {' and '.join(tuning.streams)} is kept{when}"
        yield Finding(
            f"{what}: {known.why or 'somebody has asked for it'}",
            "SET latency_bound = DEFAULT keeps all" if known.why else "write KEEP 1 in its place",
        )


def _forgotten(query: QueryStatus) -> Iterator[Finding]:
    """The part of the answer that is missed of a query within a limit of memory."""
    if query.memory is not None and (query.memory.expected or 0) > _HARDLY:
        yield Finding(
            query.memory.text,
            f"CREATE OR REPLACE QUERY {query.name} WITHIN MEMORY '...' AS ... gives it more memory",
        )


def _left_out(query: QueryStatus) -> Iterator[Finding]:
    """The rows that a query leaves out by their values: which, since when, and why."""
    values = query.values
    if values is not None and values.threshold > 0:
        way = "SET (KEEP UTILITY 0) keeps all, for the query that says LOSS TOLERANT BY"
        way = "SET latency_bound = DEFAULT keeps all" if values.why else way
        yield Finding(f"{values.text}; {values.why or 'somebody has asked for it'}", way)


def _paused(query: PausedStatus) -> Finding:
    """A query that is paused: since when, and what becomes of the rows meanwhile."""
    until = instant_text(query.heartbeat, query.domain)
    final = f"its answer ends before {until}" if until else "nothing of its answer is final"
    if query.heartbeat == INFINITY:
        final = "all of its answer is final"
    rows = (
        f"the rows of {', '.join(query.keeps)} are kept for it" if query.keeps else "no rows are kept for it"
    )
    return Finding(
        f"{query.name} is paused since epoch {query.epoch:,}: {final}, and {rows}",
        f"write ALTER QUERY {query.name} RESUME",
    )


def _ended(status: Status) -> Iterator[Finding]:
    """What has ended the run, such as a JVM that is gone."""
    if status.ended is not None:
        yield Finding(f"the run has ended with: {status.ended}")


def _attempt(status: Status) -> Iterator[Finding]:
    """The epoch that is running, if it takes long or has failed before."""
    attempt = status.attempt
    if attempt is None:
        return
    seconds = time.monotonic() - attempt.since
    if attempt.failed is not None:
        yield Finding(
            f"epoch {attempt.epoch:,}, begun {seconds:,.1f} s ago, is tried again: {attempt.failed}",
            "while it is, nothing of it counts; what was committed before stays",
        )
    elif seconds >= _LONG:
        yield Finding(
            f"epoch {attempt.epoch:,} has been running for {seconds:,.1f} s",
            "its rows count when it is done; EXPLAIN ANALYZE shows what earlier ones spent their time on",
        )


_HARDLY: Final = 0.0005
"""So little of an answer is missed that nobody is told."""
_LONG: Final = 1.0
"""An epoch that has been running for so many seconds is worth a word."""


def _inputs(streams: list[StreamStatus]) -> Iterator[Finding]:
    """What is wrong with the streams that a query reads."""
    for stream in streams:
        if stream.problem is not None:
            yield Finding(f"the stream {stream.name} was given up: {stream.problem}", _GIVEN_UP)
        if stream.trouble is not None:
            yield Finding(f"the stream {stream.name} cannot be read for now: {stream.trouble}", _AGAIN)
        if stream.overdue:
            yield Finding(
                f"{count(stream.overdue, 'change')} of {stream.name} came late: {_OVERDUE}", _IN_TIME
            )
        late = stream.late - stream.overdue
        apart = f"{count(late, 'late row')}, {stream.rejected:,} rejected"
        letters = stream_of_letters(stream.name)
        if letters is not None:
            if not stream.rows:
                yield Finding(f"no row of {letters} has been set apart since its dead letters are read")
        elif not stream.rows + stream.overdue and not late + stream.rejected:
            yield Finding(f"the stream {stream.name} has brought no row", _NOTHING[stream.share is None])
        elif not stream.rows + stream.overdue:
            yield Finding(f"no row of {stream.name} could be used: {apart}", _APART)
        elif late + stream.rejected:
            yield Finding(f"rows of {stream.name} were set apart: {apart}", _APART)


_NOTHING: Final = ("see that its files hold rows", "see that whatever sends its rows is at work")
_AGAIN: Final = "it is tried again, and goes on by itself"
_GIVEN_UP: Final = "it never counts as idle, since rows may wait where it reads from"
_OVERDUE: Final = "what was final by then stays, and from there on it counts"
_IN_TIME: Final = "a DISORDER, and IDLE AFTER with it, lets answers wait for such changes"
_APART: Final = "dead_letters() says why; of late rows, a larger DISORDER takes more"


def _lost(status: Status, query: QueryStatus) -> Iterator[Finding]:
    """The operators of a query that have taken rows in and yielded none."""
    graph = status.graph
    output = query.chain[0].node
    for number in sorted(graph.below(output)):
        operator = status.operators[number]
        # What is clipped from a later instant on has yielded none yet, and that is right.
        node = graph.nodes[number].plan
        # One that parts rows that were kept for others from the rest lets none through while all are kept.
        parts = isinstance(node, Filter) and isinstance(node.input, Shed)
        if operator.rows_in and not operator.rows_out and not isinstance(node, Clip) and not parts:
            yield _of_operator(status, graph.nodes[number], operator)


def _of_operator(status: Status, node: Node, operator: OperatorStatus) -> Finding:
    """What there is to say of an operator that has taken rows in and yielded none."""
    title = f"#{operator.number} {operator.text}"
    match node.plan:
        case Filter():
            return Finding(
                f"none of {count(operator.rows_in, 'row')} passes {title}",
                "compare the condition with the rows",
            )
        case Join():
            sides = [status.operators[edge.producer] for edge in node.inputs]
            took = " and ".join(f"{side.rows_out:,} of #{side.number} {side.text}" for side in sides)
            help_ = "compare the values on both sides, and how long the windows keep rows"
            return Finding(f"{title} has found no partners: {took}", help_)
        case _:
            failing = "dead_letters() shows the rows on which an expression failed"
            waits = is_stateful(node.plan)
            return Finding(
                f"{title} has taken in {count(operator.rows_in, 'row')} and yielded none",
                "it may wait for its heartbeat to move" if waits else failing,
            )


def _waiting(status: Status, query: QueryStatus) -> Iterator[Finding]:
    """What a query's heartbeat waits for."""
    stream = _as_read(status, query, query.held_by or "")
    needed = next_heartbeat(status.graph, query)
    what = f"{query.name} waits for {stream.name}, "
    if stream.heartbeat == BEGINNING:
        what += f"which has no heartbeat yet, for {stream.age:,.1f} s"
    else:
        heartbeat = instant_text(stream.heartbeat, stream.domain)
        what += f"whose heartbeat is {heartbeat} and has not moved for {stream.age:,.1f} s"
    # Streams that are no further would hold the query back next.
    read = [stream if name == stream.name else _as_read(status, query, name) for name in query.reads]
    # One that follows others at once is behind only until they have gone on.
    slowest = [
        one for one in read if one.heartbeat == stream.heartbeat and (one is stream or one.idle_after != 0)
    ]
    finished = _finished(status, query)
    memory = _memory_of(status, query, stream.name)
    said = "DISORDER" if memory is None or memory.dial is not None else "REMEMBER"
    orders = [
        " or ".join(
            (
                *ways_on(one, needed, said),
                *_ways_by(status, query, one),
                *ways_without(one, needed, [other for other in read if other is not one], finished[one.name]),
            )
        )
        for one in slowest
    ]
    again = not status.running and stream.problem is None
    yield Finding(what, " and ".join([*(["start the run again"] * again), *orders]))
    yield from (_of_wait(one, one.waits) for one in slowest if one.waits is not None)
    yield from (_of_value(one, one.slowest) for one in slowest if one.slowest is not None)
    yield from _window(status, query, needed)
    if query.unreleased:
        yield Finding(f"not final yet: at most {count(query.unreleased, 'element')} of the answer")
    held = sum(status.operators[number].state_rows for number in status.graph.below(query.chain[0].node))
    if held:
        yield Finding(f"its operators keep {count(held, 'row')}")
    yield from _held_back(status, query)


def _finished(status: Status, query: QueryStatus) -> dict[str, int]:
    """The heartbeats of a query's streams once all of them are silent, BEGINNING for those that stay."""
    plan = status.graph.nodes[query.chain[0].node].plan
    # A query that is behind reads them by other names.
    newest = {name: status.stream(declared_name(name)).latest for name in names_read(plan)}
    last = max(newest.values())
    ends = Endings.of(plan).heartbeats(newest)
    passed = BEGINNING if last == BEGINNING else last + 1
    return {declared_name(name): max(passed, ends.get(name, BEGINNING)) for name in newest}


def _as_read(status: Status, query: QueryStatus, name: str) -> StreamStatus:
    """A stream as a query sees it, which may remember it for less than it allows."""
    stream = status.stream(name)
    memory = _memory_of(status, query, name)
    if memory is None:
        return stream
    heartbeat = memory.reached(stream.heartbeat, stream.latest, stream.past)
    shorter = memory.dial is None and (stream.disorder is None or memory.length < stream.disorder)
    return replace(stream, heartbeat=heartbeat, disorder=memory.length if shorter else stream.disorder)


def _memory_of(status: Status, query: QueryStatus, stream: str) -> Memory | None:
    """For how long a query remembers a stream, where that may be less than it allows."""
    memories = status.graph.memories.items()
    found = (one for one, queries in memories if declared_name(one.stream) == stream and query.id in queries)
    return next(found, None)


def _ways_by(status: Status, query: QueryStatus, stream: StreamStatus) -> Iterator[str]:
    """What would move its heartbeat for a query that remembers it by the clock or by rows."""
    memory = _memory_of(status, query, stream.name)
    match None if memory is None else memory.dial:
        case Dial(unit=Unit.ARRIVAL, length=length):
            yield f"wait until its rows have been here for {format_length(length, TimeDomain.TIMESTAMP)}"
        case Dial(length=length):
            yield f"send {count(length, 'more row')} of {stream.name}"
        case None:
            pass


def _held_back(status: Status, query: QueryStatus) -> Iterator[Finding]:
    """The operators in which rows wait that could be used already, with what lets them go."""
    finished = _finished(status, query)
    for number in sorted(status.graph.below(query.chain[0].node)):
        operator = status.operators[number]
        if operator.waiting_since is None:
            continue
        streams = [status.stream(name) for name in status.graph.streams_of(operator.waits_for)]
        slowest = min(streams, key=lambda stream: stream.heartbeat)
        beside = [status.stream(name) for name in query.reads if name != slowest.name]
        names, needed = " and ".join(stream.name for stream in streams), operator.waiting_since + 1
        since = instant_text(operator.waiting_since, operator.domain)
        yield Finding(
            f"{count(operator.waiting_rows, 'row')} from {since} on wait for {names} before #{number} "
            f"{operator.text}: {query.name} was created with HEARTBEATS",
            " or ".join(
                (*ways_on(slowest, needed), *ways_without(slowest, needed, beside, finished[slowest.name]))
            )
            + "; no answer would be final sooner if they did not wait",
        )


def _of_wait(stream: StreamStatus, left: int) -> Finding:
    """What there is to say of a stream that waits for values that it does not know."""
    seconds = f"{left / 1e6:,.1f} s"
    return Finding(
        f"{stream.name} waits for further values, as WAIT says: {seconds} were left at the last epoch",
        "only time counts in which all rows of the stream had been taken",
    )


def _of_value(stream: StreamStatus, slowest: SlowestValue) -> Finding:
    """What there is to say of the value that a stream waits for."""
    what = f"of all values of {slowest.column}, {stream.name} waits for {slowest.value}, "
    if slowest.latest == BEGINNING:
        return Finding(f"{what}which is listed and has brought no row")
    behind = format_length(stream.latest - slowest.latest, stream.domain)
    latest = instant_text(slowest.latest, stream.domain)
    return Finding(f"{what}whose newest row is of {latest}, {behind} behind the newest row of {stream.name}")


def next_heartbeat(graph: Graph, query: QueryStatus) -> int:
    """The smallest heartbeat of the stream that holds a query back at which the query's would move.

    Args:
        graph: the query graph.
        query: one that waits for a stream.

    Returns:
        An instant; BEGINNING if any heartbeat would do.
    """
    now = query.chain[-1].heartbeat
    if now == BEGINNING:
        return BEGINNING
    steps = [graph.nodes[link.node].plan for link in reversed(query.chain[:-1])]

    def moves(instant: int) -> bool:
        for plan in steps:
            instant = output_heartbeat(plan, (instant,))
        return instant > query.heartbeat

    return _first(now + 1, moves)


def _first(low: int, holds: Callable[[int], bool]) -> int:
    """The first instant from one on for which something holds that holds for all later ones, too."""
    step = 1
    while not holds(low + step - 1) and low + step < MAX_INSTANT:
        step *= 2
    begin, end = low + step // 2, low + step - 1
    while begin < end:
        middle = (begin + end) // 2
        begin, end = (begin, middle) if holds(middle) else (middle + 1, end)
    return begin


def _window(status: Status, query: QueryStatus, needed: int) -> Iterator[Finding]:
    """The window on the way that has not closed, the sessions that have not, or the granule."""
    for link in query.chain:
        plan = status.graph.nodes[link.node].plan
        if link.heartbeat == BEGINNING or needed == BEGINNING:
            return
        if isinstance(plan, TimeWindow) and plan.slide.length > 1:
            end = instant_text(link.heartbeat + 1, query.domain)
            yield Finding(f"the window that ends at {end} has not closed")
            return
        if isinstance(plan, SessionWindow | SessionAggregate) and status.operators[link.node].state_rows:
            gap = format_length(plan.gap.length, query.domain)
            since = instant_text(link.heartbeat, query.domain)
            yield Finding(
                f"sessions that end after {since} have not closed: each ends {gap} after its last row"
            )
            return
        if isinstance(plan, Granularity | GapFill):
            ahead = plan.ahead if isinstance(plan, GapFill) else 0
            wait = f": a line waits {format_length(ahead, query.domain)} for its end" if ahead else ""
            yield Finding(f"the answer at {instant_text(link.heartbeat, query.domain)} is not final{wait}")
            return


def _chain(status: Status, query: QueryStatus) -> Iterator[str]:
    """The way from a query down to the stream that holds it back, a line each."""
    if query.held_by is None:
        return
    titles = [query.name] + [f"#{link.node} {status.operators[link.node].text}" for link in query.chain]
    beats = [query.heartbeat, *(link.heartbeat for link in query.chain)]
    texts = [instant_text(beat, query.domain) or "nothing yet" for beat in beats]
    width = max(map(len, texts))
    age = status.stream(query.held_by).age
    for place, (title, text) in enumerate(zip(titles, texts, strict=True)):
        last = f"  (moved {age:,.1f} s ago)" if place == len(titles) - 1 else ""
        yield f"{text:<{width}}  {title}{last}"
