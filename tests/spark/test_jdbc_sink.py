"""A table of PostgreSQL that is kept through Spark's JDBC driver."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import UserError
from postgres import USER, postgres
from spark.test_jdbc_relations import DRIVERS, PASSWORD

pytestmark = pytest.mark.spark

INPUT = pa.table({"ts": [1, 2, 3, 4, 6], "k": ["a", "b", "a", None, None], "v": [1, 5, 2, 3, 4]})
TOTALS = "SELECT k, SUM(v) AS total, AVG(v) AS mean FROM s WINDOW(RANGE UNBOUNDED) GROUP BY k"


def sink(port: int, more: str = "") -> str:
    url = f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    access = f"user '{USER}', password SECRET 'db', driver 'org.postgresql.Driver'"
    return f"CREATE SINK present FOR totals TO table OPTIONS (url '{url}', {access}, table 'present'{more})"


def test_a_table_is_kept_by_jdbc(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pg8000 = pytest.importorskip("pg8000.dbapi", reason="pg8000 is not installed: make setup")
    drivers = sorted(path for pattern in DRIVERS for path in Path.home().glob(pattern))
    if not drivers:
        pytest.skip("there is no JDBC driver: mvn dependency:get -Dartifact=org.postgresql:postgresql:42.7.4")
    spark.sql(f"ADD JAR '{drivers[-1]}'")
    monkeypatch.setenv("HEADRACE_SECRET_DB", PASSWORD)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with postgres(port, PASSWORD):
        for _ in range(2):
            with hr.connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
                db.stream("s", INPUT, timestamp="ts")
                db.execute(f"CREATE QUERY totals AS {TOTALS}; {sink(port)}")
                db.run()
        with hr.connect(runner="inline") as db:
            db.stream("s", INPUT, timestamp="ts")
            db.execute(f"CREATE QUERY totals AS {TOTALS}; {sink(port, ', attempts 1')}")
            with pytest.raises(UserError, match="the table present has the answer of another run"):
                db.run()
            db.execute("DROP SINK present")
            monkeypatch.setenv("HEADRACE_SECRET_DB", "shut-sesame")
            db.execute(sink(port))
            with pytest.raises(UserError, match="password authentication failed") as raised:
                db.run()
            assert "shut-sesame" not in str(raised.value)
        with pg8000.connect(user=USER, password=PASSWORD, host="127.0.0.1", port=port) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT k, total, mean FROM present ORDER BY total")
            assert [tuple(row) for row in cursor.fetchall()] == [
                ("a", 3, 1.5),
                ("b", 5, 5.0),
                (None, 7, 3.5),
            ]
