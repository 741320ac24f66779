"""Sinks whose target is down or silent, at the start and later: the others run, and it gets everything."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import DeliveryError
from headrace.runtime.delivery.contract import Retry
from headrace.runtime.delivery.table import TableSink
from headrace.runtime.outside.patience import patient
from toxic_peers import toxic_site
from waiting import wait_for, wait_until

QUICK = Retry(pause=0.005, longest=0.02)


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with patient(silent=0.3, pause=0.005, longest=0.02, opening=0.1):
        yield


class Target:
    """A database that is well, down or silent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mood = "well"
        self.awake = threading.Event()

    def connect(self) -> sqlite3.Connection:
        if self.mood == "down":
            raise sqlite3.OperationalError("it is down")
        if self.mood == "refused":
            raise ConnectionRefusedError("refused")
        if self.mood == "silent" and not self.awake.wait(60):
            raise TimeoutError
        return sqlite3.connect(self.path)

    def rows(self) -> list[Any]:
        with sqlite3.connect(self.path) as connection:
            return sorted(connection.execute("SELECT * FROM t"))


def declared(db: hr.Database) -> hr.Query:
    db.execute(
        "CREATE STREAM s (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k"
    )
    return db["q"]


def push(db: hr.Database, *instants: int) -> None:
    for ts in instants:
        db.push("s", {"k": ts % 2, "ts": ts})


@pytest.mark.parametrize("mood", ["down", "refused", "silent"])
def test_a_table_whose_database_is_away_at_the_start_gets_everything_later(tmp_path: Path, mood: str) -> None:
    target, taken = Target(tmp_path / "t.db"), list[int]()
    target.mood = mood
    with hr.connect(runner="inline") as db:
        query = declared(db)
        query.deliver(TableSink(target.connect, "t"), name="table", retry=QUICK)
        query.deliver(lambda epoch, heartbeat, rows: taken.append(epoch), name="other")
        db.start()
        push(db, 1, 2, 3)
        wait_for(lambda: len(taken) >= 3)
        wait_for(lambda: "table of q is not ready" in db.problems.get("q to table", ""), lambda: db.problems)
        target.mood = "well"
        target.awake.set()
        # Of the last instant more may come.
        wait_until(lambda: target.path.exists() and "q to table" not in db.problems, True)
        wait_until(target.rows, [(0, 1), (1, 1)])


def test_sinks_get_ready_together(tmp_path: Path) -> None:
    """Each waits for the others: one after the other they would never be ready."""
    together, met = threading.Barrier(3), set[int]()

    def connect(number: int) -> sqlite3.Connection:
        if number not in met:
            met.add(number)
            together.wait(20)
        return sqlite3.connect(tmp_path / f"{number}.db")

    with hr.connect(runner="inline") as db, patient(opening=60.0):
        query = declared(db)
        for number in range(3):
            query.deliver(TableSink(partial(connect, number), "t"), name=f"table{number}", retry=QUICK)
        db.start()
        assert not together.broken
        assert dict(db.problems) == {}


def test_a_table_that_is_away_while_it_runs_comes_back(tmp_path: Path) -> None:
    target = Target(tmp_path / "t.db")
    with hr.connect(runner="inline") as db:
        declared(db).deliver(TableSink(target.connect, "t"), name="table", retry=QUICK)
        db.start()
        push(db, 1, 2)
        wait_until(target.rows, [(1, 1)])
        target.mood = "refused"
        push(db, 3, 4)
        wait_for(lambda: "since 2" in db.problems.get("q to table", ""))
        target.mood = "well"
        wait_until(target.rows, [(0, 1), (1, 2)])
        wait_until(lambda: dict(db.problems), {})


def test_a_run_that_ends_says_which_sink_was_never_ready(tmp_path: Path) -> None:
    target = Target(tmp_path / "t.db")
    target.mood = "down"
    with hr.connect(runner="inline") as db:
        declared(db).deliver(TableSink(target.connect, "t"), name="table")
        db.start()
        push(db, 1, 2)
        with pytest.raises(DeliveryError, match="table of q has not become ready"):
            db.stop()


def test_what_a_sink_refuses_is_refused_at_once(tmp_path: Path) -> None:
    target = Target(tmp_path / "t.db")
    with sqlite3.connect(target.path) as connection:
        connection.execute("CREATE TABLE t (k BIGINT, n BIGINT)")
        connection.execute("INSERT INTO t VALUES (1, 1)")
    with hr.connect(runner="inline") as db:
        declared(db).deliver(TableSink(target.connect, "t"), name="table")
        with pytest.raises(DeliveryError, match="has rows already"):
            db.start()


def test_a_folder_that_is_not_mounted_holds_up_nobody(tmp_path: Path) -> None:
    folder, taken = tmp_path / "out", list[int]()

    def attached(db: hr.Database) -> None:
        query = declared(db)
        query.deliver(hr.FileSink(folder), name="files", retry=QUICK)
        query.deliver(lambda epoch, heartbeat, rows: taken.append(epoch), name="other")
        db.start()

    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        attached(db)
        push(db, 1, 2)
        db.stop()
    folder.rename(tmp_path / "elsewhere")
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        attached(db)
        assert "lacks what was delivered" in db.problems["q to files"]
        push(db, 3)
        wait_for(lambda: len(taken) >= 3)
        (tmp_path / "elsewhere").rename(folder)
        wait_until(lambda: dict(db.problems), {})
        push(db, 4)
        # Of the last instant more may come.
        wait_until(lambda: len(list(folder.glob("*.jsonl"))), 3)


def test_a_receiver_that_is_away_gets_each_epoch_once_in_order() -> None:
    with toxic_site() as site, hr.connect(runner="inline") as db:
        query = declared(db)
        query.deliver(hr.WebhookSink(f"{site.url}/in", timeout=0.2), name="web", retry=QUICK)
        db.start()
        # Of the last instant more may come.
        push(db, 0)
        for at, mood in enumerate(("reset", "cut", "silent", "busy", "broken", "missing")):
            site.mood = mood
            push(db, at + 1)
            wait_for(lambda: "q to web" in db.problems)
            site.mood = "well"
            wait_until(lambda: dict(db.problems), {})
            wait_until(lambda: len(site.posted), at + 1)
        numbers = [json.loads(body.splitlines()[-1])["valid_from"] for body in site.posted]
        assert numbers == sorted(numbers)
