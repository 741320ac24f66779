"""REPLAY DEAD LETTERS OF: who still can take a row takes it, once; final answers stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import UserError
from headrace.runtime.driver.epoch import committed as driver
from headrace.runtime.driver.kept import results
from headrace.time import MICROSECONDS, ManualClock
from how_many import examples

SECOND = MICROSECONDS["SECOND"]
STREAM = """
CREATE STREAM s (ts BIGINT, k STRING, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 10 DEAD LETTERS KEEP ALL;
"""
AHEAD = """
CREATE STREAM s (ts TIMESTAMP, k STRING) FROM push TIMESTAMP BY ts DISORDER 5 SECONDS
    AT MOST 10 SECONDS AHEAD DEAD LETTERS KEEP ALL;
CREATE QUERY q AS SELECT k FROM s;
"""


def stamp(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as made:
        made.execute(STREAM)
        yield made


def push(db: hr.Database, *rows: tuple[int, str, int]) -> None:
    db.push("s", [dict(zip(("ts", "k", "v"), row, strict=True)) for row in rows])


def replay(db: hr.Database, where: str = "") -> list[str]:
    (text,) = db.execute(f"REPLAY DEAD LETTERS OF s {where}")
    return str(text).splitlines()


def finish(db: hr.Database) -> None:
    """Make everything final, and stop."""
    db.heartbeat("s", 1_000)
    db.stop()


def values(query: hr.Query, column: str = "k") -> list[Any]:
    return sorted(query.changes()[column].to_pylist())


def test_a_row_that_was_ahead_of_the_clock_is_taken_when_it_is_not_any_more() -> None:
    clock = ManualClock()
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(AHEAD)
        db.start()
        db.push("s", [{"ts": stamp(at), "k": k} for at, k in ((1, "a"), (20, "b"), (50, "c"))])
        assert replay(db) == [
            "none of 2 dead letters of s became input",
            "  q takes 0, refuses 2 too far ahead of the clock",
        ]
        clock.advance(15 * SECOND)
        assert replay(db) == [
            "1 of 2 dead letters of s became input in epoch 2",
            "  q takes 1, refuses 1 too far ahead of the clock",
        ]
        assert replay(db)[0] == "none of 1 dead letter of s became input"
        # The row moves no heartbeat: one that came between is not late for it.
        db.push("s", {"ts": stamp(2), "k": "d"})
        db.heartbeat("s", stamp(1_000))
        assert db.stop().late == 0
        assert values(db["q"]) == ["a", "b", "d"]


def test_a_query_takes_what_it_still_remembers() -> None:
    clock = ManualClock()
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(f"{AHEAD} CREATE QUERY brief CONSISTENCY (BLOCK 0, REMEMBER 1 SECOND) AS SELECT k FROM s")
        db.start()
        db.push("s", [{"ts": stamp(at), "k": k} for at, k in ((1, "a"), (20, "b"), (21, "c"), (40, "d"))])
        clock.advance(12 * SECOND)
        db.push("s", {"ts": stamp(22), "k": "e"})
        assert replay(db) == [
            "2 of 3 dead letters of s became input in epoch 3, 4",
            "  q takes 2, refuses 1 too far ahead of the clock",
            "  brief takes 1, refuses 1 older than what it still takes, 1 too far ahead of the clock",
        ]
        db.heartbeat("s", stamp(1_000))
        assert values(db["q"]) == ["a", "b", "c", "e"]
        assert values(db["brief"]) == ["a", "c", "e"]
        assert db.status.query("brief").departures == 0


def test_late_rows_are_refused_and_final_answers_stay(db: hr.Database) -> None:
    query = db.query("SELECT k, v FROM s", name="q")
    db.start()
    push(db, (5, "z", 0), (100, "a", 1), (20, "b", 2), (95, "c", 3))
    before = query.history()
    assert before["k"].to_pylist() == ["z"]
    assert replay(db) == [
        "none of 1 dead letter of s became input",
        "  q takes 0, refuses 1 older than what it still takes",
    ]
    assert query.history() == before
    finish(db)
    assert query.history()["k"].to_pylist() == ["z", "c", "a"]


def test_a_query_that_replaces_a_failing_one_takes_the_rows_that_it_failed_on(db: hr.Database) -> None:
    db.query("SELECT k, 1 / v AS x FROM s", name="old")
    db.start()
    push(db, (1, "a", 1), (2, "b", 0), (3, "c", 0))
    db.drop("old")
    new = db.query("SELECT k, CASE WHEN v <> 0 THEN 1 / v END AS x FROM s", name="new")
    assert replay(db, "WHERE k = 'b' AND query = 'old' AND reason LIKE 'division%'") == [
        "1 of 1 dead letter of s became input in epoch 4",
        "  new takes 1",
    ]
    assert replay(db)[0] == "1 of 1 dead letter of s became input in epoch 5"
    push(db, (50, "d", 1))
    finish(db)
    assert values(new) == ["b", "c", "d"]


def test_rows_are_added_up_for_one_query_in_panes_that_it_shares(db: hr.Database) -> None:
    """The panes are over what others read, which has more columns, and the others have had the rows."""
    db.query("SELECT k, 1 / v AS x FROM s", name="old")
    wide = db.query("SELECT k, MAX(v) AS n, SUM(ts) AS last FROM s [RANGE 4 SLIDE 4] GROUP BY k", name="wide")
    db.start()
    push(db, (1, "a", 1), (2, "b", 0), (9, "b", 0))
    db.drop("old")
    narrow = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE 2 SLIDE 2] GROUP BY k", name="narrow")
    assert replay(db)[0] == "2 of 2 dead letters of s became input in epoch 4"
    finish(db)
    assert [tuple(row.values()) for row in narrow.history().to_pylist()] == [("b", 1, 3, 5), ("b", 1, 9, 11)]
    assert [tuple(row.values()) for row in wide.history().to_pylist()] == [
        ("a", 1, 1, 3, 7),
        ("b", 0, 2, 3, 7),
        ("b", 0, 9, 11, 15),
    ]


def test_no_query_gets_a_row_twice(db: hr.Database) -> None:
    old = db.query("SELECT k FROM s", name="old")
    db.query("SELECT k, 1 / v AS x FROM s", name="failing")
    sums = db.query("SELECT COUNT(*) AS n FROM s [RANGE 1]", name="counts")
    db.start()
    push(db, (1, "a", 0), (2, "b", 0), (2, "c", 1))
    same = db.query("SELECT k FROM s", name="same")
    new = db.query("SELECT v, k FROM s WHERE k <> 'b'", name="new")
    later = db.query("SELECT COUNT(*) AS n FROM s [RANGE 1]", name="later")
    assert replay(db) == [
        "2 of 2 dead letters of s became input in epoch 5",
        "  old takes 0, refuses 2 that it has had, or failed on",
        "  failing takes 0, refuses 2 that it has had, or failed on",
        "  counts takes 0, refuses 2 that it has had, or failed on",
        "  same takes 0, refuses 2 that queries have had with which it shares operators",
        "  new takes 2",
        "  later takes 2",
    ]
    finish(db)
    assert (values(old), values(same), values(new)) == (["a", "b", "c"], [], ["a"])
    assert sums.history().to_pylist() == [
        {"n": 1, "valid_from": 1, "valid_to": 2},
        {"n": 2, "valid_from": 2, "valid_to": 3},
    ]
    assert later.history().to_pylist() == [{"n": 1, "valid_from": 1, "valid_to": 3}]


def test_a_row_on_which_several_queries_failed_is_one_dead_letter(db: hr.Database) -> None:
    for name in ("one", "two"):
        db.query(f"SELECT k, 1 / v AS {name} FROM s", name=name)
    db.start()
    push(db, (1, "a", 0), (2, "b", 0))
    db.drop("one")
    db.drop("two")
    new = db.query("SELECT k FROM s", name="new")
    assert replay(db) == ["2 of 2 dead letters of s became input in epoch 5", "  new takes 2"]
    finish(db)
    assert values(new) == ["a", "b"]


def test_changes_of_a_relation_that_cannot_be_applied_are_refused() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            """
            CREATE RELATION s (ts BIGINT, op STRING, id BIGINT) KEY (id) FROM push CHANGES BY op
                TIMESTAMP BY ts DISORDER 10 DEAD LETTERS KEEP ALL;
            """
        )
        db.query("SELECT id FROM s", name="q")
        db.start()
        now = 100_000  # so far that the last one is older than deletions are remembered
        wrong = [(now, "zap", 1), (now, "insert", None), (now, None, 2)]
        changes = [*wrong, (now, "insert", 3), (1, "insert", 4)]
        db.push("s", [dict(zip(("ts", "op", "id"), change, strict=True)) for change in changes])
        found = replay(db)
        db.stop()
    assert found[0] == "none of 4 dead letters of s became input"
    assert found[1] == "  q takes 0, refuses 3 that cannot be used, 1 older than what it still takes"


SHAPES = {
    "sums": "SELECT k, SUM(v) AS x FROM s [RANGE 20 SLIDE 5] GROUP BY k",
    "wide": "SELECT k, SUM(v) AS x FROM s [RANGE 40 SLIDE 10] GROUP BY k",
    "pairs": "SELECT a.k, b.k AS other FROM s [RANGE 10] a JOIN s [RANGE 10] b ON a.v = b.v",
    "last": "SELECT k, v, COUNT(*) AS n FROM s [PARTITION BY k ROWS 2] GROUP BY k, v",
    "some": "SELECT DISTINCT k FROM s [RANGE 10]",
    "early": "SELECT k, MAX(v) AS x FROM s [RANGE 10] GROUP BY k",
    "plain": "SELECT k, v FROM s WHERE v > 1",
}


def histories(queries: Mapping[str, hr.Query]) -> dict[str, list[Any]]:
    return {name: queries[name].history().to_pylist() for name in SHAPES}


def defined(db: hr.Database, when: str) -> dict[str, hr.Query]:
    levels = {name: " CONSISTENCY MIDDLE" * (name == "early") for name in SHAPES}
    return {
        name: db.execute(f"CREATE QUERY {when}_{name}{levels[name]} AS {text}")[0]
        for name, text in SHAPES.items()
    }


def test_corrections_that_were_ahead_of_the_clock_are_taken_in_any_order() -> None:
    clock = ManualClock(100 * SECOND)
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(
            "CREATE STREAM s (op STRING, ts TIMESTAMP, until TIMESTAMP, k STRING) FROM push "
            "CHANGES BY op VALID FROM ts TO until CORRECTIONS WITHIN 1 MINUTE "
            "AT MOST 10 SECONDS AHEAD DEAD LETTERS KEEP ALL; CREATE QUERY q AS SELECT k FROM s"
        )
        db.start()
        for op, begin, end, k in [
            *(("-", 125, 130, "a"), ("+", 120, 130, "a"), ("+", 101, 140, "b"), ("-", 128, 140, "b")),
            *(("?", 101, 140, "c"), ("+", 150, 151, "d")),
        ]:
            db.push("s", {"op": op, "ts": stamp(begin), "until": stamp(end), "k": k})
        assert replay(db)[0] == "none of 5 dead letters of s became input"
        clock.advance(30 * SECOND)
        assert replay(db) == [
            "3 of 5 dead letters of s became input in epoch 7",
            "  q takes 3, refuses 1 that cannot be used, 1 too far ahead of the clock",
        ]
        assert replay(db)[0] == "none of 2 dead letters of s became input"
        db.heartbeat("s", stamp(200))
        db.stop()
        history = [tuple(row.values()) for row in db["q"].history().to_pylist()]
        assert history == [("b", stamp(101), stamp(128)), ("a", stamp(120), stamp(125))]


def test_a_retraction_is_judged_by_its_new_end() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (type STRING, vs BIGINT, ve BIGINT, vnewe BIGINT, v BIGINT) FROM push "
            "FORMAT CEDR HEARTBEATS FROM CTI DEAD LETTERS KEEP ALL;"
            "CREATE QUERY broken AS SELECT v FROM s WHERE 100 / v > 1"
        )
        db.start()
        rows = [("Insert", 1, 100, None, 0), ("Insert", 2, 100, None, 5), ("CTI", None, 50, None, None)]
        for row in [*rows, ("Retract", 1, 100, 60, 0)]:
            db.push("s", dict(zip(("type", "vs", "ve", "vnewe", "v"), row, strict=True)))
        db.execute("CREATE QUERY mended AS SELECT v FROM s WHERE 100 / NULLIF(v, 0) IS NULL")
        assert replay(db)[1:] == [
            "  broken takes 0, refuses 1 older than what it still takes, 1 that it has had, or failed on",
            "  mended takes 1, refuses 1 older than what it still takes",
        ]
        db.stop()
        assert len(db["mended"].history()) == 0


def test_queries_of_one_text_where_one_has_had_the_rows_and_one_has_not(db: hr.Database) -> None:
    """As if each had read just its rows: those that came while it was there, and those that it took later."""
    first = [(20 + number % 7, "ab"[number % 2], number % 4) for number in range(12)]
    second = [(25 + number * 3, "abc"[number % 3], number % 4) for number in range(8)]
    failed = [row for row in first if row[2] == 3]
    old = defined(db, "old")
    db.query("SELECT 1 / (v - 3) AS x FROM s", name="failing")
    db.start()
    push(db, *first)
    new = defined(db, "new")
    told = replay(db)
    push(db, *second)
    finish(db)
    takes = {name: f"  new_{name} takes {len(failed)}" in told for name in SHAPES}
    assert [name for name, takes_it in takes.items() if not takes_it] == ["plain"]
    expected = {}
    for rows in ([*first, *second], [*failed, *second], second):
        with hr.connect(runner="inline") as alone:
            alone.execute(STREAM)
            queries = defined(alone, "one")
            alone.start()
            push(alone, *rows)
            finish(alone)
            expected[len(rows)] = histories(queries)
    assert histories(old) == expected[len(first) + len(second)]
    found, after = histories(new), expected[len(second)]
    assert found == expected[len(failed) + len(second)] | {"plain": after["plain"]}


def test_letters_that_are_no_longer_kept_are_not_replayed() -> None:
    clock = ManualClock()
    with hr.connect(runner="inline", clock=clock) as db:
        db.execute(STREAM.replace("KEEP ALL", "KEEP 1 HOUR"))
        db.query("SELECT k, 1 / v AS x FROM s", name="old")
        db.start()
        push(db, (1, "a", 0))
        clock.advance(MICROSECONDS["HOUR"] // 2)
        push(db, (2, "b", 0))
        clock.advance(MICROSECONDS["HOUR"] * 3 // 4)
        db.drop("old")
        new = db.query("SELECT k FROM s", name="new")
        assert replay(db)[0] == "1 of 1 dead letter of s became input in epoch 5"
        finish(db)
        assert values(new) == ["b"]


def test_a_stream_that_is_timed_by_arrival() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY ARRIVAL DEAD LETTERS KEEP ALL")
        db.query("SELECT 1 / v AS x FROM s", name="old")
        db.start()
        db.push("s", [{"v": 0}, {"v": 1}])
        db.drop("old")
        new = db.query("SELECT v FROM s", name="new")
        assert replay(db)[1:] == ["  new takes 1"]
        db.stop()
        assert values(new, "v") == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("REPLAY DEAD LETTERS OF t", "there is no stream t"),
        ("REPLAY DEAD LETTERS OF s WHERE k", "BOOLEAN"),
        ("REPLAY DEAD LETTERS OF s WHERE noted_at IS NULL", "noted_at"),
        ("REPLAY DEAD LETTERS OF s WHERE k IN (SELECT k FROM s)", "reads more than the dead letter"),
        ("REPLAY LETTERS OF s", "DEAD LETTERS OF is missing"),
        ("REPLAY DEAD LETTERS OF plain", "the dead letters of plain are not kept"),
        ("REPLAY DEAD LETTERS OF unread", "no query reads unread"),
    ],
)
def test_what_cannot_be_replayed(db: hr.Database, text: str, message: str) -> None:
    db.execute("CREATE STREAM plain (ts BIGINT) FROM push TIMESTAMP BY ts; SELECT ts FROM plain")
    db.query("SELECT v FROM s")
    db.execute("CREATE STREAM unread (ts BIGINT) FROM push TIMESTAMP BY ts DEAD LETTERS KEEP ALL")
    db.start()
    with pytest.raises(UserError, match=message):
        db.execute(text)
    db.stop()


def test_letters_that_are_kept_are_a_table_with_all_columns(db: hr.Database) -> None:
    db.query("SELECT 1 / v AS x FROM s", name="old")
    with pytest.raises(UserError, match="nothing has been run"):
        db.dead_letters("s")
    db.start()
    push(db, (1, "a", 0), (2, "b", 0), (11, "c", 1), (0, "d", 7))
    db.drop("old")
    db.query("SELECT k FROM s WHERE v = 0", name="new")
    replay(db, "WHERE k = 'b'")
    push(db, (0, "e", 8))
    found = db.dead_letters("S")
    with pytest.raises(UserError, match="no query reads t"):
        db.dead_letters("t")
    db.stop()
    assert found.select(["k", "v", "ts", "query", "epoch", "replayed_in"]).to_pylist() == [
        {"k": k, "v": v, "ts": ts, "query": query, "epoch": epoch, "replayed_in": replayed}
        for k, v, ts, query, epoch, replayed in (
            ("d", 7, 0, None, 1, None),
            ("a", 0, 1, "old", 1, None),
            ("b", 0, 2, "old", 1, 4),
            ("e", 8, 0, None, 5, None),
        )
    ]


def test_letters_are_kept_from_when_the_stream_says_so() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM.replace("DEAD LETTERS KEEP ALL", ""))
        db.query("SELECT 1 / v AS x FROM s")
        db.start()
        push(db, (1, "a", 0))
        with pytest.raises(UserError, match="the dead letters of s are not kept"):
            db.dead_letters("s")
        db.execute("ALTER STREAM s DEAD LETTERS KEEP 7 DAYS")
        push(db, (2, "b", 0))
        assert db.dead_letters("s")["k"].to_pylist() == ["b"]
        db.execute("ALTER STREAM s DISORDER 5")
        assert db.dead_letters("s")["k"].to_pylist() == ["b"]
        db.stop()


def test_nothing_is_replayed_when_nothing_runs(db: hr.Database) -> None:
    db.query("SELECT v FROM s")
    with pytest.raises(UserError, match="none does"):
        db.execute("REPLAY DEAD LETTERS OF s")


class _Killed(BaseException):
    pass


@pytest.mark.parametrize(("module", "point"), [(driver, "epoch.reported"), (results, "sweep.begun")])
def test_a_row_is_taken_once_where_the_run_is_killed(
    module: ModuleType, point: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the epoch of the replay counts, and after: then the letters know it."""

    def connect(*queries: str) -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store")
        db.execute(STREAM)
        for name in queries:
            db.query("SELECT k, 1 / v AS x FROM s" if name == "old" else "SELECT k FROM s", name=name)
        db.start()
        return db

    with connect("old") as db:
        push(db, (1, "a", 0), (2, "b", 0))
        db.drop("old")
        db.query("SELECT k FROM s", name="new")

        def reach(reached: str) -> None:
            if reached == point:
                raise _Killed

        monkeypatch.setattr(module, "reach", reach)
        with pytest.raises((_Killed, UserError)):
            replay(db)
        monkeypatch.undo()
        with pytest.raises(_Killed):
            db.stop()
    with connect("new") as db:
        before = point == "epoch.reported"
        assert replay(db)[0].startswith("2 of 2 dead" if before else "none of 0 dead")
        assert replay(db)[0] == "none of 0 dead letters of s became input"
        push(db, (50, "c", 1))
        finish(db)
        assert values(db["new"]) == ["a", "b", "c"]
    with connect("new") as db:
        assert values(db["new"]) == ["a", "b", "c"]
        db.stop()


rows = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1)), min_size=1, max_size=12)


