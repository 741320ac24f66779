"""Parquet files: the sizes and numbers of values that the headers of their pages declare.

A column of a group of rows is a sequence of pages. Each begins with a header in Thrift's compact form
(PageHeader of parquet.thrift): the size of the page, unpacked and packed, how many values it has, and how
they are written. Arrow allocates what the header says, and refuses a page that has another size; values that
repeat take no bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.parquet as pq

from headrace.server.packed.unpacked_size import UnpackedSize

_UNPACKED, _PACKED = 2, 3
"""Fields of PageHeader: the sizes of the page."""
_DATA_PAGE, _DATA_PAGE_V2 = 5, 8
"""Fields of PageHeader about a page of data, in either version; their first field is how many values."""
_ENCODING: Final = {_DATA_PAGE: 2, _DATA_PAGE_V2: 4}
"""The field in it that says how values are written."""
_DELTAS: Final = frozenset([6, 7])
"""How texts are written by lengths that follow each other, and by beginnings that they share."""
_TEXT: Final = "BYTE_ARRAY"
_PAGE: Final = 512
"""Bytes that a page counts with at least, so that there are not too many of them."""
_VALUE: Final = 8
"""Bytes that a value counts with at least."""
_ROWS: Final = 65_536
"""So many rows are unpacked at once, unless they may be large."""


@dataclass(frozen=True)
class _Page:
    unpacked: int
    values: int
    deltas: bool


@dataclass(frozen=True)
class ParquetPages:
    """What the pages of a file say of themselves.

    Attributes:
        texts: the paths of the columns whose texts lie in a dictionary.
        rows_at_once: how many rows may be unpacked together.
    """

    texts: list[str]
    rows_at_once: int


def counted(file: pq.ParquetFile, body: bytes, limit: int) -> ParquetPages:
    """Count what a file unpacks to, without unpacking it.

    Args:
        file: the file, of which only the footer has been read.
        body: its bytes.
        limit: so many bytes are taken.

    Raises:
        RequestError: it is too much.
        ValueError: the file is damaged.
    """
    columns = [file.schema.column(number) for number in range(len(file.schema))]
    sizes, values = UnpackedSize(limit), UnpackedSize(limit)
    texts, largest = [column.path for column in columns if column.physical_type == _TEXT], 0
    try:
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
            for number, column in enumerate(columns):
                pages = []
                for page in _pages(group.column(number), body):
                    sizes.add(max(page.unpacked, _PAGE))
                    pages.append(page)
                found = max(sum(page.values for page in pages), group.num_rows)
                values.add(max(_VALUE, column.length) * found)
                if column.physical_type != _TEXT or not any(page.deltas for page in pages):
                    continue
                # Arrow makes no dictionary of such pages: the longest text may be that of every value.
                longest = max(page.unpacked for page in pages)
                if column.max_repetition_level:
                    UnpackedSize(limit).add(longest * found)
                texts, largest = [path for path in texts if path != column.path], max(largest, longest)
    except IndexError as error:
        raise ValueError("the header of a page is damaged") from error
    return ParquetPages(texts, max(1, min(_ROWS, limit // (4 * largest))) if largest else _ROWS)


def _pages(chunk: pq.ColumnChunkMetaData, body: bytes) -> Iterator[_Page]:
    """The pages of a column of a group, as Arrow comes across them."""
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    if at < 0:
        raise ValueError("a page lies before the file")
    seen = 0
    while seen < chunk.num_values and at < len(body):
        header, at = _Thrift(body, at).struct()
        page = _page(header)
        seen += page.values
        at += header[_PACKED]
        yield page


def _page(header: dict[int, Any]) -> _Page:
    unpacked, packed = header.get(_UNPACKED), header.get(_PACKED)
    if not isinstance(unpacked, int) or not isinstance(packed, int) or min(unpacked, packed) < 0:
        raise ValueError("the header of a page has no sizes")
    for field, encoding in _ENCODING.items():
        if isinstance(data := header.get(field), dict):
            values = data.get(1)
            if not isinstance(values, int) or values < 0:
                raise ValueError("the header of a page does not say how many values it has")
            return _Page(unpacked, values, data.get(encoding) in _DELTAS)
    return _Page(unpacked, 0, deltas=False)


class _Thrift:
    """A structure in Thrift's compact form.

    Args:
        data: bytes with it.
        at: where it begins.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def struct(self, depth: int = 0) -> tuple[dict[int, Any], int]:
        """Its fields that are numbers and structures, by their numbers, and where it ends.

        Raises:
            IndexError: it does not end.
            ValueError: it has what no structure has.
        """
        found, field = dict[int, Any](), 0
        while (head := self._byte()) != 0:
            step, kind = head >> 4, head & 15
            field = field + step if step else self._number()
            found[field] = self._value(kind, depth)
        return found, self._at

    def _value(self, kind: int, depth: int) -> Any:
        if depth > 8:
            raise ValueError("the header of a page is too deep")
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._number()
            case 7:
                self._at += 8
            case 8:
                size = self._varint()
                self._at += size
            case 9 | 10:
                self._skip_list(depth)
            case 12:
                return self.struct(depth + 1)[0]
            case _:
                raise ValueError("the header of a page has a field of no kind that is known")
        return None

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        size, kind = head >> 4, head & 15
        for _ in range(self._varint() if size == 15 else size):
            if kind in (1, 2):
                self._at += 1
            else:
                self._value(kind, depth + 1)

    def _byte(self) -> int:
        found = self._data[self._at]
        self._at += 1
        return found

    def _varint(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise ValueError("the header of a page has a number without an end")

    def _number(self) -> int:
        """A number that is written with its sign in its last bit."""
        found = self._varint()
        return (found >> 1) ^ -(found & 1)
