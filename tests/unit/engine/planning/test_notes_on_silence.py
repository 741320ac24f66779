"""What is said of a query when it is registered, if a stream can hold others back for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from headrace.engine.planning.silence import notes_on_silence
from headrace.errors import Position
from headrace.heartbeats.timing import Timing

BOTH = "SELECT v FROM a UNION ALL SELECT v FROM b"
UNBOUNDED = "sends nothing, no answer about the rows of the others is final"


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        yield db


def test_notes_are_of_what_is_declared_now(db: hr.Database) -> None:
    """What is declared later takes a note away, or brings one."""
    either, one, at_last = (
        "while a stream that the query reads",
        "while a sends",
        "if a and b all send nothing",
    )
    assert len(messages(db, "STRICT", "STRICT")) == 1
    for statement, expected in (
        ("CREATE SKEW BETWEEN a AND b (2 SECONDS, STRICT)", ()),
        ("DROP SKEW BETWEEN a AND b", (either,)),
        ("CREATE SKEW FROM a TO b (0 SECONDS, 4)", (one, at_last)),
        ("ALTER STREAM a IDLE AFTER 5 SECONDS; ALTER STREAM b IDLE AFTER 5 SECONDS", (at_last,)),
        ("ALTER STREAM a TIMEOUT 5 SECONDS; ALTER STREAM b TIMEOUT 5 SECONDS", ()),
    ):
        db.execute(statement)
        found = [note.message for note in db["q"].notes]
        assert len(found) == len(expected), statement
        for message, beginning in zip(found, expected, strict=True):
            assert message.startswith(beginning)


@pytest.mark.parametrize("stage", ["", "LOGICAL", "OPTIMIZED", "PHYSICAL"])
def test_explain_shows_them(db: hr.Database, stage: str) -> None:
    messages(db, "", "")
    (shown,) = db.execute(f"EXPLAIN {stage} {BOTH}")
    said = f"-- note at 1:{10 + len(stage)}: while a stream that the query reads {UNBOUNDED} (hint: ALTER "
    assert str(shown).splitlines()[-1].startswith(said)
    db.execute("ALTER STREAM a IDLE AFTER 5 SECONDS; ALTER STREAM b IDLE AFTER 5 SECONDS")
    assert "note at" not in str(db.execute(f"EXPLAIN {stage} {BOTH}")[0])


def messages(db: hr.Database, a: str, b: str, more: str = "", query: str = BOTH) -> list[str]:
    """The notes on a query over `a` and `b`, which declare some clauses."""
    for name, clauses in (("a", a), ("b", b)):
        db.execute(f"CREATE STREAM {name} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {clauses}")
    db.execute(more)
    return [note.message for note in db.query(query, name="q").notes]


@pytest.mark.parametrize(
    ("a", "b", "more", "expected"),
    [
        ("", "", "", [f"while a stream that the query reads {UNBOUNDED}"]),
        ("", "IDLE AFTER 5 SECONDS", "", [f"while a {UNBOUNDED}"]),
        ("HEARTBEATS FROM v", "TIMEOUT 5 SECONDS", "", []),
        # The matrix of section 3.4: nothing is known of the first stream when the second sends.
        (
            "STRICT",
            "STRICT",
            "CREATE SKEW FROM a TO b (0 SECONDS, 4)",
            [f"while a {UNBOUNDED}", "if a and b all send nothing, a and b may stay behind the last rows"],
        ),
        (
            "STRICT IDLE AFTER 5 SECONDS",
            "STRICT TIMEOUT 5 SECONDS",
            "CREATE SKEW FROM a TO b (0 SECONDS, 4)",
            ["if a and b all send nothing, a may stay behind the last rows"],
        ),
        ("STRICT", "STRICT", "CREATE SKEW BETWEEN a AND b (2 SECONDS, STRICT)", []),
        # By way of b, the last row of a is final though it may have ties.
        (
            "",
            "STRICT",
            "CREATE SKEW BETWEEN a AND b (2 SECONDS, STRICT)",
            [],
        ),
        (
            "",
            "",
            "CREATE SKEW BETWEEN a AND b (2 SECONDS, 0)",
            ["if a and b all send nothing, a and b may stay behind the last rows"],
        ),
    ],
)
def test_what_is_said(db: hr.Database, a: str, b: str, more: str, expected: list[str]) -> None:
    assert messages(db, a, b, more) == expected


def test_a_query_over_one_stream_needs_nothing(db: hr.Database) -> None:
    assert messages(db, "", "", query="SELECT x.v FROM a [RANGE 5] x, a [RANGE 5] y") == []


def test_streams_that_end_hold_nobody_back(db: hr.Database, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("v,ts\n1,1\n")
    db.execute(
        f"CREATE STREAM c (v BIGINT, ts BIGINT) FROM csv OPTIONS (path '{tmp_path}/rows.csv') TIMESTAMP BY ts"
    )
    assert messages(db, "", "", query="SELECT v FROM a UNION ALL SELECT v FROM c") == []


def test_the_place_is_that_of_the_query(db: hr.Database) -> None:
    db.execute("CREATE STREAM a (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts IDLE AFTER 5 SECONDS")
    db.execute("CREATE STREAM b (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    text = "SELECT v FROM a [RANGE 5]\n  EXCEPT SELECT v FROM b [RANGE 5]"
    (note,) = db.query(f"WITH x AS (SELECT v FROM a) {text}", name="q").notes
    assert note.message == f"while b {UNBOUNDED}"
    assert note.hint == "ALTER STREAM b IDLE AFTER 30 SECONDS lets the others go on without it"
    assert note.position.line in (1, 2)
    db.execute(note.hint.split(" lets ")[0])
    assert db.query(text, name="r").notes == ()


def test_many_streams_are_not_all_named() -> None:
    timings = {f"s{number}": Timing(idle_after=1) for number in range(5)}
    silent = {f"t{number}": Timing() for number in range(1000)}
    (note,) = notes_on_silence({**timings, **silent}, Position(1, 1))
    assert note.message == f"while t0, t1, t2 or 997 others {UNBOUNDED}"
