"""The beginning of a text file: whether it is text, what its columns may be, how long its lines are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.errors import SourceError
from headrace.runtime.sources.blocks import BYTE_ORDER_MARK

SAMPLE_BYTES: Final = 2**20
"""How much of a file decides on the types of columns that are not declared."""

_WHOLE_LINES: Final = 2
"""So many whole lines are in a sample, however long: a header and a row."""

_NO_TEXT: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\x04\x22\x4d\x18": "LZ4",
    b"\xfd7zXZ\0": "xz",
    b"BZh91AY&SY": "bzip2",
    b"PK\x03\x04": "a zip archive",
    b"PAR1\x15": "Parquet",
    b"ARROW1\0\0": "Arrow",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""How files begin that are not UTF-8 text."""


@dataclass(frozen=True, eq=False)
class Sample:
    """The beginning of a file.

    Attributes:
        path: where it is.
        label: its name to show.
        size: its bytes.
        data: the first `SAMPLE_BYTES` of it, or more where they do not hold two whole lines.
    """

    path: Path
    label: str
    size: int
    data: bytes

    @property
    def body(self) -> int:
        """The byte after the byte order mark, if there is one."""
        return len(BYTE_ORDER_MARK) if self.data.startswith(BYTE_ORDER_MARK) else 0

    def lines(self, start: int) -> bytes:
        """The whole lines from byte `start` on."""
        whole = self.data if len(self.data) == self.size else self.data[: self.data.rfind(b"\n") + 1]
        return whole[start:]


def take_sample(path: Path, label: str) -> Sample:
    """Read the beginning of a text file: two whole lines at least, where there are as many.

    Bytes that are not text make single rows dead letters, wherever they are. Only what begins as no text does
    is refused.

    Raises:
        OSError: the file cannot be read.
        SourceError: it is compressed, or of another kind.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(SAMPLE_BYTES)
        for _ in range(_WHOLE_LINES - data.count(b"\n", 0, SAMPLE_BYTES)):
            data += file.readline()
    for signature, kind in _NO_TEXT.items():
        if data.startswith(signature):
            raise SourceError(
                f"{label}: this is not text: it is {kind}", hint="store it as UTF-8, not compressed"
            )
    return Sample(path, label, size, data)


def estimate_rows(sample: Sample | None, size: int) -> int:
    """About how many lines there are in `size` bytes of lines as long as those of the sample."""
    if sample is None:
        return 0
    lines = sample.data.count(b"\n") + (not sample.data.endswith(b"\n"))
    return max(size * lines // max(len(sample.data), 1), 1)
