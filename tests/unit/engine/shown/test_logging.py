"""What the logger `headrace` is told."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
import warm_processes
from inside import core_of


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "headrace"]


def test_a_run_logs_its_epochs_and_what_it_could_not_use(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headrace")
    rows = pa.table({"ts": [10, 1, 20, 2, 30], "v": [1, 2, 3, 4, 0]})
    with hr.connect(runner="inline", epoch_rows=3) as db:
        db.stream("s", rows, timestamp="ts")
        db.query("SELECT v FROM s", name="q")
        db.query("SELECT 1 / v AS w FROM s", name="r")
        db.run()
    levels = told(caplog)
    assert levels[0] == ("INFO", "running to the end: q, r")
    assert levels[-1][1].startswith("stopped: 5 rows in ")
    assert [text[:18] for level, text in levels if level == "DEBUG"] == [
        "epoch 1: 3 rows in",
        "epoch 2: 2 rows in",
    ]
    assert [text for level, text in levels if level == "WARNING"] == [
        "epoch 1: 1 row of s came too late",
        "epoch 1: 1 dead letter",
        "epoch 2: 1 row of s came too late",
        "epoch 2: 2 dead letters",
    ]


def test_an_epoch_that_is_tried_again_and_a_query_that_fails_are_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query("SELECT SUM(v) AS total FROM s [RANGE 5]", name="q")
        db.query("SELECT v FROM s", name="r")
        runner: Any = core_of(db).runner()
        run_epoch, failures = runner.run_epoch, iter([OSError("the disk blinked")])

        def flaky(*arguments: Any) -> Any:
            for failure in failures:
                raise failure
            return run_epoch(*arguments)

        monkeypatch.setattr(runner, "run_epoch", flaky)
        db.start()
        db.push("s", [{"v": 2**63 - 1, "ts": 1}, {"v": 1, "ts": 2}, {"v": 1, "ts": 3}])
        db.stop()
    warnings = [text for level, text in told(caplog) if level == "WARNING"]
    assert warnings[0] == "epoch 1 failed and is tried again: OSError: the disk blinked"
    assert warnings[1].startswith("epoch 1: the query q failed: ")
    assert len(warnings) == 2


def test_nothing_is_printed_where_nobody_has_set_up_logging() -> None:
    program = "import headrace, logging; logging.getLogger('headrace').warning('late')"
    done = warm_processes.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
