"""ALTER QUERY name SET CONSISTENCY: an answer that waits for late rows for longer or shorter from now on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError

STREAM = "CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10;"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k"
LARGEST = f"SELECT MAX(n) AS most FROM ({COUNTS})"
TWINS = f"CREATE QUERY middle CONSISTENCY MIDDLE AS {LARGEST}; CREATE QUERY strong AS {LARGEST}"


def database(storage: Path | None = None, **options: Any) -> hr.Database:
    return hr.connect(runner="inline", buckets=2, storage=storage, **options)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        made.execute(STREAM)
        yield made


def push(db: hr.Database, *times: int, k: str = "a") -> None:
    assert db.push("s", [{"k": k, "ts": at} for at in times])


def changes(db: hr.Database, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in db[query].changes().to_pylist()]


def content(db: hr.Database, query: str) -> list[object]:
    """What is said at each instant from 10 on."""
    return [db[query].snapshot(at).to_pylist() for at in range(10, db[query].horizon)]


def test_what_was_said_early_is_taken_back_and_said_again(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 5, 20)
    db.execute("ALTER QUERY q SET CONSISTENCY STRONG")
    # What is final stays, [5, 9), and the heartbeat is 10.
    assert changes(db, "q")[2:] == [(2, "a", 1, 20, 24, -1)]
    assert db["q"].horizon == db["q"].heartbeat == db.status.query("q").horizon == 10
    with pytest.raises(UserError, match="not final yet"):
        db["q"].snapshot(20)
    db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    assert changes(db, "q")[3:] == [(3, "a", 1, 20, 24, 1)]
    assert db["q"].snapshot(20).to_pylist() == [{"k": "a", "n": 1}]
    db.execute("ALTER QUERY q SET CONSISTENCY (BLOCK 2)")
    assert changes(db, "q")[4:] == [(4, "a", 1, 20, 24, -1)]


def test_a_level_that_the_query_has_changes_nothing(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 5, 20)
    epochs = len(db["q"].epochs())
    db.execute("ALTER QUERY q SET CONSISTENCY (BLOCK 0)")
    assert len(db["q"].epochs()) == epochs


def test_before_a_start_it_is_the_level_that_the_query_starts_at(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q AS {COUNTS}; ALTER QUERY q SET CONSISTENCY MIDDLE")
    db.start()
    push(db, 20)
    assert changes(db, "q") == [(1, "a", 1, 20, 24, 1)]
    db.stop()
    db.execute("DROP QUERY q; CREATE QUERY q AS SELECT k FROM s")
    db.start()
    push(db, 20)
    assert not changes(db, "q")


def test_an_answer_over_an_early_one_goes_both_ways(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q AS {LARGEST}; {TWINS}")
    db.start()
    levels = {"MIDDLE": "middle", "STRONG": "strong"}
    for place, level in enumerate(("MIDDLE", "STRONG", "MIDDLE", "MIDDLE")):
        push(db, 10 * place + 11, 10 * place + 12, 10 * place + 20)
        db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
        assert content(db, "q") == content(db, levels[level])
        push(db, 10 * place + 13, 10 * place + 18)
        assert content(db, "q") == content(db, levels[level])
    db.stop()
    assert db["q"].history() == db["strong"].history()


def test_rows_that_an_early_one_outdoes_are_there_when_that_is_corrected(db: hr.Database) -> None:
    least = f"SELECT k, n FROM (SELECT ISTREAM(k, n) FROM ({COUNTS})) [RANGE 6] ORDER BY n LIMIT 1"
    db.execute(f"CREATE QUERY q AS {least}; CREATE QUERY middle CONSISTENCY MIDDLE AS {least}")
    db.start()
    push(db, 12)
    push(db, 12, 12, k="b")
    db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    assert db["q"].snapshot(12).to_pylist() == [{"k": "a", "n": 1}]
    push(db, 12, 12)
    assert db["q"].snapshot(12).to_pylist() == [{"k": "b", "n": 2}] == db["middle"].snapshot(12).to_pylist()


def test_queries_that_differ_in_a_constant_go_on_apart(db: hr.Database) -> None:
    texts = {name: f"SELECT COUNT(*) AS n FROM s [RANGE 4] WHERE k = '{name}'" for name in "abc"}
    db.execute(";".join(f"CREATE QUERY {name} AS {text}" for name, text in texts.items()))
    db.execute(f"CREATE QUERY middle CONSISTENCY MIDDLE AS {texts['a']}")
    db.start()
    for level in ("MIDDLE", "STRONG", "MIDDLE"):
        push(db, 12, 14, 20)
        push(db, 13, k="b")
        db.execute(f"ALTER QUERY a SET CONSISTENCY {level}")
        if level == "MIDDLE":
            assert content(db, "a") == content(db, "middle")
    push(db, 40)
    assert db["a"].history() == db["middle"].history()
    assert db["b"].history().num_rows


def test_operators_on_streams_go_on_as_one(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q AS {COUNTS}; CREATE QUERY other AS {COUNTS}")
    db.start()
    push(db, *range(10, 30))
    before = [(one.identity, one.state_rows) for one in db.status.operators if one.state_rows]
    db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    assert [(one.identity, one.state_rows) for one in db.status.operators if one.state_rows] == before


def test_subscribers_see_one_change_of_the_plan(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 5, 20)
    db.execute("ALTER QUERY q SET CONSISTENCY STRONG")
    push(db, 31)
    db.stop()
    seen = [
        (change.epoch, change.heartbeat, change.horizon, change.elements.w.tolist())
        for change in db["q"].subscribe()
    ]
    assert seen == [(1, 10, 21, [1, 1]), (2, 10, 10, [-1]), (3, 21, 21, [1])]


def test_a_table_of_a_database_holds_what_is_final_at_every_level(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    with database() as db:
        db.execute(f"{STREAM} CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
        db["q"].deliver(hr.TableSink(partial(sqlite3.connect, path), "counts"))
        db.start()
        for place, level in enumerate(("MIDDLE", "STRONG", "(BLOCK 3)", "MIDDLE")):
            push(db, 10 * place + 5, 10 * place + 20, 10 * place + 18)
            db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
            push(db, 10 * place + 19)
        final = db["q"].snapshot(db["q"].heartbeat - 1).to_pylist()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT k, n FROM counts").fetchall() == [("a", final[0]["n"])]


def test_results_that_are_no_longer_kept_are_taken_back_too() -> None:
    with database(retain_epochs=1) as db:
        db.execute(f"{STREAM} CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
        db.start()
        push(db, 5, 20)
        for _ in range(12):
            push(db, 20)
        db.execute("ALTER QUERY q SET CONSISTENCY STRONG")
        push(db, 21)
        assert db["q"].latest().to_pylist() == []
        push(db, 40)
        assert db["q"].snapshot(20).to_pylist() == [{"k": "a", "n": 13}]


def test_what_a_query_remembers_counts_from_then_on(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY (REMEMBER 3) AS {COUNTS}; CREATE QUERY strong AS {COUNTS}")
    db.start()
    push(db, 15, 20)
    assert db["q"].heartbeat == 17
    db.execute("ALTER QUERY q SET (CONSISTENCY (REMEMBER 6))")
    # What is final stays; rows from there on are taken that would have been left out.
    push(db, 16, 17, 21)
    assert db["q"].heartbeat == 17
    assert db.status.query("q").departures == 1
    push(db, 17, 25)
    assert db["q"].heartbeat == 19
    assert db["q"].snapshot(18).to_pylist() == [{"k": "a", "n": 3}]
    assert db["strong"].heartbeat == 15
    db.execute("ALTER QUERY q SET CONSISTENCY WEAK")
    assert db["q"].heartbeat == 25
    assert db["q"].snapshot(24).to_pylist() == [{"k": "a", "n": 1}]
    db.execute("ALTER QUERY q SET CONSISTENCY STRONG")
    push(db, 24, 25, 40)
    assert db.status.query("q").departures == 2
    assert db["q"].heartbeat == db["strong"].heartbeat == 30
    assert db["q"].snapshot(25).to_pylist() == [{"k": "a", "n": 2}]
    assert db["strong"].snapshot(25).to_pylist() == [{"k": "a", "n": 3}]


def test_a_plan_that_has_left_out_rows_is_not_exchanged(db: hr.Database) -> None:
    db.execute("CREATE STREAM t (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10")
    pairs = "SELECT COUNT(*) AS n FROM s [RANGE 4] a JOIN t [RANGE 4] b ON a.k = b.k"
    db.execute(f"CREATE QUERY q CONSISTENCY (REMEMBER 3) AS {pairs}")
    db.start()
    push(db, 20)
    db.execute("ALTER QUERY q SET CONSISTENCY STRONG")
    with pytest.raises(UserError, match="q leaves out rows that are in time for its streams"):
        db.execute("ALTER QUERY q REOPTIMIZE")


def test_a_memory_is_no_longer_than_the_stream_allows(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY WEAK AS {COUNTS}")
    with pytest.raises(LanguageError, match="REMEMBER 11 is longer than s allows"):
        db.execute("ALTER QUERY q SET CONSISTENCY (REMEMBER 11)")
    db.execute("ALTER QUERY q SET CONSISTENCY (REMEMBER 11 ROWS)")


def test_a_store_knows_what_is_remembered(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute(f"{STREAM} CREATE QUERY q CONSISTENCY (REMEMBER 3) AS {COUNTS}")
        db.start()
        push(db, 20)
        db.execute("ALTER QUERY q SET CONSISTENCY (REMEMBER 8)")
    with database(tmp_path) as db:
        db.start()
        assert db["q"].heartbeat == 17
        push(db, 16, 17)
        assert db.status.query("q").departures == 1
    with database(tmp_path) as db:
        db.execute("ALTER QUERY q SET CONSISTENCY WEAK")
        db.start()
        assert not db.differences
        assert db["q"].heartbeat == 20
        assert db["q"].snapshot(19).to_pylist() == [{"k": "a", "n": 1}]


def test_a_store_remembers_the_level(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.execute(f"{STREAM} CREATE QUERY q AS {LARGEST}; {TWINS}")
        db.start()
        push(db, 11, 12, 20)
        db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
        push(db, 19)
    for level, twin in ((None, "middle"), ("STRONG", "strong"), (None, "strong"), ("(BLOCK 0)", "middle")):
        with database(tmp_path) as db:
            if level is not None:
                db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
            db.start()
            assert not db.differences
            assert content(db, "q") == content(db, twin)
            push(db, 18, db["middle"].horizon)
            assert content(db, "q") == content(db, twin)
    with database(tmp_path) as db:
        with pytest.raises(LanguageError, match="the store has another query q") as raised:
            db.execute(f"CREATE QUERY q AS {LARGEST}")
        assert "ALTER QUERY q SET CONSISTENCY" in (raised.value.hint or "")
        db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {LARGEST}")


class Killed(BaseException):
    """The process has ended here."""


@pytest.mark.parametrize("level", ["MIDDLE", "STRONG"])
@pytest.mark.parametrize("point", ["change.begun", "change.done"])
def test_a_kill_while_the_level_changes(
    point: str, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"MIDDLE": "STRONG", "STRONG": "MIDDLE"}[level]
    text = f"{STREAM} CREATE QUERY q CONSISTENCY {other} AS {LARGEST}; {TWINS}"

    def reach(here: str) -> None:
        if here == point:
            raise Killed

    with database(tmp_path) as db:
        db.execute(text)
        db.start()
        push(db, 11, 12, 20)
        with monkeypatch.context() as patched, suppress(Killed, UserError):
            patched.setattr("headrace.runtime.driver.epoch.committed.reach", reach)
            db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
        with suppress(Killed, UserError):
            db.stop()
    with database(tmp_path) as db:
        db.execute(f"ALTER QUERY q SET CONSISTENCY {level}")
        db.start()
        push(db, 18, 21)
        assert content(db, "q") == content(db, level.lower())
        assert (len(content(db, "q")) > 5) == (level == "MIDDLE")


def test_a_row_that_would_fail_when_it_is_said_early(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q AS SELECT 1 / (n - 1) AS x FROM ({COUNTS})")
    db.start()
    push(db, 20)
    with pytest.raises(UserError, match="q cannot change its level of consistency: an expression fails"):
        db.execute("ALTER QUERY q SET CONSISTENCY MIDDLE")
    push(db, 20, 40)
    assert db["q"].snapshot(20).to_pylist() == [{"x": 1}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER QUERY r SET CONSISTENCY MIDDLE", "there is no query r"),
        ("ALTER QUERY held SET CONSISTENCY MIDDLE", "this CONSISTENCY and HEARTBEATS"),
        ("ALTER QUERY held SET CONSISTENCY (BLOCK 5 SECONDS)", "this CONSISTENCY and HEARTBEATS"),
        ("ALTER QUERY q SET CONSISTENCY (BLOCK 5 SECONDS)", "BLOCK 5 SECONDS has a unit"),
    ],
)
def test_mistakes(db: hr.Database, text: str, message: str) -> None:
    db.execute(f"CREATE QUERY q AS {COUNTS}; CREATE QUERY held HEARTBEATS COMMON AS {COUNTS}")
    with pytest.raises(LanguageError, match=message):
        db.execute(text)


@pytest.mark.parametrize("levels", [("STRONG", "MIDDLE"), ("MIDDLE", "(BLOCK 2)"), ("MIDDLE", "STRONG")])
def test_the_rows_of_a_constant_are_found_at_the_new_level(db: hr.Database, levels: tuple[str, str]) -> None:
    text = "SELECT COUNT(*) AS n FROM s [RANGE 4] WHERE k = 'a'"
    db.execute(f"CREATE QUERY q CONSISTENCY {levels[0]} AS {text}; CREATE QUERY same AS {text}")
    db.start()
    push(db, 5, 6)
    db.execute(f"ALTER QUERY q SET CONSISTENCY {levels[1]}")
    push(db, 20, 21, 50)
    assert content(db, "q")[:25] == content(db, "same")[:25]
    assert db["q"].snapshot(21).to_pylist() == [{"n": 2}]
    db.execute("DROP QUERY same")
    push(db, 51, 52, 80)
    assert db["q"].snapshot(52).to_pylist() == [{"n": 3}]
