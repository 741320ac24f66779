"""Relations that are read from a database by JDBC, through Spark."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import StoreError, UserError
from postgres import USER, postgres

pytestmark = pytest.mark.spark

PASSWORD = "open-sesame"
DRIVERS = (".m2/repository/org/postgresql/postgresql/*/postgresql-*.jar", ".ivy2*/jars/org.postgresql_*.jar")
READING = "CREATE STREAM reading (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
LOOK_UP = "SELECT r.id, s.room FROM reading [NOW] r LEFT JOIN sensor s ON s.id = r.id"


@pytest.fixture
def derby(spark: Any, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    """The address of a database that comes with Spark, and what carries out statements in it."""
    jvm = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:memory:{tmp_path.name}"
    opened = jvm.java.sql.DriverManager.getConnection(f"{url};create=true")
    statement = opened.createStatement()
    statement.execute("CREATE TABLE rooms (id INTEGER, room VARCHAR(20), price DECIMAL(6, 2), raw BLOB)")
    statement.execute("INSERT INTO rooms (id, room, price) VALUES (2, 'roof', 1.50), (1, 'hall', 20.00)")
    yield url, statement.execute
    opened.close()


def relation(url: str, clauses: str = "", options: str = "") -> str:
    return f"""
        CREATE RELATION sensor (id BIGINT, room STRING) KEY (id)
        FROM jdbc OPTIONS (url '{url}', dbtable 'APP.rooms'{options}) {clauses}
    """


def test_a_table_is_a_relation(spark: Any, derby: tuple[str, Any], tmp_path: Path) -> None:
    url, execute = derby
    said: list[str] = []
    secret = f", user 'ada', password '{PASSWORD}'"

    def opened() -> hr.Database:
        db = hr.connect(spark=spark, storage=tmp_path / "store")
        db.execute(f"{relation(url, options=secret)}; {READING}; CREATE QUERY rooms AS {LOOK_UP}")
        return db

    with opened() as db:
        db.start()
        db.push("reading", [{"id": 1, "ts": 1}, {"id": 3, "ts": 2}])
        # Added later, it sees the rows as they were when the relation was created.
        execute("DELETE FROM rooms WHERE id = 2")
        count = db.query("SELECT COUNT(*) AS n FROM sensor", name="count")
        db.push("reading", [{"id": 2, "ts": 3}])
        db.heartbeat("reading", 9)
        assert db["rooms"].stream().column("room").to_pylist() == ["hall", None, "roof"]
        assert count.snapshot(0).to_pylist() == [{"n": 2}]
        said += map(
            str, db.execute("SHOW CREATE RELATION sensor; SHOW RELATIONS; DESCRIBE sensor; WHY rooms")
        )
        said += map(str, db.execute(f"EXPLAIN {LOOK_UP}; EXPLAIN SHARED; EXPLAIN ANALYZE rooms"))
        db.stop()
    with opened() as db, pytest.raises(StoreError, match=r"for another stream sensor") as raised:
        db.start()
    said += [str(raised.value), *map(_text, (tmp_path / "store").rglob("*"))]
    assert not [text for text in said if PASSWORD in text]
    assert "its option password may be secret" in said[0]


def test_a_table_is_read_again(spark: Any, derby: tuple[str, Any]) -> None:
    url, execute = derby
    with hr.connect(spark=spark) as db:
        db.execute(f"{relation(url, 'REFRESH ON DEMAND')}; {READING}; CREATE QUERY rooms AS {LOOK_UP}")
        db.start()
        db.push("reading", [{"id": 1, "ts": 1}, {"id": 3, "ts": 2}])
        execute("UPDATE rooms SET room = 'cellar' WHERE id = 1")
        db.execute("REFRESH RELATION sensor")
        db.push("reading", [{"id": 1, "ts": 3}])
        execute("DROP TABLE rooms")
        with pytest.raises(UserError, match=r"APP\.ROOMS"):
            db.execute("REFRESH RELATION sensor")
        db.push("reading", [{"id": 1, "ts": 4}])
        db.heartbeat("reading", 9)
        assert db["rooms"].stream().column("room").to_pylist() == ["hall", None, "cellar", "cellar"]
        db.stop()


def test_what_cannot_be_read_is_refused(spark: Any, derby: tuple[str, Any]) -> None:
    url, _ = derby
    with hr.connect(spark=spark) as db:
        for text, message in (
            (relation(f"jdbc:nothing://host?password={PASSWORD}"), r"1:\d+|jdbc"),
            (relation(url).replace("APP.rooms", "nothing"), "NOTHING|nothing"),
            (relation(url).replace("room STRING", "name STRING"), "name"),
            (relation(url).replace("room STRING", "room BIGINT"), "room"),
        ):
            with pytest.raises(UserError, match=message) as raised:
                db.execute(text)
            assert raised.value.position is not None
            assert PASSWORD not in str(raised.value)
        assert not db.relations
    with hr.connect(runner="inline") as db, pytest.raises(UserError, match="the format jdbc needs Spark"):
        db.execute(relation(url))


def test_a_table_of_postgresql(spark: Any) -> None:
    pg8000 = pytest.importorskip("pg8000.dbapi", reason="pg8000 is not installed: make setup")
    drivers = sorted(path for pattern in DRIVERS for path in Path.home().glob(pattern))
    if not drivers:
        pytest.skip("there is no JDBC driver: mvn dependency:get -Dartifact=org.postgresql:postgresql:42.7.4")
    spark.sql(f"ADD JAR '{drivers[-1]}'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with postgres(port, PASSWORD):
        connection = pg8000.connect(user=USER, password=PASSWORD, host="127.0.0.1", port=port)
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE rooms (id INTEGER, room TEXT, since TIMESTAMPTZ, price NUMERIC(6, 2))")
        cursor.execute(
            "INSERT INTO rooms VALUES (2, 'roof', '2024-05-01 10:00+02', 1.50), (1, NULL, NULL, 20)"
        )
        connection.commit()
        connection.close()
        url = f"jdbc:postgresql://127.0.0.1:{port}/postgres?user={USER}"
        with hr.connect(spark=spark) as db:
            driver = "driver 'org.postgresql.Driver'"
            form = f"FROM jdbc OPTIONS (url '{url}&password={{}}', dbtable 'rooms', {driver})"
            with pytest.raises(UserError, match="connect to the database") as raised:
                db.execute(f"CREATE RELATION room {form.format('shut-sesame')}")
            assert "shut-sesame" not in str(raised.value)
            db.execute(
                f"CREATE RELATION room KEY (id) {form.format(PASSWORD)}; CREATE QUERY q AS SELECT * FROM room"
            )
            db.run()
            found = db.queries[0].snapshot(0)
            assert PASSWORD not in str(db.execute("SHOW CREATE RELATION room")[0])
    at = datetime(2024, 5, 1, 8, tzinfo=UTC)
    assert found.sort_by("id").to_pydict() == {
        "id": [1, 2], "room": [None, "roof"], "since": [None, at], "price": [Decimal(20), Decimal("1.50")]
    }  # fmt: skip


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1") if path.is_file() else ""
