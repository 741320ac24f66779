"""DEVIATION and RATE: bounds that follow from what each stream says of the clock of its source."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import LanguageError
from headrace.heartbeats.skew import Bound
from headrace.heartbeats.timeline import Arrival, timeline
from headrace.reference.generation import figure_2
from headrace.reference.skew import of_deviations, with_rates
from headrace.runtime.driver.clock.timekeeper import rules_of
from headrace.time import MICROSECONDS
from how_many import examples

SECOND = MICROSECONDS["SECOND"]
RATES = st.none() | st.tuples(st.integers(1, 2), st.sampled_from((2, 4)))
SOURCES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), RATES), min_size=1, max_size=4)
COMING = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=8)


def declared(*clauses: str, domain: str = "BIGINT") -> hr.Database:
    """Streams a, b, c and so on with these clauses."""
    db = hr.connect(runner="inline")
    for name, said in zip("abcdef", clauses, strict=False):
        db.execute(f"CREATE STREAM {name} (ts {domain}) FROM push TIMESTAMP BY ts {said}")
    return db


@examples(20, 60)
@given(sources=SOURCES, rows=COMING)
def test_heartbeats_are_those_of_figure_2_over_all_that_follows(
    sources: list[tuple[int, int, tuple[int, int] | None]], rows: list[tuple[int, int, int]]
) -> None:
    """Section 4.2: n streams with a deviation and a rate each, in n statements."""
    clauses = [
        f"DISORDER {disorder} DEVIATION {deviation}"
        + ("" if rate is None else f" RATE {rate[0]} PER {rate[1]} SECONDS")
        for deviation, disorder, rate in sources
    ]
    with declared(*clauses) as db:
        timings = db.timings
    rules = replace(rules_of(timings, [frozenset(timings)]), granule=SECOND)
    rows = [(when, stream % len(sources), instant) for when, stream, instant in rows]
    found = timeline(rules, timings, [Arrival(when * SECOND, *row) for when, *row in rows])
    bounds = of_deviations([deviation for deviation, _, _ in sources])
    bounds |= {(place, place): {(disorder + 1, 0, 0)} for place, (_, disorder, _) in enumerate(sources)}
    rates = {place: Fraction(*rate) for place, (_, _, rate) in enumerate(sources) if rate is not None}
    closed = {
        pair: [(wait, delta) for delta, wait, _ in bounds]
        for pair, bounds in with_rates(bounds, rates).items()
    }
    for now in range(60):
        came = [row for row in sorted(rows) if row[0] <= now]
        for stream, tau in enumerate(figure_2(closed, [0] * len(sources), came, now)):
            moved = [
                move.heartbeat for move in found.moves if move.stream == stream and move.clock <= now * SECOND
            ]
            assert moved[-1:] == ([] if tau is None else [tau + 1])


def bounds_of(db: hr.Database) -> dict[tuple[str, str], tuple[Bound, ...]]:
    """By pair of different streams what follows for them."""
    names = list(db.timings)
    matrix = rules_of(db.timings, [frozenset(names)]).matrix.expanded()
    return {(names[i], names[j]): bounds for (i, j), bounds in matrix.bounds.items() if i != j}


def test_a_stream_is_bounded_by_those_of_the_same_clock() -> None:
    with declared("DEVIATION 1", "DEVIATION 2 FROM gate", "DEVIATION 3", "DEVIATION 5 FROM Gate") as db:
        assert bounds_of(db) == {
            ("a", "c"): (Bound(5),),
            ("c", "a"): (Bound(5),),
            ("b", "d"): (Bound(8),),
            ("d", "b"): (Bound(8),),
        }
        db.execute("ALTER STREAM b DEVIATION 2; ALTER STREAM c DEVIATION 0")
        assert bounds_of(db)["a", "b"] == (Bound(4),)
        assert bounds_of(db)["a", "c"] == (Bound(2),)
        (found,) = db.execute("SHOW SKEWS")
        assert "gate       d   0 SECONDS  5 either way" in str(found)
        assert "true time  b   0 SECONDS  2 either way" in str(found)


def test_times_that_count_differently_do_not_bound_each_other() -> None:
    with declared("DEVIATION 1") as db:
        db.execute("CREATE STREAM t (ts TIMESTAMP) FROM push TIMESTAMP BY ts DEVIATION 1 SECOND")
        assert not bounds_of(db)


def test_sensors_with_a_rate_need_no_timeout() -> None:
    """Theorem 3.3: with rates every bound becomes one without delta, after a wait."""
    said = "DISORDER 1 DEVIATION 2"
    union = "SELECT ts FROM a UNION ALL SELECT ts FROM b"
    with declared(said, said) as db:
        (note,) = db.query(union, name="without").notes
        assert "if a and b all send nothing, a and b may stay behind the last rows" in note.message
        db.execute("ALTER STREAM a RATE 1 PER 1 SECOND; ALTER STREAM b RATE 1 PER 2 SECONDS")
        assert not db.query(union, name="with_rates").notes
        assert rules_of(db.timings, []).matrix.matrix.stalling() == ()


@pytest.mark.parametrize(
    ("said", "message", "column"),
    [
        ("DEVIATION 2", "DEVIATION 2 needs a unit", 68),
        ("RATE 2 PER 1 SECOND", "RATE 2 needs a unit", 63),
        ("TIMESTAMP BY ARRIVAL", "DEVIATION does not go with ARRIVAL", None),
    ],
)
def test_what_does_not_fit_the_stream(said: str, message: str, column: int | None) -> None:
    timed = f"{said} DEVIATION 1 SECOND" if "ARRIVAL" in said else f"TIMESTAMP BY ts {said}"
    columns = "v BIGINT" if "ARRIVAL" in said else "ts TIMESTAMP"
    with hr.connect(runner="inline") as db, pytest.raises(LanguageError, match=message) as found:
        db.execute(f"CREATE STREAM a ({columns}) FROM push {timed}")
    if column is not None:
        assert found.value.position is not None
        assert found.value.position.column == column
