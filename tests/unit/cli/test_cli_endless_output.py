"""`headrace run --output` where inputs never end: files by epoch, once each, over any number of runs."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headrace as hr
from headrace.cli import app, run
from headrace.cli.endless import deliver_endless
from headrace.cli.output import Format
from headrace.errors import UserError


def ran(folder: Path, *instants: int) -> None:
    """A run on the store until Ctrl-C, into which some rows are pushed."""
    with hr.connect(runner="inline", storage=folder / "store") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        queries = [db.query(f"SELECT v + {one} AS v FROM s", name=f"Q{one}") for one in (1, 2)]
        started = threading.Event()
        db.prepare()

        def push() -> None:
            started.wait(60)
            for ts in instants:
                db.push("s", {"v": ts, "ts": ts})
            os.kill(os.getpid(), signal.SIGINT)

        begin = db.start

        def start(*arguments: object) -> None:
            begin(*arguments)  # type: ignore[arg-type]
            started.set()

        db.start = start  # type: ignore[method-assign, assignment]
        threading.Thread(target=push, daemon=True).start()
        wanted = run._Wanted(
            run.RunnerChoice.INLINE,
            run.ViewOption.HISTORY,
            None,
            folder / "out",
            None,
            None,
            profile=False,
            progress=False,
        )
        run._answer(db, queries, folder / "q.sql", wanted)


def test_changes_are_written_once_over_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The command itself has nobody who pushes.
    monkeypatch.setattr(run, "_check_endless", lambda *_: None)
    ran(tmp_path, 1, 2)
    ran(tmp_path, 3, 4)
    for name, more in (("%511", 1), ("%512", 2)):
        lines = [path.read_text() for path in sorted((tmp_path / "out" / name).glob("*.jsonl"))]
        rows = [json.loads(line) for part in lines for line in part.splitlines()]
        assert [row["v"] - more for row in rows] == [1, 2, 3]
    shown = CliRunner().invoke(app, ["store", str(tmp_path / "store")]).stdout
    sinks = [line.split() for line in shown.partition("\nsink ")[2].splitlines()[1:3]]
    assert [(name, query, behind) for name, query, _, behind in sinks] == [
        ("output", "Q1", "0"),
        ("output", "Q2", "0"),
    ]


@pytest.mark.parametrize("format_", [Format.TABLE, Format.NULL])
def test_what_is_for_people_is_not_written_by_epoch(format_: Format, tmp_path: Path) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(UserError, match=r"not a format of files .*jsonl"):
        deliver_endless(db, (), tmp_path, format_, progress=False)
