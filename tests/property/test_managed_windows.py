"""Whole runs under a limit of memory: answers are those of the sizes that the run says, and state is within.

Application time is simulated: rows come at some rate, which becomes five times as high and low again, while
queries come and go and the database is left and opened again. What the manager does is found out from the
status alone, as a user would; the answers are then computed by brute force.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.tunings.tunings import Tuning
from how_many import examples

SHORT, LONG = (40, 400), (60, 600)
LIMIT = 220_000
STEP = 50
"""Instants between two pushes."""
STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r;
"""


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int
    ts: int


Held = Mapping[str, Sequence[Row]]
"""The rows that the windows of some streams hold at an instant."""


def window(bounds: tuple[int, int]) -> str:
    return f"WINDOW(RANGE MIN {bounds[0]}, MAX {bounds[1]})"


def _added(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(row.k, []).append(row.v)
    return Counter((k, len(values), sum(values)) for k, values in groups.items())


KINDS: Mapping[str, tuple[str, Mapping[str, tuple[int, int]], Callable[[Held], Counter[tuple[Any, ...]]]]] = {
    "added": (
        f"SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s {window(SHORT)} GROUP BY k",
        {"s": SHORT},
        lambda held: _added(held["s"]),
    ),
    "kinds": (
        f"SELECT DISTINCT v FROM s {window(LONG)}",
        {"s": LONG},
        lambda held: Counter({(row.v,) for row in held["s"]}),
    ),
    "met": (
        f"SELECT a.v, b.k FROM s {window(SHORT)} a JOIN r {window(SHORT)} b ON a.v = b.v",
        {"s": SHORT, "r": SHORT},
        lambda held: Counter((a.v, b.k) for a in held["s"] for b in held["r"] if a.v == b.v),
    ),
}


class ManagedLife:
    """A database under a limit, that is filled, left, and given other queries."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.now = 0
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        self.steps: dict[Tuning, dict[int, int]] = {}
        self.queries: dict[str, tuple[str, int]] = {}
        self.calm = 0
        self.made = 0
        self.was_smaller = False
        self.db = self._opened()
        self.db.execute(STREAMS)
        for kind in KINDS:
            # These are never dropped, so that no window begins anew.
            self._create(kind)
        self.db.start()

    def _opened(self) -> hr.Database:
        return hr.connect(runner="inline", storage=self.storage, buckets=2, memory_limit=LIMIT)

    def _create(self, kind: str) -> None:
        self.made += 1
        name = f"{kind}_{self.made}"
        self.db.execute(f"CREATE QUERY {name} AS {KINDS[kind][0]}")
        self.queries[name] = kind, self.now

    def _drop(self) -> None:
        later = [name for name, (_, since) in self.queries.items() if since]
        if later:
            name = self.data.draw(st.sampled_from(later))
            self.check(name)
            self.db.execute(f"DROP QUERY {name}")
            del self.queries[name]

    def _leave(self) -> None:
        self.db.close()
        self.db = self._opened()
        self.db.start()

    def play(self) -> None:
        for rate in (1, 5, 1):
            self.calm = 0
            for action in ("none", self.data.draw(st.sampled_from(("create", "drop", "leave", "none")))):
                match action:
                    case "create":
                        self._create(self.data.draw(st.sampled_from(sorted(KINDS))))
                        self.calm = 0
                    case "drop":
                        self._drop()
                    case "leave":
                        self._leave()
                for _ in range(10):
                    self._push(rate)
        self._pushed("s", [Row(0, 0, self.now + 2_000)])
        self._pushed("r", [Row(0, 0, self.now + 2_000)])
        for name in self.queries:
            self.check(name)

    def _push(self, rate: int) -> None:
        seed = self.data.draw(st.integers(0, 10_000))
        for stream, times in (("s", rate), ("r", 1)):
            found = []
            for number in range(STEP * times):
                chosen = (number * 7919 + seed * 104_729) % 65_521
                back = chosen % 4 if stream == "s" and number % 5 == 4 else 0
                at = max(self.now, self.now + number // times - back)
                found.append(Row(chosen % 5, chosen % 997, at))
            self._pushed(stream, found)
        self.now += STEP
        self.calm += STEP
        self._look()

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [row._asdict() for row in rows])

    def _look(self) -> None:
        """Note the sizes that the run says, and see that state is within the limit once it can be."""
        status = self.db.status
        for tuning, known in status.tunings.items():
            for begin, size in known.steps:
                self.steps.setdefault(tuning, {})[begin] = size
                self.was_smaller |= size < tuning.largest
        # After a restart nothing is found until enough rows have come.
        assert status.managed is None or not status.managed.missing
        if self.calm > LONG[1] + 2 * STEP:
            used = sum(part.state_bytes for part in status.operators)
            assert used <= LIMIT, (self.now, used, status.managed)

    def check(self, name: str) -> None:
        """A query says what brute force finds, at some instants since it is exact."""
        kind, since = self.queries[name]
        _, windows, answer = KINDS[kind]
        query = self.db[name]
        until = min(query.horizon, self.now)
        begin = since + LONG[1] + 4 if since else 0
        for instant in range(begin, until, 97):
            held = {stream: self._held(stream, bounds, instant) for stream, bounds in windows.items()}
            said = query.snapshot(instant).to_pylist()
            found = Counter(tuple(row[column] for column in query.schema.names) for row in said)
            assert found == answer(held), (name, instant, self.steps)

    def _held(self, stream: str, bounds: tuple[int, int], instant: int) -> list[Row]:
        steps = self.steps.get(Tuning((stream,), *bounds, 1), {})

        def size(at: int) -> int:
            begins = [begin for begin in steps if begin <= at]
            return steps[max(begins)] if begins else bounds[1]

        low = instant - bounds[1]
        return [row for row in self.rows[stream] if low <= row.ts <= instant < row.ts + size(row.ts)]


@pytest.mark.slow("runs whole databases, with restarts")
@examples(2, 12)
@given(st.data())
def test_answers_are_those_of_the_sizes_and_state_is_within_the_limit(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage:
        life = ManagedLife(data, storage)
        try:
            life.play()
            assert life.was_smaller
        finally:
            life.db.close()
