"""The newest epoch that a store has committed, noted outside of its commits: lost ones are noticed.

It is written after the record, without waiting for the disk, so that after a power cut it may be older than
the records; it is never newer.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from typing import Final

from headrace.errors import StoreError
from headrace.runtime.store.paths import inside
from headrace.runtime.store.segments import FolderStore, reading_store

MARK: Final = "newest"
"""The file in a store."""


class HighWaterMark:
    """Notes epochs of a store in use.

    Args:
        store: the store.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, store: FolderStore) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file: int | None = os.open(inside(store.path, MARK), flags, 0o600)

    def note(self, epoch: int) -> None:
        """Note that an epoch has been committed; a mark that cannot be written stays older."""
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, mark_of(epoch), 0)

    def close(self) -> None:
        """Note no more; may be called again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def newest_noted(store: FolderStore) -> int:
    """The newest epoch of which a store says that it has committed it; 0 where it does not say it.

    Raises:
        StoreError: the file cannot be read.
    """
    path = inside(store.path, MARK)
    try:
        with reading_store(path):
            line = path.read_bytes()
    except FileNotFoundError:
        return 0
    number = line[:12]
    return int(number) if number.isdigit() and line == mark_of(int(number)) else 0


def check_newest(store: FolderStore, noted: int, last: int) -> None:
    """See that no record is lost after the last that there is.

    Args:
        store: the store.
        noted: the newest epoch that it has noted, read before its records were listed.
        last: the last epoch of which it has a record; 0 if it has none.

    Raises:
        StoreError: it has noted a later one.
    """
    if noted > last:
        ends = f"its records end with that of epoch {last}" if last else "it has no record at all"
        raise StoreError(
            f"the store {store.path} lacks the commit of epoch {noted}: {ends}",
            hint="restore it from a copy; without its file newest it goes on from there, and what it has "
            "acknowledged since is lost",
        )


def mark_of(epoch: int) -> bytes:
    """The content of the file that notes an epoch."""
    number = b"%012d" % epoch
    return b"%s %08x\n" % (number, zlib.crc32(number))
