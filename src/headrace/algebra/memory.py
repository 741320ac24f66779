"""How long queries remember that do without rows that come later than their stream allows."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.algebra.arrival import Dial, Past, Unit
from headrace.time import BEGINNING, INFINITY

ALL: Final = INFINITY
"""The length of the memory of a query that takes all rows that its stream allows, from some instant on."""


class Memory(NamedTuple):
    """A stream, and for how long some queries remember it.

    Attributes:
        stream: its name.
        length: how far the newest row that limits what is taken is behind: by TIME so much older than the
            newest row before it a row may be (instants), by ARRIVAL a row may be older than none that came
            so many microseconds ago, by ROWS than none that came before the last so many rows; `ALL` for all
            that the stream allows.
        unit: what the length counts.
        floor: rows before this instant are left out however long the memory is: they were final before the
            memory became longer. BEGINNING for none.
    """

    stream: str
    length: int
    unit: Unit = Unit.TIME
    floor: int = BEGINNING

    @property
    def dial(self) -> Dial | None:
        """How far back it looks at what its stream had brought; None if it does not."""
        return None if self.unit is Unit.TIME else Dial(self.unit, self.length)

    def reached(self, heartbeat: int, newest: int, past: Past) -> int:
        """The heartbeat of the stream for the queries that remember it for so long.

        Args:
            heartbeat: the stream's (instant).
            newest: its largest timestamp (instant), BEGINNING before the first.
            past: what it had brought before, by the commits so far; only by ARRIVAL and ROWS.
        """
        if self.dial is not None:
            return max(heartbeat, past.newest(self.dial), self.floor)
        known = newest != BEGINNING and self.length != ALL
        return max(heartbeat, newest - self.length if known else BEGINNING, self.floor)
