"""Whole runs under a limit of memory that change granules and windows of rows, alone and with others.

Application time is simulated: rows come at some rate, then at four times that, and as before. What was in
force is found out from the status, as a user would; the answers are then computed by brute force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.tunings.tunings import Tuning, TuningKind
from headrace.runtime.driver.manager.managed import Managed
from headrace.steps import Step, StepFunction, value_at
from how_many import examples

SIZES, GRANULES, ROWS = (60, 600), (1, 60), (8, 160)
STEP = 60
"""Instants between two pushes."""
PHASE = 20
"""Pushes of each phase: more than a window is long."""
PACE = f"GRANULARITY(COARSEST {GRANULES[1]}, FINEST {GRANULES[0]})"
QUERIES: Mapping[str, str] = {
    "paced": f"SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE {SIZES[1]}) {PACE} GROUP BY k",
    "both": f"SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE MIN {SIZES[0]}, MAX {SIZES[1]}) {PACE} GROUP BY k",
    "last": f"SELECT v FROM s WINDOW(ROWS MIN {8 * ROWS[0]}, MAX {8 * ROWS[1]})",
    "last of each": "SELECT k, COUNT(*) AS n FROM s "
    f"WINDOW(PARTITION BY k ROWS MIN {ROWS[0]}, MAX {ROWS[1]}) GROUP BY k",
}
MIXTURES = [["paced"], ["both"], ["last"], ["last of each"], ["paced", "last of each"], ["both", "last"]]


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int
    ts: int


def in_time(rows: Sequence[Row], instant: int, sizes: StepFunction) -> list[Row]:
    """The rows in a window of time, each for as long as the size says at its own instant."""
    return [row for row in rows if row.ts <= instant < row.ts + value_at(SIZES[1], sizes, row.ts)]


def in_rows(rows: Sequence[Row], instant: int, first: int, sizes: StepFunction) -> list[Row]:
    """The rows of a partition, in order, that no later one has pushed out by the size at its own instant."""
    # Rows of one instant are in the order of their columns.
    here = sorted((row for row in rows if row.ts <= instant), key=lambda row: (row.ts, row))
    gone = max((number + 1 - value_at(first, sizes, row.ts) for number, row in enumerate(here)), default=0)
    return here[max(0, gone) :]


def added(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(list(Counter(row.k for row in rows).items()))


def brute(kind: str, rows: Sequence[Row], instant: int, steps: Callable[[TuningKind], StepFunction]) -> Any:
    """The answer by the definition; of granules at a multiple of the coarsest."""
    if kind in ("paced", "both"):
        return added(in_time(rows, instant, steps(TuningKind.WINDOW) if kind == "both" else ()))
    sizes = steps(TuningKind.ROWS)
    if kind == "last":
        return Counter((row.v,) for row in in_rows(rows, instant, 8 * ROWS[1], sizes))
    found: list[Row] = []
    for key in {row.k for row in rows}:
        found += in_rows([row for row in rows if row.k == key], instant, ROWS[1], sizes)
    return added(found)


class Life:
    """A database with some queries."""

    def __init__(self, kinds: Sequence[str], seed: int) -> None:
        self.seed, self.kinds = seed, kinds
        self.rows: list[Row] = []
        self.now = 0
        self.steps: dict[Tuning, dict[int, int]] = {}
        self.db = hr.connect(runner="inline", buckets=2, memory_limit="1 GB")
        self.db.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        for number, kind in enumerate(kinds):
            self.db.execute(f"CREATE QUERY q{number} AS {QUERIES[kind]}")
        self.db.start()

    @property
    def managed(self) -> Managed:
        found = self.db.status.managed
        assert found is not None
        return found

    def push(self, rate: int, times: int) -> None:
        for _ in range(times):
            found = []
            for number in range(STEP * rate):
                chosen = (number * 7919 + self.now * 31 + self.seed * 104_729) % 65_521
                found.append(Row(chosen % 7, self.now * 10 + number, self.now + number // rate))
            self.rows += found
            self.db.push("s", [row._asdict() for row in found])
            self.now += STEP
            for tuning, known in self.db.status.tunings.items():
                self.steps.setdefault(tuning, {}).update(known.steps)

    def steps_of(self, kind: TuningKind) -> StepFunction:
        found = [steps for tuning, steps in self.steps.items() if tuning.kind is kind]
        return tuple(Step(*one) for one in sorted(found[0].items())) if found else ()

    def check(self) -> None:
        """Each answer is what brute force finds, at common multiples of all granules."""
        for number, kind in enumerate(self.kinds):
            query = self.db[f"q{number}"]
            for instant in range(0, min(query.horizon, self.now), 4 * GRANULES[1]):
                said = query.snapshot(instant).to_pylist()
                found = Counter(tuple(row[column] for column in query.schema.names) for row in said)
                assert found == brute(kind, self.rows, instant, self.steps_of), (kind, instant)


@pytest.mark.slow("runs whole databases")
@pytest.mark.parametrize("kinds", MIXTURES, ids=" and ".join)
@examples(1, 4)
@given(seed=st.integers(0, 1000))
def test_each_kind_of_number_keeps_the_limit_and_answers_are_exact_for_it(
    kinds: list[str], seed: int
) -> None:
    life = Life(kinds, seed)
    with life.db:
        life.push(1, PHASE)
        life.push(4, PHASE)
        found = life.managed
        limit = round(1.1 * found.working + 0.7 * found.expected)
        life.db.execute(f"SET memory_limit = {limit}")
        life.push(4, PHASE)
        assert not life.managed.missing
        for _ in range(8):
            life.push(4, 1)
            used = sum(part.state_bytes for part in life.db.status.operators)
            assert used <= limit, (life.now, used, life.managed)
        changed = {tuning.kind for tuning in life.steps}
        assert changed
        less = {one.window.kind: one.place for one in life.managed.windows}
        life.db.execute("SET memory_limit = '1 GB'")
        life.push(1, PHASE)
        more = {one.window.kind: one.place for one in life.managed.windows}
        assert all(place == 1.0 for place in more.values())
        assert any(place < 1.0 for place in less.values())
        life.push(1, 2)
        life.check()
