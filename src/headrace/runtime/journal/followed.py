"""The files of a folder that is followed, as far as commits know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ReadFile:
    """A file of which rows have been read.

    Attributes:
        size: its bytes when it was found.
        changed: when it had been changed last then (nanoseconds since 1970-01-01 UTC).
        left: how many of its positions have not been read yet, in the unit of its format.
    """

    size: int
    changed: int
    left: int = 0


Followed = Mapping[str, ReadFile]
"""The files by name, in the order in which they were found."""


def packed_files(files: Followed) -> dict[str, list[int]]:
    """The files, as JSON has them."""
    return {
        name: [one.size, one.changed, one.left] if one.left else [one.size, one.changed]
        for name, one in files.items()
    }


def unpacked_files(files: Mapping[str, Sequence[int]]) -> dict[str, ReadFile]:
    """The files, from their JSON.

    Raises:
        AttributeError, TypeError: it is something else.
    """
    return {name: ReadFile(*one) for name, one in files.items()}
