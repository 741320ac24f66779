"""The rows of a stream that are kept, as far as commits know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.runtime.journal.parts import packed_part, unpacked_part
from headrace.runtime.tasks.messages import RetainedFile
from headrace.time import BEGINNING


@dataclass(frozen=True)
class Retained:
    """The rows of a stream that are kept.

    Attributes:
        files: where they are, in the order of the epochs that took them.
        since: all that were accepted with this instant or a later one are there; BEGINNING if none is gone.
    """

    files: tuple[RetainedFile, ...] = ()
    since: int = BEGINNING

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """How many bytes their files have."""
        return sum(file.part.length for file in self.files)


def packed_retained(retained: Retained) -> list[Any]:
    """What is kept of a stream, as JSON has it."""
    files = [
        [packed_part(one.part), one.rows, one.first, one.last, one.newest, one.heartbeat, one.tier]
        for one in retained.files
    ]
    return [retained.since, files]


def unpacked_retained(since: int, files: list[list[Any]]) -> Retained:
    """What is kept of a stream, from its JSON.

    Raises:
        TypeError, ValueError: it is something else.
    """
    found = (RetainedFile(unpacked_part("segments", part), *rest) for part, *rest in files)
    return Retained(tuple(found), since)
