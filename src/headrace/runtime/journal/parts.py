"""Parts of files as a commit record names them."""

from __future__ import annotations

import re
from typing import Any

from headrace.operators.state.runs import RunPart


def packed_part(part: RunPart) -> list[Any]:
    """A part as JSON has it."""
    return [part.segment, part.offset, part.length, part.crc]


def unpacked_part(folder: str, packed: list[Any]) -> RunPart:
    """Where some bytes are, in a file of a certain folder: what a record names is read, and later removed.

    Raises:
        ValueError: the file is elsewhere.
    """
    part = RunPart(*packed)
    if not re.fullmatch(rf"{folder}/[A-Za-z0-9-]+", part.segment):
        raise ValueError(f"{part.segment!r} is not a file of {folder}/")
    return part
