"""Messages of a topic for tests, as they come from a broker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.runtime.sources.messages.messages import Messages, Pieces


def messages(values: Sequence[bytes | None], first: int = 0) -> Messages:
    """Messages of partition 3 with those values.

    Args:
        values: theirs.
        first: the offset of the first one.
    """
    return Messages("x", 3, np.arange(first, first + len(values)), pieces(values))


def pieces(values: Sequence[bytes | None]) -> Pieces:
    """The values as they lie in memory."""
    lengths = np.array([-1 if value is None else len(value) for value in values], np.int64)
    begins = np.cumsum(np.maximum(lengths, 0) + 1) - np.maximum(lengths, 0) - 1
    data = b"".join((value or b"") + b"\n" for value in values)
    return Pieces(np.frombuffer(data, np.uint8).copy(), begins, lengths)
