"""Queries that come and go by one change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace as hr
from headrace.errors import LanguageError

MANY = 20


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT v FROM s", "all_of")
        db.start()
        yield db


def create(first: int, last: int) -> str:
    return ";".join(f"CREATE QUERY q{n} AS SELECT v FROM s WHERE v > {n}" for n in range(first, last))


def drop(first: int, last: int) -> str:
    return ";".join(f"DROP QUERY q{n}" for n in range(first, last))


def test_a_text_is_one_change(db: hr.Database) -> None:
    queries = db.execute(create(0, MANY))
    assert [query.name for query in queries] == [f"q{n}" for n in range(MANY)]
    assert db.status.epoch == 1
    db.push("s", [{"ts": 1, "v": 5}, {"ts": 2, "v": -1}])
    assert [query.changes().num_rows for query in queries] == [int(n < 5) for n in range(MANY)]
    db.execute(drop(0, 10) + ";" + create(MANY, MANY + 5))
    assert db.status.epoch == 4
    assert [query.name for query in db.queries] == ["all_of", *(f"q{n}" for n in range(10, MANY + 5))]
    db.push("s", [{"ts": 3, "v": 5}, {"ts": 4, "v": -1}])
    # What was committed for those that are gone stays readable.
    assert [queries[4].changes().num_rows, queries[15].changes().num_rows] == [1, 0]


def test_what_comes_before_a_mistake_has_taken_effect(db: hr.Database) -> None:
    with pytest.raises(LanguageError, match="w"):
        db.execute(create(0, 3) + "; CREATE QUERY wrong AS SELECT w FROM s;" + create(3, 5))
    assert [query.name for query in db.queries] == ["all_of", "q0", "q1", "q2"]
    assert db.status.epoch == 1


def test_others_see_it_done(db: hr.Database) -> None:
    found = db.execute(create(0, 3) + "; SHOW QUERIES; EXPLAIN ANALYZE q1;" + drop(0, 3))
    assert "q2" in str(found[3])
    assert "v > 1" in str(found[4])
    assert db.status.epoch == 2


def test_a_sink_of_a_query_that_goes_gets_everything(db: hr.Database) -> None:
    (query,) = db.execute(create(0, 1))
    taken: list[int] = []
    query.deliver(hr.FunctionSink(lambda epoch, heartbeat, rows: taken.append(rows.num_rows)))
    db.push("s", [{"ts": 1, "v": 5}, {"ts": 2, "v": -1}])
    db.execute(drop(0, 1) + ";" + create(1, 3))
    assert sum(taken) == 1
    assert db.status.epoch == 4


def test_what_is_dropped_and_created_begins_anew(db: hr.Database) -> None:
    counting = "CREATE QUERY counted AS SELECT COUNT(*) AS n FROM s [RANGE 100]"
    db.execute(counting)
    db.push("s", [{"ts": 1, "v": 5}])
    db.execute(f"DROP QUERY counted; {counting}")
    db.push("s", [{"ts": 2, "v": 5}, {"ts": 3, "v": 5}])
    assert db["counted"].history().to_pylist() == [{"n": 1, "valid_from": 2, "valid_to": 3}]
