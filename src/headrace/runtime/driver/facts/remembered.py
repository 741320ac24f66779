"""Queries within a limit of memory, as a run has them: what their operators keep, and what they miss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import BloomFilter, Draw, LimitedJoin, Plan, TimeWindow
from headrace.algebra.properties import sources_of, walk
from headrace.algebra.tunings.tunings import Tuning, remembered_in, size_of
from headrace.byte_sizes import format_bytes
from headrace.language.parsing.statements.losses import loss_from
from headrace.lowering.graph import Graph
from headrace.operators.windows.bloom_filters import FILTER
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.statistics import GIVEN, MISSED
from headrace.runtime.journal.records import StreamPoint
from headrace.steps import WHOLE, share_text
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class KeptSide:
    """A side of a join.

    Attributes:
        numbers: of the rows that make up what it keeps.
        size: what it keeps (bytes).
        waiting: how much of that it keeps whatever the shares are: what is no row, and rows up to which the
            other side's heartbeat has not come.
    """

    numbers: tuple[int, ...]
    size: float
    waiting: float = 0.0


@dataclass(frozen=True)
class JoinedRows:
    """Rows that are joined with each other, apart from others in a union.

    Attributes:
        numbers: theirs.
        pairs: how many pairs there are of them, in any unit.
    """

    numbers: tuple[int, ...]
    pairs: float = 1.0


def part_found(
    shares: Sequence[float], spans: Sequence[float], joined: Sequence[JoinedRows] | None = None
) -> float:
    """The part of the pairs that is expected to be found: 1 less the rate of false negatives.

    Args:
        shares: of the rows of each number.
        spans: for how long these are in their windows (instants).
        joined: which of them are joined with each other; all if None.
    """
    together = joined or (JoinedRows(tuple(range(len(shares)))),)
    pairs = sum(rows.pairs for rows in together)
    found = sum(rows.pairs * _part_of_one(rows.numbers, shares, spans) for rows in together)
    return min(1.0, found / pairs)


def _part_of_one(numbers: Sequence[int], shares: Sequence[float], spans: Sequence[float]) -> float:
    longest = max(spans[number] for number in numbers)
    # Of rows that come evenly, row j is the newest as often as the windows of the others are long.
    odds = [math.prod(spans[other] / longest for other in numbers if other != number) for number in numbers]
    found = (
        often * math.prod(shares[other] for other in numbers if other != number)
        for number, often in zip(numbers, odds, strict=True)
    )
    return sum(found) / sum(odds)


@dataclass(frozen=True)
class RememberedShare:
    """A share of the rows of a query that its joins remember.

    Attributes:
        name: of the streams that they are of.
        share: the share (millionths).
    """

    name: str
    share: int


@dataclass(frozen=True)
class MemoryOfQuery:
    """The memory of a query that is limited.

    Attributes:
        limit: so much its joins, or its Bloom filters, may keep (bytes).
        used: so much they keep (bytes).
        shares: what joins remember; none for Bloom filters.
        expected: the rate of false negatives that is expected: by the shares of joins the part of the pairs
            that is not found, and by the live cells of Bloom filters, as new values met them lately, the part
            of these that is missed, None before there were any. There are no false positives.
        measured: of joins the same by the pairs that were found lately, each of which stands for those of its
            kind, and of Bloom filters by the values of a sample that is kept exactly; None before there were
            any.
        why: why the shares are what they are, where they have changed.
    """

    limit: int
    used: int
    shares: tuple[RememberedShare, ...]
    expected: float | None
    measured: float | None
    why: str

    @property
    def text(self) -> str:
        """The memory and what it means for the answer, for people."""
        if not self.shares:
            sizes = f"its Bloom filters keep {format_bytes(self.used)} of {format_bytes(self.limit)}"
            if self.expected is None:
                return f"{sizes}; what they miss is told when rows have come"
            lately = "" if self.measured is None else f", about {_percent(self.measured)} lately"
            return (
                f"{sizes}; {_percent(self.expected)} of what is new to them is expected to be missed{lately}"
            )
        assert self.expected is not None
        sizes = f"its joins keep {format_bytes(self.used)} of {format_bytes(self.limit)}"
        if all(one.share == WHOLE for one in self.shares):
            return f"{sizes}, and remember all rows"
        shares = ", ".join(f"{share_text(one.share)} of the rows of {one.name}" for one in self.shares)
        measured = "" if self.measured is None else f", about {_percent(self.measured)} lately"
        why = f": {self.why}" if self.why else ""
        return (
            f"{sizes}, and remember {shares}; {_percent(self.expected)} of its pairs are expected to be "
            f"missed{measured}{why}"
        )


def _percent(part: float) -> str:
    """A part as people read it: 0.23 %, 4.5 %, 98 %."""
    return f"{100 * part:.0f} %" if part >= 0.095 else f"{100 * part:.2g} %"


class DrawnRows(NamedTuple):
    """Rows that are remembered.

    Attributes:
        name: of the streams that they are of.
        span: for how long they are in their window (instants), INFINITY for one that none leaves.
    """

    name: str
    span: int


@dataclass(frozen=True)
class LimitedQuery:
    """A query whose memory is limited, in a run.

    Attributes:
        query: its identity.
        tunings: its shares, in order of their numbers.
        rows: whose they are.
        kept: the sides of its joins.
        joined: the rows of each join whose pairs are in the answer.
        measured: the rate of false negatives by the pairs that were found lately; None before there were any.
    """

    query: str
    tunings: tuple[Tuning, ...]
    rows: tuple[DrawnRows, ...]
    kept: tuple[KeptSide, ...]
    joined: tuple[JoinedRows, ...]
    measured: float | None

    @property
    def limit(self) -> int:
        """So much its joins may keep (bytes)."""
        return loss_from(self.tunings[0].loss).memory or 0

    @property
    def used(self) -> float:
        """So much they keep (bytes)."""
        return sum(side.size for side in self.kept)

    def shares(self, run: PublishedRun) -> tuple[int, ...]:
        """The shares that are remembered (millionths)."""
        return tuple(size_of(tuning, run.queries.tunings) for tuning in self.tunings)

    def points(self, run: PublishedRun) -> list[StreamPoint]:
        """The points up to which its streams have been read."""
        return [run.points[name] for name in self.tunings[0].streams]

    def spans(self, run: PublishedRun) -> list[float]:
        """For how long rows are in their windows (instants): in one that none leaves since rows have come."""
        ends = [float(one.span) for one in self.rows if one.span < INFINITY]
        if len(ends) < len(self.rows):
            came = [int(first) for first in run.statistics.first.tolist() if BEGINNING < first < INFINITY]
            latest = max((point.time.latest for point in self.points(run) if point.time.rows), default=0)
            ends.append(float(latest - min(came, default=latest) + 1))
        return [float(one.span) if one.span < INFINITY else max(ends) for one in self.rows]

    def told(self, run: PublishedRun) -> MemoryOfQuery:
        """The findings, as people are told."""
        known, shares = run.queries.tunings, self.shares(run)
        whys = (
            f"{known[tuning].why} for rows of {one.name}"
            for tuning, one in zip(self.tunings, self.rows, strict=True)
            if tuning in known and known[tuning].why
        )
        parts = [share / WHOLE for share in shares]
        return MemoryOfQuery(
            self.limit,
            round(self.used),
            tuple(RememberedShare(one.name, share) for one, share in zip(self.rows, shares, strict=True)),
            1 - part_found(parts, self.spans(run), self.joined),
            self.measured,
            "; ".join(whys),
        )


def limited_queries(run: PublishedRun) -> Iterator[LimitedQuery]:
    """The queries of a run whose memory is limited, without those that have failed."""
    known = {name: found for name, plan in run.queries.plans.items() if (found := _remembered_in(plan))}
    graph, sizes = run.queries.graph, _sizes(run) if known else {}
    for name, tunings in known.items():
        if name not in graph.answering:
            continue
        rows = rows_of(run.queries.plans[name])
        places = {tuning.number: place for place, tuning in enumerate(tunings)}
        joins = tuple(_joins_of(graph, graph.answering[name], tunings[0]))
        inner = {below for join in joins for below in _below(graph, join, LimitedJoin) if below != join}
        top = [join for join in joins if join not in inner]
        given, missed = _counted(run, top)
        told = sum(given)
        yield LimitedQuery(
            name,
            tunings,
            tuple(rows[number] for number in places),
            tuple(side for join in joins for side in _sides(run, join, sizes, places)),
            tuple(
                JoinedRows(_numbers(graph, join, places), max(found + lost, 1e-9))
                for join, found, lost in zip(top, given, missed, strict=True)
            ),
            sum(missed) / (told + sum(missed)) if told > 0 else None,
        )


def _joins_of(graph: Graph, number: int, tuning: Tuning) -> Iterator[int]:
    """The joins of a query's plan, without those of one in whose place it comes and that still answers."""
    for place in _below(graph, number, LimitedJoin):
        plan = graph.nodes[place].plan
        if isinstance(plan, LimitedJoin) and (plan.loss, plan.of) == (tuning.loss, tuning.of):
            yield place


