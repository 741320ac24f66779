"""What users do with a database, inline: arguments, names, answers, what is refused."""

from __future__ import annotations

import re
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, SourceError, UserError
from headrace.runtime.delivery.deliveries import Deliveries

ROWS = pa.table({"k": ["a", "b", "a"], "ts": [1, 2, 30]})


@pytest.fixture
def db() -> Any:
    with hr.connect(runner="inline") as made:
        made.stream("s", ROWS, timestamp="ts")
        yield made


@pytest.mark.parametrize("name", ["buckets", "epoch_rows", "retain_epochs"])
def test_numbers_must_be_positive(name: str) -> None:
    options: dict[str, Any] = {name: 0}
    with pytest.raises(UserError, match=f"{name} must be at least 1, not 0"):
        hr.connect(runner="inline", **options)


def test_an_unknown_runner_is_refused() -> None:
    runner: Any = "flink"
    with pytest.raises(UserError, match="there is no runner flink"):
        hr.connect(runner=runner)


def test_the_dialect_of_a_database_is_that_of_its_first_statements() -> None:
    with pytest.raises(UserError, match="there is no dialect 'oracle'") as refused:
        hr.connect(runner="inline", dialect="oracle")
    assert refused.value.hint == "the dialects are 'sql', 'pipes', 'cql'"
    for dialect in ("sql", "pipes", "cql"):
        with hr.connect(runner="inline", dialect=dialect) as db:
            assert str(db.execute("SHOW DIALECT")[0]).split() == ["dialect", "-" * 7, dialect, "(1", "row)"]


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="epoch_rows must be at least 1, not '3'"):
        hr.connect(runner="inline", epoch_rows="3")  # type: ignore[arg-type]


def test_a_stage_and_a_view_that_there_are_not_are_refused() -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT ts FROM s")
        with pytest.raises(UserError, match="there is no stage final"):
            query.explain("final")
        db.start()
        with pytest.raises(UserError, match="there is no view stream to follow"):
            query.follow("stream")
        db.stop()


def test_queries_get_names_and_keep_their_order(db: hr.Database) -> None:
    db.query("SELECT k FROM s", name="Query_1")
    db.query("SELECT k FROM s")
    db.query("CREATE QUERY own AS SELECT k FROM s")
    db.query("CREATE QUERY own AS SELECT k FROM s", name="other")
    assert [query.name for query in db.queries] == ["Query_1", "query_2", "own", "other"]
    with pytest.raises(LanguageError, match="there is a query OWN already"):
        db.query("SELECT k FROM s", name="OWN")


@pytest.mark.parametrize("text", ["", "SELECT k FROM s; SELECT k FROM s", "EXPLAIN SELECT k FROM s"])
def test_query_takes_one_query(db: hr.Database, text: str) -> None:
    with pytest.raises(LanguageError):
        db.query(text)


def test_execute_returns_queries_and_explanations(db: hr.Database) -> None:
    made = db.execute("SELECT k FROM s; EXPLAIN SELECT k FROM s; CREATE STREAM t AS SELECT k FROM s")
    assert [isinstance(item, hr.Query) for item in made] == [True, False]
    assert set(db.streams) == {"s", "t"}


def test_there_is_no_answer_before_a_run(db: hr.Database) -> None:
    query = db.query("SELECT k FROM s")
    with pytest.raises(UserError, match="query_1 has no answer yet"):
        query.history()
    with pytest.raises(UserError, match="nothing has been run yet"):
        db.dead_letters()
    db.run()
    later = db.query("SELECT ts FROM s")
    with pytest.raises(UserError, match="query_2 has no answer yet"):
        later.history()
    assert query.history().num_rows == 3


def test_a_run_needs_a_query(db: hr.Database) -> None:
    with pytest.raises(UserError, match="there is no query to run"):
        db.run()


