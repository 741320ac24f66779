"""What turns have taken: for how many rows, and in how much time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FIRST: Final = 64
"""So many rows are taken in the first turn, of which nobody knows how long it takes."""
_GROWTH: Final = 4
"""So many times as many rows as in the last turn are taken at most."""
_NEWEST: Final = 0.3
"""The part that the last turn has in what is known of a row."""


@dataclass
class Measured:
    """What is known of who takes turns.

    Attributes:
        passed: the time that it has had (seconds), divided by its weight.
        turn: the number of its last turn, counted from 1; 0 if it has had none.
        cost: the time that operators need for a row (seconds), smoothed; 0 before its first turn.
        took: the time that all its turns took (seconds).
        rows: the rows of all its turns.
        turns: how many it has had.
    """

    passed: float = 0.0
    turn: int = 0
    cost: float = 0.0
    took: float = 0.0
    rows: int = 0
    turns: int = 0
    _last: int = 0

    def note(self, turn: int, rows: int, worked: float, seconds: float, weight: float) -> None:
        """Take in a turn.

        Args:
            turn: its number.
            rows: how many rows it took.
            worked: how long its operators worked.
            seconds: how long it took.
            weight: the weight of who took it.
        """
        self.turn, self.turns = turn, self.turns + 1
        self.took, self.rows = self.took + seconds, self.rows + rows
        self.passed += seconds / weight if weight else 0.0
        if rows:
            each = worked / rows
            self.cost = each if not self.cost else self.cost + _NEWEST * (each - self.cost)
            self._last = max(rows, self._last)

    @property
    def most(self) -> int:
        """So many rows at most are taken next."""
        return max(_FIRST, self._last * _GROWTH)
