"""Hadoop's checksums of a file of this machine, which Spark writes beside each of its own and compares."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final

import numpy as np

_MAGIC: Final = b"crc\0"
_BLOCK: Final = 2**20
"""So much is read at a time (bytes)."""


def has_its_checksums(path: Path) -> bool:
    """Whether a file is what its checksums say, which lie beside it; true where there are none.

    They are CRC-32s of each `n` bytes, in a file that begins with `crc`, a zero, and n as four bytes.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
    """
    try:
        said = path.with_name(f".{path.name}.crc").read_bytes()
    except FileNotFoundError:
        return True
    each = int.from_bytes(said[4:8], "big")
    if not said.startswith(_MAGIC) or each <= 0:
        return False
    wanted = np.frombuffer(said[8 : 8 + (len(said) - 8) // 4 * 4], dtype=">u4").astype(np.uint32)
    found = np.array(_checksums(path, each), dtype=np.uint32)
    return (len(said) - 8) % 4 == 0 and np.array_equal(wanted, found)


def _checksums(path: Path, each: int) -> list[int]:
    """The CRC-32 of each so many bytes of a file."""
    found = []
    with path.open("rb") as file:
        while block := file.read(max(_BLOCK // each, 1) * each):
            bytes_read = memoryview(block)
            found += [zlib.crc32(bytes_read[at : at + each]) for at in range(0, len(block), each)]
    return found
