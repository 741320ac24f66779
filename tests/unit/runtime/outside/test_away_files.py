"""Files that cannot be opened for now are opened later; none of them is a dead letter for that."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.runtime.intake.folder_feed import FolderFeed
from headrace.runtime.outside.patience import patient
from waiting import wait_for, wait_until


class Disk:
    """A disk whose files of some name cannot be opened while it is ill."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.error: int | None = None
        self.refused = 0
        whole = Path.open
        native = pq.ParquetFile.__init__

        def refuse(path: object) -> None:
            if self.error is not None and str(path).endswith(name):
                self.refused += 1
                raise OSError(self.error, "ill", str(path))

        def opened(path: Path, *args: Any, **options: Any) -> Any:
            refuse(path)
            return whole(path, *args, **options)

        def opened_native(file: Any, source: Any, *args: Any, **options: Any) -> None:
            refuse(source)
            native(file, source, *args, **options)

        monkeypatch.setattr(Path, "open", opened)
        monkeypatch.setattr(pq.ParquetFile, "__init__", opened_native)


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with patient(pause=0.005, longest=0.02):
        yield


def write(folder: Path, form: str, name: str, *values: int) -> None:
    path = folder / f"{name}.{form}"
    draft = path.with_name(f".{path.name}")
    if form == "parquet":
        pq.write_table(pa.table({"v": values, "ts": values}), draft)
    elif form == "json":
        draft.write_text("".join(f'{{"v": {v}, "ts": {v}}}\n' for v in values))
    else:
        draft.write_text("v,ts\n" + "".join(f"{v},{v}\n" for v in values))
    draft.rename(path)


def values(db: hr.Database) -> list[int]:
    return sorted(row["v"] for row in db["q"].changes().to_pylist())


def follow(db: hr.Database, folder: Path, form: str) -> None:
    db.execute(
        f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM {form} OPTIONS (path '{folder}', follow 'true', "
        "ready 'renamed', poll '5 milliseconds') TIMESTAMP BY ts DISORDER 1000;"
        "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s"
    )


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "csv") for name in ("EACCES", "EIO", "ESTALE", "EMFILE", "ENOMEM")),
        ("EIO", "json"),
        ("EIO", "parquet"),
    ],
)
def test_a_file_that_cannot_be_opened_now_is_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    disk = Disk(monkeypatch, f"bad.{form}")
    write(tmp_path, form, "bad", 1, 2)
    write(tmp_path, form, "good", 3)
    disk.error = getattr(errno, name)
    with hr.connect(runner="inline") as db:
        follow(db, tmp_path, form)
        db.start()
        wait_until(lambda: values(db), [3])
        wait_for(lambda: disk.refused > 3)
        assert f"bad.{form}" in db.problems["s"]
        assert "since 2" in db.problems["s"]
        disk.error = None
        wait_until(lambda: values(db), [1, 2, 3])
        wait_until(lambda: dict(db.problems), {})
        assert db.dead_letters().num_rows == 0


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_that_cannot_be_read_on_is_read_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    disk = Disk(monkeypatch, f"bad.{form}")
    write(tmp_path, form, "bad", 1, 2)
    write(tmp_path, form, "good", 3)
    with hr.connect(runner="inline") as db:
        follow(db, tmp_path, form)
        break_after_opening(monkeypatch, disk)
        db.start()
        wait_until(lambda: values(db), [3])
        wait_for(lambda: disk.refused > 3)
        disk.error = None
        monkeypatch.undo()
        wait_until(lambda: values(db), [1, 2, 3])
        assert db.dead_letters().num_rows == 0


def break_after_opening(monkeypatch: pytest.MonkeyPatch, disk: Disk) -> None:
    """The disk falls ill whenever the driver has opened files, before an epoch reads them."""
    take: Callable[..., Any] = FolderFeed.take

    def taken(feed: FolderFeed, point: Any) -> Any:
        disk.error = None
        found = take(feed, point)
        disk.error = errno.EIO
        return found

    monkeypatch.setattr(FolderFeed, "take", taken)
