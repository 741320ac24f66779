"""Joins of two streams of which rows are left out by key: estimates and bounds are those of brute force.

A key is kept at an instant if its hash is below the share there, and a pair weighs as the smaller share of
its two rows says. What the pairs of a key add is not independent: bounds are by sums over keys.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.optimizer.estimates import clusters
from headrace.optimizer.estimates.totals import UNSEEN
from headrace.reference.sampling import drawn
from headrace.schema import BIGINT
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL
"""
LEAST = 2
DEVIATIONS = 1.959963984540054


class Row(NamedTuple):
    """A row that was pushed."""

    k: int | None
    v: int | None
    ts: int


class Pair(NamedTuple):
    """A pair that is kept."""

    left: Row
    right: Row
    key: int
    weight: float


class Asked(NamedTuple):
    """A join: its text, the streams and window sizes of its sides, and the key of a row of each."""

    text: str
    sides: tuple[str, str]
    sizes: tuple[int, int]
    keys: tuple[Callable[[Row], int | None], Callable[[Row], int | None]]


SELECTED = "a.v AS g, COUNT(*) AS n, SUM(b.v) AS x, AVG(b.v) AS y"
BY_K = (lambda row: row.k, lambda row: row.k)
QUERIES: Mapping[str, Asked] = {
    "two": Asked(
        f"SELECT {SELECTED} FROM s [RANGE 12] a JOIN r [RANGE 7] b ON a.k = b.k GROUP BY a.v",
        ("s", "r"),
        (12, 7),
        BY_K,
    ),
    "itself": Asked(
        f"SELECT {SELECTED} FROM s [RANGE 9] a JOIN s [RANGE 9] b ON a.k = b.k GROUP BY a.v",
        ("s", "s"),
        (9, 9),
        BY_K,
    ),
    "crosswise": Asked(
        f"SELECT {SELECTED} FROM s [RANGE 9] a JOIN s [RANGE 5] b ON a.k = b.v GROUP BY a.v",
        ("s", "s"),
        (9, 5),
        (lambda row: row.k, lambda row: row.v),
    ),
}
Shares = Sequence[tuple[int, float]]


def share_at(shares: Shares, instant: int) -> float:
    return next((share for begin, share in reversed(shares) if begin <= instant), 1.0)


def pairs_at(asked: Asked, rows: Mapping[str, Sequence[Row]], shares: Shares, instant: int) -> list[Pair]:
    """The pairs at an instant whose key is kept by the shares of both rows."""
    sides = [
        [row for row in rows[name] if row.ts <= instant < row.ts + size]
        for name, size in zip(asked.sides, asked.sizes, strict=True)
    ]
    found = []
    for left, right in product(*sides):
        key = asked.keys[0](left)
        share = min(share_at(shares, left.ts), share_at(shares, right.ts))
        if key is not None and key == asked.keys[1](right):
            hashed = drawn((key,), (BIGINT,))
            if hashed < Fraction(str(share)) * 2**64:
                found.append(Pair(left, right, hashed, 1_000_000 / round(share * 1_000_000)))
    return found


