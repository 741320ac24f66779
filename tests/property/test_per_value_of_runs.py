"""Runs over streams whose values have bounds of their own: the same rows are late however they are cut."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.reference.lateness import late_rows
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.sources.rows import rows as source_rows
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks import values
from headrace.runtime.tasks.inline import InlineRunner
from how_many import examples

SCHEMA = pa.schema([("n", pa.int64()), ("device", pa.string()), ("ts", pa.int64())])
DEVICES = ("a", "b", None)
Row = tuple[str | None, int]

ROWS = st.lists(st.tuples(st.sampled_from(DEVICES), st.integers(0, 20)), min_size=1, max_size=20)
CUTS = st.tuples(st.sampled_from((100, 5, 1)), st.integers(1, 3))
RECENT = st.sampled_from((0, 2, 100))
"""How many values a process remembers; the others are read again."""


@pytest.fixture(scope="module", autouse=True)
def small_batches() -> Iterator[None]:
    """A split comes in several batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_rows, "BATCH_ROWS", 3)
        yield


def run(
    rows: Sequence[tuple[int, Row]], clauses: str, cut: tuple[int, int] = (100, 1), recent: int = 100
) -> tuple[list[int], list[dict[str, object]]]:
    """The numbers of the late rows, and the final answer."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "RECENT", values.Recent(recent))
        path = Path(folder, "rows.parquet")
        table = [{"n": number, "device": device, "ts": ts} for number, (device, ts) in rows]
        pq.write_table(pa.Table.from_pylist(table, SCHEMA), path, row_group_size=4)
        chosen = Settings(None, RunSettings(cut[0], buckets=min(cut[1], 2)), None)
        with hr.Database(lambda: InlineRunner(cut[1]), chosen, Policy.open()) as db:
            db.execute(f"CREATE STREAM s FROM parquet OPTIONS (path '{path}') TIMESTAMP BY ts {clauses}")
            # Neither the device nor its time is among the columns that the query reads.
            db.query("SELECT COUNT(*) AS rows, SUM(n) AS total FROM s [RANGE 4]", name="q")
            db.run()
            letters = [json.loads(row)["n"] for row in db.dead_letters().column("row").to_pylist()]
            return sorted(letters), db["q"].history().to_pylist()


def by_device(rows: list[Row], disorder: int) -> list[int]:
    """The rows that are late by those of their device."""
    found = []
    for device in DEVICES:
        places = [place for place, (name, _) in enumerate(rows) if name == device]
        found += [places[late] for late in late_rows([rows[place][1] for place in places], disorder)]
    return sorted(found)


@examples(7, 20)
@given(ROWS, CUTS, st.integers(-1, 4), RECENT)
def test_the_same_rows_are_late_however_the_input_is_cut(
    rows: list[Row], cut: tuple[int, int], disorder: int, recent: int
) -> None:
    """Where all devices are waited for, by those of the same device alone."""
    said = "STRICT" if disorder < 0 else f"DISORDER {disorder}"
    # A file is read without waiting for anything, so that no time counts.
    late, answer = run(
        list(enumerate(rows)), f"{said} PER device WAIT 1 SECOND IDLE AFTER 1 SECOND", cut, recent
    )
    assert late == by_device(rows, disorder)
    taken = [(number, row) for number, row in enumerate(rows) if number not in late]
    assert answer == run(taken, "DISORDER 1000")[1]


@examples(7, 20)
@given(ROWS, CUTS, st.integers(0, 4), st.sampled_from(("IDLE AFTER 1 SECOND", "OF ('b', 'a')")), RECENT)
def test_the_answer_is_of_the_rows_that_were_taken(
    rows: list[Row], cut: tuple[int, int], disorder: int, clause: str, recent: int
) -> None:
    """Those late by their device are late in any case, and others below what the stream has come to."""
    late, answer = run(list(enumerate(rows)), f"DISORDER {disorder} PER device {clause}", cut, recent)
    assert set(late) >= set(by_device(rows, disorder))
    taken = [(number, row) for number, row in enumerate(rows) if number not in late]
    assert answer == run(taken, "DISORDER 1000")[1]
    if clause.startswith("OF") and all(device is not None for device, _ in rows):
        assert late == by_device(rows, disorder)


def test_a_file_sorted_by_device() -> None:
    """With the list every row is taken; without it, few of the devices that come later."""
    rows = [(number, (device, number % 10)) for number, device in enumerate("a" * 10 + "b" * 10)]
    assert run(rows, "PER device OF ('a', 'b')", (2, 3))[0] == []
    late, _ = run(rows, "PER device IDLE AFTER 1 SECOND", (2, 3))
    assert 5 < len(late) < 10


def files(rows: Sequence[Row], other: Sequence[int], recent: int) -> tuple[int, list[bytes]]:
    """How many rows are late, and what was written of the values in each epoch.

    Args:
        rows: of a stream with bounds per device.
        other: the timestamps of one beside it, whose late rows are known in a second pass.
        recent: how many values are remembered.
    """
    found = []

    def write(self: MemoryStore, name: str, parts: Sequence[pa.Buffer]) -> None:
        if "-l0-" in name:
            found.append(b"".join(map(bytes, parts)))
        written(self, name, parts)

    written = MemoryStore.write
    with tempfile.TemporaryDirectory() as folder, chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "RECENT", values.Recent(recent))
        patch.setattr(MemoryStore, "write", write)
        chosen = Settings(None, RunSettings(3, buckets=2), None)
        with hr.Database(lambda: InlineRunner(2), chosen, Policy.open()) as db:
            for name, own in (("s", rows), ("r", [(None, ts) for ts in other])):
                # Late rows are written with the names of their files.
                path = Path(f"{name}.parquet")
                table = [{"n": 1, "device": device, "ts": ts} for device, ts in own]
                pq.write_table(pa.Table.from_pylist(table, SCHEMA), path)
                clause = "PER device IDLE AFTER 1 SECOND" if name == "s" else ""
                options = f"OPTIONS (path '{path}') TIMESTAMP BY ts DISORDER 4 {clause}"
                db.execute(f"CREATE STREAM {name} FROM parquet {options}")
            db.query("SELECT n FROM s UNION ALL SELECT n FROM r", name="q")
            return db.run().late, found


def test_what_is_read_again_is_what_is_remembered() -> None:
    """The same bytes follow, also where an epoch needs a second pass."""
    random = np.random.default_rng(1)
    rows = [(f"device {number}", place) for place, number in enumerate(random.integers(0, 9, 60).tolist())]
    other = (np.arange(60) + random.integers(0, 9, 60)).tolist()
    late, remembered = files(rows, other, 100)
    assert files(rows, other, 0) == (late, remembered)
    assert late > 0
    # Most epochs write less than all of the values.
    sizes = list(map(len, remembered))
    assert len(sizes) > 20
    assert sum(size < max(sizes) for size in sizes) > len(sizes) / 2


def commit_size(devices: int, folder: Path) -> int:
    """Of the last record of a run over some devices, in bytes."""
    count = 20_000
    names = pa.array([f"device {number % devices}" for number in range(count)])
    columns = {"n": pa.array(range(count)), "device": names, "ts": pa.array(range(count))}
    folder.mkdir()
    pq.write_table(pa.table(columns, SCHEMA), folder / "rows.parquet")
    chosen = Settings(folder / "store", RunSettings(5_000), None)
    with hr.Database(lambda: InlineRunner(2), chosen, Policy.open()) as db:
        db.execute(
            f"CREATE STREAM s FROM parquet OPTIONS (path '{folder}/rows.parquet') TIMESTAMP BY ts "
            f"DISORDER {devices} PER device IDLE AFTER 1 SECOND"
        )
        db.query("SELECT COUNT(*) AS rows FROM s", name="q")
        assert db.run().late == 0
    return max((folder / "store" / "commits").iterdir()).stat().st_size


def test_commits_do_not_grow_with_the_number_of_values(tmp_path: Path) -> None:
    assert abs(commit_size(10_000, tmp_path / "many") - commit_size(10, tmp_path / "few")) < 100
