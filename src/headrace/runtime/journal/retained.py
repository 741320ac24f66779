"""The rows of a stream that are kept, as far as commits know of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
        end: how many have been kept in all, those included that are gone.
    """

    files: tuple[RetainedFile, ...] = ()
    since: int = BEGINNING
    end: int = 0

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
        [packed_part(one.part), one.rows, one.first, one.last, one.newest, one.heartbeat, one.tier, one.at]
        for one in retained.files
    ]
    return [retained.since, files, retained.end]


def unpacked_retained(since: int, files: list[list[Any]], end: int | None = None) -> Retained:
    """The rows that are kept of a stream, from their JSON; an earlier Headrace has not counted them.

    Raises:
        TypeError, ValueError: it is something else.
    """
    found = (RetainedFile(unpacked_part("segments", part), *rest) for part, *rest in files)
    if end is not None:
        return Retained(tuple(found), since, end)
    counted, at = [], 0
    for file in found:
        counted.append(replace(file, at=at))
        at += file.rows
    return Retained(tuple(counted), since, at)
