"""Queries of which rows are left out say what brute force estimates of the rows that are kept.

A row is kept if its hash is below the share that is kept at its instant, and weighs 1 / that share. What is
counted here are those rows (Horvitz and Thompson), with the sums that the bounds are made of, while rows come
late, shares change, and the database is left and opened again.
"""

from __future__ import annotations

import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from answers_at import content_at
from headrace.optimizer.estimates import totals
from headrace.optimizer.estimates.totals import UNSEEN
from headrace.reference.sampling import drawn
from headrace.schema import BIGINT, STRING
from how_many import examples

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, note STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, v BIGINT, note STRING, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL
"""
TYPES = (BIGINT, BIGINT, STRING, BIGINT)
DISORDER = {"s": 3, "r": 0}
LEAST = 3
"""So many kept rows are enough for bounds here."""
DEVIATIONS = 1.959963984540054


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int | None
    note: str
    ts: int


class Kept(NamedTuple):
    """A row that is kept, with its weight and how often it is there at its instant."""

    row: Row
    weight: float
    times: int


Shares = Sequence[tuple[int, float]]
"""The shares that are kept, with the instants from which on."""


def kept_of(rows: Sequence[Row], shares: Shares, number: int, usual: Shares = ()) -> list[Kept]:
    """The rows that are kept of the stream of a number, equal ones as one.

    Args:
        rows: all of them.
        shares: the shares.
        number: the stream's.
        usual: how large values usually are, from which instants on.
    """
    found = []
    for row, count in Counter(rows).items():
        share, mean = share_at(shares, row.ts), mean_at(usual, row.ts)
        weight = weight_of(share, None if mean is None else abs(row.v or 0) / mean)
        if drawn(row, TYPES, row.ts, number) < int(Fraction(2**64) / Fraction(weight)):
            found.append(Kept(row, weight, count))
    return found


def weight_of(share: float, size: float | None) -> float:
    """The weight of a row that is so many times as large as usual; of one whose size is not known if None."""
    part = round(share * 1_000_000)
    if size is None or share == 1:
        return 1_000_000 / part
    return 1.0 if size * share >= 2 else 1 + 2 * (1_000_000 - part) / part / (1 + size)


def mean_at(usual: Shares, instant: int) -> float | None:
    return next((mean for begin, mean in reversed(usual) if begin <= instant), None)


def share_at(shares: Shares, instant: int) -> float:
    return next((share for begin, share in reversed(shares) if begin <= instant), 1.0)


class Sum:
    """A COUNT or a SUM of some rows, as the sums that its estimate is made of."""

    def __init__(self, kept: Sequence[Kept], value: Callable[[Row], int | None]) -> None:
        self.all = kept
        self.kept = [(one, given) for one in kept if (given := value(one.row)) is not None]
        self.rows = sum(one.weight > 1 and given != 0 for one, given in self.kept)
        self.exact = sum(one.times * given for one, given in self.kept)
        self.missing = total((one.weight - 1) * float(one.times * given) for one, given in self.kept)
        self.whole = self.exact + self.missing

    def times(self, other: Sum) -> float:
        mine = dict(self.kept)
        both = [(one, mine[one], given) for one, given in other.kept if one in mine]
        return total(w_w1(one) * (one.times * one.times * a * b) for one, a, b in both)

    def unseen(self, largest: float, is_count: bool, by_size: bool) -> float:
        variance, most = self.times(self), largest * (largest - 1)
        if is_count:
            return UNSEEN * most / max(variance, 1e-300)
        if not by_size:
            fourth = total(w_w1(one) * float(one.times * given) ** 4 for one, given in self.kept)
            return UNSEEN * most * (fourth / max(variance * variance, 1e-300))
        squares = total((w_w1(one) * (one.times * given) ** 2) ** 2 for one, given in self.kept)
        half = (largest - 1) / 2
        spreads = total(w_w1(one) for one in self.all)
        present = total(w_w1(one) ** 2 for one in self.all) / max(spreads, 1e-300)
        rarer = max(1.0, half * (1 + half) / max(present, 1e-300))
        return UNSEEN * rarer * squares / max(variance * variance, 1e-300)


def w_w1(one: Kept) -> float:
    return one.weight * (one.weight - 1)


def total(values: Any) -> float:
    """A sum that is rounded once."""
    return float(sum(map(Fraction, values)))


def bounds(
    value: float, slopes: Mapping[Sum, float], counts: Sequence[Sum], largest: float, by_size: bool = True
) -> tuple[float, float] | None:
    """The bounds of what is computed of sums, by their derivatives; None where too few rows are kept."""
    if any(one.rows < LEAST for one in slopes):
        return None
    variance = sum(slopes[a] * slopes[b] * a.times(b) for a, b in product(slopes, repeat=2))
    factor = 1 + max(one.unseen(largest, one in counts, by_size) for one in slopes)
    width = DEVIATIONS * math.sqrt(max(variance, 0.0) * factor)
    return value - width, value + width


Triple = tuple[float | None, float | None, float | None]


def counted(kept: Sequence[Kept], largest: float, where: Callable[[Row], bool] = lambda _: True) -> Triple:
    rows = Sum(kept, lambda row: 1 if where(row) else None)
    value = rows.exact + rounded(rows.missing)
    if largest == 1:
        return value, value, value
    found = bounds(rows.whole, {rows: 1.0}, [rows], largest)
    return (value, None, None) if found is None else (value, max(rows.exact, down(found[0])), up(found[1]))


def summed(kept: Sequence[Kept], largest: float) -> Triple:
    values = Sum(kept, lambda row: row.v)
    if not values.kept:
        return None, None, None
    value = values.exact + rounded(values.missing)
    if largest == 1:
        return value, value, value
    found = bounds(values.whole, {values: 1.0}, [], largest)
    return (value, None, None) if found is None else (value, down(found[0]), up(found[1]))


def averaged(kept: Sequence[Kept], largest: float) -> Triple:
    values, rows = Sum(kept, lambda row: row.v), Sum(kept, lambda row: None if row.v is None else 1)
    if not values.kept:
        return None, None, None
    value = values.whole / rows.whole
    if largest == 1:
        return value, value, value
    slopes = {values: 1 / rows.whole, rows: -value / rows.whole}
    found = bounds(value, slopes, [rows], largest)
    return (value, None, None) if found is None else (value, *found)


def rounded(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def down(value: float) -> float:
    return math.floor(value)


def up(value: float) -> float:
    return math.ceil(value)


Window = Callable[[int], tuple[int, int]]
"""The first and the last instant of the window at an instant."""


def sliding(size: int, slide: int = 1) -> Window:
    def window(instant: int) -> tuple[int, int]:
        last = (instant + 1) // slide * slide - 1
        return last - size + 1, last

    return window


class Asked(NamedTuple):
    """A query: its text, its streams and window, and the answer of a group of kept rows."""

    text: str
    streams: str
    window: Window
    answer: Callable[[Sequence[Kept], float], tuple[Any, ...]]
    by: Callable[[Row], tuple[Any, ...]] = lambda _: ()
    where: Callable[[Row], bool] = lambda _: True
    at_ends: bool = False


def _several(kept: Sequence[Kept], largest: float) -> tuple[Any, ...]:
    return (
        *counted(kept, largest),
        *summed(kept, largest),
        *averaged(kept, largest),
        *counted(kept, largest, lambda row: row.v is not None and row.v > 1),
    )


SEVERAL = "COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, COUNT(*) FILTER (WHERE v > 1) AS f"
QUERIES: Mapping[str, Asked] = {
    "counted": Asked("SELECT COUNT(*) AS n FROM s [RANGE 12]", "s", sliding(12), counted),
    "grouped": Asked(
        f"SELECT k, {SEVERAL} FROM s [RANGE 12] GROUP BY k", "s", sliding(12), _several, lambda row: (row.k,)
    ),
    "slides": Asked(
        "SELECT SUM(v) AS s FROM s [RANGE 12 SLIDE 5] WHERE v < 3 OR v IS NULL",
        "s",
        sliding(12, 5),
        summed,
        where=lambda row: row.v is None or row.v < 3,
    ),
    "ever": Asked("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]", "s", lambda at: (-100, at), counted),
    "united": Asked(
        "SELECT SUM(v) AS s FROM (SELECT v FROM s UNION ALL SELECT v FROM r) [RANGE 9]",
        "sr",
        sliding(9),
        summed,
    ),
    "joined": Asked(
        "SELECT k2, COUNT(*) AS n FROM s [RANGE 12], "
        "(SELECT k AS k1, MAX(k2) AS k2 FROM kinds GROUP BY k) WHERE k = k1 GROUP BY k2",
        "s",
        sliding(12),
        counted,
        lambda row: (row.k * 10,),
        lambda row: row.k < 2,
    ),
    "ends": Asked(
        "SELECT window_end, COUNT(*) AS n, AVG(v) AS a FROM HOP(s, ts, 5, 10) "
        "GROUP BY window_start, window_end",
        "s",
        sliding(10, 5),
        lambda kept, largest: (*counted(kept, largest), *averaged(kept, largest)),
        at_ends=True,
    ),
}
ACTIONS = ("restart", "past", "pause", "again", "keep")
ROUNDS = 3


class Life:
    """A database that Hypothesis fills, leaves, and tells other shares."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: dict[str, list[Row]] = {"s": [], "r": []}
        self.shares: dict[str, list[tuple[int, float]]] = defaultdict(list)
        names = data.draw(st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=2, unique=True))
        self.queries = {name: name for name in names}
        self.open()
        self.db.execute(STREAMS)
        self.db.execute("CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r")
        for name in names:
            self.db.execute(f"CREATE QUERY {name} LOSS TOLERANT AS {QUERIES[name].text}")
        self.db.start()

    def open(self) -> None:
        self.db = hr.connect(runner="inline", storage=self.storage)
        self.db.relation("kinds", KINDS)

    def play(self) -> None:
        for _ in range(ROUNDS):
            for action in ("push", "keep", "push", self.data.draw(st.sampled_from(ACTIONS)), "push"):
                getattr(self, f"_{action}")()
                self.check()
        for stream in self.rows:
            self._pushed(stream, [Row(9, 0, "", self._newest(stream) + 40)])
        self.check()

    def _newest(self, streams: str) -> int:
        return max((row.ts for stream in streams for row in self.rows[stream]), default=-1)

    def _push(self) -> None:
        stream = self.data.draw(st.sampled_from("ssr"))
        found, newest = [], self._newest(stream)
        for _ in range(self.data.draw(st.integers(1, 12))):
            ts = max(0, newest + self.data.draw(st.integers(-DISORDER[stream], 3)))
            value = self.data.draw(st.sampled_from((None, 0, 1, 2, 3)))
            note = self.data.draw(st.sampled_from(("a", "b", "c")))
            found.append(Row(self.data.draw(st.integers(0, 2)), value, note, ts))
            newest = max(newest, ts)
        self._pushed(stream, found)

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [row._asdict() for row in rows])

    def _keep(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        streams = QUERIES[self.queries[name]].streams
        share = self.data.draw(st.sampled_from((0.2, 0.5, 0.75, 1.0)))
        self.db.execute(f"ALTER QUERY {name} SET (KEEP {share})")
        if share_at(self.shares[streams], 10**9) != share:
            self.shares[streams].append((self._newest(streams) + 1, share))

    def _restart(self) -> None:
        self.db.close()
        self.open()
        self.db.start()

    def _past(self) -> None:
        """A query more, which reads all rows again that came."""
        kind = self.data.draw(st.sampled_from(sorted(QUERIES)))
        name = f"{kind}_{len(self.queries)}"
        self.db.execute(f"CREATE QUERY {name} LOSS TOLERANT FROM BEGINNING AS {QUERIES[kind].text}")
        self.queries[name] = kind

    def _pause(self) -> None:
        """A pause in which rows go on."""
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        if all(self.rows.values()):
            self.db.execute(f"ALTER QUERY {name} PAUSE KEEPING INPUT")
            self._push()
            self.db.execute(f"ALTER QUERY {name} RESUME")

    def _again(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        text = QUERIES[self.queries[name]].text
        self.db.execute(f"CREATE OR REPLACE QUERY {name} LOSS TOLERANT AS {text}")

    def check(self) -> None:
        """Every query says what brute force estimates, up to where it speaks."""
        for name, kind in self.queries.items():
            query, asked = self.db[name], QUERIES[kind]
            said = query.changes().to_pylist()
            kept = []
            for number, stream in enumerate(sorted(asked.streams)):
                rows = [row for row in self.rows[stream] if asked.where(row)]
                usual = self.usual(asked, stream)
                kept += kept_of(rows, self.shares[asked.streams], number, usual)
            for instant in range(min(query.horizon, self._newest("sr") + 14)):
                found = content_at(said, query.schema.names, instant)
                expected = self._expected(asked, kept, instant)
                where = (name, instant, self.shares, rows)
                assert_close(found, expected, where)

    def usual(self, asked: Asked, stream: str) -> Shares:
        """The usual sizes of values of a stream, as the run has noted them where shares were changed."""
        if "(v)" not in asked.text:
            return ()
        found = self.db.status.tunings.items()
        (scales,) = [known.scales for one, known in found if one.streams == tuple(sorted(asked.streams))] or [
            ()
        ]
        named = [(scale.begin, dict(scale.means)) for scale in scales]
        name = f"{stream}: CAST(v AS DOUBLE)"
        return [(begin, means[name]) for begin, means in named if name in means]

    def _expected(self, asked: Asked, kept: Sequence[Kept], instant: int) -> list[tuple[Any, ...]]:
        first, last = asked.window(instant)
        if asked.at_ends and last != instant:
            return []
        groups: dict[tuple[Any, ...], list[Kept]] = defaultdict(list)
        for one in kept:
            if first <= one.row.ts <= last:
                groups[asked.by(one.row)].append(one)
        shares = self.shares[asked.streams]
        usual = [self.usual(asked, stream) for stream in asked.streams]
        begins = [begin for one in (shares, *usual) for begin, _ in one if first <= begin <= last]
        largest = max(
            weight_of(share_at(shares, when), next((0.0 for one in usual if mean_at(one, when)), None))
            for when in (first, *begins)
        )
        bound = (last + 1,) if asked.at_ends else ()
        return [(*key, *bound, *asked.answer(rows, largest)) for key, rows in groups.items()]


def assert_close(
    found: Mapping[tuple[Any, ...], int], expected: list[tuple[Any, ...]], where: object
) -> None:
    """See that rows are there once each, with numbers that are equal but for the rounding of bounds."""
    assert set(found.values()) <= {1}, (found, where)
    given, asked = (sorted(rows, key=repr) for rows in (found, expected))
    assert len(given) == len(asked), (given, asked, where)
    for one, other in zip(given, asked, strict=True):
        for mine, yours in zip(one, other, strict=True):
            same = (
                mine == yours
                if None in (mine, yours)
                else math.isclose(mine, yours, rel_tol=1e-9, abs_tol=1e-9)
            )
            assert same, (one, other, where)


KINDS = [{"k": 0, "k2": 0}, {"k": 1, "k2": 10}, {"k": 1, "k2": 5}]


@pytest.mark.slow("runs whole databases, with restarts")
@examples(12, 120)
@given(st.data())
def test_estimates_are_those_of_the_rows_that_are_kept(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as storage, patch.object(totals, "LEAST_ROWS", LEAST):
        life = Life(data, storage)
        try:
            life.play()
        finally:
            life.db.close()