def _counted(run: PublishedRun, joins: Sequence[int]) -> tuple[list[float], list[float]]:
    """For each join the pairs that it has found lately, and about how many it has not."""
    recent = run.statistics.operators.recent[list(joins)]
    return recent[:, GIVEN].tolist(), np.maximum(recent[:, MISSED], 0.0).tolist()


def _numbers(graph: Graph, join: int, places: Mapping[int, int]) -> tuple[int, ...]:
    """The places among a query's shares of the rows of a join."""
    plan = graph.nodes[join].plan
    assert isinstance(plan, LimitedJoin)
    return tuple(places[rows.number] for rows in plan.remembered)


def memories_of(run: PublishedRun) -> dict[str, MemoryOfQuery]:
    """The memory of each query for which it is limited, by identity."""
    joins = {one.query: one.told(run) for one in limited_queries(run)}
    return joins | dict(_filter_memories(run))


def _filter_memories(run: PublishedRun) -> Iterator[tuple[str, MemoryOfQuery]]:
    """The memory of the queries that have Bloom filters, without those that have failed."""
    known = {name: loss for name, plan in run.queries.plans.items() if (loss := _loss_of_filters(plan))}
    graph, sizes = run.queries.graph, _sizes(run) if known else {}
    for name, loss in known.items():
        if name in graph.answering:
            filters = list(_below(graph, graph.answering[name], BloomFilter))
            recent = run.statistics.operators.recent[filters]
            given, missed = float(recent[:, GIVEN].sum()), float(recent[:, MISSED].sum())
            names = [graph.nodes[place].identity for place in filters]
            used = sum(sizes.get((one, FILTER), _NOTHING).size for one in names)
            rate = missed / (given + missed) if given + missed > 0 else None
            tallies = run.statistics.tallies
            due, lost = (
                sum(float(tallies[one][place]) for one in names if one in tallies) for place in (0, 1)
            )
            measured = min(1.0, max(0.0, lost / due)) if due > 0 else None
            yield name, MemoryOfQuery(loss_from(loss).memory or 0, used, (), rate, measured, "")


