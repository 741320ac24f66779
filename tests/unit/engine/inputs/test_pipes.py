"""Standard input and named pipes: read to their end, or line by line as they come."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from waiting import wait_until

QUERY = "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s"
CSV = b"v,ts\n1,1\nx,2\n3,3\n"
JSON = b'{"v": 1, "ts": 1}\n{"v": "x", "ts": 2}\n{"v": 3, "ts": 3}\n'


def values(db: hr.Database) -> list[object]:
    return [one["v"] for one in db.queries["q"].changes().to_pylist()]


def given(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@contextmanager
def written_into(path: Path) -> Iterator[Callable[[bytes], None]]:
    """A named pipe, and what writes into it, until it is closed."""
    os.mkfifo(path)
    found: list[int] = []
    opening = threading.Thread(target=lambda: found.append(os.open(path, os.O_WRONLY)), daemon=True)
    opening.start()

    def write(data: bytes) -> None:
        opening.join(30)
        assert os.write(found[0], data) == len(data)

    yield write
    opening.join(30)
    os.close(found[0])


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("csv", CSV),
        ("json", JSON),
        ("json", b'[{"v": 1,\n "ts": 1}, {"v": "x", "ts": 2}, {"v": 3, "ts": 3}]'),
        ("csv OPTIONS (compression 'gzip', ", gzip.compress(CSV, mtime=0)),
    ],
)
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, form: str, data: bytes, name: str
) -> None:
    given(monkeypatch, data)
    options = form if "OPTIONS" in form else f"{form} OPTIONS ("
    with hr.connect(runner="inline") as db:
        for stream in ("s", "again"):
            db.execute(
                f"CREATE STREAM {stream} (v BIGINT, ts BIGINT) FROM {options}path '{name}') TIMESTAMP BY ts"
            )
        db.execute(QUERY)
        db.execute("CREATE QUERY n AS SELECT SUM(v) AS n FROM again [RANGE UNBOUNDED]")
        db.run()
        assert values(db) == [1, 3]
        assert db["n"].snapshot(at=3).to_pylist() == [{"n": 4}]
        letters = db.dead_letters().to_pylist()
        place = "standard input:" + ("2" if data.startswith((b"{", b"[")) else "3")
        assert {one["place"] for one in letters} == {place}


def test_columns_of_parquet_in_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": [1, 2], "ts": [1, 2]}), sink)
    given(monkeypatch, sink.getvalue())
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path '-') TIMESTAMP BY ts; {QUERY}")
        db.run()
        assert values(db) == [1, 2]


def test_a_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    os.mkfifo(path)
    writing = threading.Thread(target=lambda: path.write_bytes(gzip.compress(CSV)), daemon=True)
    writing.start()
    with hr.connect(runner="inline") as db:
        db.execute(f"CREATE STREAM s FROM csv OPTIONS (path '{path}') TIMESTAMP BY ts; {QUERY}")
        db.run()
        assert values(db) == ["1", "x", "3"]
    writing.join(30)


def test_lines_count_as_they_come_and_the_end_of_the_writer_is_the_end(tmp_path: Path) -> None:
    with hr.connect(runner="inline") as db:
        with written_into(tmp_path / "rows") as write:
            db.execute(
                "CREATE STREAM s (v BIGINT, ts BIGINT) "
                f"FROM csv OPTIONS (path '{tmp_path}/rows', follow true, skip 1, comment '#') "
                f"TIMESTAMP BY ts; {QUERY}"
            )
            db.execute("CREATE QUERY m CONSISTENCY STRONG AS SELECT v FROM s WHERE v = 4")
            db.start()
            write(b"# of\n# more\nts,v\n1,1\n2,2\n3,")
            wait_until(lambda: values(db), [1, 2])
            write(b"3\n")
            wait_until(lambda: values(db), [1, 2, 3])
            write(b"x,7\n4,4")
            wait_until(lambda: len(db.dead_letters()), 1)
            # The lines before it came in three pieces or in two.
            (letter,) = db.dead_letters().to_pylist()
            assert letter["row"] == "x,7"
            name, _, line = letter["place"].rpartition(":")
            assert int(name.removeprefix("rows, after line ").replace("rows", "0")) + int(line) == 7
        # A last line without its end counts.
        wait_until(lambda: values(db), [1, 2, 3, 4])
        wait_until(lambda: len(db.queries["m"].changes()), 1)


def test_json_that_is_spread_over_lines_is_not_a_matter_of_the_cut(tmp_path: Path) -> None:
    with hr.connect(runner="inline") as db, written_into(tmp_path / "rows") as write:
        db.execute(
            f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM json OPTIONS (path '{tmp_path}/rows', follow true) "
            f"TIMESTAMP BY ts DISORDER 10; {QUERY}"
        )
        db.start()
        write(b'{"v": 1, "ts": 1}\n')
        wait_until(lambda: values(db), [1])
        write(b'{\n"v": 2,\n"ts": 2}\n{"v": 3, "ts": 3}\n')
        wait_until(lambda: values(db), [1, 3])
        assert {one["reason"] for one in db.dead_letters().to_pylist()} == {
            "the JSON object is not closed",
            "the line is not one JSON object",
        }


def test_a_pipe_of_another_kind_is_named(tmp_path: Path) -> None:
    with hr.connect(runner="inline") as db, written_into(tmp_path / "rows") as write:
        db.execute(
            f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM csv OPTIONS (path '{tmp_path}/rows', follow true) "
            f"TIMESTAMP BY ts; {QUERY}"
        )
        db.start()
        write(b"w,ts\n1,1\n")
        wait_until(lambda: "there is no column v" in str(db.problems), True)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("FROM parquet OPTIONS (path '-', follow true)", "parquet cannot be read from a pipe line by line"),
        ("FROM csv OPTIONS (path '-', follow true, multiline true)", "is read line by line"),
        ("FROM csv OPTIONS (path '-', follow true, compression 'gzip')", "is read line by line"),
        ("FROM csv OPTIONS (path '-', follow true, encoding 'utf-16')", "lines of this encoding do not end"),
        ("FROM csv OPTIONS (path '-', follow true, encoding 'x')", "the option encoding is 'x'"),
        ("FROM csv OPTIONS (path '-', follow true, poll '1 second')", "the option poll is for folders"),
        ("FROM csv OPTIONS (path '-', follow true, delimter ';')", "no option delimter"),
    ],
)
def test_wrong_options_of_pipes(monkeypatch: pytest.MonkeyPatch, statement: str, message: str) -> None:
    given(monkeypatch, b"")
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match=message) as found:
        db.execute(f"CREATE STREAM s (v BIGINT, ts BIGINT) {statement} TIMESTAMP BY ts")
    assert found.value.hint


@pytest.mark.parametrize("options", ["path '-'", "path '-', follow true"])
def test_where_pipes_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: str) -> None:
    given(monkeypatch, CSV)
    text = f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM csv OPTIONS ({options}) TIMESTAMP BY ts"
    with (
        hr.connect(runner="inline", storage=tmp_path / "s") as db,
        pytest.raises(hr.UserError, match="a durable store may ask for them again"),
    ):
        db.execute(text)
    with hr.connect(runner="inline") as db, pytest.raises(hr.PolicyError, match="- may not be read"):
        db.execute(text, policy=hr.Policy.closed(formats=["csv"], folders=[tmp_path]))


def test_the_keyboard_is_refused_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, b"")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match="is the keyboard") as found:
        db.execute("CREATE STREAM s FROM csv OPTIONS (path '-') TIMESTAMP BY ts")
    assert found.value.hint


@pytest.mark.parametrize("follow", ["false", "true"])
def test_the_command_reads_what_is_sent_to_it(follow: str) -> None:
    text = (
        "CREATE STREAM s (v BIGINT, ts BIGINT) "
        f"FROM csv OPTIONS (path '-', follow {follow}) TIMESTAMP BY ts; "
        "SELECT SUM(v) AS total FROM s [RANGE UNBOUNDED] WHERE v IS NOT NULL"
    )
    command = [sys.executable, "-m", "headrace", "run", "-e", text, "--runner", "inline", "--format", "jsonl"]
    command += ["--as", "changes"]
    found = subprocess.run(command, input=CSV, capture_output=True, timeout=100, check=False)
    assert found.returncode == 0, found.stderr.decode()
    assert b'"total":4' in found.stdout.replace(b" ", b"")
