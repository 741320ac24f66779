"""Whole runs that are always behind: no more rows are left out than WITHIN allows, also of quiet groups.

The load is said to be too much whatever is left out, so that the promise alone limits what is. Groups bring
their rows in bursts, some seldom, so that most epochs say nothing new of them; no group has less than a burst
in its windows once it has come. What is checked is the answer itself, at each horizon.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.tunings.tunings import shares_in
from headrace.runtime.driver.facts.published import PublishedRun
from headrace.runtime.driver.shedder.precision import FIRST
from headrace.runtime.driver.shedder.recent import MeasuredLoad, RecentLoad
from headrace.steps import WHOLE
from how_many import examples

SIZE = 100


def too_much(run: PublishedRun) -> MeasuredLoad:
    shares = {one for plan in run.queries.plans.values() for one in shares_in(plan)}
    return MeasuredLoad(1.5, 2.0, dict.fromkeys(sorted(shares, key=repr), 1.0), {})


def far(row: dict[str, Any]) -> float:
    """How far bounds are from the estimate, in parts of it: by what the answer says."""
    if row["n_low"] is None:
        return math.inf
    return float(max(row["n"] - row["n_low"], row["n_high"] - row["n"]) / row["n"])


class Group:
    """A group that brings so many rows at some instants, as far apart as its period."""

    def __init__(self, data: st.DataObject) -> None:
        self.period = data.draw(st.sampled_from((1, 10, 25, 50)), label="period")
        self.rows = data.draw(st.sampled_from((200, 600)), label="rows of a window") * self.period // SIZE
        self.begin = data.draw(st.integers(0, self.period - 1), label="begin")

    def of(self, instant: int) -> int:
        return self.rows if (instant - self.begin) % self.period == 0 else 0


class PromisedRun:
    """A database that is always behind, of a query that has promised something."""

    def __init__(self, data: st.DataObject) -> None:
        self.random = Random(data.draw(st.integers(0, 1_000), label="seed"))
        self.tolerance = data.draw(st.sampled_from((5, 10, 20)), label="tolerance")
        self.groups = [Group(data) for _ in range(data.draw(st.integers(1, 3), label="groups"))]
        self.epoch = data.draw(st.sampled_from((10, 25)), label="epoch")
        self.checked = 0

    def play(self) -> None:
        with hr.connect(runner="inline", buckets=2, latency_bound=1) as db:
            db.execute(
                "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
                f"CREATE QUERY q WITHIN {self.tolerance} PERCENT AS SELECT k, COUNT(*) AS n "
                f"FROM s [RANGE {SIZE}] WHERE k >= 0 GROUP BY k"
            )
            db.start()
            for begin in range(0, 14 * SIZE, self.epoch):
                rows = [
                    {"k": k, "v": self.random.getrandbits(60), "ts": at}
                    for at in range(begin, begin + self.epoch)
                    for k, group in enumerate(self.groups)
                    for _ in range(group.of(at))
                ]
                db.push("s", rows or [{"k": -1, "v": 0, "ts": begin + self.epoch - 1}])
                self._check(db)

    def _check(self, db: hr.Database) -> None:
        tunings = list(db.status.tunings.values())
        at = db["q"].horizon - 1
        if not tunings or at < tunings[0].steps[-1].begin + SIZE + 1:
            return
        steps = tunings[0].steps
        self.checked += 1
        found = [far(row) for row in db["q"].snapshot(at).to_pylist()]
        if steps[-1].value not in (FIRST, WHOLE):
            assert max(found, default=0.0) <= self.tolerance / 100, (at, found, steps)


@pytest.mark.slow("runs whole databases")
@examples(6, 60)
@given(st.data())
def test_bounds_are_within_what_was_promised(data: st.DataObject) -> None:
    run = PromisedRun(data)
    with patch.object(RecentLoad, "load", lambda _, published, bound: too_much(published)):
        run.play()
    assert run.checked > 5
