"""Joins that remember a share of their rows find the pairs that brute force finds, while shares change.

A pair is found if each of its rows is remembered up to the newest: if its draw is below every share that was
in force from its own instant up to that one. Rows come late, and the database is left and opened again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
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
from headrace.algebra.tunings.tunings import Tuning, remembered_in
from headrace.reference.sampling import drawn
from headrace.runtime.driver.change.wanted import Tune
from headrace.runtime.driver.remembering.remembering import Remembering
from headrace.schema import BIGINT
from how_many import examples
from inside import core_of

STREAMS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 3 RETAIN ALL;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts RETAIN ALL;
CREATE STREAM t (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 1 RETAIN ALL
"""
DISORDER = {"s": 3, "r": 0, "t": 1}
SHARES = (1, 20_000, 300_000, 500_000, 800_000, 1_000_000)
EVER = 10**6


class Row(NamedTuple):
    """A row that was pushed."""

    k: int
    v: int
    ts: int


class Side(NamedTuple):
    """Rows of a join: their stream, and the size and the slide of their window."""

    stream: str
    size: int
    slide: int = 1


class Asked(NamedTuple):
    """A query: its text, its rows by number, which of them match, and what is answered."""

    text: str
    sides: Sequence[Side]
    matches: Callable[..., bool]
    answer: Callable[..., tuple[Any, ...]]


def _same(*rows: Row) -> bool:
    return len({row.k for row in rows}) == 1


def _values(*rows: Row) -> tuple[Any, ...]:
    return tuple(row.v for row in rows)


QUERIES: Mapping[str, Asked] = {
    "two": Asked(
        "SELECT a.v, b.v AS w FROM s [RANGE 6] a JOIN r [RANGE 9] b ON a.k = b.k",
        (Side("s", 6), Side("r", 9)),
        _same,
        _values,
    ),
    "ever": Asked(
        "SELECT a.v, b.v AS w FROM s [RANGE UNBOUNDED] a JOIN r [RANGE 4] b ON a.k = b.k AND a.v <= b.v",
        (Side("s", EVER), Side("r", 4)),
        lambda a, b: a.k == b.k and a.v <= b.v,
        _values,
    ),
    "slides": Asked(
        "SELECT a.v, b.v AS w FROM s [RANGE 7 SLIDE 3] a JOIN r [RANGE 8 SLIDE 4] b ON a.k = b.k",
        (Side("s", 7, 3), Side("r", 8, 4)),
        _same,
        _values,
    ),
    "itself": Asked(
        "SELECT a.v, b.v AS w FROM s [RANGE 5] a JOIN s [RANGE 8] b ON a.k = b.k WHERE a.v > 0",
        (Side("s", 5), Side("s", 8)),
        lambda a, b: a.k == b.k and a.v > 0,
        _values,
    ),
    "three": Asked(
        """SELECT a.v, b.v AS w, c.v AS x FROM s [RANGE 6] a JOIN r [RANGE 9] b ON a.k = b.k
           JOIN t [RANGE 7] c ON b.k = c.k""",
        (Side("s", 6), Side("r", 9), Side("t", 7)),
        _same,
        _values,
    ),
    "now": Asked(
        "SELECT a.v, b.v AS w FROM s [NOW] a JOIN r [RANGE 9] b ON a.k = b.k",
        (Side("s", 1), Side("r", 9)),
        _same,
        _values,
    ),
    "crossed": Asked(
        "SELECT a.k, a.v, b.k AS l, b.v AS w FROM s [RANGE 3] a CROSS JOIN r [RANGE 4] b",
        (Side("s", 3), Side("r", 4)),
        lambda *_: True,
        lambda a, b: (a.k, a.v, b.k, b.v),
    ),
}
ROUNDS = 4
ACTIONS = ("restart", "level", "past", "pause", "again", "share")


