"""A delivered table in PostgreSQL, and a relation that is read from there; where there is a server."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import warm_processes
from headrace import TableSink, UserError, connect
from headrace.runtime.results.changes import Change
from postgres import USER, postgres

pg8000 = pytest.importorskip("pg8000.dbapi", reason="pg8000 is not installed: make setup")


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    """The socket of a server of its own; it is reached through that alone."""
    with postgres() as folder:
        yield folder / ".s.PGSQL.5432"


def opened(socket: Path) -> Any:
    """A connection."""
    return pg8000.connect(user=USER, unix_sock=str(socket), database="postgres")


def rows(socket: Path, text: str) -> list[Any]:
    """The rows of a query, in some order that does not change."""
    connection = opened(socket)
    try:
        cursor = connection.cursor()
        cursor.execute(text)
        return sorted(cursor.fetchall(), key=repr)
    finally:
        connection.close()


def carried_out(socket: Path, *texts: str) -> None:
    """Carry out statements in one transaction."""
    connection = opened(socket)
    try:
        for text in texts:
            connection.cursor().execute(text)
        connection.commit()
    finally:
        connection.close()


INPUT = pa.table({"ts": [1, 2, 3, 4, 6], "k": ["a", "b", "a", None, None], "v": [1, 5, 2, 3, 4]})
TOTALS = "SELECT k, SUM(v) AS total FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k"


def test_a_table_is_the_content_at_the_heartbeat(server: Path) -> None:
    seen: list[tuple[int, list[Any]]] = []

    class Watched(TableSink):
        def write(self, change: Change) -> None:
            super().write(change)
            seen.append((change.heartbeat, rows(server, "SELECT * FROM windows")))

    with connect(runner="inline", dialect="pipes", epoch_rows=1) as db:
        db.stream("s", INPUT, timestamp="ts")
        query = db.query("SELECT k, COUNT(*) AS n, MAX(v) AS most FROM s WINDOW(RANGE 3) GROUP BY k")
        query.deliver(Watched(lambda: opened(server), "public.windows", marker="%s"))
        db.run()
        for heartbeat, found in seen:
            content = query.snapshot(heartbeat - 1).to_pylist()
            assert found == sorted((list(row.values()) for row in content), key=repr)
    assert len(seen) > 3
    assert any(found for _, found in seen)


def test_values_of_all_types(server: Path) -> None:
    with connect(runner="inline", dialect="pipes") as db:
        db.stream("s", pa.table({"ts": [1], "k": ["it's"], "v": [1]}), timestamp="ts")
        query = db.query(
            "SELECT v, v > 0 AS b, v / 4.0e0 AS d, DATE '2024-05-01' AS day, "
            "TIMESTAMP '2024-05-01 10:00:00' AS at, CAST('1.10' AS DECIMAL(5, 2)) AS money, "
            "ARRAY_AGG(k) AS list, CAST('NaN' AS DOUBLE) AS nan, COUNT(*) AS `100 %s` "
            "FROM s WINDOW(RANGE UNBOUNDED) GROUP BY v"
        )
        query.deliver(TableSink(lambda: opened(server), "types", marker="%s"))
        db.run()
    (row,) = rows(server, "SELECT * FROM types")
    assert row == [1, True, 0.25, "2024-05-01", "2024-05-01T10:00:00Z", "1.10", '["it\'s"]', None, 1]


def test_a_key_whose_name_has_the_marker_in_it(server: Path) -> None:
    with connect(runner="inline", dialect="pipes", epoch_rows=1) as db:
        db.stream("s", INPUT, timestamp="ts")
        query = db.query("SELECT k AS `50 %s`, SUM(v) AS n FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k")
        query.deliver(TableSink(lambda: opened(server), "named", marker="%s"))
        db.run()
    assert rows(server, "SELECT * FROM named") == [["a", 3], ["b", 5], [None, 7]]


def test_a_sink_of_sql_keeps_a_table(server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SECRET_DB", f"postgresql://{USER}:sesame@/postgres?host={server.parent}")
    for _ in range(2):
        with connect(runner="inline", dialect="pipes", epoch_rows=2, storage=tmp_path / "store") as db:
            db.stream("s", INPUT, timestamp="ts")
            db.execute(f"""
                CREATE QUERY totals AS {TOTALS};
                CREATE SINK present FOR totals TO table
                  OPTIONS (url SECRET 'db', table 'public.present', key 'k');
            """)
            db.run()
            assert "public.present at SECRET 'db'" in str(db.execute("SHOW SINKS")[0])
    assert rows(server, "SELECT k, total FROM present") == [["a", 3], ["b", 5], [None, 7]]
    with connect(runner="inline", dialect="pipes") as db:
        db.stream("s", INPUT, timestamp="ts")
        db.execute(f"""
            CREATE QUERY totals AS {TOTALS};
            CREATE SINK present FOR totals TO table OPTIONS (url SECRET 'db', table 'present');
        """)
        with pytest.raises(UserError, match="the table present has the answer of another run"):
            db.run()


KILLED = """
import os, signal, sys
import pg8000.dbapi
import pyarrow as pa
from headrace import TableSink, connect

