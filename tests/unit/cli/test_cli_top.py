"""`headrace top`: what it shows of a store at rest and of one with a run at work on it."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import headrace as hr
import warm_processes
from headrace.cli import app
from headrace.cli import top as command
from headrace.cli.glances import OperatorOrder, StatusGlance, picture
from headrace.cli.seen import Seen, seen_in_status
from headrace.cli.top import StoreWatcher
from headrace.runtime.journal.inspect import contents, glance
from headrace.runtime.journal.look import left, mark

TEXT = """
    CREATE STREAM bid (ts BIGINT, item STRING) FROM push TIMESTAMP BY ts;
    CREATE QUERY counts AS SELECT item, COUNT(*) AS n FROM bid [RANGE 10] GROUP BY item;
    CREATE QUERY early CONSISTENCY MIDDLE AS SELECT COUNT(*) AS n FROM bid [RANGE 10];
    CREATE QUERY still AS SELECT item FROM bid;
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s"


@pytest.fixture
def db(store: Path) -> Iterator[hr.Database]:
    with hr.connect(runner="inline", storage=store) as db:
        db.execute(TEXT)
        db.start()
        db.execute("ALTER QUERY still PAUSE")
        db.push("bid", [{"ts": 1, "item": "pen"}, {"ts": 2, "item": "cup"}])
        db.push("bid", [{"ts": 1, "item": "late"}, {"ts": 5, "item": "pen"}])
        yield db


