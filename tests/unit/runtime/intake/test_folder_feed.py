"""Folders whose files keep coming: when a file counts, in what order, and what becomes of changed ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from faulty_disk import Call, FaultyDisk
from headrace.errors import PolicyError, SourceError
from headrace.runtime.intake.folder import Folder, open_folder
from headrace.runtime.intake.folder_feed import FolderFeed
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.outside.patience import patient
from headrace.runtime.sources import open_source
from headrace.schema import BIGINT, Field, Schema

SCHEMA = Schema((Field("v", BIGINT),))


def folder_of(base: Path, options: dict[str, str], allowed: tuple[Path, ...] | None = None) -> Folder:
    given = {"path": "in", **options}

    def opened(label: str) -> object:
        return open_source("csv", {"path": label}, SCHEMA, None, "s", base, allowed)

    return open_folder(given, base, allowed, SCHEMA, opened)  # type: ignore[arg-type]


class Reader:
    """Takes what a feed brings, as a run does."""

    def __init__(self, base: Path, rows: int = 100, point: StreamPoint | None = None, **options: str) -> None:
        self.base = base
        self.point = point or StreamPoint(0)
        self.feed = FolderFeed("s", folder_of(base, {"poll": "1 hour", **options}), rows, 2**20, lambda: None)
        # Polls come from the tests alone.
        self.feed._keep_looking = lambda: None  # type: ignore[method-assign]
        self.feed.start(self.point, ("v",))

    def write(self, name: str, *values: int) -> None:
        (self.base / "in" / name).write_text("v\n" + "".join(f"{value}\n" for value in values))

    def looked(self, times: int = 2) -> Reader:
        for _ in range(times):
            self.feed.look()
        return self

    def epoch(self, error: BaseException | None = None) -> list[int | str]:
        """The rows and the places of rejected files that an epoch takes; it counts unless it fails."""
        intake = self.feed.take(self.point)
        found: list[int | str] = []
        if intake is not None and intake.source is not None:
            for read in intake.source.read(intake.start, intake.end, ("v",)):
                found += read.rows.column(0).to_pylist()
                rejected = (f"{one.place}: {one.reason}" for one in read.rejected)
                found += [text.replace(f"{self.base}/", "") for text in rejected]
        if intake is not None and error is None:
            files = {**self.point.files, **intake.files}
            self.point = replace(self.point, position=intake.position, files=files)
        self.feed.settle(error)
        return found


@pytest.fixture
def reader(tmp_path: Path) -> Callable[..., Reader]:
    (tmp_path / "in").mkdir()
    return lambda *args, **options: Reader(tmp_path, *args, **options)


def test_a_file_counts_at_the_second_poll_that_finds_it_unchanged(reader: Callable[..., Reader]) -> None:
    found = reader()
    found.write("a.csv", 1)
    assert found.looked(1).epoch() == []
    assert not found.feed.caught_up()
    found.write("a.csv", 1, 2)
    assert found.looked(1).epoch() == [], "it has changed since the poll before"
    assert found.looked(1).epoch() == [1, 2]
    assert found.looked().epoch() == []
    assert found.feed.caught_up()


def test_the_order_is_that_of_discovery(reader: Callable[..., Reader]) -> None:
    found = reader()
    found.write("n.csv", 5)
    found.write("m.csv", 4)
    found.looked()
    found.write("a.csv", 1)
    assert found.looked().epoch() == [4, 5, 1]
    found.write("b.csv", 2)
    assert found.looked().epoch() == [2], "its name sorts before those that were read"
    assert [Path(name).name for name in found.point.files] == ["m.csv", "n.csv", "a.csv", "b.csv"]


@pytest.mark.parametrize("again", [False, True])
def test_a_long_file_is_read_in_parts_also_by_another_run(reader: Callable[..., Reader], again: bool) -> None:
    found = reader(rows=3)
    found.write("a.csv", *range(10, 20))
    found.looked()
    read: list[int | str] = []
    for _ in range(8):
        read += found.epoch()
        if again:
            found = reader(rows=3, point=found.point).looked()
    assert read == list(range(10, 20))


def test_what_an_epoch_fails_with_comes_again(reader: Callable[..., Reader]) -> None:
    found = reader(rows=3)
    found.write("a.csv", *range(10, 15))
    found.write("b.csv", 20)
    found.looked()
    first = found.epoch(ValueError())
    assert first
    assert found.epoch() == first
    assert [*first, *found.epoch(), *found.epoch(), *found.epoch()] == [*range(10, 15), 20]


def test_a_file_that_changes_after_it_was_read_is_reported_once(reader: Callable[..., Reader]) -> None:
    found = reader()
    found.write("a.csv", 1)
    assert found.looked().epoch() == [1]
    found.write("a.csv", 1, 2)
    reason = "the file has changed since it was read, and is not read again"
    assert found.looked().epoch() == [f"in/a.csv: {reason}"]
    assert found.looked().epoch() == []
    assert reader(point=found.point).looked().epoch() == []


def test_the_rest_of_a_file_that_changes_meanwhile_is_not_read(reader: Callable[..., Reader]) -> None:
    found = reader(rows=3)
    found.write("a.csv", *range(10, 20))
    first = found.looked().epoch()
    assert first == [10, 11]
    (found.base / "in/a.csv").unlink()
    assert [str(one)[:33] for one in found.looked().epoch()] == ["in/a.csv: the file has changed be"]
    assert found.looked().epoch() == []


def test_the_rest_of_a_file_that_cannot_be_looked_at_is_read_later(
    reader: Callable[..., Reader], tmp_path: Path
) -> None:
    disk = FaultyDisk(tmp_path, kind="EIO")
    found = reader(rows=3)
    found.write("a.csv", *range(10, 20))
    read = found.looked().epoch()
    disk.at = Call("stat", "in/a.csv", 1)
    with disk.spinning(), patient(pause=0.0):
        read += found.epoch()
        assert disk.failed
        assert "Input/output error" in str(found.feed.trouble())
    for _ in range(8):
        read += found.epoch()
    assert read == list(range(10, 20))


@pytest.mark.parametrize("number", range(1, 7))
def test_a_file_that_cannot_be_looked_at_while_it_is_opened_is_read_later(
    reader: Callable[..., Reader], tmp_path: Path, number: int
) -> None:
    disk = FaultyDisk(tmp_path, kind="EIO")
    found = reader()
    found.write("a.csv", 1, 2)
    found.looked()
    disk.at = Call("stat", "in/a.csv", number)
    with disk.spinning(), patient(pause=0.0):
        read = found.epoch()
        assert disk.failed
        read += found.looked().epoch()
    assert read == [1, 2]


def test_a_file_that_cannot_be_read_is_a_dead_letter(reader: Callable[..., Reader]) -> None:
    found = reader()
    (found.base / "in/a.csv").write_text("w\n1\n")
    found.write("b.csv", 2)
    first, second = found.looked().epoch()
    assert (str(first)[:31], second) == ("in/a.csv: in/a.csv: there is no", 2)
    assert found.looked().epoch() == []


def test_a_file_over_which_epochs_fail_is_left_out(reader: Callable[..., Reader]) -> None:
    found = reader()
    found.write("a.csv", 1)
    found.write("b.csv", 2)
    found.looked()
    for _ in range(3):
        found.epoch(SourceError("in/a.csv: damaged"))
    assert found.feed.check() is None
    assert [*found.epoch(), *found.epoch()] == ["in/a.csv: in/a.csv: damaged", 2]


def test_a_fault_that_is_not_of_a_file_ends_the_stream(reader: Callable[..., Reader]) -> None:
    found = reader()
    found.write("a.csv", 1)
    found.looked()
    for _ in range(3):
        assert found.feed.check() is None
        assert found.epoch(ValueError("no more")) == [1]
    assert found.feed.check() == "no more"
    assert not found.feed.ready()
    assert found.epoch() == []


def test_files_may_count_at_once_or_with_a_mark(reader: Callable[..., Reader]) -> None:
    found = reader(ready="renamed")
    found.write("a.csv", 1)
    found.write(".b.csv", 2)
    assert found.looked(1).epoch() == [1]
    found = reader(ready="success")
    assert found.looked().epoch() == []
    found.write("_SUCCESS")
    assert found.looked(1).epoch() == [1]


def test_folders_may_be_named_by_a_pattern(reader: Callable[..., Reader], tmp_path: Path) -> None:
    found = reader(path="in/2026-*/*.csv")
    for day in ("02", "01"):
        os.mkdir(tmp_path / f"in/2026-{day}")
        found.write(f"2026-{day}/a.csv", int(day))
        found.looked()
    assert found.epoch() == [2, 1]


def test_a_folder_that_is_not_there_is_waited_for_once_it_was(
    reader: Callable[..., Reader], tmp_path: Path
) -> None:
    found = reader()
    found.write("a.csv", 1)
    os.rename(tmp_path / "in", tmp_path / "out")
    assert found.looked().epoch() == []
    assert not found.feed.caught_up()
    os.rename(tmp_path / "out", tmp_path / "in")
    assert found.looked().epoch() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "nowhere"}, "nowhere: no such file or folder"),
        ({"path": "file.csv"}, "file.csv: this is a file, and folders are followed"),
        ({"ready": "soon"}, "the option ready is 'soon'"),
        ({"poll": "5"}, "the option poll is '5'"),
        ({"poll": "often"}, "the option poll: 'often' is not a valid duration"),
    ],
)
def test_what_cannot_be_followed(tmp_path: Path, options: dict[str, str], message: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "file.csv").write_text("v\n1\n")
    with pytest.raises(SourceError) as refused:
        folder_of(tmp_path, options)
    assert refused.value.message == message
    assert refused.value.hint


def test_files_elsewhere_may_not_be_read(tmp_path: Path) -> None:
    for name in ("in", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("v\n1\n")
    allowed = (Path(os.path.realpath(tmp_path / "in")),)
    assert folder_of(tmp_path, {}, allowed).files()
    os.symlink(tmp_path / "other/a.csv", tmp_path / "in/b.csv")
    with pytest.raises(PolicyError):
        folder_of(tmp_path, {}, allowed)
    with pytest.raises(PolicyError):
        folder_of(tmp_path, {"path": "other"}, allowed)