def rows_of(plan: Plan) -> dict[int, DrawnRows]:
    """The rows that are remembered of a plan, by number."""
    found: dict[int, DrawnRows] = {}
    for node in walk(plan):
        if isinstance(node, TimeWindow) and isinstance(node.input, Draw):
            span = (
                node.size.length if node.size.length == INFINITY else node.size.length + node.slide.length - 1
            )
            found[node.input.number] = DrawnRows(_name(node), span)
    for node in walk(plan):
        if isinstance(node, Draw):
            found.setdefault(node.number, DrawnRows(_name(node), 1))
    names = [found[number].name for number in sorted(found)]
    for place, number in enumerate(sorted(found)):
        if names.count(name := names[place]) > 1:
            # As the joins have them: the first s, and the second.
            found[number] = found[number]._replace(name=f"{name} ({names[: place + 1].count(name)})")
    return found


def _name(plan: Plan) -> str:
    return ", ".join(sorted({source.name for source in sources_of(plan)}))


def _below(graph: Graph, number: int, kind: type[LimitedJoin | BloomFilter]) -> Iterator[int]:
    """The operators of a kind at a node of the graph and below it, each once."""
    waiting, seen = [number], set[int]()
    while waiting:
        place = waiting.pop()
        if place not in seen:
            seen.add(place)
            waiting += [edge.producer for edge in graph.nodes[place].inputs]
            if isinstance(graph.nodes[place].plan, kind):
                yield place


