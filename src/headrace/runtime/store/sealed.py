"""Small files under a checksum: JSON that a person can read, in which not one bit can change unnoticed."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from headrace.errors import StoreError
from headrace.runtime.store.paths import inside
from headrace.runtime.store.segments import RESTORE, FolderStore, reading_store

_SEALED: Final = re.compile(rb'\{"crc":(0|[1-9][0-9]*),"body":(\{.*\})\}\n', re.DOTALL)


class DamagedFileError(StoreError):
    """A file of a store that is not what was written: its checksum is another one, or it cannot be read.

    Args:
        file: the file, as messages call it.
        reason: what is wrong with it.

    Attributes:
        reason: the same.
    """

    def __init__(self, file: str, reason: str = "is damaged") -> None:
        super().__init__(f"{file} {reason}", hint=RESTORE)
        self.reason = reason


def seal(content: Mapping[str, Any]) -> bytes:
    """Some content as the bytes of a file."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return b'{"crc":%d,"body":%s}\n' % (zlib.crc32(body), body)


def unseal(data: bytes) -> dict[str, Any]:
    """The content of a file.

    Raises:
        ValueError: not these bytes were written.
    """
    found = _SEALED.fullmatch(data)
    if found is None or zlib.crc32(found[2]) != int(found[1]):
        raise ValueError("the checksum differs")
    content: dict[str, Any] = json.loads(found[2])
    return content


def load_sealed(store: FolderStore, name: str, what: str) -> dict[str, Any]:
    """The content of a small file of a store.

    Args:
        store: the store.
        name: the file's name in it.
        what: what it is, for messages.

    Raises:
        DamagedFileError: it is gone, or is not what was written.
        StoreError: it leads out of the store, or cannot be read though it may be whole.
    """
    path = inside(store.path, name)
    try:
        with reading_store(path):
            return unseal(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"the {what} {path}") from error
