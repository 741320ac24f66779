"""Windows within bounds hold at every instant what brute force counts, while their sizes change.

At t a window has the rows u with `u <= t < u + w(u)`, where w is what the window's size was said to be when
rows of the instant u came first: a size holds from the instant after the newest row of the window's stream.
Granules round both ends up to what a granule was then; they begin at multiples of the one before, unless they
are multiples. A window of rows has those that no row pushes out, each by the size at its own instant.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from answers_at import content_at
from driving import Arriving, drive
from headrace.algebra.nodes import BoundedRowWindow, Source, TimeWindow, column
from headrace.elements import concat, from_rows, to_rows
from headrace.history import canonical, equivalent
from headrace.operators.stateless import apply
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, Field, Schema
from headrace.steps import Step, StepFunction, steps_from, value_at, value_or_values, with_step
from headrace.time import Duration, TimeDomain
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL;
CREATE STREAM above_one AS SELECT k, v FROM s WHERE v > 1;
CREATE STREAM counts AS SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE MIN 2, MAX 8) GROUP BY k
"""
DISORDER = {"s": 3, "r": 0}
SMALLEST, LARGEST = 2, 8
WINDOW = f"WINDOW(RANGE MIN {SMALLEST}, MAX {LARGEST})"
FRAME = f"RANGE MIN {SMALLEST}, MAX {LARGEST}"
NARROW = (3, 5)
SLIDING = f"[RANGE MIN {SMALLEST}, MAX {LARGEST} SLIDE 3]"
FINEST, COARSEST = 2, 12
GRANULES = (2, 4, 6, 12)
GRANULAR = f"{WINDOW} GRANULARITY(COARSEST {COARSEST}, FINEST {FINEST})"
FEWEST, MOST = 1, 4
LAST = f"WINDOW(ROWS MIN {FEWEST}, MAX {MOST})"
LAST_OF_EACH = f"[PARTITION BY k ROWS MIN {FEWEST}, MAX {MOST}]"


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int
    ts: int


Key = tuple[str, int | str]
"""The stream of a window, and its slide or what else it is."""
Contents = Mapping[Key, Sequence[Row]]
"""The content of windows at an instant."""
Answer = Callable[[Contents], Counter[tuple[Any, ...]]]
S, R, SLOW = ("s", 1), ("r", 1), ("s", 3)
COARSE, ROWS, EACH = ("s", "granules"), ("s", "rows"), ("s", "rows of each")
NOW, THIRD, LESS = ("s", "now"), ("s", "at multiples of 3"), ("s", "narrow")


class Named(NamedTuple):
    """The window that the history says a size is of."""

    streams: str
    kind: str
    smallest: int
    largest: int


class Number(NamedTuple):
    """What may change of some windows.

    Attributes:
        stream: of theirs.
        what: the words after SET, with a place for the stream.
        slide: of windows of time.
        bounds: the smallest and the largest value, where they are not those of `VALUES`.
    """

    stream: str
    what: str
    slide: int = 1
    bounds: tuple[int, int] | None = None

    @property
    def named(self) -> Named:
        """Its name in the history."""
        values = VALUES[self.what]
        return Named(self.stream, KIND_OF[self.what], *(self.bounds or (min(values), max(values))))

    @property
    def first(self) -> int:
        """The value before the first change."""
        return FIRST[self.what] if self.bounds is None else self.bounds[1]


TIME, GRANULE, COUNT = "WINDOW{} {}", "GRANULARITY{} {}", "WINDOW{} {} ROWS"
VALUES: dict[str, Sequence[int]] = {
    TIME: range(SMALLEST, LARGEST + 1),
    GRANULE: GRANULES,
    COUNT: range(FEWEST, MOST + 1),
}
KIND_OF = {TIME: "window", GRANULE: "granule", COUNT: "rows"}
FIRST = {TIME: LARGEST, GRANULE: FINEST, COUNT: MOST}


def numbers_of(key: Key) -> list[Number]:
    """What may change of a window."""
    stream, kind = key
    if key == NOW:
        return []
    if key == THIRD:
        return [Number(stream, TIME)]
    if key == LESS:
        return [Number(stream, TIME, 1, NARROW)]
    if kind == "granules":
        return [Number(stream, TIME), Number(stream, GRANULE)]
    return [Number(stream, TIME, kind)] if isinstance(kind, int) else [Number(stream, COUNT)]


