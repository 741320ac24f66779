"""Rows that are left out by their values: answers are those of rows that are worth enough at their instant.

Rows come late and are of values between the points of a graph, on them, beyond them, NULL and NaN; thresholds
change, and the database is left and opened again, queries are paused, replaced, begun from the past and made
to answer early.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from answers_at import content_at
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, d DOUBLE, m DECIMAL(6, 2), ts BIGINT)
    FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, v BIGINT, d DOUBLE, m DECIMAL(6, 2), ts BIGINT)
    FROM push TIMESTAMP BY ts DISORDER 1 RETAIN ALL
"""
DISORDER = {"s": 3, "r": 1}
POINTS = {
    "rising": "(0: 0.1, 3: 0.5, 9: 1)",
    "valley": "(-2: 0.8, 1: 0.2, 4: 0.9)",
    "flat": "(1: 0.3, 2: 0.3, 2.5: 0.7, 7: 0)",
}
THRESHOLDS = ("0", "0.1", "0.3", "0.333333", "0.5", "0.75", "1")
VALUES = (None, -3, -1, 0, 1, 2, 3, 4, 5, 7, 8, 20)
DOUBLES = (None, math.nan, math.inf, -math.inf, -2.0, 0.1, 2.2, 2.5, 7.0, 1e300, 0.5)
DECIMALS = (None, *map(Decimal, ("-2.00", "1.33", "2.12", "2.13", "3.00", "9.99")))


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int | None
    d: float | None
    m: Decimal | None
    ts: int


class Asked(NamedTuple):
    """A query: its text, by which column rows are worth something, and its rows' streams and windows.

    Attributes:
        text: its SELECT.
        column: the column whose values matter.
        by: the name of that column in the answer.
        sides: stream and size of each window; the first one's rows are left out.
        answer: the row of the answer for one of each side; None if they do not match.
    """

    text: str
    column: str
    by: str
    sides: Sequence[tuple[str, int]]
    answer: Callable[..., tuple[Any, ...] | None]


QUERIES: Mapping[str, Asked] = {
    "rows": Asked("SELECT k, v FROM s WHERE k > 0", "v", "v", [("s", 1)], lambda a: _if(a.k > 0, a.k, a.v)),
    "windowed": Asked("SELECT v AS w FROM s [RANGE 6]", "v", "w", [("s", 6)], lambda a: (a.v,)),
    "doubles": Asked("SELECT d, k + 1 AS l FROM s [RANGE 4]", "d", "D", [("s", 4)], lambda a: (a.d, a.k + 1)),
    "decimals": Asked("SELECT m FROM r [RANGE 5]", "m", "m", [("r", 5)], lambda a: (a.m,)),
    "pairs": Asked(
        "SELECT b.v, a.m FROM r [RANGE 4] a JOIN s [RANGE 7] b ON a.k = b.k",
        "v",
        "v",
        [("s", 7), ("r", 4)],
        lambda b, a: _if(a.k == b.k, b.v, a.m),
    ),
    "both": Asked(
        "SELECT v FROM (SELECT k, v FROM s WHERE k > 0 UNION ALL SELECT k, v FROM s WHERE k = 0) [RANGE 5]",
        "v",
        "v",
        [("s", 5)],
        lambda a: (a.v,),
    ),
}
ROUNDS = 4
ACTIONS = ("restart", "level", "past", "pause", "again", "keep")


def _if(holds: bool, *row: Any) -> tuple[Any, ...] | None:
    return row if holds else None


