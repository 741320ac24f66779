"""The journal: the commits of a durable store in the hands of one driver, and what the store is for."""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, Final

from headrace.errors import StoreError
from headrace.lowering.identity import STATE_FORMAT
from headrace.operators.state.runs import RunPart
from headrace.runtime.journal.description import (
    Description,
    Differences,
    differences,
    packed,
    refuse,
    unpacked,
)
from headrace.runtime.journal.guard import Guard
from headrace.runtime.journal.high_water import HighWaterMark
from headrace.runtime.journal.record_files import (
    lacks_record,
    load_commits,
    record_name,
    record_names,
    sealed,
)
from headrace.runtime.journal.records import Commit, last_checkpoint, parts_of, plan_after
from headrace.runtime.store.paths import inside, make_inside
from headrace.runtime.store.sealed import DamagedFileError, seal, unseal
from headrace.runtime.store.segments import FolderStore, cannot_read, cannot_use, cannot_write, reading_store

LAYOUT: Final = 9
"""The version of how a store is laid out; a store of another one is refused."""


_STORAGE: Final = "name the folder of --storage"

_LOCK: Final = re.compile(rb"\d{0,20}")
"""What is in a store's lock: the number of the process that holds it, or held it last."""


class Journal:
    """The commits of a durable store, held by one driver at a time.

    Args:
        store: the store; its folder is made if it is missing.
        description: what the run is; a new store is made for it.

    Raises:
        StoreError: another driver holds the store, it is of another layout or a later state format, or it is
            not a store of ours.
    """

    def __init__(self, store: FolderStore, description: Description) -> None:
        self._store = store
        self._oldest = 1
        self._last = 0
        self._seen: int | None = None
        self._appending = threading.Lock()
        with ExitStack() as opened:
            self._lock = opened.enter_context(closing(_locked(Path(store.path))))
            try:
                self._made_for = _claim(store, description)
                self._guard = opened.enter_context(closing(Guard(store, self._lock)))
                self._newest = HighWaterMark(store)
            except OSError as error:
                raise cannot_write(Path(store.path), error) from error
            opened.pop_all()

    @property
    def buckets(self) -> int:
        """How many buckets the store's state is spread over, which does not change."""
        return self._made_for.buckets

    def present(self, commits: Sequence[Commit]) -> Description:
        """What the store is for after some commits."""
        return plan_after(commits) or self._made_for

    def compare(self, commits: Sequence[Commit], ours: Description, *, adapt: bool) -> Differences:
        """How a run differs from what the store is for.

        Args:
            commits: those that have been loaded.
            ours: what the run is.
            adapt: whether queries may be added, too.

        Raises:
            StoreError: a query or a stream of the same name is another one, or the store may not adapt.
        """
        folder = self._store.path
        if not commits and adapt:
            return Differences()
        theirs = self.present(commits)
        found = differences(theirs, ours, folder)
        if not adapt:
            refuse(found, theirs, folder)
        return found

    def append(self, commit: Commit, parts: Iterable[RunPart]) -> None:
        """Make an epoch count.

        Nobody hears of it unless the store can be opened again: a store that somebody has moved, emptied or
        changed is noticed here.

        Args:
            commit: the epoch's record.
            parts: parts of files that must be there for it.

        Raises:
            StoreError: the record cannot be written, another driver has committed the epoch, the journal is
                closed, or the store is not what it was.
        """
        with self._appending:
            if self._lock.closed:
                raise StoreError(f"epoch {commit.epoch} was given up", hint="start again")
            self._guard.check()
            self._check_records(commit)
            _check_present(self._store, parts)
            written = self._store.put_if_absent(record_name(commit.epoch), sealed(commit))
            self._guard.check()
        if not written:
            raise StoreError(
                f"epoch {commit.epoch} of {self._store.path} has been committed by someone else",
                hint="stop the other driver, then start again",
            )
        self._newest.note(commit.epoch)
        self._last, self._seen = commit.epoch, self._changed_at()

    def _check_records(self, commit: Commit) -> None:
        """See that the older records are there; they are listed only where a file came or went meanwhile."""
        if self._seen == self._changed_at() and not commit.checkpoint:
            return
        found = set(record_names(self._store))
        for epoch in range(self._oldest, self._last + 1):
            if record_name(epoch) not in found:
                raise lacks_record(self._store, epoch)

    def _changed_at(self) -> int:
        folder = inside(self._store.path, "commits")
        with reading_store(folder):
            return folder.stat().st_mtime_ns

    def load(self) -> list[Commit]:
        """The records that are still needed, in order; what a sweep left half done is finished.

        Raises:
            StoreError: a record is damaged or missing, or lacks a file that it names.
        """
        commits = load_commits(self._store)
        self._oldest, self._last = (commits[0].epoch, commits[-1].epoch) if commits else (1, 0)
        _check_present(self._store, parts_of(commits))
        for name in record_names(self._store):
            if name < record_name(self._oldest):
                self._store.delete(name)
        self._store.drop_drafts_of("store.json")
        self._store.drop_drafts("commits")
        return commits

    def outlived(self, epoch: int) -> set[str]:
        """The records that neither recovery nor results from an epoch on need."""
        needed = last_checkpoint(epoch)
        known = range(self._oldest, needed)
        self._oldest = max(self._oldest, needed)
        return {record_name(old) for old in known}

    def close(self) -> None:
        """Let another driver have the store; an epoch that is still running cannot commit any more."""
        with self._appending:
            self._newest.close()
            self._guard.close()
            self._lock.close()


