"""Whole runs that are now and then behind, and leave out rows by their values.

What the run is found to need is drawn; which thresholds the shedder has chosen is found out from the status
alone, as a user would. Answers are those of the rows whose utility is at least the threshold of their
instant, by brute force, through restarts. A query that tolerates nothing has every row.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Final, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.nodes import SemanticDrop
from headrace.algebra.tunings.tunings import movable_in, tuning_of
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.recent import MeasuredLoad, RecentLoad, boxes_of
from headrace.steps import WHOLE
from how_many import examples

SIZE = 25
STEP = 10
"""Instants between two pushes."""
CLAUSES: Final = {"rising": "(0: 0.1, 60: 0.4, 97: 1)", "valley": "(0: 1, 50: 0, 90: 0.8)"}
WORTH: Final = {
    "rising": ((0, "0.1"), (60, "0.4"), (97, "1")),
    "valley": ((0, "1"), (50, "0"), (90, "0.8")),
}
STATEMENTS = f"""
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3;
CREATE QUERY rising LOSS TOLERANT BY v {CLAUSES["rising"]} AS SELECT k, v FROM s [RANGE {SIZE}];
CREATE QUERY valley LOSS TOLERANT BY v {CLAUSES["valley"]} AS SELECT k, v FROM s [RANGE {SIZE}];
CREATE QUERY exact AS SELECT k, v FROM s [RANGE {SIZE}]
"""


class Pushed(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int | None
    ts: int


def utility(value: int, name: str) -> Fraction:
    """The worth of a value, on the lines between points."""
    points = [(Fraction(at), Fraction(worth)) for at, worth in WORTH[name]]
    if value >= points[-1][0]:
        return points[-1][1]
    for (begin, low), (end, high) in pairwise(points):
        if value < end:
            return low + (high - low) * (value - begin) / (end - begin)
    raise AssertionError(value)


class LoadedRun:
    """A database of which the load is drawn for each commit."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: list[Pushed] = []
        self.steps: dict[str, dict[int, int]] = {name: {} for name in CLAUSES}
        self.load = 0.1
        self.db = self._opened()
        self.db.execute(STATEMENTS)
        self.db.start()

    def _opened(self) -> hr.Database:
        return hr.connect(runner="inline", storage=self.storage, buckets=2, latency_bound=1)

    def measured(self, run: PublishedRun) -> MeasuredLoad:
        """The need: so much for what bears no loss, and the same for each query if all were kept."""
        graph = run.queries.graph
        boxes = boxes_of(graph, run.statistics, run.queries.tunings)
        kept = {
            tuning_of(node.plan): boxes[node.number].selectivity
            for node in graph.nodes
            if isinstance(node.plan, SemanticDrop)
        }
        tunings = sorted({one for plan in run.queries.plans.values() for one in movable_in(plan)}, key=repr)
        assert kept.keys() == set(tunings)
        needed = self.load * (1 + sum(kept.values()))
        return MeasuredLoad(needed, 0.0 if needed < 0.85 else 2.0, dict.fromkeys(tunings, self.load), {})

    def play(self) -> None:
        for at in range(0, 45 * STEP, STEP):
            if self.data.draw(st.integers(0, 5)) == 0:
                self.load = self.data.draw(st.sampled_from((0.1, 0.4, 0.6, 1.0)))
            if self.data.draw(st.integers(0, 15)) == 0:
                self.db.close()
                self.db = self._opened()
                self.db.start()
            if self.data.draw(st.integers(0, 25)) == 0:
                self.db.execute("ALTER QUERY rising SET (KEEP UTILITY 0.333333)")
                self._note()
            seed = self.data.draw(st.integers(0, 1_000))
            found = [
                Pushed(
                    (seed * n) % 7,
                    None if n == 7 else (seed + n * 31) % 101,
                    max(0, at + n // 4 - (3 if n % 9 == 8 else 0)),
                )
                for n in range(STEP * 4)
            ]
            self.rows += found
            self.db.push("s", [one._asdict() for one in found])
            self._note()
        for name in ("rising", "valley", "exact"):
            self._check(name)

    def _note(self) -> None:
        for one, tuned in self.db.status.tunings.items():
            name = next(name for name, points in CLAUSES.items() if one.loss.endswith(points))
            self.steps[name].update({step.begin: step.value for step in tuned.steps})

    def _kept(self, name: str, row: Pushed) -> bool:
        begun = [begin for begin in self.steps.get(name, {}) if begin <= row.ts]
        if not begun or row.v is None:
            return True
        return utility(row.v, name) >= Fraction(self.steps[name][max(begun)], WHOLE)

    def _check(self, name: str) -> None:
        for instant in range(5, self.db[name].horizon, 7):
            expected = Counter(
                (one.k, one.v)
                for one in self.rows
                if one.ts <= instant < one.ts + SIZE and self._kept(name, one)
            )
            said = Counter((row["k"], row["v"]) for row in self.db[name].snapshot(instant).to_pylist())
            assert said == expected, (name, instant, self.steps)


@pytest.mark.slow("runs whole databases, with restarts")
@examples(6, 40)
@given(st.data())
def test_answers_are_those_of_the_thresholds_that_the_run_says(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage:
        run = LoadedRun(data, storage)
        with patch.object(RecentLoad, "load", lambda _, published, bound: run.measured(published)):
            try:
                run.play()
            finally:
                run.db.close()
