"""Relations that are given by changes, as users have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.engine.database import Database
from headrace.errors import LanguageError, UserError

CHANGES = pa.table(
    {
        "op": ["u", "INSERT", "c", "Update", "d", "U"],
        "id": [1, 1, 2, 1, 2, 1],
        "segment": ["gold", "new", "new", "none", None, "iron"],
        "ts": [5, 1, 2, 5, 9, 12],
        "seq": [3, 1, 1, 2, 2, 4],
    }
)
"""In no order: of the two changes of 1 at 5 the one with the larger `seq` is the later one."""

HISTORY = [(1, "new", 1, 5), (2, "new", 2, 9), (1, "gold", 5, 12), (1, "iron", 12, None)]
"""By hand."""

ORDERS = pa.table({"ts": [0, 4, 5, 8, 9, 12], "id": [1, 1, 1, 2, 2, 1], "n": range(6)})
SEGMENTS = [None, "new", "gold", "new", None, "iron"]
"""Of the customers of the orders, by hand."""

PUSHED = """
CREATE RELATION customer (op STRING, id BIGINT, segment STRING, ts BIGINT) KEY (id) FROM push
  CHANGES BY op TIMESTAMP BY ts;
CREATE STREAM orders (ts BIGINT, id BIGINT, n BIGINT) FROM push TIMESTAMP BY ts;
"""
LOOK_UP = "SELECT o.n, c.segment FROM orders o LEFT JOIN customer FOR SYSTEM_TIME AS OF o.ts c ON c.id = o.id"


@pytest.fixture
def db() -> Iterator[Database]:
    with hr.connect(runner="inline", dialect="pipes") as database:
        yield database


def history(query: Any) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in query.history().to_pylist()]


@pytest.mark.parametrize("form", ["table", "file", "sql", "bounded"])
def test_where_changes_come_from(db: Database, tmp_path: Path, form: str) -> None:
    path = tmp_path / "changes.parquet"
    pq.write_table(CHANGES.sort_by("ts") if form == "bounded" else CHANGES, path)
    if form in ("table", "file"):
        data = CHANGES if form == "table" else path
        db.relation("customer", data, "id", changes_by="op", timestamp="ts", version="seq")
    else:
        disorder = "DISORDER 0" if form == "bounded" else ""
        db.execute(
            f"CREATE RELATION customer KEY (id) FROM parquet OPTIONS (path '{path}') "
            f"CHANGES BY op TIMESTAMP BY ts VERSION BY seq {disorder}"
        )
    db.stream("orders", ORDERS, timestamp="ts")
    whole = db.query("SELECT id, segment FROM customer")
    found = db.query(LOOK_UP)
    db.run()
    assert history(whole) == HISTORY
    assert found.stream().column("segment").to_pylist() == SEGMENTS
    assert db.dead_letters().num_rows == 0


def test_every_kind_of_join(db: Database) -> None:
    db.relation("customer", CHANGES, "id", changes_by="op", timestamp="ts", version="seq")
    db.stream("orders", ORDERS, timestamp="ts")
    on = "customer c ON c.id = o.id"
    joined = db.query(f"SELECT o.n, c.segment FROM orders o JOIN {on}")
    full = db.query("SELECT o.n, c.segment FROM orders o FULL JOIN customer c ON c.id = o.id")
    semi = db.query(f"SELECT o.n FROM orders o SEMI JOIN {on}")
    anti = db.query(f"SELECT o.n FROM orders o ANTI JOIN {on}")
    less = db.query("SELECT id FROM orders EXCEPT SELECT id FROM customer")
    db.run()
    pairs = [(n, segment) for n, segment in enumerate(SEGMENTS) if segment is not None]
    assert [tuple(row.values())[:2] for row in joined.stream().to_pylist()] == pairs
    assert semi.stream().column("n").to_pylist() == [n for n, _ in pairs]
    assert anti.stream().column("n").to_pylist() == [0, 4]
    assert less.stream().column("id").to_pylist() == [1, 2]
    assert full.snapshot(5).to_pylist() == [{"n": None, "segment": "new"}, {"n": 2, "segment": "gold"}]
    assert full.snapshot(6).to_pydict() == {"n": [None, None], "segment": ["gold", "new"]}


def test_streams_of_a_relation(db: Database) -> None:
    db.relation("customer", CHANGES, "id", changes_by="op", timestamp="ts", version="seq")
    come = db.query("ISTREAM(SELECT id, segment FROM customer)")
    gone = db.query("SELECT id FROM DSTREAM(customer) WINDOW(RANGE 3)")
    db.run()
    assert [tuple(row.values()) for row in come.stream().to_pylist()] == [
        (key, segment, begin) for key, segment, begin, _ in HISTORY
    ]
    assert history(gone) == [(1, 5, 8), (2, 9, 12), (1, 12, 15)]


def test_new_users_as_the_thesis_asks_for_them(db: Database) -> None:
    """Example 17.7, the data of `tests/worked/test_thesis_examples.py`."""
    persons = {"op": ["i", "i", "i", "d"], "id": [1, 2, 3, 3], "name": ["Ada", "Ben", "Cy", None]}
    db.relation("Person", pa.table(persons | {"at": [0, 5, 6, 9]}), "id", changes_by="op", timestamp="at")
    opened = {"item": [10, 11, 12, 15, 13, 14], "sellerID": [1, 1, 1, 3, 2, 2], "ts": [4, 4, 12, 10, 16, 17]}
    db.stream("OpenAuction", pa.table(opened).sort_by("ts"), timestamp="ts")
    db.execute("CREATE STREAM NewPersonStream AS SELECT P.id, P.name FROM Istream(Person) P")
    new = db.query(
        "SELECT DISTINCT P.id, P.name FROM NewPersonStream WINDOW(RANGE 12) P, OpenAuction O "
        "WHERE P.id = O.sellerID"
    )
    db.run()
    assert new.stream().to_pydict() == {"id": [1, 3, 2], "name": ["Ada", "Cy", "Ben"], "ts": [4, 10, 16]}


def test_changes_that_cannot_be_applied_are_set_apart(db: Database) -> None:
    rows = {"op": ["upsert", None, "i", "i", "i"], "id": [1, 1, None, 1, 1], "ts": [1, 1, 1, None, 7]}
    db.relation("t", pa.table(rows), "id", changes_by="op", timestamp="ts")
    db.execute("CREATE STREAM s AS SELECT id FROM t")
    query = db.query("SELECT id FROM s")
    db.run()
    assert history(query) == [(1, 7, None)]
    assert sorted(db.dead_letters().column("reason").to_pylist()) == [
        "op is not a known operation; write insert, update or delete, or I, U or D",
        "op is not a known operation; write insert, update or delete, or I, U or D",
        "the key id is NULL",
        "the timestamp ts is NULL",
    ]


def test_a_live_relation_follows_the_streams_that_it_meets(db: Database) -> None:
    db.execute(PUSHED)
    query = db.query(LOOK_UP)
    assert not query.notes
    db.start()
    db.push("customer", {"op": "i", "id": 1, "segment": "new", "ts": 1})
    db.push("orders", [{"ts": 4, "id": 1, "n": 1}, {"ts": 8, "id": 2, "n": 2}])
    assert query.stream().column("segment").to_pylist() == ["new"]
    assert (query.heartbeat, db.status.stream("customer").heartbeat) == (8, 8)
    assert "customer" not in (db.why(query.name).findings[1].hint or "")
    late = {"op": "u", "id": 1, "segment": "late", "ts": 7}
    db.push("customer", [{"op": "i", "id": 2, "segment": "gold", "ts": 8}, late])
    db.push("orders", [{"ts": 9, "id": 1, "n": 3}, {"ts": 10, "id": 2, "n": 4}])
    assert query.stream().column("segment").to_pylist() == ["new", "gold", "late"]
    assert db.dead_letters().num_rows == 0
    db.relation("room", pa.table({"name": ["hall"]}))
    (text,) = db.execute("SHOW RELATIONS")
    shown = [line.split() for line in str(text).splitlines()]
    assert shown[0] == ["name", "key", "valid", "heartbeat", "lag", "late", "held_by", "columns"]
    assert shown[2][-10:-6] == ["10", "0", "1", "idle"]
    assert shown[3] == ["room", "always", "name", "STRING"]
    db.stop()


def test_a_live_relation_comes_and_goes_during_a_run(db: Database) -> None:
    stream = "CREATE STREAM orders (ts BIGINT, id BIGINT, n BIGINT) FROM push TIMESTAMP BY ts"
    db.execute(f"{stream}; CREATE QUERY n AS SELECT n FROM orders")
    db.start()
    db.push("orders", {"ts": 1, "id": 1, "n": 1})
    relation = PUSHED.partition(";")[0]
    for segment, at in (("new", 2), ("gold", 5)):
        db.execute(f"{relation}; CREATE QUERY q AS {LOOK_UP}")
        db.push("customer", {"op": "i", "id": 1, "segment": segment, "ts": at})
        db.push("orders", [{"ts": at + 1, "id": 1, "n": 2}, {"ts": at + 2, "id": 1, "n": 3}])
        assert db["q"].stream().column("segment").to_pylist() == [segment]
        db.execute("DROP QUERY q; DROP RELATION customer")
    db.stop()


def test_what_was_changed_again_is_not_kept(db: Database) -> None:
    changes = pa.table({"op": ["u"] * 300, "id": [1, 2, 3] * 100, "x": range(300), "ts": range(300)})
    orders = pa.table({"id": [1] * 300, "ts": range(300)})
    held: list[int] = []
    pushed = PUSHED.partition(";")[0].replace("segment STRING", "x BIGINT")
    db.execute(f"{pushed}; CREATE STREAM orders (id BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
    query = db.query("SELECT o.ts, c.x FROM orders o JOIN customer c ON c.id = o.id")
    db.start(lambda progress: held.append(progress.buffered))
    for first in range(0, 300, 10):
        db.push("customer", changes.slice(first, 10))
        db.push("orders", orders.slice(first, 10))
    assert len(query.stream()) == 299
    db.stop()
    # Ten changes and ten orders wait at most, beside three rows of the relation in three places.
    assert max(held) <= 10 + 10 + 3 * 10


def test_a_live_relation_that_declares_a_bound_is_waited_for(db: Database) -> None:
    db.execute(PUSHED.replace("TIMESTAMP BY ts;", "TIMESTAMP BY ts DISORDER 2;", 1))
    query = db.query(LOOK_UP)
    db.start()
    db.push("orders", [{"ts": 4, "id": 1, "n": 1}, {"ts": 8, "id": 1, "n": 2}])
    db.push("customer", {"op": "i", "id": 1, "segment": "gold", "ts": 7})
    assert query.heartbeat == 5
    db.execute("ALTER STREAM customer DISORDER 0")
    db.push("customer", {"op": "u", "id": 1, "segment": "gold", "ts": 9})
    assert query.heartbeat == 8
    db.push("customer", {"op": "u", "id": 1, "segment": "new", "ts": 8})
    assert (db.status.stream("customer").overdue, db.dead_letters().num_rows) == (1, 0)
    db.stop()


def test_a_query_that_is_added_later_sees_all_changes_of_a_file(db: Database) -> None:
    db.relation("customer", CHANGES, "id", changes_by="op", timestamp="ts", version="seq")
    db.execute("CREATE STREAM orders (ts BIGINT, id BIGINT, n BIGINT) FROM push TIMESTAMP BY ts")
    first = db.query(LOOK_UP)
    db.start()
    db.push("orders", {"ts": 4, "id": 1, "n": 1})
    later = db.query(LOOK_UP)
    db.push("orders", [{"ts": 6, "id": 1, "n": 2}, {"ts": 7, "id": 2, "n": 3}, {"ts": 20, "id": 2, "n": 4}])
    assert first.stream().column("segment").to_pylist() == ["new", "gold", "new"]
    assert later.stream().column("segment").to_pylist() == ["gold", "new"]
    db.stop()


def test_a_run_goes_on_with_what_was_changed(tmp_path: Path) -> None:
    text = f"{PUSHED}; CREATE QUERY q AS {LOOK_UP}"
    with hr.connect(runner="inline", dialect="pipes", storage=tmp_path) as db:
        db.execute(text)
        db.start()
        db.push("customer", {"op": "i", "id": 1, "segment": "new", "ts": 1})
        db.push("orders", {"ts": 4, "id": 1, "n": 1})
        db.push("customer", {"op": "i", "id": 2, "segment": "gold", "ts": 6})
        db.stop()
    with hr.connect(runner="inline", dialect="pipes", storage=tmp_path) as db:
        db.execute(text)
        db.start()
        assert not db.differences
        rows = [{"ts": 7, "id": 2, "n": 2}, {"ts": 8, "id": 1, "n": 3}, {"ts": 9, "id": 1, "n": 4}]
        db.push("orders", rows)
        assert db["q"].stream().column("segment").to_pylist() == ["new", "gold", "new"]
        db.stop()
    with hr.connect(runner="inline", dialect="pipes", storage=tmp_path) as db:
        other = text.replace("KEY (id)", "KEY (segment)")
        with pytest.raises(LanguageError, match="the store has another relation customer"):
            db.execute(other)


def test_changes_are_listed_and_dropped(db: Database) -> None:
    db.execute(PUSHED)
    db.relation("room", CHANGES, "id", changes_by="op", timestamp="ts", version="seq")
    shown: list[Any] = db.execute("SHOW RELATIONS; SHOW STREAMS")
    assert [line.split("  ")[0] for line in shown[0].splitlines()[2:4]] == ["customer", "room    "[:4]]
    assert "until changed by op at ts, seq" in shown[0]
    assert "customer" not in shown[1]
    assert db.relations["customer"].schema.names == ("id", "segment", "ts")
    assert (list(db.streams), db.pushed) == (["orders"], ("customer", "orders"))
    query = db.query(LOOK_UP)
    with pytest.raises(LanguageError, match="it is used by the query"):
        db.execute("DROP RELATION customer")
    db.drop(query.name)
    db.execute("DROP RELATION customer; DROP RELATION room")
    assert not db.relations
    assert db.pushed == ("orders",)


def test_explain_cost(db: Database) -> None:
    db.relation("customer", CHANGES, "id", changes_by="op", timestamp="ts", version="seq")
    db.stream("orders", ORDERS, timestamp="ts")
    expected: list[Any] = db.execute(f"EXPLAIN COST {LOOK_UP}")
    assert "RowWindow PARTITION BY id ROWS 1" in expected[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT id FROM customer [RANGE 3]", "customer is a relation, which has no window"),
        ("DROP STREAM customer", "customer is a relation"),
        ("CREATE STREAM customer AS SELECT id FROM orders", "there is a relation customer already"),
        (
            "CREATE STREAM s (ts BIGINT, id BIGINT) FROM push TIMESTAMP BY ts PER id OF customer",
            "the values after OF are those of a relation whose rows are always valid",
        ),
    ],
)
def test_mistakes(db: Database, text: str, message: str) -> None:
    db.execute(PUSHED)
    with pytest.raises(LanguageError) as error:
        db.execute(text)
    assert error.value.message.startswith(message)
    assert error.value.position is not None
    assert error.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "id", "changes_by": "op"}, "changes have a timestamp and no period"),
        ({"changes_by": "op", "timestamp": "ts"}, "changes are by key, and there is none"),
        ({"key": "id", "timestamp": "ts"}, "timestamp and version are for changes"),
        ({"key": "id", "changes_by": "seq", "timestamp": "ts"}, "the column seq is BIGINT"),
        ({"key": "x", "changes_by": "op", "timestamp": "ts"}, "customer has no column x"),
    ],
)
def test_mistakes_in_python(db: Database, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        db.relation("customer", CHANGES, **options)
    assert error.value.message == message
    assert error.value.hint
    assert not db.relations


def test_a_policy_holds_for_changes(db: Database) -> None:
    with pytest.raises(hr.PolicyError, match="relations may not be created FROM push"):
        db.execute(PUSHED, policy=hr.Policy.closed(formats=["csv"]))
    db.execute(PUSHED, policy=hr.Policy.closed())