@examples(17)
@given(rows, rows)
def test_every_row_is_in_one_place_after_a_replay(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    """Of a query that replaces a failing one: what was replayed and what came after; the rest is apart."""
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        db.query("SELECT k, 1 / v AS x FROM s", name="old")
        db.start()
        push(db, *((ts, f"a{number}", v) for number, (ts, v) in enumerate(first)))
        db.drop("old")
        new = db.query("SELECT k FROM s", name="new")
        title, answer = replay(db)
        push(db, *((ts, f"b{number}", v) for number, (ts, v) in enumerate(second)))
        late = {letter["row"] for letter in db.dead_letters().to_pylist() if letter["stream"] == "s"}
        finish(db)
        found = values(new)
    newest = max(ts for ts, _ in first)
    order = [ts for ts, _ in first]
    in_time = [place for place, ts in enumerate(order) if ts >= max(order[: place + 1]) - 10]
    replayed = {f"a{place}" for place in in_time if first[place][1] == 0 and order[place] >= newest - 10}
    assert {k for k in found if k.startswith("a")} == replayed
    assert Counter(found).most_common(1)[0][1] == 1 if found else True
    assert len([k for k in found if k.startswith("b")]) + len(late) == len(first) - len(in_time) + len(second)
    assert title.startswith(f"{len(replayed) or 'none'} of")
    assert f"new takes {len(replayed)}" in answer
