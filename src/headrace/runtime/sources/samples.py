"""The beginning of a text file: whether it is text, what its columns may be, how long its lines are."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.errors import SourceError
from headrace.runtime.sources.blocks import BYTE_ORDER_MARK

SAMPLE_BYTES: Final = 2**20
"""How much of a file decides on the types of columns that are not declared."""

_CHECKED_BYTES: Final = 2**16


@dataclass(frozen=True, eq=False)
class Sample:
    """The beginning of a file.

    Attributes:
        path: where it is.
        label: its name to show.
        size: its bytes.
        data: the first `SAMPLE_BYTES` of it.
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
    """Read the beginning of a text file.

    Raises:
        OSError: the file cannot be read.
        SourceError: it does not begin with UTF-8 text.
    """
    with path.open("rb") as file:
        data = file.read(SAMPLE_BYTES)
    checked = data[:_CHECKED_BYTES]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(checked, final=len(checked) == path.stat().st_size)
    except UnicodeDecodeError as error:
        raise _no_text(label, f"byte {error.start} is not UTF-8") from None
    if b"\0" in checked:
        raise _no_text(label, f"byte {checked.index(0)} is zero")
    return Sample(path, label, path.stat().st_size, data)


def estimate_rows(sample: Sample | None, size: int) -> int:
    """About how many lines there are in `size` bytes of lines as long as those of the sample."""
    if sample is None:
        return 0
    lines = sample.data.count(b"\n") + (not sample.data.endswith(b"\n"))
    return max(size * lines // max(len(sample.data), 1), 1)


def _no_text(label: str, reason: str) -> SourceError:
    return SourceError(f"{label}: this is no text: {reason}", hint="store it as UTF-8, not compressed")
