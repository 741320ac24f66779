"""Readers with names go, come back and go on, or ask for the answer between two instants."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, UserError

TEXT = """
    CREATE STREAM tick (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
    CREATE QUERY seen AS SELECT v FROM tick;
"""


def opened(folder: Path, **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", storage=folder / "store", **options)
    if not db.queries:
        db.execute(TEXT)
    db.start()
    return db


def push(db: hr.Database, *values: int) -> None:
    for value in values:
        db.push("tick", {"v": value, "ts": value})


def taken(db: hr.Database, client: str, count: int) -> list[int]:
    """The values of so many epochs; the last of them is not acknowledged."""
    with db["seen"].subscribe(client=client) as changes:
        return [row["v"] for change in islice(changes, count) for row in change.rows.to_pylist()]


def test_a_client_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        push(db, 1, 2, 3)
        assert taken(db, "desk", 3) == [1, 2]
        assert [(one.name, one.epoch, one.behind) for one in db.status.clients] == [("desk", 2, 1)]
        push(db, 4)
        db.stop()
    with opened(tmp_path) as db:
        push(db, 5)
        # The third epoch was not acknowledged: it comes again, with what has come since then.
        assert taken(db, "desk", 3) == [2, 3, 4]
        db.stop()


def test_results_are_kept_for_a_client_within_a_bound(tmp_path: Path) -> None:
    with opened(tmp_path, retain_epochs=4) as db:
        push(db, 1, 2)
        assert taken(db, "desk", 2) == [1]
        push(db, *range(3, 30))
        assert taken(db, "desk", 5) == [1, 2, 3, 4, 5]
        push(db, *range(30, 120))
        with pytest.raises(UserError, match="are no longer kept"):
            taken(db, "desk", 1)
        db["seen"].forget("desk")
        assert not db.status.clients
        with pytest.raises(UserError, match="seen has no client desk"):
            db["seen"].forget("desk")
        db.stop()


def test_without_a_client_no_more_is_kept_than_was_said(tmp_path: Path) -> None:
    with opened(tmp_path, retain_epochs=4) as db:
        push(db, *range(1, 30))
        assert db["seen"].epochs().num_rows < 10
        db.stop()


def test_a_query_that_is_dropped_takes_its_clients_along(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        push(db, 1, 2)
        taken(db, "desk", 2)
        db.execute("CREATE QUERY other AS SELECT v FROM tick; DROP QUERY seen")
        assert not db.status.clients
        assert not list((tmp_path / "store" / "sinks").glob("*desk*"))
        db.stop()


@pytest.mark.parametrize("starts", [False, True])
def test_a_drop_at_rest_ends_clients_when_it_counts(tmp_path: Path, starts: bool) -> None:
    with opened(tmp_path) as db:
        db.execute("CREATE QUERY other AS SELECT v FROM tick")
        push(db, 1, 2)
        taken(db, "desk", 2)
        db.stop()
        db.execute("DROP QUERY seen")
        if starts:
            db.start()
            assert not db.status.clients
    with opened(tmp_path) as db:
        # A drop that no run has begun with has not happened.
        assert [one.epoch for one in db.status.clients] == ([] if starts else [1])
        assert {query.name for query in db.queries} == {"other"} | (set() if starts else {"seen"})
        db.stop()


def test_a_query_that_is_dropped_before_the_start_takes_its_clients_along(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute("CREATE QUERY other AS SELECT v FROM tick")
        push(db, 1, 2)
        taken(db, "desk", 2)
        with db["other"].subscribe(client="desk") as changes:
            assert next(changes).rows.num_rows == 0
        db.execute("ALTER QUERY other PAUSE")
        db.stop()
    db = hr.connect(runner="inline", storage=tmp_path / "store")
    with db:
        db.execute("CREATE QUERY third AS SELECT v FROM tick; DROP QUERY seen")
        db.start()
        assert [(one.query, one.name) for one in db.status.clients] == [("other", "desk")]
        assert len(list((tmp_path / "store" / "sinks").glob("*desk*"))) == 1
        db.stop()


def test_clients_follow_a_query_to_another_name(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        push(db, 1, 2)
        taken(db, "desk", 2)
        db.execute("ALTER QUERY seen RENAME TO found; CREATE QUERY seen AS SELECT v FROM tick")
        assert [(one.query, one.name, one.epoch) for one in db.status.clients] == [("found", "desk", 1)]
        db.stop()
    with opened(tmp_path) as db:
        assert [(one.query, one.name, one.epoch) for one in db.status.clients] == [("found", "desk", 1)]
        assert [change.epoch for change in islice(db["found"].subscribe(client="desk"), 1)] == [2]
        db.stop()


def test_a_client_is_heard_when_its_query_is_replaced_and_renamed(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        push(db, 1, 2)
        with db["seen"].subscribe(client="desk") as changes:
            assert next(changes).epoch == 1
            db.execute("CREATE OR REPLACE QUERY seen AS SELECT v FROM tick WHERE v > 0")
            db.execute("ALTER QUERY seen RENAME TO found")
            last = next(changes).epoch
            assert next(changes).epoch == last + 1
        assert [(one.query, one.epoch) for one in db.status.clients] == [("found", last)]
        db.stop()


def test_the_newest_reader_of_a_name_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        push(db, 1, 2, 3)
        with db["seen"].subscribe(client="desk") as first, db["seen"].subscribe(client="other") as other:
            assert [next(first).epoch, next(first).epoch, next(other).epoch] == [1, 2, 1]
            with db["seen"].subscribe(client="desk") as second:
                assert next(second).epoch == 2
                with pytest.raises(UserError, match="another reader has gone on as the client desk of seen"):
                    next(first)
                assert [next(second).epoch, next(other).epoch] == [3, 2]
        assert {one.name: one.epoch for one in db.status.clients} == {"desk": 2, "other": 1}
        db.stop()


@pytest.mark.parametrize(("begin", "end"), [(-(2**70), 5), (3, 2**70)])
def test_what_is_not_an_instant_is_refused(tmp_path: Path, begin: int, end: int) -> None:
    with opened(tmp_path) as db:
        push(db, 1, 2, 3)
        with pytest.raises(UserError, match="is not an instant"):
            db["seen"].between(begin, end)
        db.stop()


def test_what_has_always_held_is_kept_from_the_first_instant_on(tmp_path: Path) -> None:
    with opened(tmp_path, retain_epochs=1) as db:
        db.relation("r", pa.table({"id": [7]}), key="id")
        always = db.query("SELECT id FROM r", name="always")
        top = db.query("SELECT MAX(v) AS top FROM tick [RANGE 5]", name="top")
        push(db, *range(1, 12))
        # All of it was said in an epoch whose results have gone.
        assert always.epochs().column("epoch").to_pylist()[0] > 9
        [row] = always.between(-(2**63), 4).to_pylist()
        assert (row["id"], row["valid_from"]) == (7, None)
        with pytest.raises(UserError, match="top at -9223372036854775808 is no longer kept, only from"):
            top.between(-(2**63), 4)
        db.stop()


def test_the_answer_between_two_instants(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with opened(tmp_path) as db:
        top = db.query("SELECT MAX(v) AS top FROM tick [RANGE 5]", name="top")
        push(db, 1, 4, 9, 20)
        whole = [(row["top"], row["valid_from"], row["valid_to"]) for row in top.history().to_pylist()]
        assert whole == [(1, 1, 4), (4, 4, 9), (9, 9, 14)]
        expected = [{"top": 4, "valid_from": 5, "valid_to": 9}, {"top": 9, "valid_from": 9, "valid_to": 12}]
        assert top.between(5, 12).to_pylist() == expected
        question = "SELECT top, valid_from, valid_to FROM HISTORY OF top BEGIN 5 END 12 ORDER BY 2"
        assert db.ask(question).to_pylist() == expected
        assert top.between(15, 20).num_rows == 0
        with pytest.raises(UserError, match="not final yet"):
            top.between(5, 22)
        with pytest.raises(UserError, match="5 is not before 5"):
            top.between(5, 5)
        with pytest.raises(LanguageError, match="BEGIN wants an instant, and END another one"):
            db.ask("SELECT * FROM HISTORY OF top BEGIN 5")
        db.stop()
