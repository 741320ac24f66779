"""Arrow's streams: the sizes that their messages declare for compressed buffers.

A message of the format IPC is a FlatBuffer, then a body. Of the FlatBuffer of a record batch is read where
its buffers lie in the body (format/Message.fbs of Apache Arrow). A compressed one begins with its size when
it is not, as eight bytes; Arrow allocates that much, and refuses a buffer that has another size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from headrace.server.packed.unpacked_size import UnpackedSize

_HEADER_TYPE, _HEADER = 1, 2
"""Fields of Message."""
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
"""Kinds of headers of a Message."""
_DATA: Final = 1
"""The field of DictionaryBatch that is its RecordBatch."""
_BUFFERS, _COMPRESSION = 2, 3
"""Fields of RecordBatch: where its buffers are, and how they are compressed."""
_BUFFER: Final = 16
"""Bytes of a buffer's place: its offset and its length."""
_AS_IT_IS: Final = -1
"""The size of a buffer that is not compressed though the others are."""


def count_arrow(body: bytes, count: UnpackedSize) -> None:
    """Count what a stream of Arrow's unpacks to, without unpacking it.

    Args:
        body: the stream.
        count: takes the sizes.

    Raises:
        RequestError: it is too much.
        ValueError: the stream is damaged.
    """
    try:
        for message in _messages(body):
            _count_message(memoryview(message.metadata), memoryview(message.body or b""), count)
    except struct.error as error:
        raise ValueError(f"its metadata is damaged: {error}") from None


def _messages(body: bytes) -> Iterator[pa.ipc.Message]:
    reader = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _count_message(metadata: memoryview, body: memoryview, count: UnpackedSize) -> None:
    message = _Table(metadata, _pointed(metadata, 0))
    kind = message.byte(_HEADER_TYPE)
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return
    batch = message.table(_HEADER)
    if kind == _DICTIONARY_BATCH and batch is not None:
        batch = batch.table(_DATA)
    if batch is None or batch.table(_COMPRESSION) is None:
        # Its buffers are parts of the body.
        return
    for offset, length in batch.structs(_BUFFERS, _BUFFER):
        if length > 0:
            (size,) = struct.unpack_from("<q", body, offset) if offset >= 0 else (-2,)
            count.add(length if size == _AS_IT_IS else size)


class _Table:
    """A table of a FlatBuffer, whose fields are found by its own list of offsets.

    Args:
        data: the FlatBuffer.
        at: where the table begins.
    """

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._at = at
        (back,) = struct.unpack_from("<i", data, at)
        self._fields = at - back
        (self._size,) = struct.unpack_from("<H", data, self._fields)

    def byte(self, field: int) -> int:
        """The value of a field of one byte; 0 where it is left out."""
        at = self._place(field)
        return 0 if at is None else int(self._data[at])

    def table(self, field: int) -> _Table | None:
        """The table of a field, or None where it is left out."""
        at = self._place(field)
        return None if at is None else _Table(self._data, _pointed(self._data, at))

    def structs(self, field: int, size: int) -> Iterator[tuple[int, int]]:
        """The first two numbers of 8 bytes of each struct of so many bytes in a vector."""
        at = self._place(field)
        if at is None:
            return
        start = _pointed(self._data, at)
        (number,) = struct.unpack_from("<I", self._data, start)
        for index in range(number):
            yield struct.unpack_from("<qq", self._data, start + 4 + index * size)

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        (offset,) = struct.unpack_from("<H", self._data, self._fields + entry)
        return self._at + offset if offset else None


def _pointed(data: memoryview, at: int) -> int:
    """Where an offset leads that is counted from its own place."""
    (offset,) = struct.unpack_from("<I", data, at)
    return at + int(offset)
