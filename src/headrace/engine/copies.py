"""Copies of durable stores, made while a run may be at work on them; one is restored by opening it.

Files of state and of results are never changed once they have their names, so a copy has links to them where
it is on the same file system. `store.json` comes last: a copy that was cut short is no store.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.errors import StoreError, UserError
from headrace.runtime.delivery.positions import copy_positions
from headrace.runtime.journal.high_water import MARK, mark_of
from headrace.runtime.journal.inspect import read_again
from headrace.runtime.journal.journal import load_description
from headrace.runtime.journal.record_files import load_commits, load_last_commits, record_name
from headrace.runtime.journal.records import Commit, parts_of, points_after
from headrace.runtime.store.paths import file_name, inside, make_inside, refuse_links
from headrace.runtime.store.segments import FolderStore, cannot_write, reading_store

_ATTEMPTS: Final = 20
"""So often a copy of Spark's log is begun again because the log has gone on."""

_NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES)
"""Errors of a file system that cannot link a file to where the copy is."""


@dataclass(frozen=True)
class StoreCopy:
    """A copy that was made.

    Attributes:
        epoch: the last epoch that the copy has; 0 for none.
        files, bytes: how many records and files of state and results it has, and how large they are.
        linked: how many of them are links to those of the store, which take no room.
    """

    epoch: int
    files: int
    bytes: int
    linked: int


def copy_store(folder: str | Path, target: str | Path, at: int | None = None) -> StoreCopy:
    """Copy a durable store as of an epoch; a run may be at work on it.

    The copy is a store of its own. Opened, it goes on after that epoch: what can be read again is read on
    from there, and what was pushed since then is not in it. A sink goes on if its target has no later epoch;
    else it is refused, since what comes now is not what its target has taken.

    Args:
        folder: the store.
        target: where the copy is made: a folder that is missing or empty.
        at: the epoch; the last that is committed if None. What an epoch needs is removed when later ones need
            it no longer, so that as a rule only the last few can be copied.

    Raises:
        UserError: the target is not empty, or the store cannot be copied as of that epoch.
        StoreError: it is not a store, or it is damaged; or the copy cannot be written.
    """
    store, copy = FolderStore(str(folder), durable=True), FolderStore(str(target), durable=True)
    load_description(store)
    was_there = _prepared(Path(folder), Path(target))
    try:
        return _Copying(store, copy, at).carry_out()
    except OSError as error:
        raise cannot_write(Path(target), error) from error
    finally:
        if not Path(target, "store.json").exists():
            _clear(Path(target), keep=was_there)


