"""Files by epoch: complete, written once, and only into a folder that is the delivery's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from headrace import Database, FileSink, Query, UserError, connect
from headrace.errors import DeliveryError
from headrace.runtime.delivery.labels import unpacked
from headrace.runtime.store.sealed import seal, unseal

ROWS = pa.table({"ts": [1, 2, 30, 40, 50, 60], "v": [10, 20, 30, 40, 50, 60]})


def totals(db: Database, where: str = "TRUE") -> Query:
    db.stream("reading", ROWS, timestamp="ts")
    return db.query(f"SELECT SUM(v) AS total FROM reading [RANGE 5] WHERE {where}", name="totals")


def delivered(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]


def test_json_lines_hold_the_changes_epoch_by_epoch(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with connect(runner="inline", epoch_rows=2) as db:
        query = totals(db)
        query.deliver(FileSink(out))
        db.run()
        expected = query.changes().to_pylist()
    assert delivered(out) == expected
    epochs = sorted({row["epoch"] for row in expected})
    assert epochs == [1, 2, 3]
    assert [path.name for path in sorted(out.glob("*.jsonl"))] == [
        f"epoch-{epoch:012d}.jsonl" for epoch in epochs
    ]
    for path in out.glob("*.jsonl"):
        assert {json.loads(line)["epoch"] for line in path.read_text().splitlines()} == {int(path.stem[6:])}
    label = json.loads((out / "_headrace.json").read_text())
    assert (label["query"], label["epoch"], label["heartbeat"]) == ("totals", 3, "infinity")


def test_a_folder_of_parquet_is_a_data_set(tmp_path: Path) -> None:
    with connect(runner="inline", epoch_rows=2) as db:
        query = totals(db)
        query.deliver(FileSink(tmp_path / "out", "parquet"))
        db.run()
        expected = query.changes()
    assert pyarrow.dataset.dataset(tmp_path / "out").to_table().sort_by("valid_from").equals(expected)
    assert pq.read_schema(next((tmp_path / "out").glob("*.parquet"))).equals(expected.schema)


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow"])
def test_sketches_that_are_written_are_read_back(tmp_path: Path, form: str) -> None:
    rows = pa.table({"ts": list(range(60)), "k": ["a", "b", "a"] * 20, "v": [at % 40 for at in range(60)]})
    with connect(runner="inline") as db:
        db.stream("reading", rows, timestamp="ts")
        db.execute(f"""CREATE QUERY part AS SELECT k, window_end, THETA_SKETCH_AGG(v, 4) AS s
            FROM TUMBLE(TABLE reading, DESCRIPTOR(ts), 15) GROUP BY k, window_end;
            CREATE SINK kept FOR part TO {form} OPTIONS (path '{tmp_path / "out"}')""")
        whole = db.query(
            "SELECT k, THETA_SKETCH_ESTIMATE(THETA_SKETCH_AGG(v, 4)) AS n FROM reading GROUP BY k",
            name="whole",
        )
        db.run()
        expected = whole.latest().to_pylist()
    with connect(runner="inline") as db:
        db.execute(f"""CREATE STREAM part (k STRING, window_end BIGINT, s BINARY) FROM {form}
            OPTIONS (path '{tmp_path / "out"}/*') TIMESTAMP BY window_end""")
        joined = db.query("SELECT k, THETA_SKETCH_ESTIMATE(THETA_UNION_AGG(s, 4)) AS n FROM part GROUP BY k")
        db.run()
        assert db.dead_letters().num_rows == 0
        assert joined.latest().to_pylist() == expected


def test_an_epoch_without_changes_has_no_file_and_still_moves_the_label(tmp_path: Path) -> None:
    with connect(runner="inline", epoch_rows=1) as db:
        totals(db, "v = 10").deliver(FileSink(tmp_path / "out"))
        epochs = db.run().epochs
    assert epochs == 6
    assert len(list((tmp_path / "out").glob("*.jsonl"))) == 1
    assert json.loads((tmp_path / "out/_headrace.json").read_text())["epoch"] == epochs


@pytest.mark.parametrize(
    "lost", ["position", "position and label", "position, label and a half written file"]
)
def test_after_a_crash_an_epoch_finds_its_file(tmp_path: Path, lost: str) -> None:
    """The process may die between the file, the label and the position: each state is one it leaves."""
    out, position = tmp_path / "out", tmp_path / "store/sinks/totals%231-files.json"
    before: dict[Path, bytes] = {}
    for _ in range(2):
        with connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
            query = totals(db)
            query.deliver(FileSink(out))
            db.run()
            expected = query.changes().to_pylist()
        files = {path: path.stat().st_mtime_ns for path in out.glob("*.jsonl")}
        if not before:
            before = {path: path.read_bytes() for path in out.iterdir()}
            times = files
            back = unseal(position.read_bytes()) | {"epoch": 1, "since": 2}
            position.write_bytes(seal(back))
            if "label" in lost:
                first = (out / "epoch-000000000001.jsonl").stat().st_size
                label = unpacked((out / "_headrace.json").read_bytes())
                label = replace(label, epoch=1, heartbeat="2", files=1, size=first)
                (out / "_headrace.json").write_bytes(label.packed())
            if "half" in lost:
                mark = back["delivery"]
                (out / "epoch-000000000003.jsonl").rename(out / f".epoch-000000000003.jsonl.{mark}.part")
                (out / f"..epoch-000000000003.jsonl.{mark}.part.4711.part").write_text("half")
                (out / f"._headrace.json.{mark}.part").write_text("half")
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    assert delivered(out) == expected
    if "half" not in lost:
        assert files == times, "no file was written again"


def test_a_run_without_a_store_refuses_the_folder_of_another_one(tmp_path: Path) -> None:
    for turn in range(2):
        with connect(runner="inline") as db:
            query = totals(db)
            query.deliver(FileSink(tmp_path / "out"))
            if turn == 0:
                db.run()
                continue
            with pytest.raises(DeliveryError, match="holds jsonl files of another run, of totals"):
                db.run()


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with connect(runner="inline") as db:
        totals(db).deliver(FileSink(tmp_path))
        with pytest.raises(DeliveryError, match="is not empty"):
            db.run()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("label", [None, "another run's", "not JSON"])
def test_nothing_is_removed_from_a_folder_that_is_refused(tmp_path: Path, label: str | None) -> None:
    """Downloads and editors have hidden files that end in `.part`, too."""
    out = tmp_path / "out"
    if label == "another run's":
        with connect(runner="inline") as db:
            totals(db).deliver(FileSink(out))
            db.run()
    out.mkdir(exist_ok=True)
    if label == "not JSON":
        (out / "_headrace.json").write_text(label)
    (out / ".download.part").write_text("precious")
    (out / ".epoch-000000000001.jsonl.part").write_text("precious")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with connect(runner="inline") as db:
        totals(db).deliver(FileSink(out))
        with pytest.raises(DeliveryError):
            db.run()
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_only_what_the_delivery_has_left_is_removed_from_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):
        with connect(runner="inline", storage=tmp_path / "store") as db:
            totals(db).deliver(FileSink(out))
            db.run()
        mark = unpacked((out / "_headrace.json").read_bytes()).delivery
        (out / f".epoch-000000000009.jsonl.{mark}.part").write_text("half")
        (out / ".download.part").write_text("precious")
    with connect(runner="inline", storage=tmp_path / "store") as db:
        totals(db).deliver(FileSink(out))
        db.run()
    assert [path.name for path in out.glob(".*")] == [".download.part"]


@pytest.mark.parametrize("what", ["deleted", "cut", "grown"])
def test_a_file_that_was_deleted_or_cut_is_missed(tmp_path: Path, what: str) -> None:
    out, storage = tmp_path / "out", tmp_path / "store"
    for turn in range(3):
        with connect(runner="inline", storage=storage, epoch_rows=2) as db:
            query = totals(db)
            query.deliver(FileSink(out))
            path = out / "epoch-000000000002.jsonl"
            if turn != 1:
                db.run()
                whole = path.read_bytes()
                continue
            path.write_bytes({"deleted": b"", "cut": whole[:-1], "grown": whole + b"\n"}[what])
            if what == "deleted":
                path.unlink()
            with pytest.raises(DeliveryError, match=r"has changed: up to epoch 3 it had 3 files with"):
                db.run()
            path.write_bytes(whole)
    with connect(runner="inline", storage=storage, epoch_rows=2) as db:
        query = totals(db)
        db.run()
        assert delivered(out) == query.changes().to_pylist(), "put back, it is whole again"


def test_no_bit_of_a_label_changes_unnoticed(tmp_path: Path) -> None:
    """Another epoch in it would make the sink leave epochs out."""
    with connect(runner="inline") as db:
        totals(db).deliver(FileSink(tmp_path / "out"))
        db.run()
    data = (tmp_path / "out/_headrace.json").read_bytes()
    number = int.from_bytes(data, "big")
    for bit in range(8 * len(data)):
        with pytest.raises(ValueError):
            unpacked((number ^ (1 << bit)).to_bytes(len(data), "big"))


def test_a_damaged_label_is_refused(tmp_path: Path) -> None:
    for turn in range(2):
        with connect(runner="inline", storage=tmp_path / "store") as db:
            totals(db).deliver(FileSink(tmp_path / "out"))
            if turn == 0:
                db.run()
                label = tmp_path / "out/_headrace.json"
                label.write_bytes(label.read_bytes().replace(b'"epoch": 1', b'"epoch": 3'))
                continue
            with pytest.raises(DeliveryError, match=r"cannot be used: _headrace\.json is damaged"):
                db.run()


def test_a_folder_that_is_gone_is_missed(tmp_path: Path) -> None:
    for turn in range(2):
        with connect(runner="inline", storage=tmp_path / "store") as db:
            totals(db).deliver(FileSink(tmp_path / "out"))
            if turn == 0:
                db.run()
                (tmp_path / "out").rename(tmp_path / "elsewhere")
                continue
            with pytest.raises(DeliveryError, match="lacks what was delivered up to epoch 1"):
                db.run()


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with connect(runner="inline") as db:
        totals(db).deliver(FileSink(tmp_path / "file" / "out"))
        with pytest.raises(DeliveryError, match="cannot be used"):
            db.run()
    with pytest.raises(UserError, match="no format xml"):
        FileSink(tmp_path, "xml")
