"""Segments: written whole or not at all, never overwritten, never read when damaged."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace
from headrace import Progress
from headrace.errors import StoreError
from headrace.operators.state.runs import RunPart
from headrace.runtime.store.segments import FolderStore, SegmentWriter, read_part


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(str(tmp_path / "store"), durable=True)


def written(store: FolderStore, *contents: bytes) -> list[RunPart]:
    writer = SegmentWriter(store, "segments/one")
    parts = [writer.add(pa.py_buffer(content)) for content in contents]
    writer.close()
    return parts


def test_put_if_absent_writes_once(store: FolderStore) -> None:
    assert store.put_if_absent("commits/1.json", b"first")
    assert not store.put_if_absent("commits/1.json", b"second")
    assert store.read("commits/1.json").to_pybytes() == b"first"
    assert os.listdir(Path(store.path, "commits")) == ["1.json"], "no draft stays"


def test_parts_of_a_segment_are_aligned_and_read_back(store: FolderStore) -> None:
    contents = [b"a" * 10, b"b" * 64, b"c" * 65]
    parts = written(store, *contents)
    assert [part.offset for part in parts] == [0, 64, 128]
    assert [read_part(store, part).to_pybytes() for part in parts] == contents
    assert store.size("segments/one") == 256
    assert store.size("segments/two") is None


def test_an_empty_segment_is_not_written(store: FolderStore) -> None:
    SegmentWriter(store, "segments/none").close()
    assert list(store.names("segments")) == []


def test_a_damaged_part_is_named_and_refused_and_the_others_are_read(store: FolderStore) -> None:
    first, second = written(store, b"a" * 100, b"b" * 100)
    path = Path(store.path, "segments/one")
    content = bytearray(path.read_bytes())
    content[second.offset + 50] ^= 1
    path.write_bytes(content)
    assert read_part(store, first).to_pybytes() == b"a" * 100
    with pytest.raises(StoreError, match=r"segments/one is damaged: the bytes from 128 on") as caught:
        read_part(store, second)
    assert caught.value.hint == "restore the store from a copy"


@pytest.mark.parametrize("length", [0, 1, 130])
def test_a_truncated_segment_is_named_and_refused(store: FolderStore, length: int) -> None:
    _, second = written(store, b"a" * 100, b"b" * 100)
    os.truncate(Path(store.path, "segments/one"), length)
    with pytest.raises(StoreError, match="segments/one"):
        read_part(store, second)


def test_a_missing_segment_is_named(store: FolderStore) -> None:
    with pytest.raises(StoreError, match=r"cannot read .*segments/gone"):
        read_part(store, RunPart("segments/gone", 0, 10, 0))


@pytest.mark.parametrize("step", ["replace", "link", "fsync"])
def test_a_full_disk_is_told_clearly_and_leaves_nothing(
    store: FolderStore, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, full)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        store.write("segments/one", [pa.py_buffer(b"x")]) if step == "replace" else store.put_if_absent(
            "one", b"x"
        )
    assert caught.value.hint is not None
    assert "free some space" in caught.value.hint
    monkeypatch.undo()
    assert [path for path in Path(store.path).rglob("*") if path.is_file()] == []
    store.write("segments/one", [pa.py_buffer(b"x")])
    assert store.put_if_absent("one", b"x")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot write"):
        FolderStore(str(tmp_path / "file"), durable=True).put_if_absent("one", b"x")


def test_names_leave_drafts_out_and_drafts_can_be_dropped(store: FolderStore) -> None:
    written(store, b"x")
    Path(store.path, "segments/.one.4711").write_bytes(b"half")
    Path(store.path, "segments/.mine").write_bytes(b"of somebody else")
    assert list(store.names("segments")) == ["segments/one"]
    store.drop_drafts("segments")
    store.drop_drafts("none")
    assert sorted(os.listdir(Path(store.path, "segments"))) == [".mine", "one"]


def test_a_temporary_store_goes_and_a_durable_one_stays(tmp_path: Path) -> None:
    for store in (
        FolderStore(str(tmp_path / "durable"), durable=True),
        FolderStore(str(tmp_path / "temporary")),
    ):
        written(store, b"x")
        store.close()
    assert os.listdir(tmp_path) == ["durable"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists a process's mappings")
def test_no_mapping_outlives_its_epoch(tmp_path: Path) -> None:
    """A mapping keeps a deleted file's memory, and its space on disk."""
    mapped = []

    def count(_: Progress) -> None:
        lines = Path("/proc/self/maps").read_text().splitlines()
        mapped.append(sum(str(tmp_path) in line for line in lines))

    with headrace.connect(runner="inline", storage=tmp_path / "store", epoch_rows=50) as db:
        db.execute("CREATE STREAM bid FROM nexmark OPTIONS (events=2000) TIMESTAMP BY ts")
        query = db.query("SELECT auction, COUNT(*) AS n FROM bid WINDOW(RANGE 1 SECOND) GROUP BY auction")
        db.run(count)
        assert query.history().num_rows > 0
    assert len(mapped) > 30
    assert max(mapped) <= 2, mapped
