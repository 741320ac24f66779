"""A table of a database that is the content of a query at its heartbeat, whatever fails."""

from __future__ import annotations

import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import warm_processes
from headrace import Database, Query, Retry, TableSink, UserError, connect
from headrace.errors import DeliveryError
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.results.changes import Change
from headrace.runtime.store.sealed import seal, unseal
from headrace.time import INFINITY
from how_many import examples

QUERIES = (
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s WINDOW(RANGE 3) GROUP BY k",
    "SELECT SUM(v) AS total FROM s WINDOW(RANGE 2)",
    "SELECT COUNT(*) AS n, k FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k HAVING COUNT(*) <> 2",
    "SELECT DISTINCT k, v FROM s WINDOW(RANGE 4)",
)
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.none() | st.sampled_from(("a", "b")), st.integers(0, 2)), max_size=12
)


class Watched(TableSink):
    """A sink that remembers what its table held after each epoch; its connection fails once.

    Args:
        path: the database.
        failure: how many statements and commits after it was opened.
    """

    def __init__(self, path: Path, failure: int) -> None:
        super().__init__(lambda: Connection(sqlite3.connect(path), self.fail), "answers")
        self.path = path
        self.failure: int | None = None
        self.wanted = failure
        self.seen: list[tuple[int, list[Any]]] = []

    def open(self, origin: Origin) -> None:
        super().open(origin)
        self.failure = self.wanted

    def fail(self) -> None:
        if self.failure is not None:
            self.failure -= 1
            if self.failure == 0:
                raise OSError("the connection is lost")

    def write(self, change: Change) -> None:
        super().write(change)
        self.seen.append((change.heartbeat, content(self.path)))


class Connection:
    """A connection of which each statement and each commit may fail, before or after it."""

    def __init__(self, real: sqlite3.Connection, failing: Callable[[], None]) -> None:
        self._real = real
        self._failing = failing

    def cursor(self) -> Any:
        return Cursor(self._real.cursor(), self._failing)

    def commit(self) -> None:
        self._failing()
        self._real.commit()
        self._failing()

    def rollback(self) -> None:
        self._real.rollback()

    def close(self) -> None:
        self._real.close()


class Cursor:
    def __init__(self, real: sqlite3.Cursor, failing: Callable[[], None]) -> None:
        self._real = real
        self._failing = failing

    def execute(self, *arguments: Any) -> None:
        self._failing()
        self._real.execute(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def content(path: Path, table: str = "answers") -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
    finally:
        connection.close()


def expected(query: Query, heartbeat: int) -> list[Any]:
    table = query.snapshot(heartbeat - 1)
    return sorted(zip(*table.to_pydict().values(), strict=True), key=repr)


def table_of(rows: list[tuple[int, str | None, int]]) -> pa.Table:
    """The rows, timed by how long each comes after the one before it."""
    passed, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    instants = [sum(passed[: place + 1]) for place in range(len(passed))]
    return pa.table(
        {
            "ts": pa.array(instants, pa.int64()),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(values, pa.int64()),
        }
    )


@examples(5, 15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.sampled_from(QUERIES), st.integers(1, 4), st.integers(1, 60))
def test_the_table_is_the_content_after_every_epoch(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, str | None, int]],
    text: str,
    epoch_rows: int,
    failure: int,
) -> None:
    sink = Watched(tmp_path_factory.mktemp("sink") / "answers.db", failure)
    with connect(runner="inline", epoch_rows=epoch_rows) as db:
        db.stream("s", table_of(rows), timestamp="ts")
        query = db.query(text)
        query.deliver(sink, retry=Retry(pause=0))
        db.run()
        assert sink.seen[-1][0] == INFINITY
        for heartbeat, found in sink.seen:
            assert found == expected(query, heartbeat), heartbeat


def totals(db: Database, path: Path, **arguments: Any) -> Query:
    rows = [(1, "a", 1), (1, "b", 5), (1, "a", 2), (1, None, 3), (1, None, 4)]
    db.stream("s", table_of(rows), timestamp="ts")
    query = db.query("SELECT k, SUM(v) AS total FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k", name="totals")
    query.deliver(TableSink(lambda: sqlite3.connect(path), "answers", **arguments))
    return query


FINAL = [("a", 3), ("b", 5), (None, 7)]