folder, socket, side, table = sys.argv[1:]

class Mortal(pg8000.dbapi.Connection):
    commits = 0

    def commit(self):
        # The first commit makes the tables, and the third one is of the second epoch.
        Mortal.commits += 1
        if Mortal.commits == 3 and side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        super().commit()
        if Mortal.commits == 3:
            os.kill(os.getpid(), signal.SIGKILL)

def opened():
    return Mortal(user="postgres", unix_sock=socket, database="postgres")

with connect(runner="inline", dialect="pipes", epoch_rows=2, storage=f"{folder}/store") as db:
    columns = {"ts": [1, 2, 3, 4, 6], "k": ["a", "b", "a", None, None], "v": [1, 5, 2, 3, 4]}
    db.stream("s", pa.table(columns), timestamp="ts")
    query = db.query("SELECT k, SUM(v) AS total FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k", name="totals")
    query.deliver(TableSink(opened, table, marker="%s"))
    db.run()
"""


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_process_that_is_killed_around_a_commit_goes_on(server: Path, tmp_path: Path, side: str) -> None:
    table = f"totals_{side}"
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(server), side, table]
    killed = warm_processes.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with connect(runner="inline", dialect="pipes", epoch_rows=2, storage=tmp_path / "store") as db:
        db.stream("s", INPUT, timestamp="ts")
        query = db.query(TOTALS, name="totals")
        query.deliver(TableSink(lambda: opened(server), table, marker="%s"))
        db.run()
    assert rows(server, f"SELECT k, total FROM {table}") == [["a", 3], ["b", 5], [None, 7]]


def test_a_relation_is_read_from_a_query_and_read_again(server: Path) -> None:
    carried_out(
        server,
        "CREATE TABLE customer (id BIGINT PRIMARY KEY, name TEXT, since DATE)",
        "INSERT INTO customer VALUES (1, 'Ada', '2024-05-01'), (2, NULL, NULL)",
    )

    def customers() -> pa.Table:
        found = rows(server, "SELECT id, name, since FROM customer")
        schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("since", pa.date32())])
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in found], schema)

    with connect(runner="inline", dialect="pipes") as db:
        db.relation("customer", customers, "id", refresh="on demand")
        db.execute("CREATE STREAM orders (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query("SELECT o.ts AS t, c.name FROM orders o LEFT JOIN customer c ON c.id = o.id")
        db.start()
        db.push("orders", [{"id": 1, "ts": 1}, {"id": 2, "ts": 2}, {"id": 1, "ts": 3}])
        carried_out(server, "UPDATE customer SET name = 'Ben' WHERE id = 2")
        db.refresh("customer")
        db.push("orders", [{"id": 2, "ts": 4}, {"id": 1, "ts": 5}])
        assert query.stream().select(["t", "name"]).to_pydict() == {
            "t": [1, 2, 3, 4],
            "name": ["Ada", None, "Ada", "Ben"],
        }


def test_many_rows_are_copied(server: Path) -> None:
    """By COPY, whose text has its own escapes; those of a form that adds and takes back."""
    texts = ["plain", "tab\tand\\slash", "two\nlines\r", "\\N", "", None] * 20
    table = pa.table({"ts": range(len(texts)), "k": texts, "d": [0.5, -1.5e300, float("inf")] * 40})
    with connect(runner="inline") as db:
        db.stream("s", table, timestamp="ts")
        events = db.query("SELECT ts, k, d, d > 0 AS b FROM s")
        history = db.query("SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k")
        events.deliver(TableSink(lambda: opened(server), "copied", marker="%s"))
        history.deliver(TableSink(lambda: opened(server), "whole", marker="%s", form="history"))
        db.run()
        told = [list(row.values())[:4] for row in events.stream().to_pylist()]
        ended = [list(row.values()) for row in history.history().to_pylist()]
    assert sorted(rows(server, "SELECT * FROM copied")) == sorted(told)
    assert sorted(rows(server, "SELECT * FROM whole"), key=repr) == sorted(ended, key=repr)
