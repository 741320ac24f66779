"""Whole runs that are now and then behind: answers are estimates of the shares that the run says it kept.

What the run is found to need is drawn; which shares the shedder has chosen is found out from the status
alone, as a user would. Rows that are kept are then those that the reference keeps, and their counts and sums
are computed by brute force. Queries that bear no loss count every row.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from fractions import Fraction
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.tunings.tunings import shares_in, size_of
from headrace.reference.sampling import drawn
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.recent import MeasuredLoad, RecentLoad
from headrace.schema import BIGINT
from headrace.steps import WHOLE
from how_many import examples

SIZE = 40
STEP = 10
"""Instants between two pushes."""
STATEMENTS = f"""
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3;
CREATE QUERY plain LOSS TOLERANT AS SELECT COUNT(*) AS n, SUM(v) AS x FROM s [RANGE {SIZE}];
CREATE QUERY steep LOSS TOLERANT (0.3: 0.9) AS SELECT COUNT(*) AS n, SUM(v) AS x FROM s [RANGE {SIZE}];
CREATE QUERY exact AS SELECT COUNT(*) AS n, SUM(v) AS x FROM s [RANGE {SIZE}]
"""
VALUE = "s: CAST(v AS DOUBLE)"
CLAUSES = {"plain": "LOSS TOLERANT", "steep": "LOSS TOLERANT (0.3: 0.9)"}


class Pushed(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int
    ts: int


class LoadedRun:
    """A database of which the load is drawn for each commit."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: list[Pushed] = []
        self.steps: dict[str, dict[int, int]] = {name: {} for name in CLAUSES}
        self.usual: dict[str, dict[int, float]] = {name: {} for name in CLAUSES}
        self.load = 0.1
        self.db = self._opened()
        self.db.execute(STATEMENTS)
        self.db.start()

    def _opened(self) -> hr.Database:
        return hr.connect(runner="inline", storage=self.storage, buckets=2, latency_bound=1)

    def measured(self, run: PublishedRun) -> MeasuredLoad:
        """What is needed: so much for what bears no loss, and the same for each share if all were kept."""
        shares = {one for plan in run.queries.plans.values() for one in shares_in(plan)}
        needed = self.load * (1 + sum(size_of(one, run.queries.tunings) / WHOLE for one in shares))
        behind = 0.0 if needed < 0.85 else 2.0
        return MeasuredLoad(needed, behind, dict.fromkeys(sorted(shares, key=repr), self.load), {})

    def play(self) -> None:
        for at in range(0, 60 * STEP, STEP):
            if self.data.draw(st.integers(0, 5)) == 0:
                self.load = self.data.draw(st.sampled_from((0.1, 0.4, 0.6, 1.0)))
            if self.data.draw(st.integers(0, 25)) == 0:
                self.db.close()
                self.db = self._opened()
                self.db.start()
            seed = self.data.draw(st.integers(0, 1_000))
            found = [
                Pushed((seed * n) % 7, (seed + n * 31) % 97, max(0, at + n // 4 - (3 if n % 9 == 8 else 0)))
                for n in range(STEP * 4)
            ]
            self.rows += found
            self.db.push("s", [one._asdict() for one in found])
            self._note()
        for name in ("plain", "steep", "exact"):
            self._check(name)

    def _note(self) -> None:
        tunings = self.db.status.tunings
        for name, clause in CLAUSES.items():
            known = next((tuned for one, tuned in tunings.items() if one.loss == clause), None)
            if known is not None:
                self.steps[name].update({step.begin: step.value for step in known.steps})
                self.usual[name].update({one.begin: dict(one.means)[VALUE] for one in known.scales})

    def share(self, name: str, instant: int) -> int:
        begun = [begin for begin in self.steps.get(name, {}) if begin <= instant]
        return self.steps[name][max(begun)] if begun else WHOLE

    def weight(self, name: str, row: Pushed) -> float:
        """The number of rows that a row stands for, by its share and by its size."""
        share = self.share(name, row.ts)
        begun = [begin for begin in self.usual.get(name, {}) if begin <= row.ts]
        if not begun or share == WHOLE:
            return WHOLE / share
        size = row.v / self.usual[name][max(begun)]
        return 1.0 if size * share >= 2 * WHOLE else 1 + 2 * (WHOLE - share) / share / (1 + size)

    def _check(self, name: str) -> None:
        for instant in range(5, self.db[name].horizon, 23):
            held = Counter(one for one in self.rows if one.ts <= instant < one.ts + SIZE)
            count, total = Fraction(0), Fraction(0)
            for row, times in held.items():
                weight = Fraction(self.weight(name, row))
                if drawn(row, (BIGINT,) * 3, row.ts, 0) * weight < 2**64:
                    count += times * weight
                    total += times * row.v * weight
            rows = self.db[name].snapshot(instant).to_pylist()
            # Of no kept row there is no group.
            assert len(rows) == bool(count), (name, instant, self.steps)
            if not rows:
                continue
            (said,) = rows
            assert said["n"] == pytest.approx(float(count), abs=0.51), (name, instant, self.steps)
            assert said["x"] == pytest.approx(float(total), abs=0.51), (name, instant, self.steps)


@pytest.mark.slow("runs whole databases, with restarts")
@examples(4, 30)
@given(st.data())
def test_answers_are_estimates_of_the_shares_that_the_run_says(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage:
        run = LoadedRun(data, storage)
        with patch.object(RecentLoad, "load", lambda _, published, bound: run.measured(published)):
            try:
                run.play()
            finally:
                run.db.close()
