"""Queries that take too long, or too much, end alone; a change and a stop do not wait for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import ExecutionError, UserError
from inside import core_of, epochs_of
from waiting import wait_for

SLOW = "CREATE QUERY slow AS SELECT k, LEVENSHTEIN(REPEAT(s, 50000), REPEAT('ab', 25000)) AS d FROM p"
"""Some seconds for each row."""


def rows(count: int, at: int = 2) -> pa.Table:
    return pa.table(
        {
            "ts": [at] * count,
            "k": [at * 100 + place for place in range(count)],
            "s": [chr(97 + place % 26) for place in range(count)],
        }
    )


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", threads=1) as db:
        db.execute("CREATE STREAM p (ts BIGINT, k BIGINT, s STRING) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY good AS SELECT k FROM p")
        db.start()
        db.push("p", rows(1, 1))
        yield db


def is_at_work(db: hr.Database) -> bool:
    """Whether the epochs' thread compares texts."""
    at = sys._current_frames().get(epochs_of(db).ident or 0)
    while at is not None:
        if at.f_code.co_name == "_levenshtein":
            return True
        at = at.f_back
    return False


def begin(db: hr.Database) -> Future[bool]:
    """A push of rows on which the slow query works for long."""
    db.execute(SLOW)
    pushed: Future[bool] = db.push("p", rows(26), wait=False)
    wait_for(lambda: is_at_work(db))
    return pushed


def test_a_query_that_takes_too_long_ends_alone(db: hr.Database) -> None:
    db.execute("SET epoch_timeout = 1")
    db.execute(SLOW)
    db.push("p", rows(26))
    reason, again = "took more than 1 s in one epoch", "SET epoch_timeout higher; ALTER QUERY slow RESUME"
    assert reason in str(db.status.query("slow").failed)
    for shown in (db["slow"].why(), db.execute("DESCRIBE slow")[0], db.execute("EXPLAIN ANALYZE slow")[0]):
        assert reason in str(shown)
        assert again in str(shown)
    db.push("p", rows(1, 3))
    assert db["good"].history().num_rows == 27


def test_a_query_that_takes_too_long_does_not_end_one_that_reads_the_same_exchange(db: hr.Database) -> None:
    db.execute("SET epoch_timeout = 1; CREATE STREAM z (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts")
    db.execute(
        "CREATE QUERY slow AS SELECT l.k FROM p [RANGE 10] l JOIN p [RANGE 10] r "
        "ON LEVENSHTEIN(REPEAT(l.s, 50000), REPEAT('ab', 25000)) = r.k; "
        "CREATE QUERY pairs AS SELECT l.k FROM p [RANGE 10] l JOIN z [RANGE 10] r ON l.k = r.k"
    )
    db.push("p", rows(26))
    db.push("z", pa.table({"ts": [3], "k": [205]}))
    db.push("p", rows(1, 4))
    db.push("z", pa.table({"ts": [4], "k": [0]}))
    failed = {query.name: query.failed for query in db.status.queries}
    assert "took more than 1 s" in str(failed["slow"])
    assert (failed["pairs"], failed["good"]) == (None, None)
    assert db["pairs"].history()["k"].to_pylist() == [205]


@pytest.mark.slow("a gigabyte of text is made before it is too much")
def test_a_query_that_takes_too_much_memory_ends_alone(db: hr.Database) -> None:
    db.execute("CREATE QUERY big AS SELECT REPEAT(s, 1000000) AS n FROM p")
    db.push("p", rows(1_100))
    assert "needs more memory than there is" in str(db.status.query("big").failed)
    assert db.running


@pytest.mark.parametrize("statement", ["DROP QUERY slow", "ALTER QUERY slow PAUSE"])
def test_a_query_goes_beside_the_epoch_that_works_on_it(
    db: hr.Database, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    pushed = begin(db)
    assert db.status.attempt is not None
    db.execute(statement)
    assert pushed.result()
    # The epoch has not been waited for.
    assert "was ended: it is dropped or paused" in caplog.text
    assert [query.name for query in db.status.queries] == ["good"]
    db.push("p", rows(1, 3))
    assert db["good"].history().num_rows == 27


def test_a_paused_query_that_worked_goes_on_when_it_is_resumed(db: hr.Database) -> None:
    begin(db)
    db.execute("ALTER QUERY slow PAUSE")
    db.execute("ALTER QUERY slow RESUME; SET epoch_timeout = 600")
    db.push("p", rows(1, 3))
    db.push("p", rows(0, 4))
    assert db.status.query("slow").failed is None


def test_a_stop_ends_the_thread_whatever_it_works_on(db: hr.Database) -> None:
    begin(db)
    thread = epochs_of(db)
    with pytest.raises(ExecutionError, match="has not ended within"):
        db.stop(0.5)
    wait_for(lambda: not thread.is_alive())
    db.start()
    db.push("p", rows(1, 5))


def test_explain_does_not_compute_what_takes_long(db: hr.Database) -> None:
    text = db.execute("EXPLAIN SELECT LEVENSHTEIN(REPEAT('a', 100000), REPEAT('b', 100000)) AS d FROM p")
    assert "LEVENSHTEIN" in str(text[0])


def test_a_timeout_is_a_number_of_seconds(db: hr.Database) -> None:
    with pytest.raises(UserError, match="epoch_timeout must be more than 0"):
        hr.connect(runner="inline", epoch_timeout=0)
    assert core_of(db).settings.run.timeout == 600
    db.execute("SET epoch_timeout = 5")
    assert core_of(db).settings.run.timeout == 5
    db.served.limit_epochs(30)
    db.execute("SET epoch_timeout = DEFAULT")
    assert core_of(db).settings.run.timeout == 30
    with hr.connect(runner="inline", epoch_timeout=2.5) as other:
        other.served.limit_epochs(30)
        assert core_of(other).settings.run.timeout == 2.5