def test_a_run_says_which_queries_are_paused(db: hr.Database) -> None:
    db.execute(
        "CREATE STREAM p (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts; CREATE QUERY q AS SELECT k FROM p"
    )
    db.start()
    db.execute("ALTER QUERY q PAUSE")
    db.stop()
    assert "queries: q (paused)>" in repr(db)
    with pytest.raises(UserError, match="there is no query to run: the query q is paused") as caught:
        db.start()
    assert caught.value.hint == "ALTER QUERY q RESUME lets it go on"
    db.execute("ALTER QUERY q RESUME")
    db.start()
    assert "queries: q>" in repr(db)


def test_views_of_one_answer(db: hr.Database) -> None:
    query = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k")
    db.run()
    assert query.snapshot(3).to_pydict() == {"k": ["a", "b"], "n": [1, 1]}
    assert query.history()["valid_to"].to_pylist() == [6, 7, 35]
    assert set(query.changes()["change"].to_pylist()) <= {1, -1}
    with pytest.raises(UserError, match="query_1 is not a stream"):
        query.stream()
    with pytest.raises(UserError, match="is not an instant of an integer timeline"):
        query.snapshot("2024-01-01")


def test_a_snapshot_lists_rows_in_the_order_of_the_query() -> None:
    with hr.connect(runner="inline") as db:
        values = [2.0, 2.0, float("nan"), None, 5.0]
        rows = {"ts": [1, 1, 2, 2, 3], "k": ["b", "a", "c", None, "d"], "v": values}
        db.stream("s", pa.table(rows), timestamp="ts")
        window = "SELECT k, v FROM s [RANGE 9]"
        queries = {
            "cdba_": db.query(f"{window} ORDER BY v DESC, k DESC"),
            "cdab_": db.query(f"{window} ORDER BY v DESC"),
            "_abdc": db.query(f"{window} ORDER BY 2"),
            "cd": db.query(f"{window} ORDER BY v DESC LIMIT 2"),
        }
        db.run()
        for expected, query in queries.items():
            assert "".join(k or "_" for k in query.snapshot(3)["k"].to_pylist()) == expected
            begins = query.history()["valid_from"].to_pylist()
            assert begins == sorted(begins)


def test_snapshots_at_times() -> None:
    with hr.connect(runner="inline") as db:
        times = pa.array(
            [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (1, 2)], pa.timestamp("us", "UTC")
        )
        db.stream("s", pa.table({"v": [1, 2], "ts": times}), timestamp="ts")
        query = db.query("SELECT v FROM s [RANGE 30 MINUTES]")
        db.run()
        for at in (
            "2024-01-01T01:10:00Z",
            "2024-1-1 1:10",
            "2024-01-01 02:10:00 +0100",
            datetime(2024, 1, 1, 1, 10),
            datetime(2024, 1, 1, 1, 10, tzinfo=UTC),
        ):
            assert query.snapshot(at)["v"].to_pylist() == [1]
        assert len(query.snapshot("2024-01-01")) == len(query.snapshot("2024-01-01T00:00:00Z"))
        for text in ("yesterday", "2024-02-30", "1704071400"):
            with pytest.raises(UserError, match="is not a valid timestamp"):
                query.snapshot(text)


def test_a_query_that_fails_does_not_end_the_others(db: hr.Database) -> None:
    largest = 2**63 - 1
    db.stream("big", pa.table({"v": [largest, largest], "ts": [1, 2]}), timestamp="ts")
    bad = db.query("SELECT SUM(v) AS total FROM big [RANGE 10]")
    good = db.query("SELECT COUNT(*) AS n FROM big [RANGE 10]")
    summary = db.run()
    assert [name for name, _, _ in summary.failed] == ["query_1"]
    with pytest.raises(UserError, match="query_1 failed"):
        bad.history()
    assert good.history()["n"].to_pylist() == [1, 2, 1]