class Life:
    """A database that Hypothesis fills, leaves, and tells other shares."""

    def __init__(self, data: st.DataObject, storage: str) -> None:
        self.data, self.storage = data, storage
        self.rows: dict[str, list[Row]] = {"s": [], "r": [], "t": []}
        self.steps: dict[Tuning, list[tuple[int, int]]] = {}
        names = data.draw(st.lists(st.sampled_from(list(QUERIES)), min_size=1, max_size=3, unique=True))
        self.queries = {name: name for name in names}
        self.early: set[str] = set()
        self.db = hr.connect(runner="inline", storage=storage, buckets=data.draw(st.integers(1, 3)))
        self.db.execute(STREAMS)
        self.db.execute(
            "CREATE QUERY reading AS SELECT v FROM s UNION ALL SELECT v FROM r UNION ALL SELECT v FROM t"
        )
        for name in names:
            self.db.execute(f"CREATE QUERY {name} {self._text(name)}")
        self.db.start()

    def _text(self, kind: str) -> str:
        # Each kind has a limit of its own, and so shares of its own.
        return f"WITHIN MEMORY '{1 + list(QUERIES).index(kind)} GB' AS {QUERIES[kind].text}"

    def play(self) -> None:
        for _ in range(ROUNDS):
            for action in ("push", "share", "push", self.data.draw(st.sampled_from(ACTIONS)), "push"):
                getattr(self, f"_{action}")()
                self.check()
        for stream in self.rows:
            self._pushed(stream, [Row(9, 0, self._newest(stream) + 40)])
        self.check()

    def _newest(self, stream: str) -> int:
        return max((row.ts for row in self.rows[stream]), default=-1)

    def _push(self) -> None:
        stream = self.data.draw(st.sampled_from("ssrt"))
        found, newest = [], self._newest(stream)
        for _ in range(self.data.draw(st.integers(1, 5))):
            ts = max(0, newest + self.data.draw(st.integers(-DISORDER[stream], 3)))
            found.append(Row(self.data.draw(st.integers(0, 1)), self.data.draw(st.integers(0, 3)), ts))
            newest = max(newest, ts)
        self._pushed(stream, found)

    def _pushed(self, stream: str, rows: Sequence[Row]) -> None:
        self.rows[stream] += rows
        self.db.push(stream, [row._asdict() for row in rows])

    def tunings(self, name: str) -> tuple[Tuning, ...]:
        return remembered_in(core_of(self.db).definitions.queries[self.db[name].id].plan)

    def _share(self) -> None:
        name = self.data.draw(st.sampled_from(sorted(self.queries)))
        tuning = self.data.draw(st.sampled_from(self.tunings(name)))
        share = self.data.draw(st.sampled_from(SHARES))
        users = [self.db[one].id for one, kind in self.queries.items() if kind == self.queries[name]]
        core_of(self.db).started.tune(Tune({tuning: share}, {tuning: users}))
        begin = max((self._newest(stream) + 1 for stream in tuning.streams), default=0)
        known = self.steps.setdefault(tuning, [])
        if known and known[-1][0] == begin:
            known.pop()
        known.append((begin, share))

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
        text = self._text(kind).replace(" AS ", " FROM BEGINNING AS ", 1)
        self.db.execute(f"CREATE QUERY {name} {text}")
        self.queries[name] = kind

    def _pause(self) -> None:
        """A pause in which rows and shares go on."""
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
            said, pairs = query.changes().to_pylist(), list(self._found(name, asked))
            last = min(query.horizon, max(map(self._newest, self.rows)) + 12)
            for instant in range(last):
                found = content_at(said, query.schema.names, instant)
                expected = Counter(
                    asked.answer(*rows) for rows in pairs if all(map(_shown(instant), rows, asked.sides))
                )
                assert found == dict(expected), (
                    *(name, instant, self.steps),
                    self.rows,
                )

    def _found(self, name: str, asked: Asked) -> Any:
        """The combinations of rows that match and whose rows are remembered up to the newest."""
        shares = [self.steps.get(tuning, []) for tuning in self.tunings(name)]
        for rows in product(*(self.rows[side.stream] for side in asked.sides)):
            newest = max(row.ts for row in rows)
            if asked.matches(*rows) and all(
                row.ts == newest or _draw(row, number) < _least(shares[number], row.ts, newest)
                for number, row in enumerate(rows)
            ):
                yield rows


def _shown(instant: int) -> Callable[[Row, Side], bool]:
    def shown(row: Row, side: Side) -> bool:
        last = (instant + 1) // side.slide * side.slide - 1
        return row.ts <= last < row.ts + side.size

    return shown


def _draw(row: Row, number: int) -> Fraction:
    return Fraction(drawn((row.k, row.v), (BIGINT, BIGINT), row.ts, number), 2**64)


def _least(steps: Sequence[tuple[int, int]], since: int, until: int) -> Fraction:
    """The smallest share in a closed interval."""
    at_first = next((share for begin, share in reversed(steps) if begin <= since), 1_000_000)
    later = (share for begin, share in steps if since < begin <= until)
    return Fraction(min([at_first, *later]), 1_000_000)


@pytest.mark.slow("runs whole databases, with restarts")
@examples(12, 120)
@given(data=st.data())
def test_pairs_are_found_whose_rows_are_remembered(data: st.DataObject) -> None:
    with (
        tempfile.TemporaryDirectory() as storage,
        patch.object(Remembering, "after", lambda *_: None),
    ):
        life = Life(data, storage)
        try:
            life.play()
        finally:
            life.db.close()
