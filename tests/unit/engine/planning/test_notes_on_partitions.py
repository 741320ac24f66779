"""What is said of a query over a topic whose partitions are judged together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace as hr

pytest.importorskip("confluent_kafka")

TOPIC = (
    "CREATE STREAM s (v BIGINT, ts BIGINT{}) FROM kafka OPTIONS (brokers '127.0.0.1:1', topic 't') "
    "TIMESTAMP BY ts {}"
)
TOGETHER = (
    "rows of s are judged by all rows read before them: if its topic has several partitions, those of one "
    "that is behind another one are late"
)


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        yield db


def notes(db: hr.Database) -> list[str]:
    """What is said of a query over the topic."""
    query = db["q"] if "q" in [one.name for one in db.queries] else db.query("SELECT v FROM s", name="q")
    return [note.message for note in query.notes]


@pytest.mark.parametrize(
    ("clauses", "together"),
    [
        ("", True),
        ("DISORDER 5", True),
        ("STRICT", True),
        ("DISORDER 5 ROWS", True),
        ("DISORDER 5 IDLE AFTER 30 SECONDS", True),
        ("DISORDER 5 TIMEOUT 30 SECONDS", True),
        ("ESTIMATED", True),
        ("DISORDER 5 LATENCY 1 SECOND", False),
        ("DISORDER 5 PER v IDLE AFTER 30 SECONDS", False),
        ("DISORDER 5 PER v OF (1, 2)", False),
    ],
)
def test_which_topics_are_judged_together(db: hr.Database, clauses: str, together: bool) -> None:
    db.execute(TOPIC.format("", clauses))
    assert notes(db) == [TOGETHER] * together


@pytest.mark.parametrize(
    "clauses", ["", "DISORDER 5", "STRICT", "DISORDER 5 TIMEOUT 30 SECONDS", "DISORDER 5 ROWS", "ESTIMATED"]
)
def test_the_hint_takes_the_note_away(db: hr.Database, clauses: str) -> None:
    db.execute(TOPIC.format(", _partition BIGINT", clauses))
    assert notes(db) == [TOGETHER]
    (hint,) = [note.hint for note in db["q"].notes]
    assert hint is not None
    assert hint.endswith("PER _partition IDLE AFTER 30 SECONDS judges each row by its partition")
    db.execute(hint.removesuffix(" judges each row by its partition"))
    assert notes(db) == []


def test_a_topic_without_the_column_is_told_to_declare_it(db: hr.Database) -> None:
    db.execute(TOPIC.format("", "DISORDER 5"))
    assert "-- note at " in str(db.execute("EXPLAIN SELECT v FROM s")[0])
    notes(db)
    (hint,) = [note.hint for note in db["q"].notes]
    assert hint is not None
    assert hint.startswith(
        "declare the column _partition BIGINT, and write PER _partition IDLE AFTER 30 SECONDS"
    )
    db.drop("q")
    db.execute("DROP STREAM s")
    db.execute(TOPIC.format(", _partition BIGINT", "DISORDER 5 PER _partition IDLE AFTER 30 SECONDS"))
    assert notes(db) == []


def test_other_streams_have_no_partitions(db: hr.Database) -> None:
    db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5")
    assert notes(db) == []
