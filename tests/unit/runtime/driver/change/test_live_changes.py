"""Streams and queries that are added and dropped while an endless run goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.catalog.definitions import Definitions
from headrace.errors import LanguageError, StoreError, UserError
from headrace.lowering.query_id import first_name
from headrace.runtime.journal.inspect import contents
from headrace.time import INFINITY
from inside import execution_of

PATIENCE = 20
STREAM = "CREATE STREAM s (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 5;"
OTHER = "CREATE STREAM other (k STRING, ts BIGINT) FROM push TIMESTAMP BY ts;"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"
TOTAL = "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]"


def database(storage: Path | None = None, **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", storage=storage, **options)
    db.execute(STREAM)
    return db


@pytest.fixture
def db() -> Iterator[hr.Database]:
    with database() as made:
        made.query(COUNTS, name="counts")
        made.start()
        yield made


def row(ts: int, k: str = "a") -> dict[str, Any]:
    return {"k": k, "ts": ts}


def numbers(query: hr.Query) -> list[int]:
    found: list[int] = query.history()["n"].to_pylist()
    return found


def test_a_query_added_in_a_run_answers_over_the_rows_from_then_on(db: hr.Database) -> None:
    db.push("s", [row(1), row(2), row(20)])
    total = db.query(TOTAL, name="total")
    assert total.history().num_rows == 0
    assert db.push("s", [row(21), row(22), row(40)])
    assert total.history().to_pydict() == {"n": [1, 2], "valid_from": [21, 22], "valid_to": [22, 35]}
    assert [query.name for query in db.queries] == ["counts", "total"]


def test_a_query_like_one_that_runs_has_a_state_of_its_own(db: hr.Database) -> None:
    old = db.queries[0]
    db.push("s", [row(18), row(20)])
    new = db.query(COUNTS)
    (empty,) = db.execute(f"CREATE QUERY empty STARTING NOW AS {COUNTS}")
    db.push("s", [row(22), row(60)])
    assert old.snapshot(23).to_pydict() == new.snapshot(23).to_pydict() == {"k": ["a"], "n": [3]}
    assert empty.snapshot(23).to_pydict() == {"k": ["a"], "n": [1]}


def test_a_subscription_begins_with_the_heartbeat_at_the_start(db: hr.Database) -> None:
    db.push("s", row(20))
    query = db.query("SELECT ts FROM s", name="plain")
    db.push("s", row(30))
    db.push("s", row(40))
    first, second, third = islice(query.subscribe(), 3)
    assert [first.epoch, second.epoch, third.epoch] == [2, 3, 4]
    assert [first.heartbeat, second.heartbeat, third.heartbeat] == [15, 25, 35]
    assert [part.rows["ts"].to_pylist() for part in (first, second, third)] == [[], [], [30]]
    assert next(query.subscribe(from_epoch=4)).epoch == 4


def test_statements_work_in_a_run_and_a_new_stream_takes_rows(db: hr.Database) -> None:
    with pytest.raises(UserError, match="no query reads a stream other"):
        db.push("other", row(1))
    db.execute(f"{OTHER} CREATE STREAM few AS SELECT k FROM other WHERE ts < 9;")
    with pytest.raises(UserError, match="no query reads a stream other"):
        db.push("other", row(1))
    (query,) = db.execute("CREATE QUERY late AS SELECT COUNT(*) AS n FROM few [RANGE UNBOUNDED]")
    assert isinstance(query, hr.Query)
    assert db.push("other", [row(1), row(2), row(30)])
    assert numbers(query) == [1, 2]


def test_a_bounded_stream_joins_the_share(db: hr.Database) -> None:
    db.stream("b", pa.table({"k": ["a"] * 50, "ts": range(50)}), timestamp="ts")
    query = db.query("SELECT COUNT(*) AS n FROM b [RANGE UNBOUNDED]")
    for change in query.subscribe():
        if change.heartbeat == INFINITY:
            break
    assert numbers(query) == list(range(1, 51))
    again = db.query("SELECT k FROM b")
    assert next(again.subscribe()).heartbeat == INFINITY
    assert again.history().num_rows == 0, "what was read is not read again"


def test_errors_are_raised_where_they_are_made_and_the_run_goes_on(db: hr.Database) -> None:
    with pytest.raises(LanguageError, match="there is no stream nothing"):
        db.query("SELECT * FROM nothing")
    with pytest.raises(LanguageError, match="there is a query COUNTS already"):
        db.execute(f"CREATE QUERY COUNTS AS {COUNTS}")
    with pytest.raises(LanguageError, match="there is a stream s already"):
        db.execute(STREAM)
    with pytest.raises(LanguageError, match="1:12: there is no query nothing"):
        db.execute("DROP QUERY nothing")
    with pytest.raises(LanguageError, match="1:13: there is no stream nothing"):
        db.execute("DROP STREAM nothing")
    assert db.push("s", row(1)) is True
    assert [query.name for query in db.queries] == ["counts"]


def test_a_stream_whose_feed_cannot_start_leaves_everything_as_it_was(
    db: hr.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UserError("no such topic")

    db.execute(OTHER)
    with monkeypatch.context() as patched:
        patched.setattr("headrace.runtime.intake.push_feed.PushFeed.start", refuse)
        with pytest.raises(UserError, match="no such topic"):
            db.query("SELECT k FROM other", name="q")
    assert db.push("s", row(1)) is True
    with pytest.raises(UserError, match="no query reads a stream other"):
        db.push("other", row(1))
    db.query("SELECT k FROM other", name="q")
    assert db.push("other", row(1)) is True


def test_a_dropped_query_ends_and_what_it_had_said_stays(db: hr.Database) -> None:
    counts = db.queries[0]
    total = db.query(TOTAL, name="total")
    seen: list[int] = []
    listener = threading.Thread(target=lambda: seen.extend(part.epoch for part in counts.subscribe()))
    listener.start()
    db.push("s", [row(1), row(30)])
    db.drop("COUNTS")
    listener.join(PATIENCE)
    assert not listener.is_alive()
    assert seen == [1, 2]
    db.push("s", [row(31), row(60)])
    assert counts.history().to_pydict() == {"k": ["a"], "n": [1], "valid_from": [1], "valid_to": [11]}
    assert [part.epoch for part in counts.subscribe()] == [1, 2]
    assert numbers(total) == [1, 2, 3]
    with pytest.raises(UserError, match="counts was dropped"):
        counts.deliver(lambda *_: None)
    assert db.stop().emitted.keys() == {"total"}


def test_a_name_can_be_used_again_and_the_answers_stay_apart(db: hr.Database) -> None:
    old = db.queries[0]
    db.push("s", [row(1), row(30)])
    db.execute("DROP QUERY counts")
    new = db.query("SELECT ts FROM s", name="counts")
    db.push("s", [row(40), row(60)])
    assert old.history()["n"].to_pylist() == [1]
    assert new.history()["ts"].to_pylist() == [40]
    assert [part.rows["ts"].to_pylist() for part in islice(new.subscribe(), 2)] == [[], [40]]


def test_the_state_of_a_dropped_query_goes(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        kept, dropped = db.query(COUNTS, name="kept"), db.query(TOTAL, name="dropped")
        db.start()
        db.push("s", [row(1), row(30)])
        before = contents(tmp_path / "store").state
        db.drop(dropped.name)
        after = contents(tmp_path / "store")
        assert len(before) == 2
        assert len(after.state) == 1
        found = [(first_name(part.query), part.dropped) for part in after.results]
        assert found == [("kept", False), ("dropped", True)]
        assert kept.history().num_rows == 1
        db.stop()


def test_a_stream_is_dropped_when_nothing_uses_it(db: hr.Database) -> None:
    db.execute("CREATE STREAM d AS WITH x AS (SELECT k FROM s) SELECT k FROM (SELECT k FROM x)")
    for text in ("DROP STREAM s", "DROP STREAM S"):
        with pytest.raises(
            LanguageError, match="s cannot be dropped: it is used by the query counts, the stream d"
        ):
            db.execute(text)
    query = db.query("SELECT k FROM d", name="over")
    with pytest.raises(
        UserError, match=r"d cannot be dropped: it is used by the query over \(hint: drop the query"
    ):
        db.drop("d")
    for name in ("over", "d", "counts"):
        db.drop(name)
    db.drop("s")
    assert list(db.streams) == []
    with pytest.raises(UserError, match="no query reads a stream s"):
        db.push("s", row(1))
    assert query.history().num_rows == 0
    assert db.running


def test_a_stream_of_an_inner_query_is_in_use(db: hr.Database) -> None:
    db.execute(OTHER)
    db.query("SELECT k FROM s WHERE EXISTS (SELECT 1 FROM other [RANGE 5] o WHERE o.k = s.k)", name="inner")
    with pytest.raises(UserError, match="other cannot be dropped: it is used by the query inner"):
        db.drop("other")


def test_a_stream_that_was_dropped_begins_anew_under_its_name(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        db.execute(OTHER)
        db.query("SELECT k FROM other", name="q")
        db.query(COUNTS, name="counts")
        db.start()
        db.push("other", row(100), producer="me", sequence=7)
        assert (tmp_path / "store/streams/other").exists()
        db.drop("q")
        db.drop("other")
        assert not (tmp_path / "store/streams/other").exists()
        db.execute(OTHER.replace("k STRING", "k BIGINT"))
        query = db.query("SELECT k FROM other", name="q")
        assert db.push("other", {"k": 1, "ts": 5}, producer="me", sequence=1) is True
        assert db.push("other", {"k": 2, "ts": 6}) is True
        assert query.history()["k"].to_pylist() == [1]
        db.stop()


def test_a_name_of_a_query_and_a_stream_is_refused(db: hr.Database) -> None:
    db.query("SELECT k FROM s", name="S")
    with pytest.raises(UserError, match="s is a query and a stream"):
        db.drop("s")
    db.execute("DROP QUERY s")
    assert [query.name for query in db.queries] == ["counts"]


def test_sinks_of_a_dropped_query_get_all_of_it_and_a_new_one_of_the_name_begins_anew(tmp_path: Path) -> None:
    old: list[Any] = []
    new: list[Any] = []
    with database(tmp_path / "store") as db:
        db.query(COUNTS, name="other")
        query = db.query("SELECT ts FROM s", name="q")
        query.deliver(lambda epoch, _, rows: old.append((epoch, rows["ts"].to_pylist())), name="sink")
        db.start()
        db.push("s", [row(1), row(30)])
        db.drop("q")
        assert old == [(1, [1])]
        again = db.query("SELECT ts * 2 AS ts FROM s", name="q")
        again.deliver(lambda epoch, _, rows: new.append((epoch, rows["ts"].to_pylist())), name="sink")
        db.push("s", [row(31), row(60)])
        db.stop()
    assert old == [(1, [1])]
    assert new == [(3, []), (4, [62])]


def test_queries_are_added_by_many_threads_while_rows_come(db: hr.Database) -> None:
    found: list[hr.Query] = []
    adders = [threading.Thread(target=lambda: found.append(db.query(TOTAL))) for _ in range(6)]
    pushed = [db.push("s", [row(number)] * 3, wait=False) for number in range(50)]
    for adder in adders:
        adder.start()
    pushed += [db.push("s", [row(number)] * 3, wait=False) for number in range(50, 100)]
    for adder in adders:
        adder.join(PATIENCE)
    for future in pushed:
        assert isinstance(future, Future)
        assert future.result(PATIENCE) is True
    db.push("s", row(1000))
    assert db.queries[0].snapshot(99).to_pydict() == {"k": ["a"], "n": [30]}
    assert len({query.name for query in found}) == 6
    for query in found:
        counts = numbers(query)
        assert counts == sorted(counts)
        assert counts[-1:] <= [300]


def test_a_run_that_has_ended_is_not_changed(db: hr.Database) -> None:
    db.stop()
    with pytest.raises(UserError, match="the queries were not changed: the database was stopped"):
        execution_of(db).change(Definitions())
    query = db.query(TOTAL, name="total")
    with pytest.raises(UserError, match="total has no answer yet"):
        query.history()
    db.start()
    db.push("s", [row(1), row(30)])
    assert numbers(query) == [1]


def test_a_change_that_cannot_be_written_is_refused_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with database(tmp_path / "store") as db:
        db.query(COUNTS, name="counts")
        db.start()
        with monkeypatch.context() as patched:
            patched.setattr("os.link", full)
            with pytest.raises(StoreError, match="No space left"):
                db.query(TOTAL, name="total")
        assert [query.name for query in db.queries] == ["counts"]
        assert db.push("s", [row(1), row(30)])
        total = db.query(TOTAL, name="total")
        assert db.push("s", [row(31), row(60)])
        assert numbers(total) == [1]
        db.stop()


def test_a_query_that_fails_lets_go_of_its_stream_and_can_be_dropped(db: hr.Database) -> None:
    db.execute(OTHER)
    bad = db.query("SELECT SUM(9223372036854775807 - ts) AS n FROM other [RANGE UNBOUNDED]", name="bad")
    db.push("other", [row(1), row(2), row(9)])
    db.push("s", row(1))
    with pytest.raises(UserError, match="bad failed"):
        bad.history()
    with pytest.raises(UserError, match="no query reads a stream other"):
        db.push("other", row(3))
    with pytest.raises(UserError, match="bad failed"):
        list(bad.subscribe())
    db.drop("bad")
    with pytest.raises(UserError, match="bad failed"):
        bad.history()
    good = db.query("SELECT COUNT(*) AS n FROM other [RANGE UNBOUNDED]", name="bad")
    db.push("other", [row(10), row(11)])
    assert numbers(good) == [1]


def test_whoever_follows_a_query_is_told_when_it_fails(db: hr.Database) -> None:
    bad = db.query("SELECT SUM(9223372036854775807 - ts) AS n FROM s [RANGE UNBOUNDED]")
    told: list[BaseException] = []
    epochs: list[int] = []

    def listen() -> None:
        try:
            epochs.extend(part.epoch for part in bad.subscribe())
        except UserError as error:
            told.append(error)

    listener = threading.Thread(target=listen)
    listener.start()
    db.push("s", row(1))
    db.push("s", [row(10), row(30)])
    listener.join(PATIENCE)
    assert not listener.is_alive()
    assert ["failed" in str(error) for error in told] == [True]
    assert 3 not in epochs, "it has nothing to say of the epoch in which it fails"
    assert db.running


def test_a_restart_goes_on_with_the_queries_as_they_were_changed(tmp_path: Path) -> None:
    with database(tmp_path / "store") as db:
        db.query(COUNTS, name="counts")
        db.query("SELECT ts FROM s", name="gone")
        db.start()
        db.push("s", [row(1), row(20)])
        total = db.query(TOTAL, name="total")
        db.drop("gone")
        db.push("s", [row(21), row(30)])
        expected = total.history()
        db.stop()
    with database(tmp_path / "store") as db:
        db.query(COUNTS, name="counts")
        total = db.query(TOTAL, name="total")
        db.start()
        assert not db.differences
        assert total.history().equals(expected)
        db.push("s", [row(31), row(60)])
        assert numbers(total) == [1, 2, 3]
        db.stop()


def test_a_restart_adds_what_is_new_and_drops_what_is_missing_where_that_is_asked(
    tmp_path: Path,
) -> None:
    with database(tmp_path / "store") as db:
        db.query(COUNTS, name="counts")
        db.query("SELECT ts FROM s", name="gone")
        db.start()
        db.push("s", [row(1), row(20)])
        db.stop()
    with database(tmp_path / "store") as db:
        counts, total = db.query(COUNTS, name="counts"), db.query(TOTAL, name="total")
        assert [query.name for query in db.queries] == ["counts", "gone", "total"]
        db.sync()
        db.start()
        assert db.differences.added == ("total",)
        assert db.differences.dropped == ("gone",)
        db.push("s", [row(21), row(60)])
        assert numbers(total) == [1]
        assert counts.snapshot(25).to_pydict() == {"k": ["a"], "n": [2]}
        db.stop()
    with database(tmp_path / "store") as db:
        db.query(COUNTS, name="counts")
        with pytest.raises(LanguageError, match="the store has another query total: CREATE QUERY total AS"):
            db.query(COUNTS, name="total")


def test_a_store_without_an_epoch_knows_its_queries(tmp_path: Path) -> None:
    for text in (COUNTS, TOTAL):
        with database(tmp_path / "store") as db:
            if text is TOTAL:
                db.drop("q")
            query = db.query(text, name="q")
            db.start()
            db.stop()
    with database(tmp_path / "store") as db:
        query = db.query(TOTAL, name="q")
        db.start()
        db.push("s", [row(1), row(20)])
        assert numbers(query) == [1]
        assert contents(tmp_path / "store").description.queries.keys() == {query.id}
        db.stop()