class Sum:
    """A sum over pairs, with what each key adds: of the pairs, and of what they stand for besides."""

    def __init__(self, pairs: Sequence[Pair], value: Callable[[Pair], int | None]) -> None:
        given = [(pair, found) for pair in pairs if (found := value(pair)) is not None]
        self.pairs = [pair for pair, _ in given]
        self.kept = sum(found for _, found in given)
        self.of: dict[int, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
        for pair, found in given:
            if pair.weight > 1:
                own, more = self.of[pair.key]
                self.of[pair.key] = own + found, more + (pair.weight - 1) * found
        self.missing = sum(more for _, more in self.of.values())
        self.whole = self.kept + self.missing

    def times(self, other: Sum) -> float:
        keys = self.of.keys() & other.of.keys()
        both = ((*self.of[key], *other.of[key]) for key in keys)
        return sum(((a + b) * d + (c + d) * b) / 2 for a, b, c, d in both)

    def unseen(self, largest: float) -> float:
        variance = self.times(self)
        fourth = sum((own + more) * more * own * own for own, more in self.of.values())
        return UNSEEN * largest * (largest - 1) * fourth / max(variance * variance, 1e-300)

    @property
    def enough(self) -> bool:
        return sum(more != 0 for _, more in self.of.values()) >= LEAST


def width(slopes: Mapping[Sum, float], largest: float) -> float | None:
    """The distance of bounds; None where too few keys are kept."""
    if not all(one.enough for one in slopes):
        return None
    variance = 0.0
    for one, other in combinations_with_replacement(slopes, 2):
        twice = 1 if one is other else 2
        variance += twice * slopes[one] * slopes[other] * one.times(other)
    return DEVIATIONS * math.sqrt(max(variance, 0.0) * (1 + max(one.unseen(largest) for one in slopes)))


def rounded(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def expected(pairs: Sequence[Pair], largest: float) -> list[tuple[float | None, ...]]:
    """The rows of the answer."""
    groups: dict[int | None, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.left.v].append(pair)
    found = []
    for group, kept in groups.items():
        count, total = Sum(kept, lambda _: 1), Sum(kept, lambda pair: pair.right.v)
        values = Sum(kept, lambda pair: None if pair.right.v is None else 1)
        row: list[float | None] = [group]
        n = count.kept + rounded(count.missing)
        away = 0.0 if largest == 1 else width({count: 1.0}, largest)
        at = count.whole if largest > 1 else n
        row += [
            n,
            *(
                (None, None)
                if away is None
                else (max(count.kept, math.floor(at - away)), math.ceil(at + away))
            ),
        ]
        if not total.pairs:
            row += [None] * 6
        else:
            x = total.kept + rounded(total.missing)
            away = 0.0 if largest == 1 else width({total: 1.0}, largest)
            at = total.whole if largest > 1 else x
            row += [x, *((None, None) if away is None else (math.floor(at - away), math.ceil(at + away)))]
            y = total.whole / values.whole
            slopes = {total: 1 / values.whole, values: -y / values.whole}
            away = 0.0 if largest == 1 else width(slopes, largest)
            row += [y, *((None, None) if away is None else (y - away, y + away))]
        found.append(tuple(row))
    return found


class Life:
    """A database with joins that Hypothesis fills, leaves, and tells other shares."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        self.shares: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
        self.db = hr.connect(runner="inline", storage=storage, buckets=2)
        self.db.execute(STREAMS)
        self.db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        self.names = data.draw(
            st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=2, unique=True)
        )
        for name in self.names:
            self.db.execute(f"CREATE QUERY {name} LOSS TOLERANT AS {QUERIES[name].text}")
        self.db.start()

    def play(self) -> None:
        for _ in range(4):
            for action in ("push", "keep", "push", self.data.draw(st.sampled_from(("restart", "push")))):
                getattr(self, f"_{action}")()
        last = max(row.ts for rows in self.rows.values() for row in rows) + 30
        for stream in self.rows:
            self._pushed(stream, [Row(None, 0, last)])
        for name in self.names:
            self._check(name)

    def _newest(self, streams: Sequence[str]) -> int:
        return max((row.ts for stream in streams for row in self.rows[stream]), default=-1)

    def _push(self) -> None:
        stream = self.data.draw(st.sampled_from("sr"))
        newest, found = self._newest(stream), []
        late = -3 if stream == "s" else 0
        for _ in range(self.data.draw(st.integers(3, 14))):
            ts = max(0, newest + self.data.draw(st.integers(late, 2)))
            value = self.data.draw(st.sampled_from((None, 0, 1, 2)))
            found.append(Row(self.data.draw(st.integers(0, 5)), value, ts))
            newest = max(newest, ts)
        self._pushed(stream, found)

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [row._asdict() for row in rows])

    def _keep(self) -> None:
        name = self.data.draw(st.sampled_from(self.names))
        streams = tuple(sorted(set(QUERIES[name].sides)))
        share = self.data.draw(st.sampled_from((0.3, 0.5, 0.75, 1.0)))
        self.db.execute(f"ALTER QUERY {name} SET (KEEP {share})")
        if share_at(self.shares[streams], 10**9) != share:
            self.shares[streams].append((self._newest(streams) + 1, share))

    def _restart(self) -> None:
        self.db.close()
        self.db = hr.connect(runner="inline", storage=self.storage, buckets=2)
        self.db.start()

    def _check(self, name: str) -> None:
        query, asked = self.db[name], QUERIES[name]
        shares = self.shares[tuple(sorted(set(asked.sides)))]
        for instant in range(min(query.horizon, self._newest("sr"))):
            first = instant - max(asked.sizes) + 1
            inside = [begin for begin, _ in shares if first <= begin <= instant]
            largest = 1 / min(share_at(shares, when) for when in (first, *inside))
            rows = {row[0]: row for row in expected(pairs_at(asked, self.rows, shares, instant), largest)}
            said = {row["g"]: tuple(row.values()) for row in query.snapshot(instant).to_pylist()}
            where = (name, instant, shares, said, rows)
            assert said.keys() == rows.keys(), where
            for group, one in said.items():
                assert all(map(is_close, one, rows[group])), (group, *where)


def is_close(one: float | None, other: float | None) -> bool:
    """Whether two numbers are equal but for rounding, or both are missing."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.slow("runs whole databases, with restarts")
@examples(10, 100)
@given(st.data())
def test_estimates_of_joins_are_those_of_the_keys_that_are_kept(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage, patch.object(clusters, "LEAST_ROWS", LEAST):
        life = Life(data, storage)
        try:
            life.play()
        finally:
            life.db.close()
