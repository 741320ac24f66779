"""CREATE QUERY name HEARTBEATS ...: joins that wait for a slower stream, as their users see it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError
from headrace.language.statements.statements import Heartbeats
from headrace.runtime.driver.facts.status import OperatorStatus

STREAMS = "".join(f"CREATE STREAM {name} (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;" for name in "abc")
THREE = """
SELECT a.ts AS x, b.ts AS y FROM a [RANGE 20] a, b [RANGE 20] b, c [RANGE 20] c
WHERE a.k = b.k AND b.k = c.k
"""


def queries(**heartbeats: str) -> str:
    return "".join(f"CREATE QUERY {name} HEARTBEATS {how} AS {THREE};" for name, how in heartbeats.items())


def push(db: hr.Database, stream: str, *times: int) -> None:
    """Rows of one key."""
    assert db.push(stream, [{"k": 1, "ts": at} for at in times])


def run_ahead(db: hr.Database) -> None:
    """Rows of a and b up to 39, and one of c at 5."""
    push(db, "c", 5)
    for begin in range(0, 40, 10):
        push(db, "a", *range(begin, begin + 10))
        push(db, "b", *range(begin, begin + 10))


def waiting(db: hr.Database, query: str) -> list[OperatorStatus]:
    """The operators of a query that wait for others."""
    status = db.status
    below = status.graph.below(status.query(query).chain[0].node)
    return [one for one in status.operators if one.waits_for and one.number in below]


def state(db: hr.Database, query: str) -> int:
    status = db.status
    below = status.graph.below(status.query(query).chain[0].node)
    return sum(status.operators[number].state_rows for number in below)


def answers(db: hr.Database, *names: str) -> list[object]:
    return [(db[name].heartbeat, db[name].history().to_pylist()) for name in names]


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=1) as made:
        made.execute(STREAMS)
        yield made


def test_what_waits_is_shown_and_let_go_by_the_slower_stream(db: hr.Database) -> None:
    db.execute(queries(free="OPERATOR", held="COMMON"))
    db.start()
    run_ahead(db)
    (join,) = waiting(db, "held")
    assert (join.waiting_rows, join.waiting_since) == (70, 5)
    assert waiting(db, "free") == []
    assert state(db, "held") < 110 < 1200 < state(db, "free")
    shown = str(db.execute("EXPLAIN ANALYZE held")[0])
    (silent,) = join.waits_for
    assert f", waits for #{silent}]\n       80 rows in, 25 out; state 80 rows (70 waiting), " in shown
    assert "waiting" not in str(db.execute("EXPLAIN ANALYZE free")[0])
    assert db["held"].explain("physical").count("[state, waits for #") == 1
    assert "waits for" not in db["free"].explain("physical")
    found = next(one for one in db.why("held").findings if " wait for " in one.message)
    assert found.message == (
        f"70 rows from 5 on wait for c before #{join.number} Join ON k = k_2: "
        "held was created with HEARTBEATS"
    )
    assert found.hint is not None
    assert found.hint.startswith("send a row of c at 6 or later or write ALTER STREAM c IDLE AFTER")
    assert db.status.to_dict()["operators"][join.number]["waiting_since"] == 5
    free, held = answers(db, "free", "held")
    assert free == held
    push(db, "c", 38)
    assert [one.waiting_rows for one in waiting(db, "held")] == [4]
    assert not any(" wait for " in one.message for one in db.why("free").findings)
    free, held = answers(db, "free", "held")
    assert free == held
    db.stop()


@pytest.mark.slow("needs rows enough to fill memory")
def test_memory_goes_by_what_runs_and_else_by_the_worst_case(db: hr.Database) -> None:
    """The join of a and b is known only once its like has run: to yield more than it takes, and then less."""
    db.execute(queries(unknown="MEMORY", free="OPERATOR"))
    db.start()
    assert len(waiting(db, "unknown")) == 1
    run_ahead(db)
    db.execute(queries(dense="MEMORY"))
    assert len(waiting(db, "dense")) == 1
    for at in range(1000, 60_000, 1000):
        push(db, "a", at, *range(at + 50, at + 70))
        push(db, "b", at)
    db.execute(queries(sparse="MEMORY"))
    join = next(one for one in db.status.operators if one.text == "Join ON k = k_2" and not one.waits_for)
    assert join.selectivity is not None
    assert join.selectivity < 1
    assert waiting(db, "sparse") == []
    db.stop()


@pytest.mark.parametrize(("keys", "count"), [(1, 1), (500, 0)])
def test_memory_of_bounded_streams_goes_by_their_first_rows(keys: int, count: int) -> None:
    rows = pa.table({"k": [at % keys for at in range(500)], "ts": list(range(500))})
    with hr.connect(runner="inline", buckets=1) as db:
        for name in "abc":
            db.stream(name, rows, timestamp="ts")
        db.execute(queries(held="MEMORY", free="OPERATOR"))
        db.run()
        assert len(waiting(db, "held")) == count
        assert db["held"].history() == db["free"].history()


def test_what_was_chosen_is_stored(tmp_path: Path) -> None:
    """A restart goes on with the state of operators that wait, whatever would be chosen then."""

    def connected() -> hr.Database:
        db = hr.connect(runner="inline", buckets=1, storage=tmp_path / "store")
        db.execute(STREAMS)
        return db

    with connected() as db:
        db.execute(queries(free="OPERATOR"))
        db.start()
        for at in range(1000, 20_000, 1000):
            push(db, "a", at, *range(at + 50, at + 70))
            push(db, "b", at)
        db.execute(queries(sparse="MEMORY", held="COMMON"))
        assert waiting(db, "sparse") == []
        begin = db.status.stream("b").latest
        push(db, "a", begin + 70, begin + 71)
        push(db, "b", begin + 72)
        db.stop()
    with connected() as db:
        db.execute(queries(free="OPERATOR", sparse="MEMORY", held="COMMON"))
        db.start()
        assert waiting(db, "sparse") == [], "nothing is measured now, and the worst case would wait"
        assert [one.waiting_rows for one in waiting(db, "held")] == [3]
        assert not db.differences
        push(db, "c", begin + 75)
        for name in "abc":
            push(db, name, begin + 200)
        _, held = answers(db, "sparse", "held")
        assert held == answers(db, "sparse")[0]
        assert len(db["held"].history()) == 2
        db.drop("held")
        assert all(not one.waits_for for one in db.status.operators)
        db.stop()
    with connected() as db, pytest.raises(LanguageError, match="the store has another query sparse"):
        db.execute(queries(free="OPERATOR", sparse="OPERATOR"))


def test_the_clause(db: hr.Database) -> None:
    (made,) = db.execute(f"CREATE QUERY q HEARTBEATS memory AS {THREE}")
    assert made.heartbeats is Heartbeats.MEMORY
    assert db.query(f"CREATE QUERY p HEARTBEATS COMMON AS {THREE}").heartbeats is Heartbeats.COMMON
    assert db.query(THREE).heartbeats is Heartbeats.OPERATOR
    with pytest.raises(LanguageError) as error:
        db.execute("CREATE QUERY r HEARTBEATS COMON AS SELECT k FROM a")
    assert error.value.message == "HEARTBEATS does not know 'COMON'"
    assert error.value.hint == "did you mean COMMON?"


def test_what_would_change_operators_that_wait_is_refused(db: hr.Database) -> None:
    """They have other state than those that do not wait: neither a plan nor a query takes it over."""
    with pytest.raises(LanguageError, match="cannot start WARM and have HEARTBEATS"):
        db.execute(f"CREATE QUERY q WARM HEARTBEATS COMMON AS {THREE}")
    db.execute(queries(held="COMMON"))
    db.start()
    run_ahead(db)
    with pytest.raises(UserError, match="does not follow from those of queries that run"):
        db.execute(f"CREATE QUERY warm WARM AS {THREE}")
    with pytest.raises(UserError, match="operators of held wait for others"):
        db.execute("ALTER QUERY held REOPTIMIZE")
    db.stop()
