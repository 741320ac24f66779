"""How long queries remember that do without rows that come later than their stream allows."""

from __future__ import annotations

from typing import NamedTuple

from headrace.time import BEGINNING


class Memory(NamedTuple):
    """A stream, and for how long some queries remember it.

    Attributes:
        stream: its name.
        length: how much older than the newest row before it a row may be to be taken (instants).
    """

    stream: str
    length: int


def reached(heartbeat: int, newest: int, length: int) -> int:
    """The heartbeat of a stream for the queries that remember it for so long.

    Args:
        heartbeat: the stream's (instant).
        newest: its largest timestamp (instant), BEGINNING before the first.
        length: how much older than that a row may be for these queries (instants).
    """
    return heartbeat if newest == BEGINNING else max(heartbeat, newest - length)
