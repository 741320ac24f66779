"""The shares of rows that joins remember: after a commit they are made to keep within their memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import Draw, LimitedJoin, Plan, TimeWindow
from headrace.algebra.properties import sources_of, walk
from headrace.algebra.tunings.tunings import Tuning, Tunings, remembered_in, size_of
from headrace.byte_sizes import format_bytes
from headrace.language.parsing.statements.losses import loss_from
from headrace.lowering.graph import Graph
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.facts.statistics import GIVEN, MISSED
from headrace.runtime.driver.remembering.allocation import (
    KeptSide,
    Shares,
    allocated,
    part_found,
    size_at,
)
from headrace.steps import WHOLE, Step, share_text
from headrace.time import BEGINNING, INFINITY

FULL: Final = 0.85
"""Of its memory a query may keep so much before less is remembered: rows of an epoch are to fit beside it."""
WANTED: Final = 0.7
"""So much of it is to be kept then."""
_GAIN: Final = 0.05
"""More is remembered, or other rows, if so much more of the pairs is found by it."""


class _Rows(NamedTuple):
    """Rows that are remembered.

    Attributes:
        name: of the streams that they are of.
        span: for how long they are in their window (instants), INFINITY for one that none leaves.
    """

    name: str
    span: int


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
        limit: so much its joins may keep (bytes).
        used: so much they keep (bytes).
        shares: what they remember.
        expected: the rate of false negatives that is expected by the shares, which is the part of the pairs
            that is not found. There are no false positives.
        measured: the same by the pairs that were found lately, each of which stands for those of its kind;
            None before there were any.
        why: why the shares are what they are, where they have changed.
    """

    limit: int
    used: int
    shares: tuple[RememberedShare, ...]
    expected: float
    measured: float | None
    why: str


def memory_of(run: PublishedRun, query: str) -> MemoryOfQuery | None:
    """What the memory of a query is, and what it remembers; None where that is not limited.

    Args:
        run: the run that answers it.
        query: its identity.
    """
    plan = run.queries.plans.get(query)
    tunings = () if plan is None else _remembered_in(plan)
    return _Limited.of(run, query, plan, tunings).told(run) if plan is not None and tunings else None


def shares_to_remember(run: PublishedRun) -> Tune | None:
    """The change of shares by which joins keep within their memory; None where there is none.

    Queries of the same streams with the same limit remember the same rows. The one that keeps most counts.

    Args:
        run: a run after a commit.
    """
    groups: dict[tuple[Tuning, ...], list[_Limited]] = {}
    for name, plan in run.queries.plans.items():
        if tunings := _remembered_in(plan):
            groups.setdefault(tunings, []).append(_Limited.of(run, name, plan, tunings))
    sizes: dict[Tuning, int] = {}
    queries: dict[Tuning, list[str]] = {}
    why: dict[Tuning, str] = {}
    for tunings, users in groups.items():
        largest = max(users, key=lambda one: one.used)
        for tuning, share in zip(tunings, largest.wanted(run), strict=True):
            before, known = size_of(tuning, run.queries.tunings), run.queries.tunings.get(tuning)
            if share != before:
                paused = (
                    [] if known is None else [name for name in known.queries if name in run.queries.paused]
                )
                sizes[tuning], why[tuning] = share, largest.why(before, share)
                queries[tuning] = [*(one.query for one in users), *paused]
    return Tune(sizes, queries, why) if sizes else None


