"""Pushes while queries come and go and while a database starts: each sees the state before or after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.run.execution import Execution
from headrace.errors import UserError
from headrace.runtime.driver.endless.live import LiveRun
from headrace.runtime.intake.push_feed import PushFeed
from interleaving import switching_often

STREAM = "CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 30"
PATIENCE = 60.0

CHANGES = (
    "CREATE QUERY one AS SELECT COUNT(*) AS n FROM s [RANGE 5]",
    "CREATE OR REPLACE QUERY one AS SELECT COUNT(*) AS n FROM s [RANGE 9]",
    "CREATE OR REPLACE QUERY one AS SELECT v FROM s [RANGE 9]",
    "ALTER QUERY one RENAME TO other",
    "ALTER QUERY other PAUSE",
    "ALTER QUERY other RESUME",
    "DROP QUERY other",
    "CREATE OR REPLACE QUERY every AS SELECT v, ts FROM s",
    "CREATE OR REPLACE QUERY every AS SELECT v FROM s",
)
"""What leaves the stream with a query that reads it, at every moment."""


def test_no_push_is_refused_while_some_query_reads_the_stream(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(STREAM)
        db.query("SELECT v FROM s", name="every")
        db.start()
        over, errors, pushed = threading.Event(), list[BaseException](), [0, 0]

        def push(number: int) -> None:
            try:
                while not over.is_set():
                    done = db.push("s", {"v": pushed[number], "ts": pushed[number] // 10}, wait=False)
                    assert not isinstance(done, bool)
                    done.result(PATIENCE)
                    pushed[number] += 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=push, args=(number,), daemon=True) for number in range(2)]
        with switching_often():
            for thread in threads:
                thread.start()
            for statement in CHANGES * 3:
                db.execute(statement)
            over.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert not errors
        assert all(pushed)
        db.stop()


def test_a_push_while_the_database_starts_finds_it_started_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        db.query("SELECT v FROM s", name="every")
        said: list[str] = []

        def attempt() -> None:
            for call in (
                lambda: db.push("s", {"v": 1, "ts": 1}, wait=False),
                lambda: db.heartbeat("s", 1),
                db.stop,
            ):
                with pytest.raises(UserError) as raised:
                    call()
                said.append(raised.value.message)

        def around(kind: type[Any], name: str) -> None:
            call: Callable[..., Any] = getattr(kind, name)

            def observed(*arguments: Any) -> Any:
                attempt()
                found = call(*arguments)
                if kind is PushFeed:
                    attempt()
                return found

            monkeypatch.setattr(kind, name, observed)

        for kind in (Execution, LiveRun, PushFeed):
            around(kind, "start")
        db.start()
        assert said == ["the database is not started"] * 12
        assert db.push("s", {"v": 1, "ts": 1})
        db.stop()


def test_what_was_run_to_the_end_is_not_started() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("g", pa.table({"ts": [1, 2], "v": [1, 2]}), timestamp="ts")
        db.query("SELECT v FROM g", name="q")
        db.run()
        for call in (db.stop, lambda: db.push("g", {"ts": 1, "v": 1}), lambda: db.heartbeat("g", 3)):
            with pytest.raises(UserError, match="the database is not started") as raised:
                call()
            assert raised.value.hint == "call start() first"
