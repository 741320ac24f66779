"""A run that goes on reads the input it has read before, grown at most; anything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import LanguageError, StoreError, UserError

FILE_ROWS = 10


class Interruption(BaseException):
    """What ends a run on purpose."""


def write(path: Path, number: int, rows: int = FILE_ROWS) -> None:
    """A file of the format its name tells, with rows that follow those of the file numbered one less."""
    first = number * FILE_ROWS
    ts = list(range(first, first + rows))
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.table({"ts": ts}), path)
        case ".csv":
            path.write_text("ts\n" + "".join(f"{value:04}\n" for value in ts))
        case ".json":
            path.write_text("".join(f'{{"ts": {value}}}\n' for value in ts))


def folder_of(tmp_path: Path, form: str) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in (1, 2, 3):
        write(folder / f"{number}.{form}", number)
    return folder


def run(tmp_path: Path, form: str = "parquet", *, after: int | None = None, text: str = "") -> list[int]:
    """Run over the folder, to the end or for some epochs; the timestamps that were read."""

    def progress(seen: Any) -> None:
        if seen.epoch == after:
            raise Interruption

    with hr.connect(runner="inline", storage=tmp_path / "store", epoch_rows=6) as db:
        text = text or f"CREATE STREAM s FROM {form} OPTIONS (path 'in') TIMESTAMP BY ts"
        (query,) = db.execute(f"{text}; SELECT ts FROM s", tmp_path)
        assert isinstance(query, hr.Query)
        db.run(progress)
        return [int(value) for value in query.history()["ts"].to_pylist()]


def interrupted(tmp_path: Path, form: str = "parquet", after: int = 3, text: str = "") -> None:
    """15 to 18 rows have been read: all of the first file, and a part of the second."""
    with pytest.raises(Interruption):
        run(tmp_path, form, after=after, text=text)


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_files_that_come_after_those_read_are_read_too(tmp_path: Path, form: str) -> None:
    folder = folder_of(tmp_path, form)
    interrupted(tmp_path, form)
    write(folder / f"4.{form}", 4)
    write(folder / f"3.{form}", 3, rows=7)
    assert run(tmp_path, form) == [*range(10, 37), *range(40, 50)]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_that_has_been_read_in_part_may_grow(tmp_path: Path, form: str) -> None:
    folder = folder_of(tmp_path, form)
    interrupted(tmp_path, form)
    write(folder / f"2.{form}", 2, rows=12)
    (folder / f"3.{form}").unlink()
    assert run(tmp_path, form) == list(range(10, 32))


@pytest.mark.parametrize(
    ("form", "change"),
    [
        ("parquet", lambda folder: write(folder / "0.parquet", 0)),
        ("parquet", lambda folder: (folder / "1.parquet").unlink()),
        ("parquet", lambda folder: (folder / "1.parquet").rename(folder / "9.parquet")),
        ("parquet", lambda folder: write(folder / "1.parquet", 1, rows=9)),
        ("csv", lambda folder: write(folder / "1.csv", 1, rows=11)),
        ("json", lambda folder: write(folder / "1.json", 1, rows=11)),
        ("json", lambda folder: write(folder / "2.json", 2, rows=1)),
        ("json", lambda folder: (folder / "1a.json").touch()),
    ],
)
def test_a_change_of_what_was_read_is_refused(
    tmp_path: Path, form: str, change: Callable[[Path], None]
) -> None:
    folder = folder_of(tmp_path, form)
    interrupted(tmp_path, form)
    change(folder)
    with pytest.raises(StoreError, match="input of s has changed: the files that have been read are not"):
        run(tmp_path, form)


def test_a_file_that_is_read_as_a_whole_may_not_grow(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "csv")
    text = "CREATE STREAM s FROM csv OPTIONS (path 'in', multiline true) TIMESTAMP BY ts"
    interrupted(tmp_path, text=text)
    write(folder / "2.csv", 2, rows=12)
    with pytest.raises(StoreError, match="input of s has changed"):
        run(tmp_path, text=text)


def test_an_input_that_has_grown_after_its_end_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "parquet")
    whole = run(tmp_path)
    write(folder / "4.parquet", 4)
    with pytest.raises(StoreError, match="has grown since it was read to its end, and its answer is final"):
        run(tmp_path)
    (folder / "4.parquet").unlink()
    assert run(tmp_path) == whole


NEXMARK = "CREATE STREAM s {columns} FROM nexmark OPTIONS ({options}, table 'bid') TIMESTAMP BY {by}"
CSV = "CREATE STREAM s (ts BIGINT) FROM csv OPTIONS (path 'in{options}) TIMESTAMP BY ts"


@pytest.mark.parametrize(
    ("form", "before", "now"),
    [
        ("csv", CSV.format(options="/1.csv'"), CSV.format(options="/2.csv'")),
        ("csv", CSV.format(options="'"), CSV.format(options="', 'null' 'x'")),
        (
            "csv",
            NEXMARK.format(columns="(ts TIMESTAMP)", options="events=50, seed=1", by="ts"),
            NEXMARK.format(columns="(ts TIMESTAMP)", options="events=50, seed=2", by="ts"),
        ),
    ],
)
def test_other_paths_options_and_seeds_are_other_inputs(
    tmp_path: Path, form: str, before: str, now: str
) -> None:
    folder_of(tmp_path, form)

    def start(text: str) -> None:
        with hr.connect(runner="inline", storage=tmp_path / "store", epoch_rows=6) as db:
            db.execute(f"{text}; SELECT ts FROM s", tmp_path)
            db.run()

    start(before)
    with pytest.raises(LanguageError, match="the store has another stream s: "):
        start(now)
    start(before)


def test_a_path_is_the_same_however_it_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "csv")
    interrupted(tmp_path, "csv")
    text = f"CREATE STREAM s FROM csv OPTIONS (path '{folder}/../in') TIMESTAMP BY ts"
    assert run(tmp_path, text=text) == list(range(10, 40))


def test_a_row_limit_may_change(tmp_path: Path) -> None:
    folder_of(tmp_path, "csv")
    text = "CREATE STREAM s FROM csv OPTIONS (path 'in', max_rows_per_epoch {}) TIMESTAMP BY ts"
    interrupted(tmp_path, text=text.format(5))
    assert run(tmp_path, text=text.format(3)) == list(range(10, 40))


def test_tables_are_told_apart_by_their_rows(tmp_path: Path) -> None:
    def start(table: pa.Table) -> None:
        with hr.connect(runner="inline", storage=tmp_path / "store") as db:
            db.stream("s", table, timestamp="ts")
            db.query("SELECT k FROM s")
            db.run()

    rows = pa.table({"k": ["a", None, "c"], "ts": [1, 2, 3]})
    start(rows)
    start(pa.concat_tables([rows.slice(0, 1), rows.slice(1)]))
    for other in (rows.slice(0, 2), rows.set_column(0, "k", pa.array(["a", "b", "c"]))):
        with pytest.raises(UserError, match="is for another stream s than the one given now: over table "):
            start(other)