def test_the_key_follows_from_the_query_and_may_be_null(tmp_path: Path) -> None:
    with connect(runner="inline", epoch_rows=2) as db:
        totals(db, tmp_path / "out.db")
        epochs = db.run().epochs
    assert content(tmp_path / "out.db") == sorted(FINAL, key=repr)
    ((one, _, query, epoch, heartbeat, form),) = content(tmp_path / "out.db", "answers_headrace")
    assert (one, query, epoch, heartbeat, form) == (1, "totals", epochs, INFINITY, "present")


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_an_epoch_that_comes_again_is_not_written_twice(tmp_path: Path, epoch: int) -> None:
    """The process may die between the transaction and the position."""
    position = tmp_path / "store/sinks/totals%231-database.json"
    for _ in range(2):
        with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
            totals(db, tmp_path / "out.db")
            db.run()
        assert content(tmp_path / "out.db") == sorted(FINAL, key=repr)
        back = unseal(position.read_bytes()) | {"epoch": epoch, "since": epoch + 1}
        position.write_bytes(seal(back))


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    create = "CREATE STREAM s (ts BIGINT, k STRING) FROM push TIMESTAMP BY ts"
    for turn in range(3):
        with connect(runner="inline", storage=tmp_path / "store") as db:
            db.execute(create)
            query = db.query("SELECT k, COUNT(*) AS n FROM s WINDOW(RANGE 3) GROUP BY k", name="q")
            query.deliver(TableSink(lambda: sqlite3.connect(tmp_path / "out.db"), "answers"))
            db.start()
            db.push("s", [{"ts": 2 * turn, "k": "a"}, {"ts": 2 * turn + 1, "k": "b"}])
            db.stop()
    # What is final ends before 5: the rows at 2, 3 and 4 hold at 4.
    assert content(tmp_path / "out.db") == [("a", 2), ("b", 1)]
    assert content(tmp_path / "out.db", "answers_headrace_later") != []


def test_a_sink_of_sql_keeps_a_table_of_sqlite(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    with connect(runner="inline", epoch_rows=2) as db:
        db.stream("s", pa.table({"ts": [1, 2, 3], "k": ["a", "b", "a"], "v": [1, 5, 2]}), timestamp="ts")
        db.execute(f"""
            CREATE QUERY q AS SELECT k, SUM(v) AS n FROM s [RANGE UNBOUNDED] GROUP BY k;
            CREATE SINK kept FOR q TO table OPTIONS (url 'sqlite://{tmp_path}/a%20b/x.db', table 'answers');
        """)
        db.run()
    assert content(tmp_path / "a b/x.db") == [("a", 3), ("b", 5)]


def test_two_rows_of_one_key_are_an_error_that_names_it(tmp_path: Path) -> None:
    with connect(runner="inline") as db:
        db.stream("s", table_of([(1, "a", 1), (1, "b", 2), (1, "b", 3)]), timestamp="ts")
        query = db.query("SELECT k, v FROM s WINDOW(RANGE 2)", name="q")
        query.deliver(TableSink(lambda: sqlite3.connect(tmp_path / "out.db"), "answers", key="k"))
        with pytest.raises(DeliveryError, match='q has two rows of the key k = "b" at 3'):
            db.run()
    assert content(tmp_path / "out.db") == []


def test_rows_that_follow_each_other_between_two_epochs(tmp_path: Path) -> None:
    with connect(runner="inline") as db:
        db.stream("s", table_of([(1, "a", 1), (2, "a", 2), (2, "b", 3)]), timestamp="ts")
        query = db.query("SELECT k, v FROM s WINDOW(RANGE 2)", name="q")
        query.deliver(TableSink(lambda: sqlite3.connect(tmp_path / "out.db"), "answers", key="k"))
        db.run()
        assert content(tmp_path / "out.db") == expected(query, INFINITY) == []


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (None, "it does not follow from q which columns say which row it is"),
        ("kk", "q has no column kk .hint: did"),
    ],
)
def test_a_key_is_needed(tmp_path: Path, key: str | None, error: str) -> None:
    with connect(runner="inline") as db:
        db.stream("s", table_of([(1, "a", 1)]), timestamp="ts")
        query = db.query("SELECT k, v FROM s [RANGE 3]", name="q")
        query.deliver(TableSink(lambda: sqlite3.connect(tmp_path / "out.db"), "answers", key))
        with pytest.raises(UserError, match=error):
            db.run()


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "out.db")
    with connection:
        connection.execute("CREATE TABLE answers (k TEXT, total BIGINT)")
        connection.execute("INSERT INTO answers VALUES ('mine', 1)")
    connection.close()
    with connect(runner="inline") as db:
        totals(db, tmp_path / "out.db")
        with pytest.raises(DeliveryError, match="the table answers has rows already"):
            db.run()
    assert content(tmp_path / "out.db") == [("mine", 1)]
    with connect(runner="inline") as db:
        totals(db, tmp_path / "other.db")
        db.run()
    with connect(runner="inline") as db:
        totals(db, tmp_path / "other.db")
        with pytest.raises(DeliveryError, match="the table answers has the answer of another run"):
            db.run()


