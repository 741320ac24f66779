"""CREATE QUERY name CONSISTENCY ...: answers that are said early and corrected, as their users see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError

STREAM = "CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10;"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k"


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=2) as made:
        made.execute(STREAM)
        yield made


def push(db: hr.Database, *times: int, stream: str = "s") -> None:
    assert db.push(stream, [{"k": "a", "ts": at} for at in times])


def content(db: hr.Database, query: str, at: int) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in db[query].snapshot(at).to_pylist()]


def changes(db: hr.Database, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in db[query].changes().to_pylist()]


def test_an_answer_is_said_with_the_epoch_of_its_rows_and_corrected(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}; CREATE QUERY strong AS {COUNTS}")
    db.start()
    push(db, 20)
    assert changes(db, "q") == [(1, "a", 1, 20, 24, 1)]
    assert content(db, "q", 20) == [("a", 1)]
    push(db, 18)
    assert content(db, "q", 20) == [("a", 2)]
    assert sorted(changes(db, "q")[1:]) == [
        (2, "a", 1, 18, 20, 1), (2, "a", 1, 20, 24, -1), (2, "a", 2, 20, 22, 1),
    ]  # fmt: skip
    assert not changes(db, "strong")
    push(db, 40)
    db.stop()
    assert db["q"].history() == db["strong"].history()
    assert content(db, "strong", 20) == [("a", 2)]


def test_a_snapshot_says_whether_it_may_change(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 5, 20)
    assert db["q"].heartbeat == 10
    assert [db["q"].snapshot(at).schema.metadata[b"final"] for at in (9, 10, 20)] == [
        b"true",
        b"false",
        b"false",
    ]
    assert db["q"].latest().to_pylist() == [{"k": "a", "n": 1}]
    assert db["q"].horizon == db.status.query("q").horizon == 21
    assert "final below 10, said below 21" in repr(db["q"])
    with pytest.raises(UserError, match="nothing is said of the answer at 21 yet, only below 21"):
        db["q"].snapshot(21)


def test_another_level_takes_over_the_state(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY strong AS {COUNTS}; CREATE QUERY early CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 15, 17, 20)
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE WARM AS {COUNTS}; DROP QUERY strong")
    assert content(db, "q", 18) == content(db, "early", 18) == [("a", 2)]
    push(db, 18, 21)
    push(db, 19, 30)
    for at in (10, 16, 18, 20, 21, 22, 30):
        assert content(db, "q", at) == content(db, "early", at), at


def test_a_level_that_took_over_goes_on_in_another_process(tmp_path: Path) -> None:
    queries = f"CREATE QUERY strong AS {COUNTS}; CREATE QUERY early CONSISTENCY MIDDLE AS {COUNTS}"
    warm = f"CREATE QUERY q CONSISTENCY MIDDLE WARM AS {COUNTS}"
    with hr.connect(runner="inline", buckets=2, storage=tmp_path) as db:
        db.execute(f"{STREAM} {queries}")
        db.start()
        push(db, 15, 17, 20)
        db.execute(warm)
    with hr.connect(runner="inline", buckets=2, storage=tmp_path) as db:
        db.execute(f"{STREAM} {queries}; {warm.replace('WARM ', '')}")
        db.start()
        push(db, 18, 21)
        for at in (16, 18, 20, 21):
            assert content(db, "q", at) == content(db, "early", at) != [], at


ONE = "SELECT COUNT(*) AS n FROM s [RANGE 4] WHERE k = 'a'"


def test_an_aggregate_over_rows_with_one_value_is_said_early(db: hr.Database) -> None:
    """Though it is a group of an aggregate over all values that queries ask for."""
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {ONE}; CREATE QUERY strong AS {ONE}")
    db.execute(f"CREATE QUERY other CONSISTENCY MIDDLE AS {ONE[:-3]}'b'")
    db.start()
    push(db, 20)
    assert content(db, "q", 20) == [(1,)]
    push(db, 18)
    assert content(db, "q", 20) == [(2,)]
    push(db, 40)
    assert [content(db, "q", at) for at in (18, 20, 23)] == [content(db, "strong", at) for at in (18, 20, 23)]


def test_an_early_answer_is_not_taken_over(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY early CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 15, 17, 20)
    with pytest.raises(UserError, match="cannot start WARM"):
        db.execute(f"CREATE QUERY q WARM AS {COUNTS}")


def test_why_says_what_may_change(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}")
    db.start()
    push(db, 5, 20)
    assert (
        "final below 10, 10 behind the newest row read; what it says from there on, below 21, may change"
        in str(db.why("q"))
    )


def test_why_says_what_a_query_that_remembers_less_waits_for(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY (REMEMBER 3) AS {COUNTS}")
    db.start()
    push(db, 5, 20)
    said = str(db.why("q"))
    assert "q waits for s, whose heartbeat is 17 and has not moved" in said
    assert "send a row of s at 21 or later (REMEMBER 3)" in said


def test_the_plan_of_a_query_that_leaves_out_rows_is_not_exchanged(db: hr.Database) -> None:
    db.execute("CREATE STREAM t (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 10")
    pairs = "SELECT COUNT(*) AS n FROM s [RANGE 4] a JOIN t [RANGE 4] b ON a.k = b.k"
    db.execute(f"CREATE QUERY q CONSISTENCY (REMEMBER 3) AS {pairs}")
    db.start()
    push(db, 20)
    with pytest.raises(UserError, match="q leaves out rows that are in time for its streams"):
        db.execute("ALTER QUERY q REOPTIMIZE")


def test_the_plan_of_an_early_answer_is_not_exchanged(db: hr.Database) -> None:
    db.execute("CREATE STREAM t (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts")
    pairs = "SELECT COUNT(*) AS n FROM s [RANGE 4] a JOIN t [RANGE 4] b ON a.k = b.k"
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {pairs}")
    db.start()
    push(db, 20)
    with pytest.raises(UserError, match="q has said what is not final yet"):
        db.execute("ALTER QUERY q REOPTIMIZE")


def test_an_answer_waits_as_long_as_block_says(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY (BLOCK 3) AS {COUNTS}")
    db.start()
    push(db, 20)
    assert not changes(db, "q")
    push(db, 22)
    assert not changes(db, "q")
    push(db, 23)
    assert [change[1:] for change in changes(db, "q")] == [("a", 1, 20, 22, 1)]


def test_rows_that_pass_a_filter_are_said_early(db: hr.Database) -> None:
    db.execute("CREATE QUERY q CONSISTENCY MIDDLE AS SELECT * FROM s WHERE k = 'a'")
    db.start()
    push(db, 20, 15)
    assert [change[1:] for change in changes(db, "q")] == [("a", 15, 15, 16, 1), ("a", 20, 20, 21, 1)]


def test_an_aggregate_over_rows_with_a_constant_is_said_early(db: hr.Database) -> None:
    texts = {name: f"SELECT COUNT(*) AS n FROM s [RANGE 4] WHERE k = '{name}'" for name in "abc"}
    db.execute(";".join(f"CREATE QUERY {name} CONSISTENCY MIDDLE AS {text}" for name, text in texts.items()))
    db.start()
    push(db, 12, 14, 20)
    assert [content(db, name, 14) for name in "abc"] == [[(2,)], [], []]


def test_a_silent_stream_does_not_hold_an_early_answer_back(db: hr.Database) -> None:
    db.execute("CREATE STREAM t (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts")
    both = "SELECT COUNT(*) AS n FROM (SELECT k FROM s [RANGE 4] UNION ALL SELECT k FROM t [RANGE 4])"
    db.execute(f"CREATE QUERY q CONSISTENCY MIDDLE AS {both}; CREATE QUERY strong AS {both}")
    db.start()
    push(db, 20)
    assert content(db, "q", 20) == [(1,)]
    assert not changes(db, "strong")


def test_levels_share_their_state(db: hr.Database) -> None:
    def rows() -> int:
        return sum(one.state_rows for one in db.status.operators)

    db.execute(f"CREATE QUERY strong AS {COUNTS}")
    db.start()
    push(db, *range(40))
    alone = rows()
    db.stop()
    with hr.connect(runner="inline", buckets=2) as other:
        levels = "".join(
            f"CREATE QUERY q{block} CONSISTENCY (BLOCK {block}) AS {COUNTS};" for block in range(9)
        )
        other.execute(f"{STREAM} CREATE QUERY strong AS {COUNTS}; {levels}")
        other.start()
        push(other, *range(40))
        assert sum(one.state_rows for one in other.status.operators) == alone
        other.stop()
        assert all(other[f"q{block}"].history() == db["strong"].history() for block in range(9))


def test_weak_answers_leave_out_rows_that_are_late(db: hr.Database) -> None:
    levels = {"weak": "WEAK", "some": "(BLOCK 1, REMEMBER 3)", "again": "(REMEMBER 3)", "strong": "STRONG"}
    db.execute(
        "".join(f"CREATE QUERY {name} CONSISTENCY {level} AS {COUNTS};" for name, level in levels.items())
    )
    db.start()
    push(db, 20, 16, 18, 21)
    assert {name: db[name].heartbeat for name in levels} == {
        "weak": 21,
        "some": 18,
        "again": 18,
        "strong": 11,
    }
    assert {name: db[name].horizon for name in levels} == {"weak": 22, "some": 21, "again": 18, "strong": 11}
    assert {name: db.status.query(name).departures for name in levels} == {
        "weak": 2, "some": 1, "again": 1, "strong": None,
    }  # fmt: skip
    push(db, 40)
    assert {name: content(db, name, 19) for name in levels} == {
        "weak": [], "some": [("a", 1)], "again": [("a", 1)], "strong": [("a", 2)],
    }  # fmt: skip
    assert not len(db.dead_letters())
    shown = [line.split() for line in str(db.execute("SHOW QUERIES")[0]).splitlines()]
    assert shown[0][-2:] == ["departures", "columns"]
    assert [line[8] for line in shown[2:5]] == ["2", "1", "1"]
    db.stop()
    assert [change.departures for change in db["weak"].subscribe()] == [2, 0]


def test_each_stream_is_remembered_for_as_long_as_it_allows_at_most(db: hr.Database) -> None:
    db.execute("CREATE STREAM t (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 1")
    both = "SELECT COUNT(*) AS n FROM (SELECT k FROM s [RANGE 9] UNION ALL SELECT k FROM t [RANGE 9])"
    db.execute(f"CREATE QUERY q CONSISTENCY (REMEMBER 4) AS {both}")
    db.start()
    push(db, 20, 17, 15)
    push(db, 20, 18, 19, stream="t")
    assert db["q"].heartbeat == 16
    assert db.status.query("q").departures == 1
    assert db.status.stream("t").late == 1
    push(db, 30)
    push(db, 30, stream="t")
    assert content(db, "q", 20) == [(4,)]


def test_a_query_that_remembers_all_is_one_that_does_not_wait(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY (BLOCK 0, REMEMBER 10) AS {COUNTS}")
    db.execute(f"CREATE QUERY middle CONSISTENCY MIDDLE AS {COUNTS}; CREATE QUERY strong AS {COUNTS}")
    db.start()
    push(db, 20, 16)
    assert db.status.query("q").departures == 0
    assert db["q"].changes().equals(db["middle"].changes())
    assert db["q"].heartbeat == db["middle"].heartbeat == 10


def test_a_stream_may_allow_less_later_than_a_query_remembers(tmp_path: Path) -> None:
    with hr.connect(runner="inline", buckets=2, storage=tmp_path) as db:
        db.execute(f"{STREAM} CREATE QUERY q CONSISTENCY (BLOCK 1, REMEMBER 5) AS {COUNTS}")
        db.start()
        push(db, 20, 14, 16)
        db.execute("ALTER STREAM s DISORDER 2")
        push(db, 21, 18)
        assert (db["q"].heartbeat, db.status.query("q").departures, db.status.stream("s").late) == (19, 1, 1)
    with hr.connect(runner="inline", buckets=2, storage=tmp_path) as db:
        db.start()
        push(db, 20, 30)
        assert (db["q"].heartbeat, db.status.query("q").departures) == (28, 1)
        assert content(db, "q", 20) == [("a", 2)]


def test_what_a_query_has_left_out_is_known_in_another_process(tmp_path: Path) -> None:
    text = f"{STREAM} CREATE QUERY q CONSISTENCY WEAK AS {COUNTS}"
    with hr.connect(runner="inline", buckets=2, storage=tmp_path) as db:
        db.execute(text)
        db.start()
        push(db, 20, 15, 14)
    with hr.connect(runner="inline", buckets=2, storage=tmp_path) as db:
        db.execute(text)
        db.start()
        assert db["q"].heartbeat == 20
        push(db, 19, 22)
        assert db.status.query("q").departures == 3
        assert content(db, "q", 21) == [("a", 1)]
        db.execute("DROP QUERY q")
        db.execute(f"CREATE QUERY q CONSISTENCY WEAK AS {COUNTS}")
        assert db.status.query("q").departures == 0


def test_state_of_another_memory_is_not_taken_over(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY weak CONSISTENCY WEAK AS {COUNTS}; CREATE QUERY strong AS {COUNTS}")
    db.start()
    push(db, 15, 17, 20)
    with pytest.raises(LanguageError, match="does not remember all rows cannot start WARM") as raised:
        db.execute(f"CREATE QUERY q CONSISTENCY WEAK WARM AS {COUNTS}")
    assert raised.value.position is not None
    db.execute("DROP QUERY strong")
    with pytest.raises(UserError, match="cannot start WARM"):
        db.execute(f"CREATE QUERY q WARM AS {COUNTS}")


@pytest.mark.parametrize(
    "time",
    [
        "DISORDER 10 ROWS",
        "DISORDER 10 PER k IDLE AFTER 5 SECONDS",
        "DISORDER 10 LATENCY 5 SECONDS",
        "ESTIMATED",
    ],
)
def test_rows_behind_the_newest_one_are_left_out_however_late_rows_may_be(db: hr.Database, time: str) -> None:
    """Of a stream that limits by something else than the newest row alone how late rows are."""
    db.execute(f"CREATE STREAM t (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts {time}")
    db.execute("CREATE QUERY q CONSISTENCY (REMEMBER 3) AS SELECT k, ts FROM t")
    db.execute("CREATE QUERY strong AS SELECT ts FROM t")
    db.start()
    for at in (20, 17, 16, 40, 37, 36):
        push(db, at, stream="t")
    assert db["q"].heartbeat == 37
    assert db.status.query("q").departures == 2
    assert db.status.query("strong").departures is None
    push(db, 60, stream="t")
    assert sorted(db["q"].history().column("ts").to_pylist()) == [17, 20, 37, 40]


def test_rows_that_come_after_so_many_newer_ones_are_left_out(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY (BLOCK 0, REMEMBER 2 ROWS) AS {COUNTS}")
    db.start()
    seen = []
    for at in (15, 20, 18, 17, 16, 19):
        push(db, at)
        seen.append((db["q"].heartbeat, db["q"].horizon, db.status.query("q").departures))
    # 15 came before the last two rows from the third row on, and 20 from the fourth on.
    assert seen == [(5, 16, 0), (10, 21, 0), (15, 21, 0), (20, 21, 0), (20, 21, 1), (20, 21, 2)]
    assert db["q"].snapshot(20).to_pylist() == [{"k": "a", "n": 3}]
    said = str(db.why("q"))
    assert "whose heartbeat is 20" in said
    assert "or send 2 more rows of s" in said


def test_what_was_looked_back_to_is_not_known_after_a_pause(db: hr.Database) -> None:
    db.execute(f"CREATE QUERY q CONSISTENCY (REMEMBER 1 ROWS) AS {COUNTS}")
    db.start()
    push(db, 20)
    push(db, 22)
    assert db["q"].heartbeat == 20
    before = db["q"].changes()
    db.execute("ALTER QUERY q PAUSE; ALTER QUERY q RESUME")
    assert db["q"].heartbeat == 20
    push(db, 21, 12, 30)
    push(db, 30)
    assert db["q"].snapshot(19).to_pylist() == []
    assert db["q"].changes().slice(0, before.num_rows) == before
    assert db["q"].snapshot(22).to_pylist() == [{"k": "a", "n": 1}]


def test_a_run_that_is_continued_says_what_it_would_have_said(tmp_path: Path) -> None:
    text = f"{STREAM} CREATE QUERY q CONSISTENCY MIDDLE AS {COUNTS}"
    found = []
    for cut in (False, True):
        storage = tmp_path / str(cut)
        db = hr.connect(runner="inline", buckets=2, storage=storage)
        db.execute(text)
        db.start()
        push(db, 20, 25)
        if cut:
            db.stop()
            db.close()
            db = hr.connect(runner="inline", buckets=2, storage=storage)
            db.execute(text)
            db.start()
        push(db, 18, 26)
        found.append(changes(db, "q"))
        db.close()
    assert found[0] == found[1] != []


@pytest.mark.parametrize(
    ("clause", "message", "hint"),
    [
        ("CONSISTENCY MIDLE", "CONSISTENCY does not know 'MIDLE'", "MIDDLE"),
        ("CONSISTENCY (STRONG)", "BLOCK, OUTPUT or REMEMBER is missing", "BLOCK 5 SECONDS"),
        ("CONSISTENCY WEEK", "CONSISTENCY does not know 'WEEK'", "WEAK"),
        ("CONSISTENCY (BLOCK 1, FORGET 2)", "REMEMBER is missing", "REMEMBER 1 MINUTE"),
        ("CONSISTENCY (BLOCK 3, REMEMBER 2)", "BLOCK 3 is longer than REMEMBER 2", "BLOCK 2"),
        ("CONSISTENCY (REMEMBER 11)", "REMEMBER 11 is longer than s allows", "REMEMBER 10 or less"),
        ("CONSISTENCY (REMEMBER 2 SECONDS)", "REMEMBER 2 SECONDS has a unit", "write the number alone"),
        ("CONSISTENCY (REMEMBER 3) STARTING AT 0 WARM", "no HEARTBEATS or WARM", "leave out STARTING AT 0"),
        ("CONSISTENCY WEAK HEARTBEATS COMMON", "this CONSISTENCY and HEARTBEATS", "leave one"),
        ("CONSISTENCY (BLOCK 5 SECONDS)", "BLOCK 5 SECONDS has a unit", "write the number alone"),
        ("CONSISTENCY MIDDLE HEARTBEATS COMMON", "this CONSISTENCY and HEARTBEATS", "leave one"),
    ],
)
def test_mistakes(db: hr.Database, clause: str, message: str, hint: str) -> None:
    with pytest.raises(LanguageError, match=message.replace("(", r"\(")) as raised:
        db.execute(f"CREATE QUERY q {clause} AS {COUNTS}")
    assert hint in str(raised.value.hint)
    assert raised.value.position is not None


def test_relations_forget_nothing(db: hr.Database) -> None:
    db.execute(
        "CREATE RELATION r (k STRING, name STRING, op STRING, ts BIGINT) KEY (k) FROM push "
        "CHANGES BY op TIMESTAMP BY ts DISORDER 10"
    )
    pairs = "SELECT s.k, r.name FROM s JOIN r ON s.k = r.k"
    db.execute(f"CREATE QUERY q CONSISTENCY WEAK AS {pairs}")
    db.start()
    changes = [{"k": key, "name": key, "op": "insert", "ts": ts} for key, ts in (("b", 20), ("a", 11))]
    assert db.push("r", changes)
    push(db, 20, 15)
    assert db.status.query("q").departures == 1
    assert content(db, "q", 20) == [("a", "a")]