@dataclass(frozen=True)
class _Limited:
    """A query whose memory is limited, in a run.

    Attributes:
        query: its identity.
        tunings: its shares, in order of their numbers.
        rows: whose they are.
        kept: the sides of its joins.
        top: the places in the graph of those joins whose pairs are in the answer.
    """

    query: str
    tunings: tuple[Tuning, ...]
    rows: tuple[_Rows, ...]
    kept: tuple[KeptSide, ...]
    top: tuple[int, ...]

    @classmethod
    def of(cls, run: PublishedRun, query: str, plan: Plan, tunings: tuple[Tuning, ...]) -> _Limited:
        graph = run.queries.graph
        numbers = [tuning.number for tuning in tunings]
        places = {number: place for place, number in enumerate(numbers)}
        joins = tuple(_joins_below(graph, graph.answering[query]))
        kept = tuple(_sides(run, graph, joins, places))
        inner = {below for join in joins for below in _joins_below(graph, join) if below != join}
        rows = _rows_of(plan)
        return cls(
            query,
            tunings,
            tuple(rows[number] for number in numbers),
            kept,
            tuple(join for join in joins if join not in inner),
        )

    @property
    def limit(self) -> int:
        """So much its joins may keep (bytes)."""
        return loss_from(self.tunings[0].loss).memory or 0

    @property
    def used(self) -> float:
        """So much they keep (bytes)."""
        return sum(side.size for side in self.kept)

    def spans(self, run: PublishedRun) -> list[float]:
        """For how long rows are in their windows: no longer than rows have come."""
        points = [run.points[name].time for name in self.tunings[0].streams if name in run.points]
        latest = max((time.latest for time in points if time.rows), default=0)
        first = min(
            (int(begin) for begin in run.statistics.first.tolist() if begin not in (BEGINNING, INFINITY)),
            default=latest,
        )
        passed = max(1, latest - first + 1)
        return [float(min(one.span, passed)) for one in self.rows]

    def wanted(self, run: PublishedRun) -> tuple[int, ...]:
        """The shares that are to be in force (millionths)."""
        known = run.queries.tunings
        shares = tuple(size_of(tuning, known) for tuning in self.tunings)
        now = tuple(share / WHOLE for share in shares)
        if not self._is_in_force(run):
            return shares
        spans, room = self.spans(run), WANTED * self.limit
        if self.used > FULL * self.limit:
            return _millionths(allocated(self.kept, spans, now, now, room))
        if all(share == WHOLE for share in shares) or not self._has_drained(run):
            return shares
        more = allocated(self.kept, spans, now, (1.0,) * len(now), room)
        if part_found(more, spans) < part_found(now, spans) + _GAIN:
            return shares
        if size_at(more, self.kept, now) > room * 1.01:
            return shares
        return _millionths(more)

    def _is_in_force(self, run: PublishedRun) -> bool:
        """Whether rows have been forgotten by the last change, so that what is kept tells of it."""
        begins = [step.begin for step in self._last_steps(run.queries.tunings)]
        return all(self._heartbeat(run) > begin for begin in begins)

    def _has_drained(self, run: PublishedRun) -> bool:
        """Whether no row is in a window from before the last change."""
        longest = max(one.span for one in self.rows)
        begins = [step.begin for step in self._last_steps(run.queries.tunings)]
        return longest < INFINITY and all(self._heartbeat(run) >= begin + longest for begin in begins)

    def _last_steps(self, known: Tunings) -> Iterator[Step]:
        for tuning in self.tunings:
            if tuning in known and known[tuning].steps:
                yield known[tuning].steps[-1]

    def _heartbeat(self, run: PublishedRun) -> int:
        return min(run.points[name].heartbeat for name in self.tunings[0].streams)

    def why(self, before: int, share: int) -> str:
        """Why another share is remembered, as people are told."""
        what = "lowered" if share < before else "raised"
        return (
            f"{what} from {share_text(before)} to {share_text(share)}, since joins kept "
            f"{format_bytes(self.used)} of {format_bytes(self.limit)}"
        )

    def told(self, run: PublishedRun) -> MemoryOfQuery:
        """What is told of it."""
        known = run.queries.tunings
        shares = tuple(size_of(tuning, known) for tuning in self.tunings)
        given, missed = 0.0, 0.0
        recent = run.statistics.operators.recent
        for place in self.top:
            given += float(recent[place, GIVEN])
            missed += float(recent[place, MISSED])
        whys = [known[tuning].why for tuning in self.tunings if tuning in known and known[tuning].why]
        return MemoryOfQuery(
            self.limit,
            round(self.used),
            tuple(RememberedShare(one.name, share) for one, share in zip(self.rows, shares, strict=True)),
            1 - part_found([share / WHOLE for share in shares], self.spans(run)),
            max(0.0, missed) / (given + max(0.0, missed)) if given > 0 else None,
            "; ".join(whys),
        )


def _millionths(shares: Shares) -> tuple[int, ...]:
    return tuple(min(WHOLE, max(1, int(share * WHOLE))) for share in shares)


def _rows_of(plan: Plan) -> dict[int, _Rows]:
    """The rows that are remembered of a plan, by number."""
    found: dict[int, _Rows] = {}
    for node in walk(plan):
        if isinstance(node, TimeWindow) and isinstance(node.input, Draw):
            span = (
                node.size.length if node.size.length == INFINITY else node.size.length + node.slide.length - 1
            )
            found[node.input.number] = _Rows(_name(node), span)
    for node in walk(plan):
        if isinstance(node, Draw):
            found.setdefault(node.number, _Rows(_name(node), 1))
    return found


def _name(plan: Plan) -> str:
    return ", ".join(sorted({source.name for source in sources_of(plan)}))


def _joins_below(graph: Graph, number: int) -> Iterator[int]:
    """The joins that remember a share of rows, at a node of the graph and below it, each once."""
    waiting, seen = [number], set[int]()
    while waiting:
        place = waiting.pop()
        if place not in seen:
            seen.add(place)
            waiting += [edge.producer for edge in graph.nodes[place].inputs]
            if isinstance(graph.nodes[place].plan, LimitedJoin):
                yield place


def _sides(
    run: PublishedRun, graph: Graph, joins: Sequence[int], places: Mapping[int, int]
) -> Iterator[KeptSide]:
    """The sides of joins, with numbers that are places among a query's shares."""
    sizes: dict[tuple[str, str], int] = {}
    wanted = {graph.nodes[join].identity for join in joins}
    for (identity, _), manifest in run.state.items():
        if identity in wanted:
            for area, runs in manifest.items():
                size = sum(one.part.length for one in runs)
                sizes[identity, area] = sizes.get((identity, area), 0) + size
    for join in joins:
        node = graph.nodes[join]
        assert isinstance(node.plan, LimitedJoin)
        for port, area in enumerate(("left", "right")):
            numbers = tuple(places[rows.number] for rows in node.plan.of_side(port))
            if numbers:
                yield KeptSide(numbers, float(sizes.get((node.identity, area), 0)))


_remembered_in: Final = ByObject(remembered_in, REMEMBERED)