def load_description(store: FolderStore) -> Description:
    """What a store says it is for. State of an earlier format is of no use, and all else is read.

    Raises:
        StoreError: it is not a store, or has another layout, or state of a later format.
        DamagedFileError: its `store.json` is damaged.
    """
    content = _load_label(store)
    if content.get("product") != "headrace":
        raise StoreError(f"{store.path} is not a Headrace store", hint="choose an empty folder")
    layout, of_state = content.get("layout"), content.get("state_format")
    if layout != LAYOUT:
        raise StoreError(
            f"{store.path} has layout {layout}, and this Headrace reads {LAYOUT}",
            hint="use the version that wrote it, or choose an empty folder",
        )
    if not isinstance(of_state, int) or of_state > STATE_FORMAT:
        raise StoreError(
            f"{store.path} has operator state of format {of_state}, and this Headrace reads those up to "
            f"{STATE_FORMAT}",
            hint="use the version that wrote it, or a later one",
        )
    try:
        return unpacked(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{store.path}/store.json", f"is not one of ours: {error!r}") from error


def _load_label(store: FolderStore) -> dict[str, Any]:
    """What is in `store.json`: what the store is for, with the product and the layout."""
    path = inside(store.path, "store.json")
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        if not Path(store.path).exists():
            raise StoreError(f"there is no folder {store.path}", hint=_STORAGE) from error
        raise StoreError(
            f"{store.path} is not a Headrace store: it lacks store.json", hint=_STORAGE
        ) from error
    except NotADirectoryError as error:
        raise StoreError(f"{store.path} is not a folder", hint=_STORAGE) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    try:
        return unseal(data)
    except ValueError as error:
        # Up to layout 5 it was plain JSON.
        plain = _plain(data)
        if plain is None or {"crc", "body"} & plain.keys():
            raise DamagedFileError(str(path)) from error
        return plain


def _plain(data: bytes) -> dict[str, Any] | None:
    """The object that some bytes are in JSON, or None."""
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _locked(folder: Path) -> IO[str]:
    """Take the lock of a store that is there, or of an empty folder."""
    with ExitStack() as opened:
        try:
            make_inside(folder)
            refuse_foreign(folder)
            handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            file = opened.enter_context(os.fdopen(handle, "r+"))
            if not _is_ours(file):
                raise StoreError(
                    f"the store {folder} is in use by process {file.read().strip() or 'another one'}",
                    hint="stop it first, or choose another folder",
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        except OSError as error:
            raise cannot_use(folder, error) from error
        opened.pop_all()
        return file


def _is_ours(lock: IO[str]) -> bool:
    """Take a lock; False where another driver has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _claim(store: FolderStore, ours: Description) -> Description:
    """Make the folder ours, or see that it is a store; what it was made for."""
    if not Path(store.path, "store.json").exists():
        refuse_foreign(Path(store.path))
        label = {"product": "headrace", "layout": LAYOUT, **packed(ours)}
        store.put_if_absent("store.json", seal(label))
        return ours
    return load_description(store)


def refuse_foreign(folder: Path) -> None:
    """See that a folder is a store, or holds nothing but what a driver leaves that was killed at once.

    Raises:
        StoreError: it is neither.
    """
    if (folder / "store.json").exists():
        return
    found = {entry.name: entry for entry in folder.iterdir() if not entry.name.startswith(".")}
    if {"commits", "segments"} & found.keys():
        raise StoreError(
            f"{folder} is not empty and is not a Headrace store: a store has a file store.json",
            hint="restore the store from a copy, or choose an empty folder",
        )
    # Those who may use a server are named before it makes its store.
    found.pop("keys.json", None)
    lock = found.pop("lock", None)
    if lock is not None and not _LOCK.fullmatch(lock.read_bytes()):
        found["lock"] = lock
    if found:
        raise StoreError(
            f"{folder} is not empty and is not a Headrace store: it holds {min(found)}",
            hint="choose an empty folder",
        )


def _check_present(store: FolderStore, parts: Iterable[RunPart]) -> None:
    """See that the files of some parts are there, and long enough."""
    for part in parts:
        size = store.size(part.segment)
        if size is None or size < part.offset + part.length:
            what = "is missing" if size is None else "is truncated"
            raise StoreError(
                f"the segment {part.segment} of {store.path} {what}", hint="restore the store from a copy"
            )