def test_a_failure_is_remembered_by_the_store(tmp_path: Path) -> None:
    largest = 2**63 - 1
    for _ in range(2):
        with hr.connect(runner="inline", storage=tmp_path / "store", epoch_rows=1) as db:
            db.stream("big", pa.table({"v": [largest, largest, 1], "ts": [1, 2, 3]}), timestamp="ts")
            db.query("SELECT SUM(v) AS total FROM big [RANGE 10]")
            good = db.query("SELECT COUNT(*) AS n FROM big [RANGE 10]")
            assert [name for name, _, _ in db.run().failed] == ["query_1"]
            assert good.history()["n"].to_pylist() == [1, 2, 3, 2, 1]


@pytest.mark.parametrize(
    ("data", "timestamp", "message"),
    [
        (ROWS, "time", "there is no column time"),
        (pa.table({"ts": ["a"]}), "ts", "ts"),
        ([1, 2], "ts", "a list cannot be used as a table"),
    ],
)
def test_streams_that_make_no_sense_are_refused(
    db: hr.Database, data: Any, timestamp: str, message: str
) -> None:
    with pytest.raises((UserError, SourceError), match=message):
        db.stream("s2", data, timestamp=timestamp)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "CREATE STREAM p (ts BIGINT) FROM push OPTIONS (colour='red') TIMESTAMP BY ts",
            "push has no option colour",
        ),
        (
            "CREATE STREAM p (ts BIGINT) FROM push OPTIONS (max_rows_per_epoch=0) TIMESTAMP BY ts",
            "max_rows_per_epoch must be a positive number",
        ),
        ("CREATE STREAM p (ts BIGINT) FROM socket TIMESTAMP BY ts", "the format socket needs Spark"),
    ],
)
def test_declared_streams_that_make_no_sense_are_refused(db: hr.Database, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        db.execute(text)
    assert caught.value.position is not None


def test_a_row_limit_makes_epochs_smaller() -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM bid FROM nexmark OPTIONS (events=1000, max_rows_per_epoch=100) TIMESTAMP BY ts;"
            "SELECT price FROM bid"
        )
        assert db.run().epochs == 10


def test_closing_twice_is_allowed_and_a_database_can_run_again(db: hr.Database) -> None:
    query = db.query("SELECT k FROM s")
    for _ in range(2):
        db.run()
        assert query.history().num_rows == 3
    db.close()
    db.close()


def shown(db: hr.Database, what: str) -> list[list[str]]:
    (text,) = db.execute(f"SHOW {what}")
    assert isinstance(text, str)
    return [re.split(" {2,}", line.rstrip()) for line in text.split("\n")]


def test_show_lists_streams_and_queries(db: hr.Database) -> None:
    db.stream(
        "t", pa.table({"x": [1.5], "at": [datetime(2024, 1, 1)]}), timestamp="at", disorder="90 seconds"
    )
    db.execute("CREATE STREAM d AS SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k")
    assert shown(db, "STREAMS") == [
        ["name", "reads", "timed_by", "disorder", "columns"],
        ["----", "----------", "--------", "----------", "----------------------"],
        ["s", "its source", "ts", "0", "k STRING, ts BIGINT"],
        ["t", "its source", "at", "90 SECONDS", "x DOUBLE, at TIMESTAMP"],
        ["d", "s", "a query", "k STRING, n BIGINT"],
        ["(3 rows)"],
    ]
    assert shown(db, "QUERIES")[2:] == [["(0 rows)"]]
    db.execute("CREATE QUERY last AS SELECT * FROM s [PARTITION BY k ROWS 2]; SELECT n FROM d")
    assert shown(db, "queries")[2:] == [
        ["last", "s", "BIGINT", "grows without bound", "k STRING, ts BIGINT"],
        ["query_2", "s", "BIGINT", "bounded", "n BIGINT"],
        ["(2 rows)"],
    ]


