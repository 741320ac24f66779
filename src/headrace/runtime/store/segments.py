"""Where segments are: files of state runs and results, written once and never changed.

A task writes one segment per level and epoch; the driver makes it count by naming it in the epoch's commit.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from headrace.errors import StoreError
from headrace.operators.state.runs import RunPart
from headrace.runtime.store.crash_points import reach
from headrace.runtime.store.paths import inside, make_inside, open_new
from headrace.runtime.store.temporary import new_folder

RESTORE: Final = "restore the store from a copy"
"""The hint where a file of a store is gone or damaged; never where it could not be read."""

_HINTS: Final = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT), "free some space and start again: the run goes on where it was"
    ),
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE),
        "let more files be open (ulimit -n) and start again: the run goes on where it was",
    ),
    errno.ENOMEM: "let it have more memory and start again: the run goes on where it was",
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "let this user read and write the store's folders, then start again",
    ),
}
"""What helps, by the number of an error of the system."""

_DRAFT = re.compile(r"\..+\.\d+")
"""The names of files that are being written, see `FolderStore._writing`."""


@dataclass(frozen=True)
class FolderStore:
    """Segments as files of a folder that all tasks can reach, and that nobody but its owner can look into.

    A name is one within the folder, with `/` between its parts. One that leads elsewhere, and a symbolic link
    in the folder, end in a StoreError.

    Attributes:
        path: the folder.
        durable: whether files are forced to disk when written, and checked against their checksums when read.
    """

    path: str
    durable: bool = False

    @classmethod
    def temporary(cls) -> FolderStore:
        """A new store in a temporary folder; `close` removes it."""
        return cls(str(new_folder("store")))

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> None:
        """Write a segment, whole or not at all.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._writing(name) as (draft, target):
            _fill(draft, parts, self.durable)
            reach("segment.drafted")
            os.replace(draft, target)
            self._settled(target.parent)
        reach("segment.written")

    def put(self, name: str, content: bytes) -> None:
        """Write a small file, whole or not at all, in place of an older one of that name.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._writing(name) as (draft, target):
            _fill(draft, [pa.py_buffer(content)], self.durable)
            reach("file.drafted")
            os.replace(draft, target)
            reach("file.moved")
            self._settled(target.parent)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        """Write a small file under a name that nobody has used: the one step by which an epoch counts.

        Returns:
            False if the name exists already; nothing is changed then.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._writing(name) as (draft, target):
            _fill(draft, [pa.py_buffer(content)], self.durable)
            reach("commit.drafted")
            try:
                os.link(draft, target)
            except FileExistsError:
                return False
            finally:
                draft.unlink(missing_ok=True)
            reach("commit.linked")
            self._settled(target.parent)
        reach("commit.done")
        return True

    def read(self, name: str) -> pa.Buffer:
        """A file's bytes, mapped into memory for as long as somebody holds them.

        Raises:
            StoreError: it is missing or cannot be read.
        """
        path = inside(self.path, name)
        try:
            with reading_store(path), pa.memory_map(str(path)) as file:
                return file.read_buffer()
        except FileNotFoundError as error:
            raise StoreError(f"cannot read {path}: {error}", hint=RESTORE) from error

    def names(self, folder: str) -> Iterator[str]:
        """The files of a folder of the store, in order of their names; drafts are left out.

        Raises:
            StoreError: the folder cannot be read.
        """
        yield from self._entries(folder, lambda entry: entry.is_file(follow_symlinks=False))

    def size(self, name: str) -> int | None:
        """How many bytes a file has, or None where there is none.

        Raises:
            StoreError: it cannot be looked at.
        """
        path = inside(self.path, name)
        try:
            with reading_store(path):
                found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def drop_drafts(self, folder: str) -> None:
        """Remove what writers that were killed have left in a folder; only for whoever holds the lock."""
        place = inside(self.path, folder)
        with reading_store(place):
            for name in os.listdir(place) if place.is_dir() else ():
                if _DRAFT.fullmatch(name):
                    Path(place, name).unlink(missing_ok=True)

    def drop_drafts_of(self, name: str) -> None:
        """Remove what killed writers of one file have left; other files of its folder may be anybody's."""
        target = inside(self.path, name)
        ours = re.compile(rf"\.{re.escape(target.name)}\.\d+")
        with reading_store(target.parent):
            for path in target.parent.iterdir():
                if ours.fullmatch(path.name):
                    path.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Remove a file; the name may be gone already.

        Raises:
            StoreError: the file cannot be removed.
        """
        path = inside(self.path, name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error

    def close(self) -> None:
        """Remove the folder of a temporary store; leave a durable one unchanged."""
        if not self.durable:
            shutil.rmtree(self.path, ignore_errors=True)

    @contextmanager
    def _writing(self, name: str) -> Iterator[tuple[Path, Path]]:
        """A file's draft and its path; the draft is removed on any error, which becomes a StoreError."""
        target = inside(self.path, name)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            make_inside(self.path, name.rpartition("/")[0])
            yield draft, target
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise cannot_write(target, error) from error

    def settle(self, folder: str) -> None:
        """Force the names of a folder of the store to disk.

        Raises:
            OSError: that fails.
        """
        self._settled(inside(self.path, folder))

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder of the store, in order of their names; none where there is no such one.

        Raises:
            StoreError: the folder cannot be read.
        """
        return self._entries(folder, lambda entry: entry.is_dir(follow_symlinks=False))

    def _entries(self, folder: str, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
        place = inside(self.path, folder)
        try:
            with reading_store(place), os.scandir(place) as entries:
                found = sorted(entry.name for entry in entries if wanted(entry))
        except FileNotFoundError:
            return []
        return [f"{folder}/{name}" for name in found if not name.startswith(".")]

    def _settled(self, folder: Path) -> None:
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
        """The bytes of a segment.

        Raises:
            StoreError: it has been deleted.
        """
        found = self.segments.get(name)
        if found is None:
            raise StoreError(f"there is no segment {name}")
        return found

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
        self._parts: list[tuple[pa.Buffer, pa.Buffer, int]] = []
        self._written: dict[RunPart, pa.Buffer] = {}

    def add(self, part: pa.Buffer) -> RunPart:
        """Append bytes; where they will be. Offsets are multiples of 64, so that Arrow can map them."""
        crc = zlib.crc32(part) if self._store.durable else 0
        offset = self._parts[-1][-1] if self._parts else 0
        place = RunPart(self._name, offset, part.size, crc)
        padding = pa.py_buffer(b"\0" * (-part.size % 64))
        # In one step: where memory is short, the segment goes on for others.
        self._parts.append((part, padding, offset + part.size + padding.size))
        self._written[place] = part
        return place

    def written(self, place: RunPart) -> pa.Buffer | None:
        """Bytes that were appended, or None if they were not."""
        return self._written.get(place)

    def close(self) -> None:
        """Write the file, if there is anything in it."""
        if self._parts:
            self._store.write(self._name, [part for *pair, _ in self._parts for part in pair])


class SegmentReader:
    """Reads what one task needs of the segments; each is mapped once, and let go of with the reader.

    A mapping keeps a deleted file in memory and on disk, so none may outlive its task.

    Args:
        store: where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._segments: dict[str, pa.Buffer] = {}

    def read(self, part: RunPart) -> pa.Buffer:
        """The bytes of a part, mapped or in memory.

        Raises:
            StoreError: the segment is missing, truncated or damaged; it is never silently read.
            MemoryError: it cannot be mapped, for want of memory.
        """
        content = self._segments.get(part.segment)
        if content is None:
            content = self._segments[part.segment] = self._mapped(part.segment)
        return _part_of(content, part, self._store)

    def _mapped(self, segment: str) -> pa.Buffer:
        try:
            return self._store.read(segment)
        except StoreError as error:
            if _is_out_of_memory(error.__cause__):
                # The query whose state it is ends alone.
                raise MemoryError(error.message) from error
            raise


