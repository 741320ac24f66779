"""Where segments lie: files of state runs and results, written once and never changed.

A task writes one segment per level and epoch; the driver makes it count by naming it in the epoch's commit.
The interface is all that durability needs to stand on (immutable names, whole-file writes, sweeping); today a
store is a temporary folder, or memory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headrace.errors import StoreError


class SegmentStore(Protocol):
    """Immutable files by name; a store can be pickled and used by any task."""

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> None:
        """Write a segment, whole or not at all."""
        ...

    def read(self, name: str) -> pa.Buffer:
        """A segment's bytes, mapped or in memory."""
        ...

    def delete(self, name: str) -> None:
        """Forget a segment."""
        ...


@dataclass(frozen=True)
class FolderStore:
    """Segments as files of a folder that all tasks can reach.

    Attributes:
        path: the folder.
    """

    path: str

    @classmethod
    def temporary(cls) -> FolderStore:
        """A new store in a temporary folder; `close` removes it."""
        return cls(tempfile.mkdtemp(prefix="headrace-"))

    def write(self, name: str, parts: Sequence[pa.Buffer]) -> None:
        """Write to a temporary name, then rename.

        Raises:
            StoreError: the file cannot be written.
        """
        target = Path(self.path, name)
        draft = target.with_name(f".{target.name}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                for part in parts:
                    file.write(part)
            os.replace(draft, target)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise StoreError(
                f"cannot write {target}: {error.strerror}", hint="free space, or choose another folder"
            ) from error

    def read(self, name: str) -> pa.Buffer:
        """A segment's bytes, mapped into memory."""
        return _mapped(os.path.join(self.path, name))

    def delete(self, name: str) -> None:
        """Remove a segment; the name may be gone already."""
        Path(self.path, name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder and all it holds."""
        _mapped.cache_clear()
        shutil.rmtree(self.path, ignore_errors=True)


@lru_cache(maxsize=256)
def _mapped(path: str) -> pa.Buffer:
    """Names are immutable, so a mapping may be kept for as long as there is room."""
    try:
        with pa.memory_map(path) as file:
            return file.read_buffer()
    except OSError as error:
        raise StoreError(f"cannot read the segment {path}: {error}") from error


@dataclass(frozen=True)
class MemoryStore:
    """Segments in this process, for the inline runner."""

    segments: dict[str, pa.Buffer] = field(default_factory=dict)

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
        self.name = name
        self._store = store
        self._parts: list[pa.Buffer] = []
        self._size = 0

    def add(self, part: pa.Buffer) -> tuple[int, int]:
        """Append bytes; where they will lie (offset, length). Offsets are multiples of 64."""
        offset = self._size
        padding = -part.size % 64
        self._parts += [part, pa.py_buffer(b"\0" * padding)]
        self._size += part.size + padding
        return offset, part.size

    def close(self) -> None:
        """Write the file, if there is anything in it."""
        if self._parts:
            self._store.write(self.name, self._parts)
