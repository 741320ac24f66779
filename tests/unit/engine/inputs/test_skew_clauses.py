"""CREATE SKEW and DROP SKEW: which streams follow which afterwards, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import LanguageError
from headrace.heartbeats.skew import Bound
from headrace.heartbeats.timeline import Arrival, timeline
from headrace.heartbeats.timing import Follow, Timing
from headrace.reference.generation import figure_2
from headrace.runtime.driver.clock.timekeeper import rules_of
from headrace.time import MICROSECONDS
from how_many import examples

SECOND = MICROSECONDS["SECOND"]
THREE = Bound(4)
"""Up to 3 behind."""


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        for name in ("a", "b", "c"):
            db.execute(f"CREATE STREAM {name} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE STREAM other (v BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts")
        yield db


def follows(db: hr.Database) -> dict[str, set[tuple[str, Bound]]]:
    """Per stream from which others it has which bounds."""
    return {
        name: {
            (other, bound)
            for follow in timing.follows
            for other in follow.streams
            for bound in follow.bounds
            if other != name
        }
        for name, timing in db.timings.items()
        if name != "other"
    }


def test_among_bounds_each_by_each_other(db: hr.Database) -> None:
    db.execute("CREATE SKEW AMONG a, b, c (0 SECONDS, 3)")
    assert follows(db) == {
        "a": {("b", THREE), ("c", THREE)},
        "b": {("a", THREE), ("c", THREE)},
        "c": {("a", THREE), ("b", THREE)},
    }
    db.execute("DROP SKEW AMONG c, b, a")
    assert follows(db) == {"a": set(), "b": set(), "c": set()}


def test_between_a_group_and_a_stream(db: hr.Database) -> None:
    db.execute("CREATE SKEW BETWEEN (a, b) AND c (0 SECONDS, 3), (1 SECOND, STRICT)")
    later = Bound(0, 1_000_000)
    assert follows(db) == {
        "a": {("c", THREE), ("c", later)},
        "b": {("c", THREE), ("c", later)},
        "c": {("a", THREE), ("b", THREE), ("a", later), ("b", later)},
    }
    db.execute("DROP SKEW FROM (b, a) TO c; CREATE SKEW FROM c TO (a, b) (0 SECONDS, 9)")
    assert follows(db) == {"a": {("c", Bound(10))}, "b": {("c", Bound(10))}, "c": set()}


def test_bounds_between_the_same_streams_are_replaced_and_others_stay(db: hr.Database) -> None:
    db.execute("CREATE SKEW AMONG a, b, c (0 SECONDS, 3); CREATE SKEW FROM a TO b (0 SECONDS, 1)")
    assert follows(db)["b"] == {("a", THREE), ("c", THREE), ("a", Bound(2))}
    db.execute("CREATE SKEW AMONG b, c, a (0 SECONDS, 5)")
    assert follows(db)["b"] == {("a", Bound(6)), ("c", Bound(6)), ("a", Bound(2))}
    db.execute("CREATE SKEW BETWEEN a AND b (0 SECONDS, 3)")
    assert ("a", Bound(2)) not in follows(db)["b"]


def test_a_stream_that_is_dropped_leaves_its_groups(db: hr.Database) -> None:
    db.execute("CREATE SKEW AMONG a, b, c (0 SECONDS, 3); CREATE SKEW FROM a TO b (0 SECONDS, 1)")
    db.execute("DROP STREAM a")
    assert follows(db) == {"b": {("c", THREE)}, "c": {("b", THREE)}}
    db.execute("DROP STREAM c")
    assert follows(db) == {"b": set()}


def test_what_does_not_fit_changes_nothing(db: hr.Database) -> None:
    db.execute("CREATE SKEW FROM a TO c (0 SECONDS, 3)")
    before = db.timings
    with pytest.raises(LanguageError, match="a is timed by an integer, and other by a TIMESTAMP") as found:
        db.execute("CREATE SKEW AMONG a, b, other (0 SECONDS, 3)")
    assert found.value.position is not None
    assert found.value.position.column == 25
    with pytest.raises(LanguageError, match="there is no stream d"):
        db.execute("CREATE SKEW BETWEEN a AND (b, d) (0 SECONDS, 3)")
    with pytest.raises(LanguageError, match="there is no skew from b to c") as found:
        db.execute("DROP SKEW FROM b TO c")
    assert found.value.hint == "there is one from a"
    with pytest.raises(LanguageError, match="there is no skew from a to b"):
        db.execute("DROP SKEW BETWEEN a AND b")
    assert db.timings == before


def test_a_thousand_streams_make_no_matrix_of_a_million(db: hr.Database) -> None:
    names = [f"s{number}" for number in range(1000)]
    for name in names:
        db.execute(f"CREATE STREAM {name} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    db.execute(
        f"CREATE SKEW AMONG {', '.join(names)} (0 SECONDS, 3); CREATE SKEW BETWEEN a AND s7 (0 SECONDS, 3)"
    )
    rules = rules_of(db.timings, [frozenset(db.timings)])
    assert [len(group) for group in rules.matrix.groups] == [1, 3, 999, 1]
    assert rules.matrix.matrix.size == 6


def test_what_a_store_remembers_of_a_large_group_is_short() -> None:
    names = tuple(f"s{number}" for number in range(1000))
    texts = {Follow(some, (THREE,)).describe() for some in (names, names[1:], ("x", *names[1:]), ("a", "b"))}
    assert len(texts) == 4
    assert max(map(len, texts)) < 60
    assert "after a, b 0 0 4" in texts


def test_what_is_shown(db: hr.Database) -> None:
    db.execute("CREATE SKEW AMONG a, b (0 SECONDS, 3), (1 SECOND, STRICT), (10 ROWS, 0)")
    db.execute("CREATE SKEW FROM c TO (a, b) ESTIMATED")
    (found,) = db.execute("SHOW SKEWS")
    assert [re.split("  +", line.strip()) for line in str(found).splitlines()[2:-1]] == [
        ["a, b", "a, b", "1 SECOND", "strict"],
        ["a, b", "a, b", "10 rows", "0"],
        ["a, b", "a, b", "0 SECONDS", "3"],
        ["c", "a, b", "0 SECONDS", "estimated"],
    ]
    db.execute("DROP SKEW FROM c TO (b, a)")
    (found,) = db.execute("SHOW SKEWS")
    assert "estimated" not in str(found)


def test_waits_of_estimated_bounds_are_shown_one_by_one(db: hr.Database) -> None:
    db.execute("CREATE SKEW FROM c TO a ESTIMATED (WAIT 2 SECONDS)")
    (found,) = db.execute("SHOW SKEWS")
    assert [re.split("  +", line.strip())[2] for line in str(found).splitlines()[2:-1]] == [
        "0 SECONDS",
        "500 MILLISECONDS",
        "1 SECOND",
        "1500 MILLISECONDS",
        "2 SECONDS",
    ]


def test_a_window_of_an_estimate_fits_the_streams(db: hr.Database) -> None:
    db.execute("CREATE SKEW BETWEEN a AND b ESTIMATED (WINDOW 100)")
    with pytest.raises(LanguageError, match="WINDOW"):
        db.execute("CREATE SKEW BETWEEN a AND b ESTIMATED (WINDOW 100 SECONDS)")


ITSELF = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 4)), min_size=1, max_size=3)
COMING = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=8)


@examples(20)
@given(pairs=ITSELF, disorder=st.integers(0, 4), rows=COMING)
def test_bounds_of_a_stream_with_itself_are_those_of_figure_2(
    pairs: list[tuple[int, int | None]], disorder: int, rows: list[tuple[int, int]]
) -> None:
    """`B_ii` as a set (Srivastava and Widom, sections 3.1 and 4.2): what holds at once, and after waits."""
    listed = ", ".join(f"({wait} SECONDS, {'STRICT' if by is None else by})" for wait, by in pairs)
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM a (ts BIGINT) FROM push TIMESTAMP BY ts DISORDER {disorder}")
        db.execute(f"CREATE SKEW FROM A TO a {listed}")
        timings = db.timings
    rules = replace(rules_of(timings, [frozenset(timings)]), granule=SECOND)
    found = timeline(rules, timings, [Arrival(when * SECOND, 0, instant) for when, instant in rows])
    bounds = {(0, 0): [(0, disorder + 1), *((wait, 0 if by is None else by + 1) for wait, by in pairs)]}
    came = sorted((when, 0, instant) for when, instant in rows)
    for now in range(14):
        (tau,) = figure_2(bounds, [0], [row for row in came if row[0] <= now], now)
        moved = [move.heartbeat for move in found.moves if move.clock <= now * SECOND]
        assert moved[-1:] == ([] if tau is None else [tau + 1])


def heartbeats_of(db: hr.Database, *instants: int) -> list[int]:
    """Those of the stream a, after each row of these."""
    db.execute("CREATE QUERY q AS SELECT ts FROM a")
    db.start()
    found = []
    for instant in instants:
        db.push("a", {"v": 1, "ts": instant})
        found.append(db.status.stream("a").heartbeat)
    return found


def test_rows_in_order_of_which_few_have_one_timestamp(db: hr.Database) -> None:
    """The set `{(0, 1), (k, 0)}` of section 3.1: each bound moves the heartbeat where the other cannot."""
    db.execute("CREATE SKEW FROM a TO a (2 ROWS, STRICT)")
    assert heartbeats_of(db, 5, 5, 5, 7, 7, 5, 8) == [5, 5, 6, 7, 7, 8, 8]
    assert db.status.stream("a").late == 1


def test_disorder_in_time_and_in_rows(db: hr.Database) -> None:
    db.execute("ALTER STREAM a DISORDER 10 DISORDER 2 ROWS")
    assert db.timings["a"] == Timing(10, 2)
    assert "10, 2 rows" in str(db.execute("SHOW STREAMS")[0])
    assert heartbeats_of(db, 20, 15, 12, 19, 31, 25, 20) == [10, 10, 20, 20, 21, 21, 31]
    # 19 is too old by the rows since 20, and the last one by the 11 that it is behind 31.
    assert db.status.stream("a").late == 2
    db.execute("ALTER STREAM a SET (DISORDER 10)")
    assert db.timings["a"] == Timing(10)


def follows_itself(db: hr.Database) -> list[Follow]:
    return [follow for follow in db.timings["a"].follows if follow.streams == ("a",)]


def test_a_stream_is_bounded_by_itself_until_that_is_dropped(db: hr.Database) -> None:
    db.execute("CREATE SKEW FROM a TO a (2 SECONDS, STRICT); CREATE SKEW FROM a TO b (0 SECONDS, 3)")
    assert follows_itself(db) == [Follow(("a",), (Bound(0, 2 * SECOND),))]
    assert rules_of({"a": db.timings["a"]}, []).matrix.matrix.stalling() == ()
    (found,) = db.execute("SHOW SKEWS")
    assert "a     a   2 SECONDS  strict" in str(found)
    db.execute("DROP SKEW FROM a TO A")
    assert not follows_itself(db)
    assert follows(db)["b"] == {("a", THREE)}
    db.execute("CREATE SKEW FROM a TO a (2 SECONDS, STRICT); DROP STREAM a")
    assert "2 SECONDS" not in str(db.execute("SHOW SKEWS")[0])
