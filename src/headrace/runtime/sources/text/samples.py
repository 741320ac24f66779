"""The beginning of a text file: whether it is text, what its columns may be, how long its lines are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.errors import SourceError
from headrace.runtime.sources.files.remote import Place
from headrace.runtime.sources.text.blocks import BYTE_ORDER_MARK, TextPart
from headrace.runtime.sources.text.coding import PLAIN, Coding

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
}
"""How files begin that are not text."""
_NAMES: Final = {"gzip": "gzip", "Zstandard": "zstd", "LZ4": "lz4", "xz": "xz", "bzip2": "bz2"}
"""The compressions among them as the option has them."""
_RATIO: Final = 5
"""About how many times as many bytes a compressed file has in lines."""


MOST_LOOKED_AT: Final = 16 * 2**20
"""So many bytes of the beginnings of files are looked at for the types of columns that are not declared."""


@dataclass(frozen=True, eq=False)
class FileSample:
    """The beginning of a file.

    Attributes:
        path: where it is.
        label: its name to show.
        size: its bytes.
        data: the first `SAMPLE_BYTES` of its lines as UTF-8, or more where they do not hold two whole lines.
        coding: how it is written.
        is_all: whether that is the whole file.
    """

    path: Place
    label: str
    size: int
    data: bytes
    coding: Coding = PLAIN
    is_all: bool = False

    def part(self, body: int) -> TextPart:
        """The file, with its rows from a byte on."""
        return TextPart(self.path, self.label, self.size, body, self.coding)

    @property
    def body(self) -> int:
        """The byte after the byte order mark, if there is one."""
        return len(BYTE_ORDER_MARK) if self.data.startswith(BYTE_ORDER_MARK) else 0

    def lines(self, start: int) -> bytes:
        """The whole lines from byte `start` on."""
        whole = self.data if self.is_all else self.data[: self.data.rfind(b"\n") + 1]
        return whole[start:]


def take_sample(path: Place, label: str, coding: Coding = PLAIN) -> FileSample:
    """Read the beginning of a text file: two whole lines at least, where there are as many.

    Bytes that are not text make single rows dead letters, wherever they are. Only what begins as no text does
    is refused.

    Raises:
        OSError: the file cannot be read.
        SourceError: it is compressed, or of another kind.
    """
    size = path.stat().st_size
    with coding.open(path) as file:
        data = file.read(SAMPLE_BYTES)
        for _ in range(_WHOLE_LINES - data.count(b"\n", 0, SAMPLE_BYTES)):
            data += file.readline()
        is_all = not file.read(1)
    for signature, kind in _NO_TEXT.items():
        if data.startswith(signature):
            raise SourceError(f"{label}: this is not text: it is {kind}", hint=_hint_of(kind))
    return FileSample(path, label, size, data, coding, is_all)


def _hint_of(kind: str) -> str:
    """What to do about a file of a kind."""
    name = _NAMES.get(kind)
    if name is None:
        return "store it as text"
    return f"give it a name that ends so, or add the option compression '{name}'"


def estimate_rows(sample: FileSample | None, size: int) -> int:
    """About how many lines there are in `size` bytes of lines as long as those of the sample."""
    if sample is None:
        return 0
    lines = sample.data.count(b"\n") + (not sample.data.endswith(b"\n"))
    if sample.coding.compression != "none":
        size *= _RATIO
    return max(size * lines // max(len(sample.data), 1), 1)


def other_delimiter(names: Sequence[str]) -> str | None:
    """A hint where the only name of a header holds what other files separate columns by."""
    found = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
    written = "\\t" if found == "\t" else found
    return found and f"if {written} separates the columns, add the option delimiter '{written}'"
