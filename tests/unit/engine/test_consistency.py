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
    with pytest.raises(UserError, match="not final yet"):
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
        ("CONSISTENCY (STRONG)", "BLOCK is missing", "BLOCK 5 SECONDS"),
        ("CONSISTENCY (BLOCK 5 SECONDS)", "BLOCK 5 SECONDS has a unit", "write the number alone"),
        ("CONSISTENCY MIDDLE HEARTBEATS COMMON", "this CONSISTENCY and HEARTBEATS", "leave one"),
    ],
)
def test_mistakes(db: hr.Database, clause: str, message: str, hint: str) -> None:
    with pytest.raises(LanguageError, match=message.replace("(", r"\(")) as raised:
        db.execute(f"CREATE QUERY q {clause} AS {COUNTS}")
    assert hint in str(raised.value.hint)
    assert raised.value.position is not None
