"""A forecast of state from the rows that come and the bytes that operators keep, as a `Load`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from headrace.algebra.tunings.tunings import Tuning, Tunings, size_of
from headrace.elements import Float64Array, Int64Array
from headrace.heartbeats.bounded import Arrivals
from headrace.lowering.graph import Graph
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.manager.below import SizedRows, WindowsBelow, sized_rows, windows_below
from headrace.runtime.driver.manager.load import Load, occupied
from headrace.runtime.driver.manager.partitions import RowPartitions
from headrace.runtime.driver.manager.rows_by_time import RowsByTime
from headrace.runtime.driver.manager.state_kept import OperatorsKept, StateKept
from headrace.runtime.journal.held_state import held
from headrace.time import BEGINNING

NOTHING: Final[Mapping[str, float]] = {}
NO_ROWS: Final[Mapping[str, int]] = {}

ENOUGH_ROWS: Final = 200
"""With fewer rows in the windows below an operator its bytes for a row are partly those known before."""
FEW_COMMITS: Final = 5
"""The bytes that an operator keeps for a row are averaged over about so many of the last commits."""
MANY_COMMITS: Final = 40
"""So many commits it takes for less to be expected of a window of rows; more is expected at once."""
_PARTS_OF_A_WINDOW: Final = 8
"""Rows are taken to come as they have in this part of the smallest size that a window of theirs may have."""


class Forecast:
    """Follows a run, and says what it keeps as a function of the sizes of its windows."""

    def __init__(self) -> None:
        self._arrived: defaultdict[str, RowsByTime] = defaultdict(RowsByTime)
        self._state = StateKept()
        self._partitions = RowPartitions()
        self._per_row: dict[str, tuple[float, int]] = {}
        self._expected: dict[str, float] = {}
        self._awaited: Mapping[str, float] = NOTHING
        self._born: dict[str, Mapping[str, int]] = {}
        self._graph: Graph | None = None
        self._known = Graph((), ()), windows_below(Graph((), ()))
        self._sized: list[tuple[WindowsBelow, Tunings, dict[str, SizedRows]]] = []

    def follow(self, run: PublishedRun) -> None:
        """Take in what a commit has brought."""
        for name in run.streams:
            point, seen = run.points[name], run.totals.arrivals.get(name, Arrivals())
            self._arrived[name].note(seen, point.heartbeat)
        graph = run.queries.graph
        if graph is not self._graph:
            if self._graph is not None:
                self._note_new(run, self._graph)
            self._graph = graph

    def _note_new(self, run: PublishedRun, before: Graph) -> None:
        """Remember of operators that begin without state which rows they have not seen."""
        graph = run.queries.graph
        names = {node.identity for node in graph.nodes}
        new = names.difference((node.identity for node in before.nodes), (name for name, _ in run.state))
        totals = {stream: arrived.total for stream, arrived in self._arrived.items()}
        self._born = {name: rows for name, rows in self._born.items() if name in names}
        self._born |= dict.fromkeys(new, totals)
        self._per_row = {name: size for name, size in self._per_row.items() if name in names}
        self._expected = {name: size for name, size in self._expected.items() if name in names}
        if self._awaited:
            fresh = names.difference(node.identity for node in before.nodes)
            begun = [node for node in graph.nodes if node.identity in fresh and node.shape in self._awaited]
            self._expected |= {node.identity: self._awaited[node.shape] for node in begun}
            self._awaited = NOTHING

    @property
    def below(self) -> WindowsBelow:
        """The windows below the operators of the run; looked for where somebody asks, once for each graph."""
        if self._graph is not None and self._known[0] is not self._graph:
            self._known = self._graph, windows_below(self._graph)
        return self._known[1]

    def reached(self, stream: str) -> tuple[int, int]:
        """Up to which instant rows of a stream have come, and its heartbeat; BEGINNING before the first."""
        known = self._arrived[stream]
        return known.now, known.now - known.lag if known.now != BEGINNING else BEGINNING

    def rate(self, stream: str) -> float:
        """The rows of a stream that come per instant: lately, or at all where no window is over them."""
        arrived = self._arrived[stream]
        shortest = self.below.shortest.get(stream)
        return arrived.rate(arrived.span if shortest is None else _part_of(shortest))

    def is_ready(self) -> bool:
        """Whether enough rows were counted, after a restart, to say what operators keep for a row."""
        spans = {name: _part_of(length) for name, length in self.below.shortest.items()}
        if any(self._arrived[name].waits(span) for name, span in spans.items()):
            return False
        settled = [name for name in spans if self._arrived[name].settle()]
        if settled:
            # What was measured before was by rows that were taken to have come otherwise.
            self._per_row.clear()
        return True

    def measure(self, run: PublishedRun) -> None:
        """Look at what operators keep for a row; once for each commit, since looks are averaged."""
        below, kept = self.below, self._state.look(run.state)
        self._partitions.look(below, kept, run.queries.tunings, self._arrived)
        sizes = _of(below, kept.sizes)
        rows = self._seen(below, self._now(below, run.queries.tunings, kept), kept)
        means, looks = self._remembered(below)
        # What is kept has more or less of rows that have left, until it is put together the next time.
        now = sizes / np.maximum(rows, 1.0)
        weights = np.maximum(1 / (looks + 1), 1 / FEW_COMMITS)
        # Of windows of rows it may be almost as many as those that are there: the most counts.
        weights[below.over_rows] = np.where(now > means, 1.0, 1 / MANY_COMMITS)[below.over_rows]
        found = means + weights * (now - means)
        for number in np.flatnonzero(rows >= ENOUGH_ROWS).tolist():
            self._per_row[below.operators[number]] = float(found[number]), int(looks[number]) + 1

    def forget(self) -> None:
        """Forget what was measured, where nobody measures any more."""
        self._per_row.clear()

    def load(self, run: PublishedRun) -> Load:
        """The state that the run keeps, as followed last; sizes are in the order of `below.tunings`."""
        return self._load(run, self.below)

    def guesses(
        self, run: PublishedRun, below: WindowsBelow, expected: Mapping[str, float]
    ) -> dict[str, float]:
        """The bytes that operators that are new are expected to keep for a row, by their shapes.

        Args:
            run: the run, as it was followed last.
            below: the windows with them.
            expected: what they keep with the largest windows, by their shapes (bytes).
        """
        if not expected:
            return {}
        now = self._now(below, run.queries.tunings, self._state.look(run.state))
        rows = np.maximum(_full(below, now, _groups(below, {})), 1.0).tolist()
        each = zip(below.shapes, rows, strict=True)
        return {shape: expected[shape] / full for shape, full in each if shape in expected}

    def expect(self, guesses: Mapping[str, float]) -> None:
        """Go by guesses for operators that begin with the next change, until they can be measured.

        Args:
            guesses: what they keep for a row, by their shapes (bytes).
        """
        self._awaited = guesses

    def uses(
        self,
        run: PublishedRun,
        other: tuple[Graph, WindowsBelow] | None = None,
        guesses: Mapping[str, float] = NOTHING,
    ) -> tuple[float, float, float]:
        """The bytes of state that are expected with the smallest windows, those of now, and the largest.

        Args:
            run: the run, as it was followed last.
            other: what would answer its queries instead, and its windows; if None, what does.
            guesses: what operators that are new keep for a row, by their shapes (bytes).
        """
        graph, below = (None, self.below) if other is None else other
        return self.at_bounds(run, self._load(run, below, graph, guesses), below)

    def at_bounds(self, run: PublishedRun, load: Load, below: WindowsBelow) -> tuple[float, float, float]:
        """A load with the smallest windows, those of now, and the largest.

        Args:
            run: the run, as it was followed last.
            load: it.
            below: what says its sizes.
        """
        smallest, largest = below.bounds
        now = [size_of(tuning, run.queries.tunings) for tuning, _ in below.tunings]
        sizes = smallest, np.array(now, dtype=np.int64), largest
        least, present, most = map(load.at, sizes)
        return least, present, most

    def _load(
        self,
        run: PublishedRun,
        below: WindowsBelow,
        other: Graph | None = None,
        guesses: Mapping[str, float] = NOTHING,
    ) -> Load:
        kept = self._state.look(run.state)
        sizes, groups = _of(below, kept.sizes), _groups(below, kept.groups)
        total = held(run.state).sizes.size
        if other is not None:
            # What answers no query any more keeps nothing.
            stay = {node.identity for node in other.nodes}
            gone = {node.identity for node in run.queries.graph.nodes} - stay
            total -= sum(kept.sizes.get(name, 0) for name in gone)
        now = self._now(below, run.queries.tunings, kept)
        present = self._seen(below, now, kept)
        new: Mapping[str, float] = NOTHING
        if below is not self.below:
            # What is not there yet has seen none.
            known = frozenset(self.below.operators)
            present[[name not in known and name not in kept.sizes for name in below.operators]] = 0.0
            # Of what is there nobody who only asks changes a guess.
            each = zip(below.operators, below.shapes, strict=True)
            new = {name: guesses[shape] for name, shape in each if name not in known and shape in guesses}
        per_row = self._bytes_per_row(below, sizes, present, new)
        # What has not been measured is known for full windows.
        present = np.where(present < ENOUGH_ROWS, np.maximum(_full(below, now, groups), present), present)
        fixed = max(0.0, total - float(sizes.sum()))
        return _load_of(below, now, groups, fixed, per_row, np.maximum(present, 1.0))

    def stored(self, run: PublishedRun) -> Mapping[str, int]:
        """The rows of state that the operators have, by their identities."""
        return self._state.look(run.state).stored

    def present(self, run: PublishedRun, below: WindowsBelow) -> Float64Array:
        """float64[n]: the rows in the windows below some operators that they have seen, of a cell one."""
        kept = self._state.look(run.state)
        return self._seen(below, self._now(below, run.queries.tunings, kept), kept)

    def load_by(
        self, run: PublishedRun, below: WindowsBelow, fixed: float, needed: Float64Array, rows: Float64Array
    ) -> Load:
        """The needs of some operators, of anything, as a function of the sizes of windows.

        Args:
            run: the run, as it was followed last.
            below: the operators.
            fixed: what is needed besides, whatever the sizes.
            needed: float64[n], what each needs now.
            rows: float64[n], the rows in the windows below it for that; NaN where these are full, and
                largest.
        """
        kept = self._state.look(run.state)
        now, groups = self._now(below, run.queries.tunings, kept), _groups(below, kept.groups)
        rows = np.maximum(np.where(np.isnan(rows), _full(below, now, groups), rows), 1.0)
        return _load_of(below, now, groups, fixed, needed / rows, rows)

    def has_taken_effect(self, tuning: Tuning, tunings: Tunings) -> bool:
        """Whether the last change of a window of rows is to be seen in its state."""
        return self._partitions.has_taken_effect(self.below, tuning, tunings, self._arrived)

    def _now(self, below: WindowsBelow, tunings: Tunings, kept: OperatorsKept) -> RowsNow:
        """The rows in the windows below operators, and how they come."""
        known = (one[2] for one in self._sized if one[0] is below and one[1] is tunings)
        if (sized_of := next(known, None)) is None:
            # What state depends on is looked at in turns with what processor time does.
            sized_of = sized_rows(below, tunings)
            self._sized = [*self._sized[-1:], (below, tunings, sized_of)]
        rates, lags = np.zeros((2, len(below.windows)))
        parts = []
        for stream, sized in sized_of.items():
            numbers, arrived = below.of_stream[stream], self._arrived[stream]
            lags[numbers] = arrived.lag
            share = np.ones(len(below.windows))
            # Of the segments of a window the last one is in force.
            share[sized.owners] = sized.shares
            rates[numbers] = arrived.rate(_part_of(below.shortest[stream])) * share[numbers]
            first = np.maximum(sized.begins - 1, arrived.now - arrived.lag - sized.sizes)
            last = np.minimum(sized.ends - 1, arrived.now)
            inside = np.maximum(arrived.until(last) - arrived.until(first), 0.0) * sized.shares
            spans = np.maximum(last - first, 0.0)
            parts.append(np.column_stack([sized.owners, inside, spans / sized.granules]))
        for number in below.of_rows:
            operator = below.windows[number].operator
            rates[number] = self._partitions.of(operator)
            parts.append(np.array([[number, self._partitions.rows(operator), np.inf]]))
        return RowsNow.of(rates, lags, np.concatenate(parts) if parts else np.zeros((0, 3)))

    def _seen(self, below: WindowsBelow, now: RowsNow, kept: OperatorsKept) -> Float64Array:
        """float64[n]: the rows in the windows below each operator that it has seen, of a cell one."""
        rows = now.inside(below, _groups(below, kept.groups))
        if not self._born:
            return _added(below, rows)
        seen = np.array(
            [
                self._arrived[window.stream].total
                - self._born.get(below.operators[owner], NO_ROWS).get(window.stream, 0)
                if not window.operator
                else np.inf
                for owner, number in zip(below.owners.tolist(), below.below.tolist(), strict=True)
                for window in (below.windows[number],)
            ]
        )
        return _added(below, np.minimum(rows, seen))

    def _bytes_per_row(
        self, below: WindowsBelow, sizes: Float64Array, rows: Float64Array, new: Mapping[str, float]
    ) -> Float64Array:
        """float64[n]: what each operator keeps for a row in the windows below it, as measured last."""
        means, looks = self._remembered(below, new)
        missing = np.maximum(ENOUGH_ROWS - rows, 0.0)
        found: Float64Array = (sizes + missing * means) / np.maximum(rows + missing, 1.0)
        return np.where((looks > 0) & (missing == 0), means, found)

    def _remembered(
        self, below: WindowsBelow, new: Mapping[str, float] = NOTHING
    ) -> tuple[Float64Array, Float64Array]:
        """Two float64[n]: what was measured of each operator, else a guess, and by how many looks.

        Args:
            below: the operators.
            new: guesses for those that are not there yet, by their identities.
        """
        known = (self._per_row.get(name) for name in below.operators)
        widths = below.guesses.tolist()
        expected = {**self._expected, **new}
        guesses = map(expected.get, below.operators, widths)
        pairs = [(guess, 0) if one is None else one for one, guess in zip(known, guesses, strict=True)]
        means, looks = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return means, looks


@dataclass(frozen=True, eq=False)
class RowsNow:
    """The rows in windows now, and how they come.

    Attributes:
        rates: float64[w], of each window the rows that come per instant; of one of rows its partitions.
        lags: float64[w], for how long rows stay besides, since others may come late (instants).
        begins: int64[w + 1], where the parts of each window begin.
        rows: float64[p], the rows of each part.
        steps: float64[p], at how many instants these end at most; infinite without granules.
    """

    rates: Float64Array
    lags: Float64Array
    begins: Int64Array
    rows: Float64Array
    steps: Float64Array

    @classmethod
    def of(cls, rates: Float64Array, lags: Float64Array, parts: Float64Array) -> RowsNow:
        """The same from the parts of all windows: the window, the rows, and the instants of each."""
        owners = parts[:, 0].astype(np.int64)
        order = np.argsort(owners, kind="stable")
        begins = np.searchsorted(owners[order], np.arange(len(rates) + 1))
        return cls(rates, lags, begins, parts[order, 1], parts[order, 2])

    def inside(self, below: WindowsBelow, groups: Float64Array) -> Float64Array:
        """float64[m]: the rows in each window below each operator, of those of a cell one; see `Load`.

        Args:
            below: the windows.
            groups: float64[n], of each operator.
        """
        first = self.begins[below.below]
        count = self.begins[below.below + 1] - first
        entries = np.repeat(np.arange(len(first)), count)
        parts = np.arange(len(entries)) - np.repeat(np.cumsum(count) - count, count) + first[entries]
        each = occupied(self.rows[parts], groups[below.owners[entries]], self.steps[parts])
        return np.bincount(entries, each, len(first)).astype(np.float64)


def _load_of(
    below: WindowsBelow,
    now: RowsNow,
    groups: Float64Array,
    fixed: float,
    per_row: Float64Array,
    rows: Float64Array,
) -> Load:
    return Load(
        fixed=fixed,
        per_row=per_row,
        rows=rows,
        degrees=below.degrees,
        groups=groups,
        owners=below.owners,
        rates=now.rates[below.below],
        lags=now.lags[below.below],
        knobs=below.knobs,
        lengths=below.lengths,
        granule_knobs=below.granule_knobs,
        granules=below.granules,
    )


def _part_of(length: int) -> int:
    """So many instants of rows say how they come, where windows have this size at least."""
    return max(1, length // _PARTS_OF_A_WINDOW)


def _full(below: WindowsBelow, now: RowsNow, groups: Float64Array) -> Float64Array:
    """float64[n]: for each operator the rows in all windows below it when these are full, and largest.

    Args:
        below: the windows.
        now: how rows come to them.
        groups: float64[n], of each operator; see `Load`.
    """
    spans = below.lengths + now.lags[below.below]
    rows = now.rates[below.below] * spans
    return _added(below, occupied(rows, groups[below.owners], spans / below.granules))


def _groups(below: WindowsBelow, counted: Mapping[str, int]) -> Float64Array:
    """float64[n]: how many groups each operator has, where it has any; see `Load`."""
    found = np.array([counted.get(name, 0) for name in below.operators], dtype=np.float64)
    return np.where(found > 0, found, np.inf)


def _of(below: WindowsBelow, numbers: Mapping[str, int]) -> Float64Array:
    """float64[n]: the number of each operator, 0 if it has none."""
    return np.array([numbers.get(name, 0) for name in below.operators], dtype=np.float64)


def _added(below: WindowsBelow, rows: Float64Array) -> Float64Array:
    """float64[n]: for each operator the rows of all windows below it, of which float64[m] are given."""
    found: Float64Array = np.bincount(below.owners, rows, len(below.operators)).astype(np.float64)
    return found