class _Held(NamedTuple):
    """The content of one area of an operator: rows, bytes, and in how many runs."""

    rows: int
    size: int
    runs: int


_NOTHING: Final = _Held(0, 0, 0)
_RUN: Final = 1_000
"""About so many bytes of a run are not its rows."""


def _sizes(run: PublishedRun) -> dict[tuple[str, str], _Held]:
    """The state of operators whose memory is limited, by their identity and area."""
    kinds = LimitedJoin | BloomFilter
    limited = {node.identity for node in run.queries.graph.nodes if isinstance(node.plan, kinds)}
    sizes: dict[tuple[str, str], _Held] = {}
    for (identity, _), manifest in run.state.items():
        if identity in limited:
            for area, runs in manifest.items():
                rows, size, known = sizes.get((identity, area), _NOTHING)
                rows += sum(one.rows for one in runs)
                size += sum(one.part.length for one in runs)
                sizes[identity, area] = _Held(rows, size, known + len(runs))
    return sizes


def _sides(
    run: PublishedRun, join: int, sizes: Mapping[tuple[str, str], _Held], places: Mapping[int, int]
) -> Iterator[KeptSide]:
    """The sides of a join, with numbers that are places among a query's shares."""
    graph = run.queries.graph
    node = graph.nodes[join]
    assert isinstance(node.plan, LimitedJoin)
    for port, area in enumerate(("left", "right")):
        numbers = tuple(places[rows.number] for rows in node.plan.of_side(port))
        if numbers:
            held = sizes.get((node.identity, area), _NOTHING)
            beside = min(held.size, held.runs * _RUN)
            rows = _waiting_rows(run, node.inputs[port].producer, node.inputs[1 - port].producer)
            waiting = beside + (held.size - beside) * min(1.0, rows / max(held.rows, 1))
            yield KeptSide(numbers, float(held.size), waiting)


def _waiting_rows(run: PublishedRun, side: int, other: int) -> float:
    """About how many rows of one side of a join the heartbeat of the other one has not reached."""
    first, last = int(run.statistics.first[side]), int(run.statistics.last[side])
    streams = {source.name for source in sources_of(run.queries.graph.nodes[other].plan)}
    reached = min((run.points[name].heartbeat for name in streams if name in run.points), default=INFINITY)
    if BEGINNING in (last, reached) or reached > last:
        return 0.0
    came = float(run.statistics.operators.total[side, GIVEN])
    return came * min(1.0, (last - reached + 1) / (last - first + 1))


def _loss_in(plan: Plan) -> str:
    """The clause of a query whose plan has Bloom filters; empty where it has none."""
    return next((node.loss for node in walk(plan) if isinstance(node, BloomFilter)), "")


_loss_of_filters: Final = ByObject(_loss_in, REMEMBERED)
_remembered_in: Final = ByObject(remembered_in, REMEMBERED)