def read_part(store: Store, part: RunPart) -> pa.Buffer:
    """The bytes of a single part.

    Raises:
        StoreError: they cannot be read, or are not what was written.
    """
    return _part_of(store.read(part.segment), part, store)


def _part_of(content: pa.Buffer, part: RunPart, store: Store) -> pa.Buffer:
    if part.offset + part.length > content.size:
        raise StoreError(
            f"the segment {part.segment} is truncated: it has {content.size} bytes, "
            f"and {part.offset + part.length} are needed",
            hint=RESTORE,
        )
    found = content.slice(part.offset, part.length)
    if store.durable and zlib.crc32(found) != part.crc:
        raise StoreError(
            f"the segment {part.segment} is damaged: the bytes from {part.offset} on have another checksum",
            hint=RESTORE,
        )
    return found


def _fill(draft: Path, parts: Sequence[pa.Buffer], durable: bool) -> None:
    with os.fdopen(open_new(draft), "wb") as file:
        for part in parts:
            file.write(part)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def cannot_write(target: Path, error: OSError) -> StoreError:
    """The error for a file that could not be written."""
    hint = _HINTS.get(error.errno or 0, "check that the folder exists and can be written to")
    return StoreError(f"cannot write {target}: {error.strerror or error}", hint=hint)


def cannot_read(place: Path, error: OSError) -> StoreError:
    """The error for a file or folder that could not be read or looked at, though it may be whole."""
    hint = _HINTS.get(error.errno or 0, "look after its disk, then start again; what was committed is there")
    return StoreError(f"cannot read {place}: {error.strerror or error}", hint=hint)


def cannot_use(folder: Path, error: OSError) -> StoreError:
    """The error for a folder that could not be opened as a store."""
    return StoreError(
        f"cannot use {folder} as a store: {error.strerror or error}", hint=_HINTS.get(error.errno or 0)
    )


@contextmanager
def reading_store(place: Path) -> Iterator[None]:
    """Type what the system says while a file or folder of a store is read or looked at.

    Args:
        place: the file or folder.

    Raises:
        FileNotFoundError, NotADirectoryError: it is not there.
        StoreError: it cannot be read, though it may be whole.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise cannot_read(place, error) from error


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether the system says that it has no memory."""
    # Arrow's errors have no number where it has made the text.
    return isinstance(error, OSError) and (
        error.errno == errno.ENOMEM or os.strerror(errno.ENOMEM) in str(error)
    )
