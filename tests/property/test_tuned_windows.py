"""Windows within bounds hold at every instant what brute force counts, while their sizes change.

At t a window has the rows u with `u <= t < u + w(u)`, where w is what the window's size was said to be when
rows of the instant u came first: a size holds from the instant after the newest row of the window's stream.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.algebra.nodes import Source, TimeWindow
from headrace.elements import from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.operators.stateless import apply
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, Field, Schema
from headrace.steps import StepFunction, steps_from, value_at, with_step
from headrace.time import Duration, TimeDomain
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL
"""
DISORDER = {"s": 3, "r": 0}
SMALLEST, LARGEST = 2, 8
WINDOW = f"WINDOW(RANGE MIN {SMALLEST}, MAX {LARGEST})"
SLIDING = f"[RANGE MIN {SMALLEST}, MAX {LARGEST} SLIDE 3]"


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int
    ts: int


Key = tuple[str, int]
"""The stream of a window, and its slide."""
Contents = Mapping[Key, Sequence[Row]]
"""The content of windows at an instant."""
Answer = Callable[[Contents], Counter[tuple[Any, ...]]]
S, R, SLOW = ("s", 1), ("r", 1), ("s", 3)


def _counted(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter([(len(rows),)] if rows else [])


def _grouped(at: Contents) -> Counter[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in at[S]:
        groups[row.k].append(row.v)
    return Counter((k, len(values), sum(values), max(values)) for k, values in groups.items())


QUERIES: Mapping[str, tuple[str, tuple[Key, ...], Answer]] = {
    "counted": (f"SELECT COUNT(*) AS n FROM s {WINDOW}", (S,), lambda at: _counted(at[S])),
    "grouped": (
        f"SELECT k, COUNT(*) AS n, SUM(v) AS x, MAX(v) AS m FROM s {WINDOW} GROUP BY k",
        (S,),
        _grouped,
    ),
    "kinds": (f"SELECT DISTINCT k FROM s {WINDOW}", (S,), lambda at: Counter({(row.k,) for row in at[S]})),
    "chosen": (
        f"SELECT v FROM s {WINDOW} WHERE v > 1",
        (S,),
        lambda at: Counter((row.v,) for row in at[S] if row.v > 1),
    ),
    "sliding": (f"SELECT COUNT(*) AS n FROM s {SLIDING}", (SLOW,), lambda at: _counted(at[SLOW])),
    "joined": (
        f"SELECT a.v, b.v AS w FROM s {WINDOW} a JOIN r {WINDOW} b ON a.k = b.k",
        (S, R),
        lambda at: Counter((a.v, b.v) for a in at[S] for b in at[R] if a.k == b.k),
    ),
    "paired": (
        f"SELECT a.v, b.v AS w FROM s {WINDOW} a JOIN s {WINDOW} b ON a.k = b.k",
        (S,),
        lambda at: Counter((a.v, b.v) for a in at[S] for b in at[S] if a.k == b.k),
    ),
    "united": (
        f"SELECT k FROM s {WINDOW} UNION ALL SELECT k FROM r {WINDOW}",
        (S, R),
        lambda at: Counter((row.k,) for row in (*at[S], *at[R])),
    ),
    "others": (
        f"SELECT k FROM s {WINDOW} EXCEPT SELECT k FROM r {WINDOW}",
        (S, R),
        lambda at: Counter({(row.k,) for row in at[S]} - {(row.k,) for row in at[R]}),
    ),
}
ACTIONS = ("restart", "level", "past", "pause", "again", "size")
ROUNDS = 4


class Life:
    """A database that Hypothesis fills, leaves, and tells other sizes."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        self.steps: dict[Key, list[tuple[int, int]]] = {}
        names = data.draw(st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=3, unique=True))
        self.queries = {name: name for name in names}
        self.early: set[str] = set()
        self.db = hr.connect(runner="inline", storage=storage)
        self.db.execute(STREAMS)
        # Rows come to streams that some query reads.
        self.db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        for name in names:
            self.db.execute(f"CREATE QUERY {name} AS {QUERIES[name][0]}")
        self.db.start()

    def play(self) -> None:
        for _ in range(ROUNDS):
            for action in ("push", "size", "push", self.data.draw(st.sampled_from(ACTIONS)), "push"):
                getattr(self, f"_{action}")()
                self.check()
        for stream in self.rows:
            self._pushed(stream, [Row(9, 0, self._newest(stream) + 40)])
        self.check()

    def _newest(self, stream: str) -> int:
        return max((row.ts for row in self.rows[stream]), default=-1)

    def _push(self) -> None:
        stream = self.data.draw(st.sampled_from("ssr"))
        found, newest = [], self._newest(stream)
        for _ in range(self.data.draw(st.integers(1, 4))):
            ts = max(0, newest + self.data.draw(st.integers(-DISORDER[stream], 4)))
            found.append(Row(self.data.draw(st.integers(0, 2)), self.data.draw(st.integers(0, 3)), ts))
            newest = max(newest, ts)
        self._pushed(stream, found)

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [row._asdict() for row in rows])

    def _size(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        keys = QUERIES[self.queries[name]][1]
        stream = self.data.draw(st.sampled_from([None, *(stream for stream, _ in keys)]))
        size = self.data.draw(st.integers(SMALLEST, LARGEST))
        of = "" if stream is None else f" OF {stream}"
        self.db.execute(f"ALTER QUERY {name} SET (WINDOW{of} {size})")
        for key in keys:
            if stream in (None, key[0]) and self._now(key) != size:
                self.steps.setdefault(key, []).append((self._newest(key[0]) + 1, size))

    def _now(self, key: Key) -> int:
        return self.steps[key][-1][1] if key in self.steps else LARGEST

    def _restart(self) -> None:
        self.db.close()
        self.db = hr.connect(runner="inline", storage=self.storage)
        self.db.start()

    def _level(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        level = self.data.draw(st.sampled_from(("STRONG", "MIDDLE")))
        self.db.execute(f"ALTER QUERY {name} SET CONSISTENCY {level}")
        (self.early.add if level == "MIDDLE" else self.early.discard)(name)

    def _past(self) -> None:
        """A query more, which reads all rows again that came."""
        kind = self.data.draw(st.sampled_from(sorted(QUERIES)))
        name = f"{kind}_{len(self.queries)}"
        self.db.execute(f"CREATE QUERY {name} FROM BEGINNING AS {QUERIES[kind][0]}")
        self.queries[name] = kind

    def _pause(self) -> None:
        """A pause in which rows and sizes go on."""
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if name in self.early or not all(self.rows.values()):
            return
        self.db.execute(f"ALTER QUERY {name} PAUSE KEEPING INPUT")
        self._push()
        others = sorted(self.queries.keys() - {name})
        if others:
            kept, self.queries = self.queries, {other: self.queries[other] for other in others}
            self._size()
            self.queries = kept
        self.db.execute(f"ALTER QUERY {name} RESUME")

    def _again(self) -> None:
        """A replacement by a query of the same windows goes on with their sizes."""
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if name not in self.early:
            text = QUERIES[self.queries[name]][0]
            self.db.execute(f"CREATE OR REPLACE QUERY {name} AS {text}")

    def check(self) -> None:
        """Every query says what brute force counts, up to where it speaks."""
        for name, kind in self.queries.items():
            query = self.db[name]
            said, (_, keys, answer) = query.changes().to_pylist(), QUERIES[kind]
            last = min(query.horizon, max(map(self._newest, self.rows)) + 12)
            for instant in range(last):
                found: Counter[tuple[Any, ...]] = Counter()
                for row in said:
                    end = row["valid_to"]
                    if row["valid_from"] <= instant and (end is None or instant < end):
                        found[tuple(row[column] for column in query.schema.names)] += row["change"]
                expected = answer({key: self._window(key, instant) for key in keys})
                assert {row: count for row, count in found.items() if count} == dict(expected), (
                    *(name, instant, self.steps),
                    self.rows,
                )

    def _window(self, key: Key, instant: int) -> list[Row]:
        stream, slide = key
        last = (instant + 1) // slide * slide - 1
        return [row for row in self.rows[stream] if row.ts <= last < row.ts + self._size_at(key, row.ts)]

    def _size_at(self, key: Key, instant: int) -> int:
        found = LARGEST
        for begin, size in self.steps.get(key, ()):
            if begin <= instant:
                found = size
        return found


@pytest.mark.slow("runs whole databases, with restarts")
@examples(12, 120)
@given(st.data())
def test_windows_hold_what_their_sizes_say(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage:
        life = Life(data, storage)
        try:
            life.play()
        finally:
            life.db.close()


STEPS = st.lists(st.tuples(st.integers(0, 20), st.integers(2, 9)), max_size=4)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), max_size=12),
    STEPS,
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_the_operator_and_the_reference_hold_what_a_step_function_says(
    rows: list[tuple[int, int]], changes: list[tuple[int, int]], slide: int, offset: int
) -> None:
    steps: StepFunction = ()
    for begin, size in sorted(changes):
        steps = with_step(steps, begin, size)
    source = Source("s", Schema((Field("v", BIGINT),)), "ts", TimeDomain.INTEGER)
    moved = Duration(offset % slide)
    window = TimeWindow(source, Duration(9), Duration(slide), moved, Duration(2), steps)
    elements = [((value,), ts, ts + 1, 1) for ts, value in rows]
    yielded = apply(window, from_rows(source.schema, elements), _refuse)
    expected = from_rows(
        source.schema,
        [(row, ts, te, 1) for row, ts, te in evaluate(window, {"s": Stream(("v",), elements)})],
    )
    assert equivalent(yielded, expected, 100), (to_rows(canonical(yielded)), to_rows(canonical(expected)))
    for instant in range(40):
        last = (instant + 1 - moved.length) // slide * slide + moved.length - 1
        held: Counter[Any] = Counter()
        for ts, value in rows:
            size = next((size for begin, size in reversed(steps) if begin <= ts), 9)
            held[(value,)] += ts <= last < ts + size
        found: Counter[Any] = Counter()
        for row, ts, te, w in to_rows(yielded):
            found[row] += w * (ts <= instant < te)
        assert +held == +found, instant


@given(STEPS, st.integers(-3, 25))
def test_steps_from_an_instant_on_say_what_all_steps_say(changes: list[tuple[int, int]], first: int) -> None:
    steps: StepFunction = ()
    for begin, size in sorted(changes):
        steps = with_step(steps, begin, size)
    kept = steps_from(steps, first)
    begun = any(step.begin <= first for step in steps)
    assert len(kept) == sum(step.begin > first for step in steps) + begun
    for instant in range(first, 30):
        assert value_at(9, kept, instant) == value_at(9, steps, instant)


def _refuse(*_: object) -> None:
    raise AssertionError("no expression is computed")
