"""What results that are no longer kept leave behind: in running databases, in stores, and across changes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import UserError
from headrace.runtime.journal.inspect import named_files, verify
from headrace.runtime.results.reader import ResultReader

STREAM = "CREATE STREAM s (ts BIGINT, k STRING) FROM push TIMESTAMP BY ts"
COUNTS = "CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k"


def start(folder: Path | None, queries: str = COUNTS, retain: int = 1) -> hr.Database:
    db = hr.connect(runner="inline", storage=folder, retain_epochs=retain)
    db.execute(f"{STREAM}; {queries}")
    db.start()
    return db


def push(db: hr.Database, *rows: tuple[int, str]) -> None:
    for ts, k in rows:
        assert db.push("s", {"ts": ts, "k": k})


def latest(db: hr.Database, name: str = "counts") -> list[tuple[str, int]]:
    return [(row["k"], row["n"]) for row in db.queries[name].latest().to_pylist()]


@pytest.mark.parametrize("durable", [False, True])
def test_the_latest_answer_is_whole_though_one_epoch_is_kept(durable: bool, tmp_path: Path) -> None:
    with start(tmp_path / "store" if durable else None) as db:
        push(db, (1, "a"), (2, "b"), (3, "a"), (4, "a"), (5, "c"))
        assert latest(db) == [("a", 3), ("b", 1)]
        assert db.queries["counts"].history()["valid_from"].to_pylist()[0] == 3
        with pytest.raises(UserError, match="the answer of counts at 1 is no longer kept, only from 3 on"):
            db.queries["counts"].snapshot(1)


@pytest.mark.parametrize("durable", [False, True])
def test_what_is_removed_while_it_is_read_is_read_again(durable: bool, tmp_path: Path) -> None:
    with start(tmp_path / "store" if durable else None) as db:
        push(db, (1, "a"), (2, "a"), (3, "a"), (4, "a"))
        readers: list[ResultReader] = []

        def view(reader: ResultReader) -> pa.Table:
            readers.append(reader)
            if len(readers) == 1:
                push(db, (5, "a"), (6, "a"))
            return reader.history()

        found = db.queries["counts"]._read(view)
        assert found == db.queries["counts"].history()
        assert len(readers) == 2


def test_a_store_goes_on_with_what_is_carried_and_holds_nothing_else(tmp_path: Path) -> None:
    for begin in (1, 11, 21):
        with start(tmp_path / "store") as db:
            push(db, *((begin + more, "a") for more in range(6)))
            assert latest(db)[0] == ("a", begin // 10 * 6 + 5)
        files = {
            f"{folder}/{file.name}"
            for folder in ("commits", "segments", "results")
            for file in (tmp_path / "store" / folder).iterdir()
        }
        assert files == named_files(tmp_path / "store")
        assert not verify(tmp_path / "store").problems
        stored = hr.open(tmp_path / "store")
        assert stored.queries["counts"].latest().to_pylist() == [{"k": "a", "n": begin // 10 * 6 + 5}]


def test_of_a_query_that_was_dropped_nothing_is_carried_and_its_history_is_refused() -> None:
    with start(None, retain=3) as db:
        push(db, *((ts, "a") for ts in range(8)))
        query = db.queries["counts"]
        db.execute("DROP QUERY counts")
        with pytest.raises(UserError, match="the answer of counts is no longer kept: results before epoch"):
            query.history()


def test_a_query_that_is_defined_anew_begins_without_what_was_carried(tmp_path: Path) -> None:
    with start(tmp_path / "store") as db:
        push(db, (1, "a"), (2, "a"), (3, "a"))
        db.execute("DROP QUERY counts")
        db.execute(COUNTS)
        push(db, (4, "b"), (5, "b"), (6, "b"), (7, "b"))
        assert latest(db) == [("b", 3)]


def test_an_older_query_keeps_what_is_carried_when_another_one_comes(tmp_path: Path) -> None:
    with start(tmp_path / "store") as db:
        push(db, (1, "a"), (2, "a"), (3, "a"))
        db.execute(COUNTS.replace("counts", "others"))
        push(db, (4, "a"), (5, "a"), (6, "a"))
        assert latest(db) == [("a", 5)]
        assert latest(db, "others") == [("a", 2)]
