"""What turns have taken: for how many rows, and in how much time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_FIRST: Final = 64
"""So many rows are taken in the first turn, of which nobody knows how long it takes."""
_GROWTH: Final = 2
"""So many times as many rows as ever before are taken at most."""
_FORGOTTEN: Final = 1.005
"""The shortest turn counts as so many times as long with each turn after it."""
_NEWEST: Final = 0.4
"""The part that the last turn has in what is known of a row."""
_LEAST: Final = 0.1
"""Of a turn at least this part is for its rows."""


@dataclass
class Measured:
    """What is known of who takes turns.

    A turn takes some time whatever its rows, which is about what the shortest of them took; the rest is for
    its rows.

    Attributes:
        passed: the time that it has had (seconds), divided by its weight.
        turn: the number of its last turn, counted from 1; 0 if it has had none.
        took: the time that all its turns took (seconds).
        rows: the rows of all its turns.
        turns: how many it has had.
        largest: the most rows that one of them took.
        each: the time that operators need whatever the rows of a turn (seconds).
        cost: the time that they need for a row besides (seconds), smoothed; 0 before the first turn.
    """

    passed: float = 0.0
    turn: int = 0
    took: float = 0.0
    rows: int = 0
    turns: int = 0
    largest: int = 0
    each: float = math.inf
    cost: float = 0.0

    def note(self, turn: int, rows: int, worked: float, seconds: float, weight: float) -> None:
        """Take in a turn.

        Args:
            turn: its number.
            rows: how many rows it took.
            worked: how long its operators worked (seconds).
            seconds: how long it took.
            weight: the weight of who took it.
        """
        self.turn, self.turns = turn, self.turns + 1
        self.took, self.rows, self.largest = self.took + seconds, self.rows + rows, max(self.largest, rows)
        self.passed += seconds / weight if weight else 0.0
        if not rows:
            return
        own = max(worked - self.each, _LEAST * worked) / rows
        self.each = min(self.each * _FORGOTTEN, worked)
        self.cost = own if not self.cost else self.cost + _NEWEST * (own - self.cost)

    def expected(self, rows: int) -> float:
        """The time that operators need for a turn (seconds)."""
        return self.each + self.cost * rows if self.cost else 0.0

    def fitting(self, seconds: float) -> int:
        """The number of rows for which a turn takes so long. Half of that is for rows whatever else it takes.

        Args:
            seconds: how long it may take.
        """
        most = max(_FIRST, self.largest * _GROWTH)
        if not self.cost:
            return most
        room = max(seconds - self.each, seconds / 2)
        return max(1, min(most, int(room / self.cost)))
