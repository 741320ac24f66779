"""Queries that take over the operators of one that runs: CREATE QUERY name WARM AS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, Position, UserError
from headrace.runtime.journal.described_query import WarmStart

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5"
COUNTS = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 10] GROUP BY k"


def database(storage: Path | None = None, **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, **options)
    db.execute(STREAM)
    return db


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        made.query(COUNTS, name="old")
        made.start()
        push(made, 0, 30)
        yield made


def push(db: hr.Database, first: int, last: int, keys: int = 2) -> None:
    db.push("s", [{"k": ts * ts % keys, "v": ts, "ts": ts} for ts in range(first, last)])


def answer(query: hr.Query, first: int = 24) -> list[dict[str, Any]]:
    """The answer from an instant on."""
    rows = [row for row in query.history().to_pylist() if row["valid_to"] > first]
    return sorted(({**row, "valid_from": max(first, row["valid_from"])} for row in rows), key=repr)


def test_a_warm_query_answers_over_what_the_older_one_has_seen_from_the_heartbeat_on(db: hr.Database) -> None:
    operators = [part.identity for part in db.status.operators]
    (warm,) = db.execute(f"CREATE QUERY warm WARM AS {COUNTS}")
    assert [part.identity for part in db.status.operators] == operators
    assert warm.warm_start == WarmStart(since=1, answers_from=24)
    assert repr(warm).endswith("final below 24; over the rows since epoch 1, from 24 on>")
    cold = db.query(COUNTS, name="cold")
    assert cold.warm_start is None
    push(db, 30, 40)
    assert answer(warm) == answer(db.queries[0])
    assert warm.history()["valid_from"].to_pylist()[0] == 24
    assert warm.snapshot(26)["n"].to_pylist() == [5, 5]
    assert cold.snapshot(26).num_rows == 0


def test_a_warm_query_may_filter_and_project_the_older_answer(db: hr.Database) -> None:
    text = f"SELECT m + 1 AS next FROM ({COUNTS}) AS q WHERE k = 1"
    (warm,) = db.execute(f"CREATE QUERY warm WARM AS {text}")
    push(db, 30, 40)
    expected = [row["m"] + 1 for row in answer(db.queries[0]) if row["k"] == 1]
    assert [row["next"] for row in answer(warm)] == expected
    assert expected
    db.drop("old")
    push(db, 40, 50)
    assert warm.snapshot(40)["next"].to_pylist() == [40]


def test_what_was_said_beyond_the_heartbeat_is_part_of_the_answer(db: hr.Database) -> None:
    db.drop("old")
    rows = db.query("SELECT v FROM s", name="rows")
    push(db, 30, 40)
    (warm,) = db.execute("CREATE QUERY warm WARM AS SELECT v FROM s")
    push(db, 40, 60)
    assert warm.stream()["v"].to_pylist() == list(range(34, 54))
    assert rows.stream()["v"].to_pylist() == list(range(30, 54))


def test_a_warm_query_begins_with_what_was_carried_on_from_results_that_are_gone() -> None:
    with database(retain_epochs=1) as db:
        old = db.query("SELECT COUNT(*) AS n, MIN(v) AS first FROM s [RANGE UNBOUNDED]", name="old")
        db.start()
        for ts in range(0, 60, 5):
            push(db, ts, ts + 5)
        push(db, 100, 101)
        db.execute("CREATE QUERY warm WARM AS SELECT COUNT(*) AS n, MIN(v) AS first FROM s [RANGE UNBOUNDED]")
        push(db, 120, 121)
        (_, warm) = db.queries
        assert answer(warm, 95) == answer(old, 95) != []


def test_a_warm_start_is_remembered_over_restarts(tmp_path: Path) -> None:
    with database(tmp_path) as db:
        db.query(COUNTS, name="old")
        db.start()
        push(db, 0, 30)
        db.execute(f"CREATE QUERY warm WARM AS {COUNTS}")
        push(db, 30, 40)
    with database(tmp_path) as db:
        old, warm = db.query(COUNTS, name="old"), db.query(COUNTS, name="warm")
        db.start()
        assert not db.differences
        assert warm.warm_start == WarmStart(since=1, answers_from=24)
        push(db, 40, 50)
        assert answer(warm) == answer(old)


ABOVE = [
    f"SELECT MAX(n) AS most, SUM(m) AS total FROM ({COUNTS}) AS q",
    f"SELECT k, MIN(m) AS least FROM ({COUNTS}) AS q WHERE n > 1 GROUP BY k",
    f"SELECT DISTINCT n FROM ({COUNTS}) AS q",
    f"SELECT * FROM ({COUNTS}) AS q ORDER BY m DESC LIMIT 1",
    f"SELECT a.k, b.v FROM ({COUNTS}) AS a, (SELECT v FROM s [RANGE 4]) AS b WHERE b.v = a.m",
    f"SELECT b.v, a.m FROM (SELECT v FROM s [RANGE 4]) AS b LEFT JOIN ({COUNTS}) AS a ON b.v = a.m",
    f"SELECT v FROM (SELECT v FROM s [RANGE 4]) AS b EXCEPT SELECT m FROM ({COUNTS}) AS a",
    f"SELECT COUNT(*) AS c FROM (SELECT n FROM ({COUNTS}) AS a UNION ALL SELECT v FROM s [RANGE 4]) AS u",
]


@pytest.mark.parametrize("text", ABOVE)
@pytest.mark.parametrize("buckets", [1, 3])
def test_new_operators_above_begin_with_what_holds(text: str, buckets: int, tmp_path: Path) -> None:
    whole = {"old": COUNTS, "rows": "SELECT v FROM s [RANGE 4]", "cold": text}
    with database(buckets=buckets) as db:
        for name, query in whole.items():
            db.query(query, name=name)
        db.start()
        push(db, 0, 30, 7)
        push(db, 30, 60, 7)
        expected = answer(db["cold"])
    assert expected
    whole.pop("cold")
    with database(tmp_path, buckets=buckets) as db:
        for name, query in whole.items():
            db.query(query, name=name)
        db.start()
        push(db, 0, 30, 7)
        before = {part.identity for part in db.status.operators}
        (warm,) = db.execute(f"CREATE QUERY warm WARM AS {text}")
        assert before < {part.identity for part in db.status.operators}
        assert warm.warm_start == WarmStart(since=1, answers_from=24)
        push(db, 30, 40, 7)
    with database(tmp_path, buckets=buckets) as db:
        for name, query in (whole | {"warm": text}).items():
            db.query(query, name=name)
        db.start()
        assert not db.differences
        db.drop("old")
        push(db, 40, 60, 7)
        assert answer(db["warm"]) == expected


def test_the_answers_that_are_read_must_have_begun_together(db: hr.Database) -> None:
    db.query("SELECT v FROM s [RANGE 4]", name="later")
    with pytest.raises(UserError, match="it reads the answers of queries that started at different times: "):
        db.execute(f"CREATE QUERY warm WARM AS {ABOVE[4]}")


def test_an_operator_that_is_part_of_another_query_says_what_it_has_said_only_there(db: hr.Database) -> None:
    above = f"SELECT MAX(n) AS most FROM ({COUNTS}) AS q"
    db.execute(f"CREATE QUERY first WARM AS SELECT most + 1 AS next FROM ({above}) AS q")
    with pytest.raises(UserError, match="an operator above the answer that it reads is part of a query"):
        db.execute(f"CREATE QUERY second WARM AS SELECT DISTINCT most FROM ({above}) AS q")
    following = f"SELECT most + 1 AS next FROM ({above}) AS q"
    db.execute(f"CREATE QUERY third WARM AS SELECT DISTINCT next FROM ({following}) AS q")
    push(db, 30, 40)
    assert db["third"].snapshot(30)["next"].to_pylist() == db["first"].snapshot(30)["next"].to_pylist() == [6]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT COUNT(*) AS n FROM s [RANGE 10]",
            "its answer does not follow from those of queries that run",
        ),
        (f"SELECT ROW_NUMBER() OVER (ORDER BY k) AS r FROM ISTREAM({COUNTS}) AS q", "look at one instant"),
        (
            f"SELECT 1 % (n - n) AS x FROM ({COUNTS}) AS q",
            "an expression fails for a row of the present answer: division by zero",
        ),
    ],
)
def test_what_cannot_start_warm_is_refused_with_the_reason(db: hr.Database, text: str, reason: str) -> None:
    operators = db.status.operators
    with pytest.raises(UserError) as caught:
        db.execute(f"CREATE QUERY warm WARM AS {text}")
    assert caught.value.message.startswith("warm cannot start WARM: ")
    assert reason in caught.value.message
    assert "leave out WARM" in str(caught.value.hint)
    assert (len(db.queries), len(db.status.operators)) == (1, len(operators))
    push(db, 30, 40)


def test_nothing_can_be_taken_over_before_a_run_or_where_no_results_are_kept() -> None:
    with database() as db, pytest.raises(LanguageError, match="no endless run is going on") as caught:
        db.execute(f"\nCREATE QUERY warm WARM AS {COUNTS}")
    assert caught.value.position == Position(2, 1)
    with database(keep_results=False) as db:
        db.query(COUNTS)
        db.start()
        with pytest.raises(UserError, match="the run keeps no results"):
            db.execute(f"CREATE QUERY warm WARM AS {COUNTS}")


def test_the_answer_over_relations_alone_is_final(db: hr.Database) -> None:
    db.relation("names", pa.table({"k": [1, 2]}))
    db.query("SELECT k FROM names", name="all_names")
    push(db, 30, 31)
    with pytest.raises(UserError, match="the answer of all_names is final"):
        db.execute("CREATE QUERY warm WARM AS SELECT k FROM names")
