"""Queries that are added read what a relation of endless changes keeps, and all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headrace as hr
from headrace.algebra.nodes import Aggregate, RelationIndex
from headrace.errors import UserError

CREATED = """
CREATE RELATION part (op STRING, id BIGINT, name STRING, price BIGINT, ts BIGINT) KEY (id) FROM push
  CHANGES BY op TIMESTAMP BY ts;
CREATE STREAM sold (id BIGINT, n BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY names AS SELECT s.n, p.name FROM sold s JOIN part p ON p.id = s.id;
"""


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", dialect="pipes", buckets=2) as made:
        made.execute(CREATED)
        made.start()
        for id_, name, price in ((1, "bolt", 0), (2, "nut", 3), (3, "gear", 20), (4, "cog", 9)):
            made.push("part", {"op": "I", "id": id_, "name": name, "price": price, "ts": id_})
        made.push("part", {"op": "D", "id": 4, "name": None, "price": None, "ts": 5})
        made.push("sold", {"id": 2, "n": 1, "ts": 10})
        yield made


def operators(db: hr.Database, kind: type) -> int:
    return sum(isinstance(node.plan, kind) for node in db.status.graph.nodes)


def test_a_query_that_is_added_sees_the_rows_that_are_there(db: hr.Database) -> None:
    whole = db.query("SELECT name, price FROM part")
    above = db.query("SELECT COUNT(*) AS n, MAX(price) AS most FROM part WHERE price > 1")
    joined = db.query("SELECT s.n, p.price FROM sold s JOIN part p ON p.id = s.id")
    assert sorted(whole.latest()["name"].to_pylist()) == ["bolt", "gear", "nut"]
    assert above.latest().to_pylist() == [{"n": 2, "most": 20}]
    db.push("sold", [{"id": 3, "n": 7, "ts": 11}, {"id": 4, "n": 8, "ts": 11}, {"id": 3, "n": 9, "ts": 12}])
    assert joined.stream().select(["n", "price"]).to_pylist() == [{"n": 7, "price": 20}]


def test_all_queries_read_one_operator(db: hr.Database) -> None:
    (index,) = (node.number for node in db.status.graph.nodes if isinstance(node.plan, RelationIndex))
    rows = db.status.operators[index].state_rows
    for price in (1, 5):
        db.query(f"SELECT name FROM part WHERE price > {price}")
    db.query("SELECT p.name FROM sold s JOIN part p ON p.price = s.n")
    db.drop("names")
    assert operators(db, RelationIndex) == 1
    (index,) = (node.number for node in db.status.graph.nodes if isinstance(node.plan, RelationIndex))
    assert db.status.operators[index].state_rows == rows


def test_equal_queries_of_different_starts_become_one(db: hr.Database) -> None:
    text = "SELECT COUNT(*) AS n FROM part"
    first = db.query(text)
    db.push("part", {"op": "I", "id": 5, "name": "cam", "price": 1, "ts": 11})
    second = db.query(text)
    db.push("part", {"op": "I", "id": 6, "name": "rod", "price": 1, "ts": 12})
    db.push("sold", {"id": 1, "n": 1, "ts": 14})
    assert operators(db, Aggregate) == 1
    assert [query.latest().to_pylist() for query in (first, second)] == [[{"n": 5}], [{"n": 5}]]


def test_a_query_that_fails_for_a_row_that_is_there_is_refused(db: hr.Database) -> None:
    with pytest.raises(UserError, match=r"fails for a row that is in the relation: .*zero"):
        db.query("SELECT 10 / price AS per FROM part")
    assert [query.name for query in db.queries] == ["names"]
    assert db.query("SELECT 10 / price AS per FROM part WHERE price > 0").latest().num_rows == 2


def test_a_query_that_is_resumed_sees_the_rows_from_then_on(db: hr.Database) -> None:
    query = db.query("SELECT id FROM part")
    db.execute(f"ALTER QUERY {query.name} PAUSE")
    db.push("part", {"op": "I", "id": 5, "name": "cam", "price": 1, "ts": 11})
    db.push("sold", {"id": 2, "n": 1, "ts": 14})
    db.execute(f"ALTER QUERY {query.name} RESUME")
    db.push("part", {"op": "D", "id": 1, "name": None, "price": None, "ts": 16})
    db.push("sold", {"id": 2, "n": 1, "ts": 20})
    found = [tuple(row.values()) for row in query.history().to_pylist()]
    before = [(1, 1, 10), (2, 2, 10), (3, 3, 10)]
    after = [(1, 14, 16), (2, 14, 20), (3, 14, 20), (5, 14, 20)]
    assert sorted(found) == sorted([*before, *after])