class Life:
    """A database that Hypothesis fills, leaves, and tells other thresholds."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        names = data.draw(st.lists(st.sampled_from(list(QUERIES)), min_size=1, max_size=3, unique=True))
        self.graphs = {name: data.draw(st.sampled_from(list(POINTS))) for name in names}
        self.queries = {name: name for name in names}
        self.steps: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
        self.early: set[str] = set()
        self.db = hr.connect(runner="inline", storage=storage, buckets=data.draw(st.integers(1, 3)))
        self.db.execute(STREAMS)
        self.db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        for name in names:
            self.db.execute(f"CREATE QUERY {name} {self._text(name)}")
        self.db.start()

    def _text(self, kind: str) -> str:
        return f"LOSS TOLERANT BY {QUERIES[kind].by} {POINTS[self.graphs[kind]]} AS {QUERIES[kind].text}"

    def key(self, kind: str) -> tuple[Any, ...]:
        """The queries that have one threshold have this in common."""
        asked = QUERIES[kind]
        return asked.sides[0][0], asked.by.lower(), self.graphs[kind]

    def play(self) -> None:
        for _ in range(ROUNDS):
            for action in ("push", "keep", "push", self.data.draw(st.sampled_from(ACTIONS)), "push"):
                getattr(self, f"_{action}")()
                self.check()
        for stream in self.rows:
            self._pushed(stream, [Row(9, 0, None, None, self._newest(stream) + 40)])
        self.check()

    def _newest(self, stream: str) -> int:
        return max((row.ts for row in self.rows[stream]), default=-1)

    def _push(self) -> None:
        stream = self.data.draw(st.sampled_from("ssr"))
        found, newest = [], self._newest(stream)
        for _ in range(self.data.draw(st.integers(1, 5))):
            ts = max(0, newest + self.data.draw(st.integers(-DISORDER[stream], 3)))
            k, v = self.data.draw(st.integers(0, 1)), self.data.draw(st.sampled_from(VALUES))
            d, m = self.data.draw(st.sampled_from(DOUBLES)), self.data.draw(st.sampled_from(DECIMALS))
            found.append(Row(k, v, d, m, ts))
            newest = max(newest, ts)
        self._pushed(stream, found)

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [row._asdict() for row in rows])

    def _keep(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        threshold, key = self.data.draw(st.sampled_from(THRESHOLDS)), self.key(self.queries[name])
        self.db.execute(f"ALTER QUERY {name} SET (KEEP UTILITY {threshold})")
        known = self.steps.setdefault(key, [])
        if threshold == (known[-1][1] if known else "0"):
            return
        begin = self._newest(key[0]) + 1
        if known and known[-1][0] == begin:
            known.pop()
        known.append((begin, threshold))

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
        kind = self.data.draw(st.sampled_from(sorted(set(self.queries.values()))))
        name = f"{kind}_{len(self.queries)}"
        self.db.execute(f"CREATE QUERY {name} {self._text(kind).replace(' AS ', ' FROM BEGINNING AS ', 1)}")
        self.queries[name] = kind

    def _pause(self) -> None:
        """A pause in which rows and thresholds go on."""
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if name in self.early or not all(self.rows.values()):
            return
        self.db.execute(f"ALTER QUERY {name} PAUSE KEEPING INPUT")
        self._push()
        self.db.execute(f"ALTER QUERY {name} RESUME")

    def _again(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if name not in self.early:
            self.db.execute(f"CREATE OR REPLACE QUERY {name} {self._text(self.queries[name])}")

    def check(self) -> None:
        """Every query says what brute force finds, up to where it speaks."""
        for name, kind in self.queries.items():
            query, asked = self.db[name], QUERIES[kind]
            names, kept = query.schema.names, list(self._kept(kind))
            said = [
                row | dict(zip(names, _shown(row[name] for name in names), strict=True))
                for row in query.changes().to_pylist()
            ]
            for instant in range(min(query.horizon, max(map(self._newest, self.rows)) + 9)):
                found = content_at(said, names, instant)
                expected = Counter(
                    _shown(answer)
                    for rows in kept
                    if all(
                        row.ts <= instant < row.ts + size
                        for row, (_, size) in zip(rows, asked.sides, strict=True)
                    )
                    and (answer := asked.answer(*rows)) is not None
                )
                assert found == dict(expected), (
                    *(name, instant, self.graphs, self.steps),
                    self.rows,
                )

    def _kept(self, kind: str) -> Any:
        """The combinations of rows of which the first is worth enough at its instant."""
        asked, steps = QUERIES[kind], self.steps.get(self.key(kind), [])
        for rows in product(*(self.rows[stream] for stream, _ in asked.sides)):
            least = next((value for begin, value in reversed(steps) if begin <= rows[0].ts), "0")
            worth = _utility(getattr(rows[0], asked.column), POINTS[self.graphs[kind]])
            if worth is None or worth >= Fraction(least):
                yield rows


def _utility(value: float | Decimal | None, text: str) -> Fraction | None:
    """The utility of a value, on the lines through the points of a graph; None where it has none."""
    if value is None or math.isnan(value):
        return None
    points = [[Fraction(part) for part in point.split(":")] for point in text.strip("()").split(",")]
    infinite = isinstance(value, float) and math.isinf(value)
    at = points[0 if value < 0 else -1][0] if infinite else Fraction(value)
    for (begin, low), (end, high) in pairwise(points):
        if begin <= at <= end:
            return (low * (end - at) + high * (at - begin)) / (end - begin)
    return points[0][1] if at < points[0][0] else points[-1][1]


def _shown(row: Any) -> tuple[Any, ...]:
    """A row that can be compared: NaN equals itself."""
    return tuple(repr(value) if isinstance(value, float) else str(value) for value in row)


@pytest.mark.slow("runs whole databases, with restarts")
@examples(12, 120)
@given(data=st.data())
def test_rows_are_answered_that_are_worth_enough_at_their_instant(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage:
        life = Life(data, storage)
        try:
            life.play()
        finally:
            life.db.close()
