"""Streams from an object store by SQL: its account, what is kept of it, kills while it is followed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
import warm_processes
from headrace.errors import PolicyError
from headrace.runtime.journal.inspect import verify
from object_store import SECRET, ObjectStore, object_store
from waiting import wait_until

FILES = {"m": range(14), "a": range(14, 27)}
KILLERS = ("commit.drafted:2", "commit.linked:2")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ObjectStore]:
    monkeypatch.setenv("HEADRACE_SECRET_STORE", SECRET)
    monkeypatch.chdir(tmp_path)
    with object_store("inbox") as found:
        yield found


def rows(values: range) -> bytes:
    return ("v,ts\n" + "".join(f"{value},{value}\n" for value in values)).encode()


def with_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_the_secret_of_an_account_is_nowhere(store: ObjectStore, tmp_path: Path) -> None:
    store.put("day/a.csv", rows(range(3)))
    for _ in range(2):
        with hr.connect(runner="inline", storage="store") as db:
            db.execute(f"""
              CREATE STREAM s FROM csv OPTIONS (path 's3://inbox/day', {store.in_sql}) TIMESTAMP BY ts;
              CREATE QUERY q AS SELECT v FROM s""")
            db.run()
            assert db["q"].stream()["v"].to_pylist() == [0, 1, 2]
            assert "secret_key SECRET 'store'" in str(db.execute("SHOW CREATE STREAM s"))
    assert not with_secret(tmp_path / "store")
    with hr.connect(runner="inline", storage="other") as db:
        written = store.in_sql.replace("SECRET 'store'", f"'{SECRET}'")
        db.execute(f"CREATE RELATION r FROM csv OPTIONS (path 's3://inbox/day', {written})")
        db.execute("CREATE STREAM p (ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY q AS SELECT r.v FROM p, r")
        db.start()
        db.stop()
        assert "is not kept" in str(db.execute("SHOW CREATE RELATION r"))
    assert not with_secret(tmp_path / "other")


def test_sql_of_others_reaches_no_object_store(store: ObjectStore) -> None:
    policy = hr.Policy.closed(folders=["."], formats=["csv"])
    with hr.connect(runner="inline") as db:
        for options, message in {
            "": r"s3://inbox/x\.csv may not be read",
            ", secret_key 'x'": r"s3://inbox/x\.csv may not be read",
            ", follow true": r"s3://inbox/x\.csv may not be read",
            f", {store.in_sql}": "the secret of the option secret_key may not be used",
        }.items():
            source = f"csv OPTIONS (path 's3://inbox/x.csv'{options})"
            with pytest.raises(PolicyError, match=message):
                db.execute(f"CREATE STREAM s (ts BIGINT) FROM {source} TIMESTAMP BY ts", policy=policy)


def work(endpoint: str, storage: str) -> None:
    """Put what is missing into the bucket, and read all of it."""
    store = ObjectStore(endpoint, "inbox")
    with hr.connect(runner="inline", storage=storage, epoch_rows=7) as db:
        db.execute(f"""
          CREATE STREAM s (v BIGINT, ts BIGINT) FROM csv
            OPTIONS (path 's3://inbox/{storage}', follow true, ready 'renamed', poll '20 ms', {store.in_sql})
            TIMESTAMP BY ts DISORDER 100;
          CREATE QUERY q AS SELECT v FROM s""")
        db.start()
        read = 0
        for name, values in FILES.items():
            noted = Path(f"{storage}.{name}")
            if not noted.exists():
                store.put(f"{storage}/{name}.csv", rows(values))
                noted.touch()
            read += len(values)
            wait_until(lambda: sum(stream.rows for stream in db.status.streams), read)
        db.heartbeat("s", 200)
        db.stop()


@pytest.mark.kills
def test_each_row_of_a_followed_bucket_is_read_once_whatever_kills_the_process(store: ObjectStore) -> None:
    here = Path(__file__)
    paths = [str(here.parent), str(here.parents[3]), os.environ.get("PYTHONPATH", "")]
    code = f"import {here.stem} as t; t.work({store.endpoint!r}, 'killed')"
    for killer in (*KILLERS, ""):
        done = warm_processes.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": ":".join(paths), "HEADRACE_FAULT": killer},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == (-signal.SIGKILL if killer else 0), done.stderr
    assert verify(Path("killed")).problems == ()
    assert hr.open("killed")["q"].stream()["v"].to_pylist() == [*range(27)]