def top(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["top", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def words(text: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]


def printed(
    before: StatusGlance | None,
    now: StatusGlance,
    most: int = 9,
    order: OperatorOrder = OperatorOrder.SECONDS,
) -> str:
    console = Console(width=160, file=io.StringIO(), record=True)
    console.print(picture(before, now, most, order))
    return console.export_text()


def test_a_process_says_what_its_operators_do(db: hr.Database, store: Path) -> None:
    code, shown, _ = top(store, "--once", "--by", "rows")
    assert code == 0
    lines = words(shown)
    assert f"{store}: running, 3 epochs, the last at" in shown
    (bid,) = [line for line in lines if line[0] == "bid"]
    assert (bid[1], bid[-4:]) == ("3", ["1", "0", "5", "0"])
    (counts,) = [line for line in lines if line[0] == "counts"]
    assert counts[-2:] == ["5", "bid"]
    (early,) = [line for line in lines if line[0] == "early"]
    assert early[-3:] == ["5", "6", "bid"]
    assert ["still", "0", "paused"] in lines
    known = {f"#{one.number} {one.text}": one for one in db.status.operators}
    shown_operators = {line[0]: line[1:] for line in lines if line[0] in known}
    assert shown_operators.keys() == known.keys()
    for title, (*_, seconds, kept, _, heartbeat) in shown_operators.items():
        assert (seconds, kept) == (f"{known[title].seconds:,.3f}", f"{known[title].state_rows:,}")
        assert heartbeat == "5"


def test_the_state_beside_its_limit_and_the_windows_for_it_are_shown(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "s", memory_limit="100 MB", buckets=2) as db:
        db.execute("""
            CREATE STREAM bid (ts BIGINT, item BIGINT) FROM push TIMESTAMP BY ts;
            CREATE QUERY kinds AS SELECT DISTINCT item FROM bid WINDOW(RANGE MIN 100, MAX 1000)
        """)
        db.start()
        for begin in range(0, 3000, 100):
            db.push("bid", [{"ts": ts, "item": ts} for ts in range(begin, begin + 100)])
        assert db.status.managed is not None
        db.execute(f"SET memory_limit = {round(db.status.managed.expected)}")
        managed = db.status.managed
        (window,) = managed.windows
        output = io.StringIO()
        seen = seen_in_status("here", {**db.status.to_dict(), "problems": {}})
        found = picture(None, StatusGlance(seen, 0.0), 12, OperatorOrder.SECONDS)
        Console(file=output, width=250).print(found)
    assert managed.text in output.getvalue()
    row = next(line for line in output.getvalue().splitlines() if "by the manager" in line)
    size = window.window.size
    assert row.split()[:5] == ["bid", "100", "1000", str(size), f"{(size - 100) / 900:.0%}"]
    assert window.window.why in row


def test_rates_are_those_between_two_looks(db: hr.Database, store: Path) -> None:
    watcher = StoreWatcher(store)
    before = StatusGlance(watcher.look(), 10.0)
    db.push("bid", [{"ts": ts, "item": "pen"} for ts in range(6, 46)])
    now = StatusGlance(_looked_after(watcher, 4), 14.0)
    text = printed(before, now, 2, OperatorOrder.ROWS)
    assert "43 rows, 10/s" in text
    assert ["bid", "43", "10", "1", "0", "45", "0"] in words(text)
    assert "and 1 more" in text
    rows_in = {one.title: one.work.rows_in for one in now.seen.operators if one.work is not None}
    operators = [line for line in words(text) if line[0] in rows_in]
    assert [rows_in[line[0]] for line in operators] == sorted(rows_in.values(), reverse=True)[:2]
    assert operators[0][1] == "10"


def _looked_after(watcher: StoreWatcher, epochs: int) -> Seen:
    """What is seen as soon as a process says that it has committed so many epochs."""
    deadline = time.monotonic() + 30
    while f"{epochs} epochs" not in (seen := watcher.look()).title:
        assert time.monotonic() < deadline, seen
        time.sleep(0.01)
    return seen


def test_without_a_process_the_last_commits_are_shown(
    db: hr.Database, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_PATIENCE", 0.05)
    mark(store)
    db.close()
    assert left(store) is None
    code, shown, _ = top(store)
    assert (code, "no process answers" in shown) == (0, True)
    assert ["bid", "3", "1", "0", "5", "0"] in words(shown)
    assert ["still", "0", "5", "paused"] not in words(shown)
    assert any(line[0] == "still" and line[-1] == "paused" for line in words(shown))
    assert any("COUNT(*) AS n" in line[0] for line in words(shown))
    whole, seen = contents(store), glance(store)
    assert (seen.epochs, dict(seen.streams), seen.state) == (whole.epochs, dict(whole.streams), whole.state)
    assert {part.identity for part in seen.state} <= seen.description.operators.keys()


def test_nothing_is_left_where_nobody_watches(db: hr.Database, store: Path) -> None:
    assert left(store) is None
    top(store, "--once")
    assert left(store) is not None
    db.close()
    top(store, "--once")
    assert {path.name for path in store.iterdir()}.isdisjoint({"look.json", "watched"})


def test_what_a_killed_process_has_left_is_not_taken_for_one_that_runs(
    store: Path, db: hr.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    top(store, "--once")
    monkeypatch.setattr(command, "_PATIENCE", 0.05)
    found: Any = left(store)
    db.close()
    (store / "look.json").write_text('{"running": true}')
    _, shown, _ = top(store, "--once")
    assert found is not None
    assert "no process answers" in shown


def test_it_is_live_in_a_terminal(db: hr.Database, store: Path) -> None:
    ours, theirs = pty.openpty()
    called = [sys.executable, "-m", "headrace", "top", str(store), "--interval", "0.1"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "40"}
    with warm_processes.Popen(called, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        try:
            _read_until(ours, "counts")
            db.push("bid", [{"ts": 77_007, "item": "pen"}])
            shown = _read_until(ours, "77007")
            assert "rows in/s" in shown
            process.send_signal(signal.SIGINT)
            _read_until(ours, "\x1b[?1049l")
            assert process.wait(60) == 0
        finally:
            process.kill()
            os.close(ours)


def _read_until(terminal: int, wanted: str) -> str:
    """What comes of a terminal until something has."""
    found, deadline = "", time.monotonic() + 60
    while wanted not in found:
        assert time.monotonic() < deadline, found
        if select.select([terminal], [], [], 1.0)[0]:
            found += os.read(terminal, 65_536).decode(errors="replace")
    return found


@pytest.mark.parametrize(
    ("arguments", "message"), [(["/nowhere"], "nowhere"), ([".", "--interval", "0"], "above 0")]
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, said = top(*arguments)
    assert code == 2
    assert message in said


def test_the_last_instant_of_a_window_is_said_by_its_end(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "hours") as db:
        db.execute(
            "CREATE STREAM s (ts TIMESTAMP) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY hourly AS SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR SLIDE 1 HOUR]"
        )
        db.start()
        db.push("s", [{"ts": "2024-05-01T09:30:00Z"}, {"ts": "2024-05-01T11:30:00Z"}])
        said = "just before 2024-05-01T12:00:00Z"
        assert f"final below {said}" in db["hourly"].described()[2]
        _, shown, _ = top(tmp_path / "hours", "--once")
        assert any(line[0] == "hourly" and said in line for line in words(shown))
        code, shown, _ = top(tmp_path / "hours", "--once", "--tail", "hourly", "--rows", 1)
        newest = ["1", "just before 2024-05-01T10:00:00Z", "just before 2024-05-01T11:00:00Z"]
        assert (code, words(shown)[-5:]) == (
            0,
            [
                ["the newest rows of hourly"],
                ["n", "valid_from", "valid_to"],
                words(shown)[-3],
                newest,
                ["(1 row)"],
            ],
        )
        code, _, errors = top(tmp_path / "hours", "--once", "--tail", "nothing")
        assert (code, "there is no query nothing" in errors) == (2, True)