def test_values_of_all_types(tmp_path: Path) -> None:
    with connect(runner="inline") as db:
        db.stream("s", table_of([(1, "a", 1)]), timestamp="ts")
        query = db.query(
            "SELECT v, v > 0 AS b, v / 4.0e0 AS d, DATE '2024-05-01' AS day, "
            "TIMESTAMP '2024-05-01 10:00:00' AS at, CAST('1.10' AS DECIMAL(5, 2)) AS money, "
            "ARRAY_AGG(k) AS list, CAST('NaN' AS DOUBLE) AS nan FROM s WINDOW(RANGE UNBOUNDED) GROUP BY v"
        )
        query.deliver(TableSink(lambda: sqlite3.connect(tmp_path / "out.db"), "answers"))
        db.run()
    row = (1, 1, 0.25, "2024-05-01", "2024-05-01T10:00:00Z", "1.10", '["a"]', None)
    assert content(tmp_path / "out.db") == [row]


KILLED = """
import os, signal, sqlite3, sys
import pyarrow as pa
from headrace import TableSink, connect

folder, commits = sys.argv[1], 0

class Mortal(sqlite3.Connection):
    def commit(self):
        global commits
        super().commit()
        commits += 1
        # The first commit makes the tables, and the third one is of the second epoch.
        if commits == 3:
            os.kill(os.getpid(), signal.SIGKILL)

with connect(runner="inline", epoch_rows=2, storage=f"{folder}/store") as db:
    ts, k = [1, 2, 3, 4, 5], ["a", "b", "a", None, None]
    db.stream("s", pa.table({"ts": ts, "k": k, "v": [1, 5, 2, 3, 4]}), timestamp="ts")
    text = "SELECT k, SUM(v) AS total FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k"
    query = db.query(text, name="totals")
    query.deliver(TableSink(lambda: sqlite3.connect(f"{folder}/out.db", factory=Mortal), "answers"))
    db.run()
"""


def test_a_process_that_is_killed_between_transaction_and_position_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    killed = warm_processes.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert content(tmp_path / "out.db", "answers_headrace")[0][3] == 2
    position = unseal((tmp_path / "store/sinks/totals%231-database.json").read_bytes())
    assert position["epoch"] == 1
    with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        totals(db, tmp_path / "out.db")
        db.run()
    assert content(tmp_path / "out.db") == sorted(FINAL, key=repr)


def own_table(path: Path, columns: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"CREATE TABLE answers ({columns})")
    connection.close()


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("total BIGINT, k TEXT", [(5, "b"), (3, "a"), (7, None)]),
        ("TOTAL BIGINT, note TEXT DEFAULT 'x', K TEXT", [(5, "x", "b"), (3, "x", "a"), (7, "x", None)]),
    ],
)
def test_a_table_of_ones_own_is_filled_by_names(tmp_path: Path, columns: str, rows: list[Any]) -> None:
    own_table(tmp_path / "out.db", columns)
    with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        totals(db, tmp_path / "out.db")
        db.run()
    assert content(tmp_path / "out.db") == sorted(rows, key=repr)
    with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        totals(db, tmp_path / "out.db")
        db.run()
    assert content(tmp_path / "out.db") == sorted(rows, key=repr)


def test_a_table_of_ones_own_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    own_table(tmp_path / "out.db", "k TEXT, sum BIGINT")
    with connect(runner="inline") as db:
        totals(db, tmp_path / "out.db")
        with pytest.raises(DeliveryError, match=r"no column called total .hint: its columns are k, sum;"):
            db.run()