def _prepared(folder: Path, target: Path) -> bool:
    """Make the folder of a copy; whether it was there, and empty.

    Raises:
        UserError: it is not empty, or lies in the store.
        StoreError: it cannot be made.
    """
    hint = "name a folder that is missing or empty"
    if folder.resolve() in (target.resolve(), *target.resolve().parents):
        raise UserError(f"{target} is in the store {folder}", hint=hint)
    try:
        if target.exists():
            if any(target.iterdir()):
                raise UserError(f"{target} is not empty", hint=hint)
            return True
        make_inside(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    return False


def _clear(target: Path, *, keep: bool) -> None:
    """Remove what there is of a copy that has failed, which nobody could open."""
    with suppress(OSError):
        for path in target.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not keep:
            target.rmdir()


@dataclass
class _Copying:
    """A copy that is being made.

    Attributes:
        store, copy: from where, and to where.
        at: the epoch that is asked for, or None.
        files: the files of state and results that the copy has so far, with whether each is a link.
    """

    store: FolderStore
    copy: FolderStore
    at: int | None
    files: dict[str, bool] = field(default_factory=dict)

    def carry_out(self) -> StoreCopy:
        """Make the copy; `copy_store` says what may be raised."""
        commits = self._with_logs()
        epoch = commits[-1].epoch if commits else 0
        kept = [commit.results for commit in commits if commit.epoch >= commits[-1].retained]
        copy_positions(self.store, self.copy, epoch, kept)
        if self.store.size("keys.json") is not None:
            self._put("keys.json")
        needed = _needed(commits)
        for name in self.files.keys() - needed.keys():
            self.copy.delete(name)
        for folder in {name.partition("/")[0] for name in needed}:
            self.copy.settle(folder)
        self.copy.put(MARK, mark_of(epoch))
        self._put("store.json")
        size = sum(self.copy.size(name) or 0 for name in needed)
        return StoreCopy(epoch, len(needed), size, sum(self.files[name] for name in needed))

    def _put(self, name: str) -> bool:
        path = inside(self.store.path, name)
        with reading_store(path):
            content = path.read_bytes()
        self.copy.put(name, content)
        return False

    def _with_logs(self) -> list[Commit]:
        """The records of the epoch, once its files and what Spark has logged up to it are copied."""
        for _ in range(_ATTEMPTS):
            commits = self._with_files()
            logs = _spark_logs(self.store)
            for name in logs:
                _copy_tree(inside(self.store.path, name), Path(self.copy.path, name))
            read = _read_by_spark(commits, logs)
            if read == _read_by_spark(read_again(lambda: load_last_commits(self.store)), logs):
                return commits
            if self.at is not None:
                raise UserError(
                    f"{self.store.path} cannot be copied as of epoch {self.at}: Spark has read on since then",
                    hint="leave out the epoch",
                )
            for name in logs:
                shutil.rmtree(Path(self.copy.path, name))
        raise UserError(
            f"{self.store.path} cannot be copied while Spark reads on",
            hint="pause the queries of the streams that Spark reads, or stop the run meanwhile",
        )

    def _with_files(self) -> list[Commit]:
        """The records of the epoch, once all files that they name are copied.

        What a run removes meanwhile is named by none of its later records, which are then looked at.
        """
        before: str | None = None
        while True:
            commits = read_again(lambda: load_commits(self.store, self.at))
            missing = self._copy_files(commits)
            if missing is None:
                return commits
            if self.at is not None:
                raise UserError(
                    f"{self.store.path} cannot be copied as of epoch {self.at}: it no longer has {missing}, "
                    "which only that epoch needed",
                    hint="name a later epoch, or leave it out",
                )
            if missing == before:
                hint = "restore the store from a copy"
                raise StoreError(f"the file {missing} of {self.store.path} is missing", hint=hint)
            before = missing

    def _copy_files(self, commits: list[Commit]) -> str | None:
        """Copy the files that some records name, unless they are copied; one that is gone, if any is."""
        make_inside(self.copy.path, "segments")
        make_inside(self.copy.path, "results")
        for name in _needed(commits):
            if name not in self.files:
                try:
                    if name.startswith("commits/"):
                        self.files[name] = self._put(name)
                    else:
                        source, target = inside(self.store.path, name), inside(self.copy.path, name)
                        self.files[name] = _link_or_copy(source, target)
                except FileNotFoundError:
                    return name
        return None


def _needed(commits: list[Commit]) -> dict[str, None]:
    """The files that some records need, themselves first."""
    records = (record_name(commit.epoch) for commit in commits)
    return dict.fromkeys((*records, *(part.segment for part in parts_of(commits))))


def _link_or_copy(source: Path, target: Path) -> bool:
    """Copy a file that is never changed, by a link where the file system has them; whether it is one.

    Raises:
        OSError: it is gone, or cannot be copied.
    """
    try:
        os.link(source, target, follow_symlinks=False)
        return True
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    with reading_store(source):
        content = source.open("rb")
    with content, target.open("xb") as copied:
        os.fchmod(copied.fileno(), 0o600)
        shutil.copyfileobj(content, copied, 2**20)
        copied.flush()
        os.fsync(copied.fileno())
    return False


def _spark_logs(store: FolderStore) -> list[str]:
    """The folders in which Spark notes what it has read of the store's streams."""
    streams = store.folders("streams")
    return [name for stream in streams for name in store.folders(stream) if name.endswith("/checkpoint")]


def _read_by_spark(commits: list[Commit], logs: list[str]) -> dict[str, int]:
    """The number of batches that were committed of each stream that Spark reads."""
    points = points_after(commits) if commits else {}
    read = {f"streams/{file_name(name)}/checkpoint": point.position for name, point in points.items()}
    return {name: read.get(name, 0) for name in logs}


def _copy_tree(source: Path, target: Path) -> None:
    """Copy Spark's log, whose files may come and go meanwhile."""
    refuse_links(source)
    for place, _, files in os.walk(source):
        folder = target / Path(place).relative_to(source)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in files:
            with suppress(FileNotFoundError):
                shutil.copyfile(Path(place, name), folder / name)