def _counted(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return Counter([(len(rows),)] if rows else [])


def _grouped(at: Contents) -> Counter[tuple[Any, ...]]:
    groups = defaultdict(list)
    for row in at[S]:
        groups[row.k].append(row.v)
    return Counter((k, len(values), sum(values), max(values)) for k, values in groups.items())


QUERIES: dict[str, tuple[str, tuple[Key, ...], Answer]] = {
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


def _framed(at: Contents) -> Counter[tuple[Any, ...]]:
    """Each row of the instant with the sum over its group, and the number of all."""
    sums: Counter[int] = Counter()
    for row in at[S]:
        sums[row.k] += row.v
    return Counter((row.k, row.v, sums[row.k], len(at[S])) for row in at[NOW])


QUERIES |= {
    "framed": (
        f"SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts {FRAME}) AS x, "
        f"COUNT(*) OVER (ORDER BY ts {FRAME}) AS n FROM s",
        (S, NOW),
        _framed,
    ),
    "two_bounds": (
        f"SELECT a.v, b.v AS w FROM s {WINDOW} a JOIN s WINDOW(RANGE MIN {NARROW[0]}, MAX {NARROW[1]}) b "
        "ON a.k = b.k",
        (S, LESS),
        lambda at: Counter((a.v, b.v) for a in at[S] for b in at[LESS] if a.k == b.k),
    ),
    "granule_above": (
        f"SELECT n FROM (SELECT COUNT(*) AS n FROM s {WINDOW}) GRANULARITY(3)",
        (THIRD,),
        lambda at: _counted(at[THIRD]),
    ),
    "over_derived": (
        f"SELECT COUNT(*) AS n FROM above_one {WINDOW}",
        (S,),
        lambda at: _counted([row for row in at[S] if row.v > 1]),
    ),
    "of_derived": (
        "SELECT MAX(n) AS m FROM counts",
        (S,),
        lambda at: Counter([(max(Counter(row.k for row in at[S]).values()),)] if at[S] else []),
    ),
    "coarse": (f"SELECT COUNT(*) AS n FROM s {GRANULAR}", (COARSE,), lambda at: _counted(at[COARSE])),
    "coarse_groups": (
        f"SELECT k, COUNT(*) AS n, SUM(v) AS x, MAX(v) AS m FROM s {GRANULAR} GROUP BY k",
        (COARSE,),
        lambda at: _grouped({S: at[COARSE]}),
    ),
    "coarse_kinds": (
        f"SELECT DISTINCT k FROM s {GRANULAR} WHERE v > 0",
        (COARSE,),
        lambda at: Counter({(row.k,) for row in at[COARSE] if row.v > 0}),
    ),
    "coarse_pairs": (
        f"SELECT a.v, b.v AS w FROM s {GRANULAR} a JOIN r {WINDOW} b ON a.k = b.k",
        (COARSE, R),
        lambda at: Counter((a.v, b.v) for a in at[COARSE] for b in at[R] if a.k == b.k),
    ),
    "last": (
        f"SELECT COUNT(*) AS n, SUM(k * 10 + v) AS x FROM s {LAST}",
        (ROWS,),
        lambda at: Counter(
            [(len(at[ROWS]), sum(row.k * 10 + row.v for row in at[ROWS]))] if at[ROWS] else []
        ),
    ),
    "last_of_each": (
        f"SELECT k, COUNT(*) AS n, SUM(v) AS x, MAX(v) AS m FROM s {LAST_OF_EACH} GROUP BY k",
        (EACH,),
        lambda at: _grouped({S: at[EACH]}),
    ),
    "last_pairs": (
        f"SELECT a.v, b.v AS w FROM s {LAST} a JOIN r {WINDOW} b ON a.k = b.k",
        (ROWS, R),
        lambda at: Counter((a.v, b.v) for a in at[ROWS] for b in at[R] if a.k == b.k),
    ),
}
ACTIONS = ("restart", "level", "past", "later", "pause", "again", "size")
ROUNDS = 4


class Life:
    """A database that Hypothesis fills, leaves, and tells other sizes."""

    def __init__(self, data: st.DataObject, storage: str, kinds: Sequence[str]) -> None:
        self.data, self.storage, self.kinds = data, storage, kinds
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        self.steps: dict[Number, list[tuple[int, int]]] = {}
        names = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3, unique=True))
        self.queries = {name: name for name in names}
        self.early: set[str] = set()
        self.since: dict[str, int] = {}
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
        numbers = [number for key in QUERIES[self.queries[name]][1] for number in numbers_of(key)]
        what = self.data.draw(st.sampled_from(sorted({number.what for number in numbers})))
        numbers = [number for number in numbers if number.what == what]
        stream = self.data.draw(st.sampled_from([None, *(number.stream for number in numbers)]))
        bounds = [number.bounds for number in numbers if number.bounds is not None]
        sizes = [size for size in VALUES[what] if all(low <= size <= high for low, high in bounds)]
        size = self.data.draw(st.sampled_from(sizes))
        of = "" if stream is None else f" OF {stream}"
        self.db.execute(f"ALTER QUERY {name} SET ({what.format(of, size)})")
        for number in dict.fromkeys(numbers):
            if stream in (None, number.stream) and self._now(number) != size:
                self.steps.setdefault(number, []).append((self._begin(number, size), size))

    def _now(self, number: Number) -> int:
        return self.steps[number][-1][1] if number in self.steps else number.first

    def _begin(self, number: Number, size: int) -> int:
        """The first instant of a size: of a granule a multiple of the one before, unless it is a multiple."""
        newest = self._newest(number.stream)
        if number.what != GRANULE:
            return newest + 1
        # At the instant after the newest row it may have been said already when the next granule begins.
        begin = max([0 if newest < 0 else newest + 2, *(begun for begun, _ in self.steps.get(number, ()))])
        before = self._value(number, begin)
        return begin if size % before == 0 else -(-begin // before) * before

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
        kind = self.data.draw(st.sampled_from(self.kinds))
        name = f"{kind}_{len(self.queries)}"
        self.db.execute(f"CREATE QUERY {name} FROM BEGINNING AS {QUERIES[kind][0]}")
        self.queries[name] = kind

    def _later(self) -> None:
        """A query more that answers from now on, with the sizes that its windows have in others."""
        kind = self.data.draw(st.sampled_from(self.kinds))
        name = f"{kind}_{len(self.queries)}"
        self.db.execute(f"CREATE QUERY {name} AS {QUERIES[kind][0]}")
        gaps = self.db[name].gaps().to_pylist()
        if any(gap["exact_from"] is None for gap in gaps):
            self.db.execute(f"DROP QUERY {name}")
            return
        self.queries[name] = kind
        self.since[name] = max([*map(self._newest, self.rows), *(gap["exact_from"] for gap in gaps)]) + 1

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
            for instant in range(self.since.get(name, 0), last):
                found = content_at(said, query.schema.names, instant)
                expected = answer({key: self._window(key, instant) for key in keys})
                assert found == dict(expected), (
                    *(name, instant, self.steps),
                    self.rows,
                )

            self._check_sizes(name, QUERIES[kind][1])

    def _check_sizes(self, name: str, keys: Sequence[Key]) -> None:
        """The history names all sizes that the rows of an answer have, and what it is an answer of."""
        numbers = {number.named: number for key in keys for number in numbers_of(key)}
        for row in self.db[name].history(tunings=True).to_pylist():
            named: dict[Named, list[int]] = defaultdict(list)
            for one in row["tunings"]:
                assert (one["since"] is None) or one["since"] < row["valid_to"]
                named[Named(one["streams"], one["kind"], one["smallest"], one["largest"])].append(one["size"])
            assert numbers.keys() == named.keys()
            for instant in {row["valid_from"], row["valid_to"] - 1}:
                for key in keys:
                    self._check_named(key, instant, named)

    def _check_named(self, key: Key, instant: int, named: Mapping[Named, Sequence[int]]) -> None:
        numbers, rows = numbers_of(key), self._window(key, instant)
        for number in numbers:
            assert {self._value(number, row.ts) for row in rows} <= {*named[number.named]}
            assert self._value(number, instant) in named[number.named]
        if all(len(named[number.named]) == 1 for number in numbers):
            # What names one size is an answer of windows that always had it.
            kept = self.steps
            self.steps = {number: [(-1, named[number.named][0])] for number in numbers}
            assert self._window(key, instant) == rows, (key, instant, kept)
            self.steps = kept

    def _window(self, key: Key, instant: int) -> list[Row]:
        stream, kind = key
        rows = sorted(self.rows[stream], key=lambda row: (row.ts, row.k, row.v))
        if key == EACH:
            return [
                row for k in range(10) for row in self._last([row for row in rows if row.k == k], instant)
            ]
        if key == ROWS:
            return self._last(rows, instant)
        if key == NOW:
            return [row for row in rows if row.ts == instant]
        if key == THIRD:
            return self._window(S, instant // 3 * 3)
        if key == LESS:
            size = numbers_of(LESS)[0]
            return [row for row in rows if row.ts <= instant < row.ts + self._value(size, row.ts)]
        if key == COARSE:
            return [row for row in rows if self._is_shown(row, instant)]
        assert isinstance(kind, int)
        last, size = (instant + 1) // kind * kind - 1, Number(stream, TIME, kind)
        return [row for row in rows if row.ts <= last < row.ts + self._value(size, row.ts)]

    def _is_shown(self, row: Row, instant: int) -> bool:
        granule = self._value(Number("s", GRANULE), row.ts)
        ends = row.ts, row.ts + self._value(Number("s", TIME), row.ts)
        begin, end = (-(-at // granule) * granule for at in ends)
        return begin <= instant < end

    def _last(self, rows: Sequence[Row], instant: int) -> list[Row]:
        found: list[Row] = []
        for row in rows:
            if row.ts <= instant:
                found = [*found, row][-self._value(Number("s", COUNT), row.ts) :]
        return found

    def _value(self, number: Number, instant: int) -> int:
        found = number.first
        for begin, size in self.steps.get(number, ()):
            if begin <= instant:
                found = size
        return found


OTHERS = ["framed", "two_bounds", "granule_above", "over_derived", "of_derived"]
KINDS = {
    "windows": [name for name in QUERIES if not name.startswith(("coarse", "last", *OTHERS))],
    "others": [*OTHERS, "grouped"],
    "granules": [*(name for name in QUERIES if name.startswith("coarse")), "counted"],
    "rows": [*(name for name in QUERIES if name.startswith("last")), "joined"],
}


@pytest.mark.slow("runs whole databases, with restarts")
@pytest.mark.parametrize("kinds", KINDS)
@examples(6, 60)
@given(data=st.data())
def test_windows_hold_what_their_sizes_say(kinds: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage:
        life = Life(data, storage, KINDS[kinds])
        try:
            life.play()
        finally:
            life.db.close()


class Bounds(NamedTuple):
    """A window of a replacement: its bounds, and the sizes that it has, with their beginnings."""

    smallest: int
    largest: int
    steps: list[tuple[int, int]]

    def holds(self, row: Row, instant: int) -> bool:
        size = next((size for begin, size in reversed(self.steps) if begin <= row.ts), self.largest)
        return row.ts <= instant < row.ts + size


@pytest.mark.slow("runs whole databases, with restarts")
@examples(8, 80)
@given(data=st.data())
def test_a_replacement_with_other_bounds_answers_from_some_instant_on(data: st.DataObject) -> None:
    def sized() -> None:
        window = plans[-1]
        size = data.draw(st.integers(window.smallest, window.largest))
        db.execute(f"ALTER QUERY q SET (WINDOW {size})")
        window.steps.append((max((row.ts for row in rows), default=-1) + 1, size))

    def pushed() -> None:
        newest, found = max((row.ts for row in rows), default=-1), []
        for _ in range(data.draw(st.integers(1, 5))):
            found.append(Row(0, 0, max(0, newest + data.draw(st.integers(-3, 4)))))
            newest = max(newest, found[-1].ts)
        rows.extend(found)
        db.push("s", [row._asdict() for row in found])

    rows: list[Row] = []
    plans: list[Bounds] = []
    with tempfile.TemporaryDirectory() as storage:
        db = hr.connect(runner="inline", storage=storage)
        db.execute(STREAMS)
        for number in range(3):
            smallest = data.draw(st.integers(1, 5))
            largest = data.draw(st.integers(smallest + 1, 9))
            same = bool(plans) and (smallest, largest) == plans[-1][:2]
            text = f"SELECT COUNT(*) + {number} * 0 AS n FROM s WINDOW(RANGE MIN {smallest}, MAX {largest})"
            db.execute(f"CREATE OR REPLACE QUERY q AS {text}")
            plans.append(Bounds(smallest, largest, plans[-1].steps if same else []))
            if not number:
                db.start()
            for action in data.draw(st.lists(st.sampled_from((pushed, sized)), min_size=3, max_size=5)):
                action()
            if data.draw(st.booleans()):
                db.close()
                db = hr.connect(runner="inline", storage=storage)
                db.start()
        db.push("s", [Row(0, 0, max((row.ts for row in rows), default=0) + 60)._asdict()])
        _check_replaced(db, rows, plans)
        db.close()


def _check_replaced(db: hr.Database, rows: Sequence[Row], plans: Sequence[Bounds]) -> None:
    """At each instant the answer is that of one of the plans, in order, and it names that one's sizes."""
    said = db["q"].history(tunings=True).to_pylist()
    gaps = db["q"].gaps().to_pylist()
    present = 0
    for instant in range(max((row.ts for row in rows), default=0) + 20):
        if any((gap["lacks_from"] or 0) <= instant < (gap["exact_from"] or 0) for gap in gaps):
            continue
        row = next((one for one in said if one["valid_from"] <= instant < one["valid_to"]), None)
        counts = [sum(plan.holds(one, instant) for one in rows) for plan in plans]
        found = 0 if row is None else row["n"]
        while present < len(plans) and counts[present] != found:
            present += 1
        assert present < len(plans), (instant, found, counts, plans, rows)
        if row is not None and row["tunings"] is not None:
            assert counts[-1] == found, (instant, row, plans, rows)
            bounds = {(one["smallest"], one["largest"]) for one in row["tunings"]}
            assert bounds == {plans[-1][:2]}
            sizes = {one["size"] for one in row["tunings"]}
            last = plans[-1]
            steps = [last.largest, *(size for begin, size in last.steps if begin <= instant)]
            assert steps[-1] in sizes
    assert said[-1]["tunings"] is not None


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


@examples(20, 200)
@given(
    st.lists(st.lists(st.integers(0, 1), max_size=9), min_size=1, max_size=6),
    st.lists(st.integers(1, 9), max_size=5),
)
def test_what_has_left_a_window_of_rows_does_not_come_back(epochs: list[list[int]], sizes: list[int]) -> None:
    source = Source("s", Schema((Field("k", BIGINT),)), "ts", TimeDomain.INTEGER)
    steps = tuple(Step(1 + place, size) for place, size in enumerate(sizes))
    window = BoundedRowWindow(source, 9, keys=(column(source, 0),), smallest=1, steps=steps)
    # All rows of an epoch are of one instant, and each epoch has a size of its own.
    arriving = [
        Arriving({"s": [((k,), at, at + 1, 1) for k in keys]}, {"s": at + 1})
        for at, keys in enumerate(epochs)
    ]
    said = concat(source.schema, [batch for batch, _ in drive(window, {"s": source}, arriving)])
    held: dict[int, list[int]] = {0: [], 1: []}
    for at, keys in enumerate(epochs):
        size = sizes[at - 1] if 0 < at <= len(sizes) else (sizes[-1] if at and sizes else 9)
        for k in keys:
            held[k] = [*held[k], at][-size:]
        found: Counter[Any] = Counter()
        for row, ts, te, w in to_rows(said):
            found[row] += w * (ts <= at < te)
        assert +found == +Counter({(k,): len(rows) for k, rows in held.items()}), at


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


@given(STEPS, st.lists(st.integers(-3, 25), max_size=8))
def test_one_number_stands_for_many_only_where_all_are_the_same(
    changes: list[tuple[int, int]], instants: list[int]
) -> None:
    steps: StepFunction = ()
    for begin, size in sorted(changes):
        steps = with_step(steps, begin, size)
    found = value_or_values(9, steps, np.array(instants, dtype=np.int64))
    values = [value_at(9, steps, instant) for instant in instants]
    assert np.broadcast_to(np.asarray(found), len(instants)).tolist() == values
    if not any(min(instants) < begin <= max(instants) for begin, _ in steps if instants):
        assert isinstance(found, int)


def _refuse(*_: object) -> None:
    raise AssertionError("no expression is computed")