def test_show_lists_functions(db: hr.Database) -> None:
    db.function("twice", lambda x: x, arguments=["BIGINT"], returns="DOUBLE")
    listed = shown(db, "FUNCTIONS")
    assert ["UPPER", "function", "built in"] in listed
    assert ["MEDIAN", "aggregate", "built in"] in listed
    assert ["twice", "function", "in Python", "BIGINT", "DOUBLE"] in listed


def test_the_dialect_holds_for_what_follows(db: hr.Database) -> None:
    pipes, _, shown_first, cql, shown_then, _ = db.execute(
        "SET dialect = 'pipes'; SELECT k FROM s; EXPLAIN SELECT k FROM s; SHOW DIALECT; SET dialect = 'cql';"
        "SELECT COUNT(*) AS n FROM s; SHOW DIALECT; EXPLAIN SELECT k FROM s"
    )
    assert isinstance(pipes, hr.Query)
    assert isinstance(cql, hr.Query)
    assert "pipes" in str(shown_first)
    assert "cql" in str(shown_then)
    db.run()
    assert pipes.history()["valid_to"].to_pylist() == [2, 3, 31]
    assert cql.history()["n"].to_pylist() == [1, 2, 3]


def test_a_stop_that_fails_lets_another_driver_have_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Deliveries, timeout: float | None) -> None:
        raise RuntimeError("the sinks do not stop")

    def started() -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store")
        db.execute("CREATE STREAM reading (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT SUM(v) AS total FROM reading [RANGE 10]")
        db.start()
        return db

    first = started()
    with monkeypatch.context() as patch:
        patch.setattr(Deliveries, "stop", fail)
        with pytest.raises(RuntimeError, match="do not stop"):
            first.stop()
    second = started()
    assert second.push("reading", {"v": 1, "ts": 1})
    second.close()


@pytest.mark.parametrize("disorder", ["5 seconds", timedelta(seconds=5)])
def test_a_disorder_is_a_text_or_a_timedelta(disorder: str | timedelta) -> None:
    times = [datetime(2024, 1, 1, 0, 0, second, tzinfo=UTC) for second in (10, 5, 4)]
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": times}), timestamp="ts", disorder=disorder)
        db.query("SELECT ts FROM s")
        assert db.run().late == 1


@pytest.mark.parametrize(
    ("disorder", "message"),
    [
        (timedelta(seconds=1), "has a unit, but the stream is timed by an integer"),
        (timedelta(seconds=-1), "is negative"),
        (-1, "the disorder -1 is negative"),
        (1.5, "1.5 is not a valid disorder"),
        ("5m", "unknown unit of time m"),
    ],
)
def test_a_wrong_disorder_is_refused(disorder: Any, message: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(UserError, match=message):
        db.stream("s", ROWS, timestamp="ts", disorder=disorder)


def test_type_checkers_know_what_calls_give(db: hr.Database) -> None:
    """`mypy` checks these lines; without overloads it refuses each of them."""
    query = db.execute("CREATE STREAM p (ts BIGINT) FROM push TIMESTAMP BY ts; SELECT ts FROM p")[0]
    db.start()
    taken: bool = db.push("p", {"ts": 1})
    future: Future[bool] = db.push("p", {"ts": 2}, wait=False)
    assert (taken, future.result()) == (True, True)
    assert query.history().num_rows == 1


def test_a_stream_that_is_there_already_is_refused_at_its_statement() -> None:
    create = "CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts;"
    with hr.connect(runner="inline") as db, pytest.raises(LanguageError, match="2:3: there is a stream s al"):
        db.execute(f"{create}\n  {create}")


@pytest.mark.parametrize("at", [2**62, -(2**62) - 1, 10**30])
def test_a_heartbeat_out_of_time_is_refused_and_the_run_goes_on(at: int) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM p (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts; SELECT v FROM p")
        db.start()
        with pytest.raises(UserError, match=r"is not an instant.*62 bits"):
            db.heartbeat("p", at)
        assert db.push("p", {"ts": 1, "v": 1})
