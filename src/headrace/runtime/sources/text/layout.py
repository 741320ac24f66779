"""JSON that is written in another way than one object per line, brought to that without moving a byte."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from headrace.elements import Int64Array
from headrace.kernels.jit import BYTES, INT, INT1_OUT, kernel

LINES: Final = -1
"""One object per line: nothing is to be done."""
SPREAD: Final = 0
"""One object after the other, each over several lines."""
ARRAY: Final = 1
"""The elements of one array."""

_NEWLINE: Final = ord("\n")
_RETURN: Final = ord("\r")
_BLANK: Final = ord(" ")
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_COMMA: Final = ord(",")
_OPENING: Final = (ord("{"), ord("["))
_CLOSING: Final = (ord("}"), ord("]"))
_NO_TEXT: Final = 255


def begun() -> Int64Array:
    """What `laid_out` remembers before the first byte: the depth, whether it is in a string, an escape."""
    return np.zeros(3, np.int64)


@kernel(BYTES, INT, INT1_OUT)
def laid_out(data: npt.NDArray[np.uint8], layout: int, state: Int64Array) -> npt.NDArray[np.uint8]:
    """A piece of a text with one object per line: each byte in its place, or a blank or a line feed instead.

    A line feed inside a string, which JSON does not allow, becomes a byte that is not text.

    Args:
        data: the piece.
        layout: SPREAD or ARRAY.
        state: see `begun`; it is changed to what the next piece needs.
    """
    found = data.copy()
    depth, quoted, escaped = state[0], state[1], state[2]
    for at in range(len(data)):
        byte = data[at]
        if quoted:
            if not escaped and byte in (_NEWLINE, _RETURN):
                found[at] = _NO_TEXT
            quoted = escaped or byte != _QUOTE
            escaped = not escaped and byte == _BACKSLASH
        else:
            quoted = byte == _QUOTE
            after = depth + (byte in _OPENING) - (byte in _CLOSING)
            if min(depth, after) < layout and after != depth:
                found[at] = _BLANK
            elif layout > 0 and byte == _COMMA and depth == layout:
                found[at] = _NEWLINE
            elif byte == _RETURN or (byte == _NEWLINE and max(depth, layout) > 0):
                found[at] = _BLANK
            depth = after
    state[0], state[1], state[2] = depth, quoted, escaped
    return found
