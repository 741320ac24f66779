"""Changes of a relation that come late: they count from the heartbeat on, are counted, and last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr

DIMENSION = """
CREATE STREAM s (ts BIGINT, id BIGINT) FROM push TIMESTAMP BY ts;
CREATE RELATION v (ts BIGINT, op STRING, id BIGINT, a BIGINT) KEY (id) FROM push
    CHANGES BY op TIMESTAMP BY ts {version};
CREATE QUERY q AS SELECT s.ts AS t, v.a FROM s LEFT JOIN v FOR SYSTEM_TIME AS OF s.ts ON s.id = v.id
"""


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Callable[..., hr.Database]]:
    made: list[hr.Database] = []

    def new(version: str = "") -> hr.Database:
        db = hr.connect(runner="inline", storage=tmp_path / "store", buckets=2)
        made.append(db)
        db.execute(DIMENSION.format(version=version))
        db.start()
        return db

    yield new
    for db in made:
        db.close()


def change(db: hr.Database, operation: str, at: int, a: int | None = None, key: int = 1) -> None:
    db.push("v", {"op": operation, "id": key, "a": a, "ts": at})


def seen(db: hr.Database, *times: int) -> list[Any]:
    """The rows that those of such instants are joined with."""
    for at in (*times, times[-1] + 1):
        db.push("s", {"id": 1, "ts": at})
    found = {row["t"]: row["a"] for row in db["q"].history().to_pylist()}
    return [found[at] for at in times]


def test_a_change_that_comes_late_counts_from_the_heartbeat_on(connect: Callable[..., hr.Database]) -> None:
    db = connect()
    change(db, "insert", 1, 10)
    assert seen(db, 5, 6) == [10, 10]
    change(db, "update", 4, 11)
    assert seen(db, 7, 2000) == [11, 11]
    change(db, "delete", 1500)
    assert seen(db, 2003, 2004) == [None, None]
    status = db.status.stream("v")
    assert (status.late, status.overdue, db.dead_letters().num_rows) == (2, 2, 0)
    assert re.search(r"\bv +id .* 2 +idle ", str(db.execute("SHOW RELATIONS")[0]))
    assert any(one.message.startswith("2 changes of v came late") for one in db.why("q").findings)
    assert db.stop().late == 2


def test_late_changes_are_in_the_order_of_their_instants_and_versions(
    connect: Callable[..., hr.Database],
) -> None:
    db = connect("VERSION BY a")
    change(db, "insert", 1, 10)
    assert seen(db, 9) == [10]
    change(db, "update", 5, 12)
    change(db, "update", 4, 11)
    assert seen(db, 11) == [12]
    change(db, "update", 5, 13)
    change(db, "update", 5, 9)
    assert seen(db, 13) == [13]
    # It was deleted before that, and after what comes then.
    change(db, "delete", 12, 1)
    assert seen(db, 15) == [None]
    change(db, "update", 11, 14)
    assert seen(db, 17) == [None]
    change(db, "update", 12, 15)
    assert seen(db, 19) == [15]


def test_what_came_late_lasts_after_a_restart(connect: Callable[..., hr.Database]) -> None:
    db = connect()
    change(db, "insert", 1, 10)
    change(db, "insert", 1, 20, key=2)
    assert seen(db, 9) == [10]
    change(db, "update", 5, 11)
    change(db, "delete", 6, key=2)
    db.close()
    again = connect()
    assert seen(again, 11) == [11]
    change(again, "update", 4, 12)
    change(again, "update", 5, 21, key=2)
    assert seen(again, 13) == [11]
    again.execute("CREATE QUERY all_rows AS SELECT id, a FROM v")
    assert again["all_rows"].latest().to_pylist() == [{"id": 1, "a": 11}]
    assert again.status.stream("v").overdue == 4


def test_one_that_is_later_than_deletions_are_remembered_is_set_apart(
    connect: Callable[..., hr.Database],
) -> None:
    db = connect()
    assert seen(db, 100_000) == [None]
    change(db, "insert", 100_001 - 86_400, 10)
    change(db, "insert", 100_000 - 86_400, 11)
    assert seen(db, 100_003) == [10]
    status = db.status.stream("v")
    assert (status.late, status.overdue) == (2, 1)
    assert [row["reason"] for row in db.dead_letters().to_pylist()] == [
        "late: older than the heartbeat 100001"
    ]
    assert any("1 late row, 0 rejected" in one.message for one in db.why("q").findings)


def test_rows_of_a_stream_that_change_others_by_key(tmp_path: Path) -> None:
    """Also where the changes are read from a file, with a time of their own."""
    file = tmp_path / "changes.csv"
    file.write_text("op,k,v,ts\nI,a,1,1\nI,b,2,9\nU,a,3,4\nD,b,,8\nU,b,5,12\n")
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM r (op STRING, k STRING, v BIGINT, ts BIGINT) KEY (k) FROM csv "
            f"OPTIONS (path '{file}') CHANGES BY op TIMESTAMP BY ts"
        )
        query = db.query("SELECT k, v FROM r")
        assert db.run().late == 2
        history = {
            (row["k"], row["v"], row["valid_from"], row["valid_to"]) for row in query.history().to_pylist()
        }
    assert {one[:3] for one in history} == {("a", 1, 1), ("b", 2, 9), ("a", 3, 9), ("b", 5, 12)}


def test_early_answers_are_corrected_by_late_changes(connect: Callable[..., hr.Database]) -> None:
    db = connect()
    db.execute(
        "CREATE QUERY early CONSISTENCY MIDDLE AS "
        "SELECT s.ts AS t, v.a FROM s LEFT JOIN v FOR SYSTEM_TIME AS OF s.ts ON s.id = v.id"
    )
    change(db, "insert", 1, 10)
    db.push("s", {"id": 1, "ts": 5})
    change(db, "update", 4, 11)
    db.push("s", {"id": 1, "ts": 9})
    db.push("s", {"id": 1, "ts": 10})
    assert db["early"].history() == db["q"].history()


@pytest.mark.parametrize(
    "deletion",
    [
        {"op": "delete", "id": 1, "ts": 4},
        [{"OP": "Delete", "id": 1, "ts": 4}, {"OP": "d", "id": 7, "ts": 4}],
        pa.table({"op": ["D"], "ts": [4], "id": [1]}),
    ],
)
def test_of_a_deletion_only_the_key_counts(connect: Callable[..., hr.Database], deletion: Any) -> None:
    db = connect()
    change(db, "insert", 1, 10)
    db.push("v", deletion)
    assert seen(db, 9) == [None]
    for row in ({"id": 1, "ts": 9}, {"op": "delete", "ts": 9}, {"op": "delete", "id": 1}):
        with pytest.raises(hr.UserError, match="there is no column"):
            db.push("v", row)


def test_deletions_of_a_file_may_have_nothing_but_their_keys(tmp_path: Path) -> None:
    lines = ['{"op": "i", "k": 1, "v": 5, "ts": 1}', '{"op": "i", "k": 2, "v": 6, "ts": 1}']
    (tmp_path / "changes.jsonl").write_text("\n".join([*lines, '{"op": "d", "k": 1, "ts": 3}\n']))
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE RELATION r (op STRING, k BIGINT, v BIGINT, ts BIGINT) KEY (k) FROM json "
            f"OPTIONS (path '{tmp_path}/changes.jsonl') CHANGES BY op TIMESTAMP BY ts DISORDER 0"
        )
        query = db.query("SELECT k, v FROM r")
        assert db.run().dead_letters == 0
        assert query.snapshot(3).to_pylist() == [{"k": 2, "v": 6}]
