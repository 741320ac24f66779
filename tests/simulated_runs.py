"""Whole runs over simulated sources, epoch by epoch, by a clock that a test sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import pyarrow as pa

import headrace as hr
from headrace.algebra.nodes import Plan
from headrace.elements import from_rows, to_rows
from headrace.heartbeats.skew import Bound, SkewMatrix
from headrace.heartbeats.timing import Timing
from headrace.history import canonical, equivalent
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.reference.skew import power
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import Intake, LiveStream
from headrace.runtime.results.dead_letters import dead_letters
from headrace.runtime.results.instants import form_of
from headrace.runtime.results.reader import ResultReader
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import Field, Schema
from headrace.time import ManualClock
from support import TableSource

NAMES = ("a", "b", "c")
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.int64())])
ANSWERS = {
    "every": "SELECT v FROM a UNION ALL SELECT v FROM b UNION ALL SELECT v FROM c",
    "pairs": "SELECT a.v AS one, b.v AS other FROM a [RANGE 4], b [RANGE 3] WHERE a.k = b.k",
    "counts": "SELECT k, COUNT(*) AS n, MIN(v) AS least FROM c [RANGE 5] GROUP BY k",
    "only": "SELECT k FROM b [RANGE 3] EXCEPT SELECT k FROM c [RANGE 3]",
}
"""Queries over several streams."""

SINGLE = {f"of_{name}": f"SELECT v FROM {name}" for name in NAMES}
"""Queries whose heartbeats are those of the streams."""
Row = tuple[int, int]
"""The number of a stream, and a timestamp."""


@cache
def _plans() -> Mapping[str, Plan]:
    """The plans of all queries."""
    with hr.connect(runner="inline") as db:
        for name in NAMES:
            db.execute(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        return {name: db.query(text, name=name).plan for name, text in {**ANSWERS, **SINGLE}.items()}


def declared(timings: Sequence[Timing]) -> SkewMatrix:
    """The bounds of the paper that streams declare."""
    bounds: dict[tuple[int, int], list[Bound]] = {}
    for place, timing in enumerate(timings):
        own = bounds.setdefault((place, place), [])
        # Ties are allowed, so that what is exactly as old as a bound is above `tau - (d + 1)`.
        if timing.disorder is not None:
            own.append(Bound(timing.disorder + 1))
        if timing.rows is not None:
            own.append(Bound(1, rows=timing.rows))
        for follow in timing.follows:
            for other in {*follow.streams} - {NAMES[place]}:
                bounds.setdefault((NAMES.index(other), place), []).extend(follow.bounds)
    return SkewMatrix(
        tuple(timing.latency for timing in timings), {pair: tuple(found) for pair, found in bounds.items()}
    )


def inferred(matrix: SkewMatrix) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The pairs of a wait and how far behind in the closure of bounds of time, by its definition."""
    triples = {
        pair: {(bound.delta, bound.wait, 0) for bound in bounds} for pair, bounds in matrix.bounds.items()
    }
    found = power(triples, max(matrix.size, 1)) if triples else {}
    return {pair: [(wait, delta) for delta, wait, _ in bounds] for pair, bounds in found.items()}


class SimulatedRun:
    """A run of the queries over streams with some declarations.

    Args:
        timings: what the streams declare, in the order of `NAMES`.
        queries: the names of the queries.
        tasks: how many tasks, and buckets of state.
    """

    def __init__(self, timings: Sequence[Timing], queries: Iterable[str], tasks: int = 1) -> None:
        schema = Schema(tuple(Field(field.name, field.type) for field in SCHEMA))
        streams = {
            name: LiveStream(schema, "ts", timing) for name, timing in zip(NAMES, timings, strict=True)
        }
        self._plans = {name: _plans()[name] for name in queries}
        self._clock = ManualClock()
        self._store = MemoryStore()
        self._sent: dict[str, list[dict[str, int]]] = {name: [] for name in NAMES}
        settings = RunSettings(buckets=tasks, clock=self._clock)
        self.run = Run(InlineRunner(tasks), self._store, streams, self._plans, settings)

    def epoch(self, now: int, rows: Sequence[Row] = (), caught_up: Sequence[bool] = (True,) * 3) -> None:
        """Look at the clock and take rows, as an endless run does: with an epoch if there is reason for one.

        Args:
            now: the reading (microseconds).
            rows: what has come of the streams, in order.
            caught_up: whether nothing more of each stream has come.
        """
        intakes = self._intakes(rows)
        self._clock.instant = now
        self.run.look(lambda: dict(zip(NAMES, caught_up, strict=True)))
        if intakes or self.run.is_due():
            self.run.step(intakes)

    def end(self) -> None:
        """End all streams."""
        points = {name: self.run.point(name) for name in NAMES}
        self.run.step({name: Intake(point.position + 1, ended=True) for name, point in points.items()})

    @property
    def heartbeats(self) -> list[int]:
        """Of the streams, as committed."""
        return [self.run.point(name).heartbeat for name in NAMES]

    @property
    def late(self) -> int:
        """How many rows were late."""
        return sum(seen.late for seen in self.run.totals.arrivals.values())

    def reader(self, query: str) -> ResultReader:
        """What a query has answered."""
        return ResultReader(query, form_of(self._plans[query]), self._store, self.run.results)

    def check_answers(self) -> None:
        """See that every query answers as the reference does over the rows that were taken."""
        assert not self.run.reading.queries.failed, self.run.reading.queries.failed
        for name, plan in self._plans.items():
            streams = {stream: self._taken(stream) for stream in NAMES}
            expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)])
            reader = self.reader(name)
            found = reader.elements()
            assert equivalent(found, expected, reader.heartbeat), (name, to_rows(canonical(found)))

    def _taken(self, stream: str) -> Stream:
        """The rows of a stream that were not set apart."""
        letters = dead_letters(self._store, self.run.results)
        apart = {json.loads(row)["v"] for row in letters.column("row").to_pylist()}
        rows = [row for row in self._sent[stream] if row["v"] not in apart]
        return Stream(SCHEMA.names, [(tuple(row.values()), row["ts"], row["ts"] + 1, 1) for row in rows])

    def _intakes(self, rows: Sequence[Row]) -> dict[str, Intake]:
        found: dict[str, list[dict[str, int]]] = {}
        for place, instant in rows:
            v = sum(map(len, self._sent.values()))
            row = {"k": v % 2, "v": v, "ts": instant}
            found.setdefault(NAMES[place], []).append(row)
            self._sent[NAMES[place]].append(row)
        return {name: self._intake(name, taken) for name, taken in found.items()}

    def _intake(self, name: str, rows: list[dict[str, int]]) -> Intake:
        source = TableSource(pa.Table.from_pylist(rows, SCHEMA))
        return Intake(self.run.point(name).position + 1, source, 0, source.size)
