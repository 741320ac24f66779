"""Where segments lie: files of state runs and results, written once and never changed.

A task writes one segment per level and epoch; the driver makes it count by naming it in the epoch's commit.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from headrace.errors import StoreError
from headrace.operators.state.runs import Part
from headrace.runtime.store.crash_points import reach

_DRAFT = re.compile(r"\..+\.\d+")
"""The names of files that are being written, see `_writing`."""


@dataclass(frozen=True)
class FolderStore:
    """Segments as files of a folder that all tasks can reach.

    Attributes:
        path: the folder.
        durable: whether files are forced to disk when written, and checked against their checksums when read.
    """

    path: str
    durable: bool = False

    @classmethod
    def temporary(cls) -> FolderStore:
        """A new store in a temporary folder; `close` removes it."""
        return cls(tempfile.mkdtemp(prefix="headrace-"))

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> None:
        """Write a segment, whole or not at all.

        Raises:
            StoreError: the file cannot be written.
        """
        target = Path(self.path, name)
        with _writing(target) as draft:
            _fill(draft, parts, self.durable)
            reach("segment.drafted")
            os.replace(draft, target)
            self._settle(target.parent)
        reach("segment.written")

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Write a small file under a name that nobody has used: the one step by which an epoch counts.

        Returns:
            False if the name exists already; nothing is changed then.

        Raises:
            StoreError: the file cannot be written.
        """
        target = Path(self.path, name)
        with _writing(target) as draft:
            _fill(draft, [pa.py_buffer(content)], self.durable)
            reach("commit.drafted")
            try:
                os.link(draft, target)
            except FileExistsError:
                return False
            finally:
                draft.unlink(missing_ok=True)
            reach("commit.linked")
            self._settle(target.parent)
        reach("commit.done")
        return True

    def read(self, name: str) -> pa.Buffer:
        """A file's bytes, mapped into memory.

        Raises:
            StoreError: it is missing or cannot be read.
        """
        return _mapped(os.path.join(self.path, name))

    def names(self, folder: str) -> Iterator[str]:
        """The files of a folder of the store, in order of their names; drafts are left out."""
        try:
            found = sorted(os.listdir(os.path.join(self.path, folder)))
        except FileNotFoundError:
            return
        yield from (f"{folder}/{name}" for name in found if not name.startswith("."))

    def size(self, name: str) -> int | None:
        """How many bytes a file has, or None where there is none."""
        try:
            return os.stat(os.path.join(self.path, name)).st_size
        except FileNotFoundError:
            return None

    def drop_drafts(self, folder: str) -> None:
        """Remove what writers that were killed have left in a folder; only for whoever holds the lock."""
        for name in os.listdir(place) if os.path.isdir(place := os.path.join(self.path, folder)) else ():
            if _DRAFT.fullmatch(name):
                Path(place, name).unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Remove a file; the name may be gone already.

        Raises:
            StoreError: the file cannot be removed.
        """
        path = Path(self.path, name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error

    def close(self) -> None:
        """Remove the folder of a temporary store; leave a durable one as it is."""
        _mapped.cache_clear()
        if not self.durable:
            shutil.rmtree(self.path, ignore_errors=True)

    def _settle(self, folder: Path) -> None:
        """Force a folder's entries to disk, so that a new name survives a power cut."""
        if self.durable:
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@dataclass(frozen=True)
class MemoryStore:
    """Segments in this process, for the inline runner."""

    segments: dict[str, pa.Buffer] = field(default_factory=dict)
    durable: bool = False

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> None:
        """Keep the joined parts."""
        self.segments[name] = pa.py_buffer(b"".join(memoryview(part) for part in parts))

    def read(self, name: str) -> pa.Buffer:
        """The bytes of a segment."""
        return self.segments[name]

    def delete(self, name: str) -> None:
        """Forget a segment."""
        self.segments.pop(name, None)

    def close(self) -> None:
        """Forget everything."""
        self.segments.clear()


Store = FolderStore | MemoryStore


class SegmentWriter:
    """Collects what one task writes in one epoch and level, as one file.

    Args:
        store: where to write.
        name: the segment's name; it has the epoch and the attempt in it, so that no two tasks share one.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._name = name
        self._store = store
        self._parts: list[pa.Buffer] = []
        self._size = 0

    def add(self, part: pa.Buffer) -> Part:
        """Append bytes; where they will lie. Offsets are multiples of 64, so that Arrow can map them."""
        crc = zlib.crc32(part) if self._store.durable else 0
        place = Part(self._name, self._size, part.size, crc)
        padding = -part.size % 64
        self._parts += [part, pa.py_buffer(b"\0" * padding)]
        self._size += part.size + padding
        return place

    def close(self) -> None:
        """Write the file, if there is anything in it."""
        if self._parts:
            self._store.write(self._name, self._parts)


def read_part(store: Store, part: Part) -> pa.Buffer:
    """The bytes of a part, mapped or in memory.

    Raises:
        StoreError: the segment is missing, truncated or damaged; it is never silently read.
    """
    content = store.read(part.segment)
    if part.offset + part.length > content.size:
        raise StoreError(
            f"the segment {part.segment} is truncated: it has {content.size} bytes, "
            f"and {part.offset + part.length} are needed",
            hint="restore the store from a copy",
        )
    found = content.slice(part.offset, part.length)
    if store.durable and zlib.crc32(found) != part.crc:
        raise StoreError(
            f"the segment {part.segment} is damaged: the bytes from {part.offset} on have another checksum",
            hint="restore the store from a copy",
        )
    return found


@lru_cache(maxsize=256)
def _mapped(path: str) -> pa.Buffer:
    """Names are immutable, so a mapping may be kept for as long as there is room."""
    try:
        with pa.memory_map(path) as file:
            return file.read_buffer()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error}", hint="restore the store from a copy") from error


def _fill(draft: Path, parts: Sequence[pa.Buffer], durable: bool) -> None:
    with draft.open("wb") as file:
        for part in parts:
            file.write(part)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _writing(target: Path) -> Iterator[Path]:
    """A draft beside a file: its folder is made, it is removed on any error, which becomes a StoreError."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield draft
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise cannot_write(target, error) from error


def cannot_write(target: Path, error: OSError) -> StoreError:
    """What to tell of a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space and start again: the run goes on where it was"
    else:
        hint = "check that the folder exists and can be written to"
    return StoreError(f"cannot write {target}: {error.strerror or error}", hint=hint)
