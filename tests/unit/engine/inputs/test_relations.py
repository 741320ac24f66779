"""Relations as users have them: tables that queries look up in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.engine.database import Database
from headrace.errors import LanguageError, StoreError, UserError

SENSORS = pa.table({"id": [1, 2], "room": ["hall", "roof"]})
READINGS = pa.table({"id": [2, 3, 1], "v": [10, 20, 30], "ts": [5, 6, 11]})
LOOK_UP = "SELECT r.v, s.room FROM reading r LEFT JOIN sensor s ON s.id = r.id"
PUSHED = "CREATE STREAM reading (id BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline", dialect="pipes") as database:
        yield database


def looked_up(db: Database) -> list[dict[str, object]]:
    """What a run over the readings finds in `sensor`."""
    db.stream("reading", READINGS, timestamp="ts")
    query = db.query(LOOK_UP)
    db.run()
    found: list[dict[str, object]] = query.stream().select(["v", "room"]).to_pylist()
    return found


FOUND = [{"v": 10, "room": "roof"}, {"v": 20, "room": None}, {"v": 30, "room": "hall"}]


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "arrow"])
def test_a_file(db: Database, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"sensors.{form}"
    match form:
        case "parquet":
            pq.write_table(SENSORS, path)
        case "arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SENSORS.schema) as writer:
                writer.write_table(SENSORS)
        case "csv":
            path.write_text("id,room\n1,hall\n2,roof\n")
        case _:
            path.write_text('{"id": 1, "room": "hall"}\n{"id": 2, "room": "roof"}\n')
    db.execute(f"CREATE RELATION sensor KEY (id) FROM {form} OPTIONS (path '{path}')")
    db.relation("again", path, key="id")
    assert [info.schema for info in db.relations.values()] == [db.relations["sensor"].schema] * 2
    assert looked_up(db) == FOUND


@pytest.mark.parametrize(
    "frame", [SENSORS, SENSORS.to_pandas(), SENSORS.to_batches()[0], pl.from_arrow(SENSORS)]
)
def test_a_frame(db: Database, frame: Any) -> None:
    db.relation("sensor", frame, key="id")
    assert looked_up(db) == FOUND


def test_names_are_listed_and_dropped(db: Database) -> None:
    db.relation("Sensor", SENSORS, key="id")
    price = pa.table({"p": [1], "a": pa.array([None], pa.int64()), "b": [3]})
    db.relation("price", price, valid=("A", "b"))
    shown: list[Any] = db.execute("SHOW RELATIONS; SHOW STREAMS")
    assert [line.split() for line in shown[0].splitlines()[2:4]] == [
        ["Sensor", "id", "always", "id", "BIGINT,", "room", "STRING"],
        ["price", "a", "to", "b", "p", "BIGINT,", "a", "BIGINT,", "b", "BIGINT"],
    ]
    assert "Sensor" not in shown[1]
    assert list(db.streams) == []
    assert list(db.relations) == ["sensor", "price"]
    db.execute("DROP RELATION sensor")
    db.drop("PRICE")
    assert not db.relations


def test_a_query_over_relations_alone_has_the_whole_history(db: Database) -> None:
    db.relation("sensor", SENSORS)
    db.relation("price", pa.table({"p": [1, 2], "a": [None, 5], "b": [7, None]}), valid=("a", "b"))
    count = db.query("SELECT COUNT(*) AS n FROM sensor")
    sums = db.query("SELECT SUM(p) AS p FROM price")
    db.run()
    assert count.history().to_pylist() == [{"n": 2, "valid_from": None, "valid_to": None}]
    assert count.latest().to_pydict() == {"n": [2]}
    assert sums.history().to_pylist() == [
        {"p": 1, "valid_from": None, "valid_to": 5},
        {"p": 3, "valid_from": 5, "valid_to": 7},
        {"p": 2, "valid_from": 7, "valid_to": None},
    ]


def test_a_constant_relation_meets_streams_of_either_time(db: Database) -> None:
    db.relation("sensor", SENSORS)
    db.execute("CREATE STREAM upstairs AS SELECT id FROM sensor WHERE room = 'roof'")
    db.stream("reading", READINGS, timestamp="ts")
    days = READINGS.set_column(2, "ts", READINGS.column("ts").cast(pa.timestamp("us", "UTC")))
    db.stream("day", days, timestamp="ts")
    queries = [
        db.query(f"SELECT v FROM {stream} r JOIN upstairs u ON u.id = r.id") for stream in ("reading", "day")
    ]
    db.run()
    assert [query.stream().column("v").to_pylist() for query in queries] == [[10], [10]]


def test_a_row_without_a_period_is_set_apart(db: Database) -> None:
    db.relation("price", pa.table({"p": [1, 2, 3], "a": [5, 7, 2**62], "b": [7, 7, None]}), valid=("a", "b"))
    query = db.query("SELECT p FROM price")
    db.run()
    assert query.history().column("p").to_pylist() == [1]
    assert sorted(db.dead_letters().column("reason").to_pylist()) == [
        "the period a TO b is empty",
        "the period a TO b is out of range",
    ]


@pytest.mark.parametrize(
    ("rows", "valid", "message"),
    [
        ({"k": [1, 2, 1]}, None, 'two rows of t have the key {"k": 1}'),
        ({"k": [1, None]}, None, "a row of t has NULL in its key k"),
        (
            {"k": [1, 2, 1], "a": [0, 0, 4], "b": [5, None, 9]}, ("a", "b"),
            'two rows of t that are valid together have the key {"k": 1}',
        ),
        (
            {"k": [1, 1], "a": [None, 4], "b": [None, 9]}, ("a", "b"),
            'two rows of t that are valid together have the key {"k": 1}',
        ),
    ],
)  # fmt: skip
def test_a_key_is_checked(
    db: Database, rows: dict[str, list[int]], valid: tuple[str, str] | None, message: str
) -> None:
    with pytest.raises(UserError) as error:
        db.relation("t", pa.table(rows), "k", valid)
    assert error.value.message == message
    assert not db.relations


@pytest.mark.parametrize("kind", [pa.int64(), pa.timestamp("us", "UTC")])
def test_a_key_may_come_again_at_another_time(db: Database, kind: pa.DataType) -> None:
    bounds = (pa.array(part).cast(kind) for part in ([5, None, 3, 7], [5, 3, 7, None]))
    db.relation("t", pa.table([[1, 1, 1, 1], *bounds], names=["k", "a", "b"]), ["k"], ("a", "b"))
    assert db.relations["t"].key == ("k",)


def test_relations_are_read_first_and_whole(db: Database) -> None:
    """A million rows beside ten that are read one by one: one epoch, and no row of the stream is kept."""
    many = pa.table({"id": pa.array(range(1_000_000)), "x": pa.array(range(1_000_000))})
    few = pa.table({"id": range(10), "ts": range(10)})
    with hr.connect(runner="inline", dialect="pipes", epoch_rows=1) as small:
        small.relation("many", many, key="id")
        small.stream("few", few, timestamp="ts")
        query = small.query("SELECT x FROM few JOIN many ON many.id = few.id")
        held: list[int] = []
        summary = small.run(lambda progress: held.append(progress.buffered))
        assert query.stream().column("x").to_pylist() == list(range(10))
    assert summary.epochs == 11
    assert set(held) == {1_000_000}


def test_a_query_that_is_added_later_sees_all_of_a_relation(db: Database) -> None:
    db.relation("sensor", SENSORS)
    db.execute(PUSHED)
    first = db.query(LOOK_UP)
    db.start()
    db.push("reading", {"id": 2, "v": 10, "ts": 5})
    missing = db.query("SELECT id FROM sensor EXCEPT SELECT id FROM reading [RANGE 100]")
    again = db.query(LOOK_UP)
    whole = db.query("SELECT COUNT(*) AS n FROM sensor")
    db.push("reading", [{"id": 1, "v": 30, "ts": 11}, {"id": 3, "v": 20, "ts": 12}])
    db.heartbeat("reading", 13)
    assert first.stream().column("room").to_pylist() == ["roof", "hall", None]
    assert again.stream().column("room").to_pylist() == ["hall", None]
    assert whole.snapshot(12).to_pydict() == {"n": [2]}
    assert missing.snapshot(12).to_pydict() == {"id": [2]}
    assert db.status.query(again.name).held_by == "reading"
    db.drop(first.name)
    db.execute("CREATE QUERY kept AS SELECT room FROM sensor")
    db.push("reading", {"id": 1, "v": 30, "ts": 14})
    assert db["kept"].snapshot(0).to_pydict() == {"room": ["hall", "roof"]}
    db.stop()


@pytest.mark.parametrize("content", ["id,room\n1,HALL\n2,roof\n", "id,room\n1,hall\n", None])
def test_a_relation_is_not_read_from_another_file(db: Database, tmp_path: Path, content: str | None) -> None:
    """It never changes: no query sees other rows of it than those before."""
    path = tmp_path / "sensors.csv"
    path.write_text("id,room\n1,hall\n2,roof\n")
    os.utime(path, (0, 0))
    db.execute(f"CREATE RELATION sensor (id BIGINT, room STRING) FROM csv OPTIONS (path '{path}'); {PUSHED}")
    db.query(LOOK_UP)
    db.start()
    whole = db.query("SELECT COUNT(*) AS n FROM sensor")
    db.push("reading", {"id": 2, "v": 10, "ts": 5})
    assert whole.snapshot(0).to_pydict() == {"n": [2]}
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(UserError, match=r"sensor would be read again, and its file .*csv has changed"):
        db.query("SELECT MAX(room) AS last FROM sensor")
    again = db.query(LOOK_UP)
    db.push("reading", [{"id": 1, "v": 30, "ts": 6}, {"id": 3, "v": 30, "ts": 7}])
    assert again.snapshot(6).column("room").to_pylist() == ["hall"]
    db.stop()


def test_a_run_goes_on_with_the_relation_that_it_has_read(tmp_path: Path) -> None:
    file, store = tmp_path / "sensors.csv", tmp_path / "store"
    file.write_text("id,room\n1,hall\n2,roof\n")
    text = f"{PUSHED}; CREATE RELATION sensor FROM csv OPTIONS (path '{file}'); CREATE QUERY q AS {LOOK_UP}"
    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        db.execute(text)
        db.start()
        db.push("reading", {"id": 2, "v": 10, "ts": 5})
        db.execute(f"CREATE QUERY later AS {LOOK_UP}")
        db.stop()
    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        db.execute(f"{text}; CREATE QUERY later AS {LOOK_UP}")
        db.start()
        assert not db.differences
        db.push("reading", [{"id": 1, "v": 30, "ts": 11}, {"id": 2, "v": 40, "ts": 12}])
        db.heartbeat("reading", 13)
        assert db["q"].stream().column("room").to_pylist() == ["roof", "hall", "roof"]
        assert db["later"].stream().column("room").to_pylist() == ["hall", "roof"]
        db.stop()
    file.write_text("id,room\n1,hall\n2,attic\n")
    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        db.execute(text)
        with pytest.raises(StoreError, match="the input of sensor has changed"):
            db.start()


def test_a_relation_that_nobody_reads_may_change(tmp_path: Path) -> None:
    file, store = tmp_path / "sensors.csv", tmp_path / "store"
    file.write_text("id,room\n1,hall\n2,roof\n")
    text = f"{PUSHED}; CREATE RELATION sensor FROM csv OPTIONS (path '{file}')"
    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        db.execute(f"{text}; CREATE QUERY q AS {LOOK_UP}; CREATE QUERY n AS SELECT COUNT(*) FROM reading")
        db.start()
        db.push("reading", {"id": 2, "v": 10, "ts": 5})
        db.execute("DROP QUERY q")
        db.stop()
    file.write_text("id,room\n1,hall\n2,attic\n")
    with hr.connect(runner="inline", dialect="pipes", storage=store) as db:
        db.execute(f"{text}; CREATE QUERY n AS SELECT COUNT(*) FROM reading; CREATE QUERY p AS {LOOK_UP}")
        db.start()
        db.push("reading", {"id": 2, "v": 10, "ts": 6})
        db.heartbeat("reading", 7)
        assert db["p"].stream().column("room").to_pylist() == ["attic"]
        db.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT id FROM sensor [RANGE 3]", "sensor is a relation, which has no window"),
        ("DROP STREAM sensor", "sensor is a relation"),
        ("DROP RELATION reading", "reading is a stream"),
        ("DROP RELATION sensro", "there is no relation sensro"),
        ("ALTER STREAM sensor DISORDER 5", "sensor is a relation, which has no time of its own"),
        ("CREATE STREAM sensor AS SELECT id FROM reading", "there is a relation sensor already"),
        ("CREATE STREAM `x since 3` AS SELECT id FROM reading", "x since 3 is what a reading of a relation"),
    ],
)
def test_mistakes(db: Database, text: str, message: str) -> None:
    db.relation("sensor", SENSORS)
    db.execute(PUSHED)
    with pytest.raises(LanguageError) as error:
        db.execute(text)
    assert error.value.message.startswith(message)
    assert error.value.position is not None
    assert error.value.hint


def test_for_system_time_is_the_same_join(db: Database) -> None:
    price = pa.table({"id": [1, 1, 2], "p": [5, 6, 7], "a": [None, 8, None], "b": [8, None, 5]})
    db.relation("price", price, "id", ("a", "b"))
    db.stream("reading", READINGS, timestamp="ts")
    as_of = [
        f"SELECT r.v, c.p FROM reading r LEFT JOIN price {part} c ON c.id = r.id"
        for part in ("FOR SYSTEM_TIME AS OF r.ts", "FOR SYSTEM_TIME AS OF ts AS", "")
    ]
    first, *others = [db.query(text) for text in as_of]
    assert [query.plan for query in others] == [first.plan] * 2
    db.run()
    assert first.stream().column("p").to_pylist() == [None, None, 6]


def test_asof_is_the_same_join(db: Database) -> None:
    """As in DuckDB, where the row of a key holds until the next one."""
    periods = {"id": [1, 1, 2, 1], "p": [5, 6, 7, 8], "a": [0, 8, 5, 11], "b": [8, 11, None, None]}
    price = pa.table(periods, pa.schema([(name, pa.int64()) for name in periods]))
    db.relation("price", price, "id", ("a", "b"))
    db.stream("reading", READINGS, timestamp="ts")
    asof = "SELECT r.id, r.v, c.p FROM reading r ASOF {}JOIN price c ON c.id = r.id AND r.ts >= c.a"
    text = "SELECT r.id, r.v, c.p FROM reading r LEFT JOIN price FOR SYSTEM_TIME AS OF r.ts c ON c.id = r.id"
    whole = db.query(text)
    assert db.query(asof.format("LEFT ")).plan == whole.plan
    more = " AND c.p > 5 AND r.v > 0"
    assert db.query(asof.format("LEFT ") + more).plan == db.query(text + more).plan
    unnamed = asof.replace(" r ", " ").replace("r.", "reading.")
    assert db.query(unnamed.format("LEFT ")).plan == whole.plan
    assert db.query("SELECT asof.v FROM reading asof, reading r WHERE asof.ts = r.ts").schema.names == ("v",)
    turned = asof.replace("c.id = r.id AND r.ts >= c.a", "(c.a <= ts) AND r.id = c.id").format("")
    inner = db.query(turned)
    db.run()
    with duckdb.connect() as other:
        other.register("reading", READINGS)
        other.register("price", price)
        for query, text in ((whole, asof.format("LEFT ")), (inner, asof.format(""))):
            expected = other.execute(f"{text} ORDER BY r.ts").fetchall()
            assert [tuple(row.values())[:3] for row in query.stream().to_pylist()] == expected


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "reading r ASOF JOIN price c ON c.id = r.id",
            "by its key and its beginning",
            "s.id = r.id AND s.ts >= r.a",
        ),
        (
            "reading r ASOF JOIN price c ON r.ts >= c.a",
            "by its key and its beginning",
            "s.id = r.id AND s.ts >= r.a",
        ),
        ("reading r ASOF JOIN price c ON c.id = c.p AND r.ts >= c.a", "by its key", "s.id = r.id AND"),
        ("reading r ASOF JOIN price c ON c.id = r.id AND r.ts > c.a", "by its key", "s.ts >= r.a"),
        ("reading r ASOF JOIN price c ON c.id = r.id AND r.v >= c.a", "by its key", "s.ts >= r.a"),
        (
            "reading [RANGE 3] r ASOF JOIN price c ON c.id = r.id AND r.ts >= c.a",
            "by its key",
            "has no window",
        ),
        (
            "reading r ASOF JOIN sensor c ON c.id = r.id AND r.ts >= c.id",
            "since when the row",
            "VALID FROM a TO b",
        ),
        ("reading r ASOF JOIN reading c ON c.id = r.id AND r.ts > c.ts", "of two streams", "s.ts >= r.ts"),
        ("reading r ASOF RIGHT JOIN price c ON c.id = r.id", "before JOIN or LEFT JOIN", "ASOF [LEFT] JOIN"),
        ("reading ASOF RIGHT JOIN price c ON c.id = id", "before JOIN or LEFT JOIN", "ASOF [LEFT] JOIN"),
        ("reading r ASOF JOIN price c USING (id)", "has a condition after ON", "ASOF [LEFT] JOIN"),
    ],
)
def test_mistakes_with_asof(db: Database, text: str, message: str, hint: str) -> None:
    db.relation("price", pa.table({"id": [1], "p": [5], "a": [1], "b": [3]}), "id", ("a", "b"))
    db.relation("sensor", SENSORS, "id")
    db.stream("reading", READINGS, timestamp="ts")
    with pytest.raises(LanguageError, match=message) as raised:
        db.query(f"SELECT * FROM {text}")
    assert hint in (raised.value.hint or "")
    assert raised.value.position is not None


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("reading r JOIN sensor FOR SYSTEM_TIME AS OF r.v s", "v is not the instant of the rows before JOIN"),
        ("reading [RANGE 3] r JOIN sensor FOR SYSTEM_TIME AS OF ts s", "ts is not the instant of the rows"),
        ("reading r JOIN sensor FOR SYSTEM_TIME AS OF x s", "there is no column x"),
        ("sensor s JOIN reading FOR SYSTEM_TIME AS OF s.id r", "reading is a stream, and FOR SYSTEM_TIME"),
    ],
)
def test_mistakes_with_for_system_time(db: Database, part: str, message: str) -> None:
    db.relation("sensor", SENSORS)
    db.execute(PUSHED)
    with pytest.raises(LanguageError) as error:
        db.query(f"SELECT r.v FROM {part} ON s.id = r.id")
    assert error.value.message.startswith(message)
    assert error.value.position is not None
    with pytest.raises(LanguageError, match="without a JOIN before it"):
        db.query("SELECT id FROM sensor FOR SYSTEM_TIME AS OF ts")


def test_a_relation_in_use_is_not_dropped(db: Database) -> None:
    db.relation("sensor", SENSORS)
    db.query("SELECT id FROM sensor", name="q")
    with pytest.raises(LanguageError, match="it is used by the query q"):
        db.drop("sensor")


def test_a_policy_holds_for_relations(db: Database, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("id\n1\n")
    text = f"CREATE RELATION s FROM csv OPTIONS (path '{tmp_path / 's.csv'}')"
    with pytest.raises(hr.PolicyError):
        db.execute(text, policy=hr.Policy.closed())
    with pytest.raises(hr.PolicyError):
        db.execute(text, policy=hr.Policy.closed(formats=["csv"], folders=[tmp_path / "elsewhere"]))
    db.execute(text, policy=hr.Policy.closed(formats=["csv"], folders=[tmp_path]))
    with pytest.raises(hr.PolicyError, match="DROP RELATION is not allowed"):
        db.execute("DROP RELATION s", policy=hr.Policy.closed())


def test_explain_analyze_and_why(db: Database) -> None:
    db.relation("sensor", SENSORS)
    db.stream("reading", READINGS, timestamp="ts")
    analyzed: list[Any] = db.execute(f"EXPLAIN ANALYZE {LOOK_UP}")
    assert "Relation sensor (id, room)" in analyzed[0]
    expected: list[Any] = db.execute(f"EXPLAIN COST {LOOK_UP}")
    assert "; keeps 2 rows" in expected[0]
    query = db.query(LOOK_UP)
    db.run()
    assert db.why(query.name)
    assert "sensor" in str(db.status)
