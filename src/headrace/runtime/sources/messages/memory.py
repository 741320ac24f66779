"""Kernels over messages where librdkafka has them: what vectors of pointers point to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from headrace.elements import BytesArray, Int64Array
from headrace.kernels.jit import BYTES_OUT, INT, INT1, INT1_OUT, carray, inner, intrinsic, kernel, loaded

END_OF_PARTITION: Final = -191
"""The error of what is no message, but says that there are no more for now."""
OUT_OF_RANGE: Final = -140
"""The error that says that an offset is not there."""

NO_TIME: Final = -(2**63)
"""The timestamp of a message that has none."""

# A message is `rd_kafka_message_t`, eight words: error, topic, partition, value and its length, key and its
# length, offset.
_WORDS: Final = 8
_ERROR: Final = 0
VALUE: Final = 3
"""The word with the pointer to the value; its length is in the next one."""
KEY: Final = 5
"""The same of the key."""
_OFFSET: Final = 7


def _ir() -> Any:
    return loaded("llvmlite.ir")


def _pointer() -> Any:
    return _ir().IntType(8).as_pointer()


@intrinsic
def _memory(typing: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
    """An address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], _pointer())

    return loaded("numba.types").voidptr(address), generate


@intrinsic
def _destroy(typing: Any, function: Any, message: Any) -> tuple[Any, Callable[..., Any]]:
    """Call a function of C without a result, at its address, with a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        called = builder.inttoptr(
            arguments[0], _ir().FunctionType(_ir().VoidType(), [_pointer()]).as_pointer()
        )
        builder.call(called, [builder.inttoptr(arguments[1], _pointer())])
        return context.get_dummy_value()

    return loaded("numba.types").void(function, message), generate


@intrinsic
def _timestamp(typing: Any, function: Any, message: Any, kind: Any) -> tuple[Any, Callable[..., Any]]:
    """Call a function of C at its address with two pointers, for an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        form = _ir().FunctionType(_ir().IntType(64), [_pointer(), _pointer()])
        called = builder.inttoptr(arguments[0], form.as_pointer())
        return builder.call(called, [builder.inttoptr(one, _pointer()) for one in arguments[1:]])

    return loaded("numba.types").int64(function, message, kind), generate


@inner
def _words(pointer: int) -> Int64Array:
    """What is in a message."""
    found: Int64Array = carray(_memory(pointer), (_WORDS,), np.int64)
    return found


@inner
def _error(words: Int64Array) -> int:
    """The error of a message, 0 where it is one; only half of the word is its own."""
    low = np.int64(words[_ERROR] & 0xFFFFFFFF)
    return int(low - 0x100000000) if low >= 0x80000000 else int(low)


@kernel(INT1, INT, INT, INT, INT1_OUT)
def look(pointers: Int64Array, first: int, last: int, offset: int, found: Int64Array) -> None:
    """What the messages `[first, last)` say; see `ReachedOffsets`.

    Args:
        pointers: the messages.
        first, last: which of them.
        offset: that was reached before.
        found: int64[4], is filled with the offset, how many rows there are, their bytes, and whether one says
            that an offset is not there.
    """
    rows = size = gone = 0
    for place in range(first, last):
        words = _words(pointers[place])
        error = _error(words)
        if error == 0:
            rows, size, offset = rows + 1, size + words[VALUE + 1], words[_OFFSET] + 1
        elif error == END_OF_PARTITION:
            offset = max(offset, words[_OFFSET])
        elif error == OUT_OF_RANGE:
            gone = 1
    found[0], found[1], found[2], found[3] = offset, rows, size, gone


@kernel(INT1_OUT, INT, INT1_OUT)
def select(pointers: Int64Array, end: int, offsets: Int64Array) -> int:
    """Move the messages below an offset before what is none, in order; how many there are.

    Args:
        pointers: the messages; is changed.
        end: the offset.
        offsets: is filled with theirs.
    """
    count = 0
    for place in range(len(pointers)):
        words = _words(pointers[place])
        if _error(words) == 0 and words[_OFFSET] < end:
            offsets[count] = words[_OFFSET]
            pointers[place], pointers[count] = pointers[count], pointers[place]
            count += 1
    return count


@kernel(INT1, INT, INT1_OUT)
def measure(pointers: Int64Array, word: int, lengths: Int64Array) -> int:
    """How many bytes the values or keys need, each with a line feed.

    Args:
        pointers: the messages.
        word: where a message has the pointer to its value or key.
        lengths: is filled with the length of each, -1 where there is none.
    """
    size = len(pointers)
    for place in range(len(pointers)):
        words = _words(pointers[place])
        lengths[place] = -1 if words[word] == 0 else words[word + 1]
        size += max(lengths[place], 0)
    return size


@kernel(INT1, INT, INT1, INT1_OUT, BYTES_OUT)
def copy(pointers: Int64Array, word: int, lengths: Int64Array, begins: Int64Array, data: BytesArray) -> None:
    """Copy values or keys, each with a line feed behind it.

    Args:
        pointers, word, lengths: as `measure` has them.
        begins: is filled with where each begins.
        data: is filled with them.
    """
    at = 0
    for place in range(len(pointers)):
        begins[place] = at
        length = lengths[place]
        if length > 0:
            data[at : at + length] = carray(_memory(_words(pointers[place])[word]), (length,), np.uint8)
            at += length
        data[at] = 10
        at += 1


@kernel(INT, INT1, INT)
def release(destroy: int, pointers: Int64Array, count: int) -> None:
    """Let the first messages go.

    Args:
        destroy: the address of the function that does.
        pointers: the messages.
        count: how many.
    """
    for place in range(count):
        _destroy(destroy, pointers[place])


@kernel(INT, INT1, INT1_OUT, INT1_OUT)
def times(function: int, pointers: Int64Array, kind: Int64Array, found: Int64Array) -> None:
    """When messages were made, in microseconds, or `NO_TIME`.

    Args:
        function: the address of the function that says it in milliseconds.
        pointers: the messages.
        kind: int64[1], memory for what kind of time it is.
        found: is filled.
    """
    for place in range(len(pointers)):
        kind[0] = 0
        at = _timestamp(function, pointers[place], kind.ctypes.data)
        found[place] = 1_000 * at if kind[0] != 0 else NO_TIME
