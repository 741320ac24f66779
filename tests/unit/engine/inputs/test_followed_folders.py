"""Streams from folders whose files keep coming, by SQL, also where the process is killed."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
import warm_processes
from headrace.errors import UserError
from headrace.runtime.journal.inspect import verify
from headrace.runtime.store import crash_points
from waiting import wait_for

FOLLOWED = "follow true, ready 'renamed', poll '5 ms'"
STREAM = f"""
CREATE STREAM s (v BIGINT, ts BIGINT) FROM csv OPTIONS (path 'in', {FOLLOWED}) TIMESTAMP BY ts DISORDER 100;
CREATE QUERY q AS SELECT v FROM s;
CREATE QUERY total AS SELECT COUNT(*) AS n, SUM(v) AS sum FROM s [RANGE UNBOUNDED];
"""
FILES = {"m": range(10), "c": range(10, 13), "z": range(13, 20), "a": range(20, 27)}


def put(name: str, rows: object, folder: str = "in") -> None:
    """Write a file elsewhere, and give it its name when it is complete."""
    lines = "".join(f"{value},{value}\n" for value in rows)  # type: ignore[attr-defined]
    Path(f"{name}.part").write_text(f"v,ts\n{lines}")
    os.rename(f"{name}.part", f"{folder}/{name}")


def rows_of(db: hr.Database) -> int:
    return sum(stream.rows + stream.rejected for stream in db.status.streams)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    return tmp_path


def test_files_are_read_as_they_come(folder: Path) -> None:
    with hr.connect(runner="inline", storage="store") as db:
        db.execute(STREAM)
        assert db.endless == ("s",)
        assert db.pushed == ()
        db.start()
        put("b.csv", [1, 2])
        wait_for(lambda: rows_of(db) == 2)
        put("a.csv", [3])
        put("c.csv", ["wrong", 4])
        wait_for(lambda: rows_of(db) == 5)
        db.heartbeat("s", 200)
        assert db["q"].stream().column("v").to_pylist() == [1, 2, 3, 4]
        assert db.dead_letters().column("place").to_pylist() == [f"{folder}/in/c.csv:2"]
        with pytest.raises(UserError, match="no query reads a stream s of pushed rows"):
            db.push("s", {"v": 1, "ts": 1})
        db.stop()
    with hr.connect(runner="inline", storage="store") as db:
        # What is followed is in the store's catalog, with the same path from any folder.
        db.start()
        assert f"path '{folder}/in', follow 'true'" in str(db.execute("SHOW CREATE STREAM s"))
        put("0.csv", [200])  # its name sorts before those that were read, here and by another path
        wait_for(lambda: rows_of(db) == 6)
        db.stop()


def test_every_format_and_computed_columns_are_followed(folder: Path) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(f"""
          CREATE STREAM p (v BIGINT, at BIGINT, ts AS TIMESTAMP_SECONDS(at)) FROM parquet
            OPTIONS (path 'in/*.parquet', {FOLLOWED}) TIMESTAMP BY ts;
          CREATE STREAM j (v BIGINT, ts BIGINT) FROM json
            OPTIONS (path 'in/*.json', {FOLLOWED}) TIMESTAMP BY ts;
          CREATE QUERY ps AS SELECT v, ts FROM p; CREATE QUERY js AS SELECT v FROM j""")
        db.start()
        pq.write_table(pa.table({"v": [7], "at": [60]}), "p.part")
        os.rename("p.part", "in/a.parquet")
        Path("j.part").write_text('{"v": 8, "ts": 1}\n')
        os.rename("j.part", "in/a.json")
        wait_for(lambda: rows_of(db) == 2)
        db.heartbeat("j", 2)
        assert db["js"].stream().column("v").to_pylist() == [8]
        db.heartbeat("p", datetime(2000, 1, 1, tzinfo=UTC))
        assert [str(row["ts"])[14:19] for row in db["ps"].stream().to_pylist()] == ["01:00"]
        db.stop()


def test_it_does_not_run_to_an_end(folder: Path) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(STREAM)
        with pytest.raises(UserError, match="the stream s never ends"):
            db.run()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s FROM csv OPTIONS (path 'in', follow true)", "a folder that is followed may be empty at first"),
        ("s (ts BIGINT) FROM csv OPTIONS (path 'in', poll '1 s')", "the option poll is for folders that are"),
        ("s (ts BIGINT) FROM csv OPTIONS (path 'in', follow 1)", "the option follow is '1'"),
        ("s (ts BIGINT) FROM csv OPTIONS (path 'i', follow true)", "i: no such file or folder"),
    ],
)
def test_what_is_refused(folder: Path, text: str, message: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(UserError, match=message) as refused:
        db.execute(f"CREATE STREAM {text} TIMESTAMP BY ts")
    assert refused.value.hint is not None
    assert refused.value.position is not None


def work(killer: str = "") -> None:
    """Put what is missing into the folder and read it to its end, unless a fault point kills the process."""
    if killer:
        os.environ["HEADRACE_FAULT"] = killer
        importlib.reload(crash_points)
    with hr.connect(runner="inline", storage="store", epoch_rows=4) as db:
        db.execute(STREAM)
        db.start()
        read = 0
        for name, rows in FILES.items():
            if not Path(f"in/{name}.csv").exists():
                put(f"{name}.csv", rows)
            read += len(rows)
            wait_for(lambda goal=read: rows_of(db) >= goal)  # type: ignore[misc]
        db.heartbeat("s", 200)
        db.stop()


def killed_often() -> None:
    """Attempts in processes forked from this one, each killed at another point, until one ends by itself."""
    killed = 0
    for number, point in [(number, point) for number in (1, 2) for point in crash_points.POINTS[:9]]:
        child = os.fork()
        if child == 0:
            try:
                work(f"{point}:{number}")
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(3)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        killed += 1
    print(killed)


@pytest.mark.kills
def test_each_row_is_read_once_by_a_process_that_is_killed_again_and_again(folder: Path) -> None:
    """Wherever the process dies, in parts of files too, each row counts once, in the order of discovery."""
    (folder / "first/in").mkdir(parents=True)
    code = "import os, {} as t; os.chdir('first'); t.work(); os.chdir('..'); t.killed_often()"
    here = Path(__file__)
    done = warm_processes.run(
        [sys.executable, "-c", code.format(here.stem)],
        env=os.environ | {"PYTHONPATH": f"{here.parent}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 6
    assert verify(folder / "store").problems == ()
    found = []
    for storage in ("first/store", "store"):
        stored = hr.open(folder / storage)
        found.append((stored["q"].stream(), stored["total"].history()))
    assert found[0][0].column("v").to_pylist() == [*range(27)]
    assert found[0] == found[1]
