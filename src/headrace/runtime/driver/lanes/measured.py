"""The rows and the time that turns have taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FIRST: Final = 64
"""So many rows are taken in the first turn, of which nobody knows how long it takes."""
_GROWTH: Final = 2
"""So many times as many rows as ever before are taken at most."""
_STAYING: Final = 0.8
"""The part of what is known that stays so with each turn."""
_PRIOR: Final = 0.05
"""So much (squared, beside the mean) rows of turns have to vary until that counts as much as the guess that
all of a turn's time is for its rows."""
_LEAST: Final = 0.2
"""Of the time of turns at least this part is for their rows."""


@dataclass
class Measured:
    """The measurements of one who takes turns.

    A turn takes some time whatever its rows, and some for each of them. The two are told apart by a line
    through the last turns, by least squares, as far as these had different numbers of rows.

    Attributes:
        passed: the time that it has had (seconds), divided by its weight.
        turn: the number of its last turn, counted from 1; 0 if it has had none.
        took: the time that all its turns took (seconds).
        rows: the rows of all its turns.
        turns: how many it has had.
        largest: the most rows that one of them took.
        each: the time that operators need whatever the rows of a turn (seconds).
        cost: the time that they need for a row besides (seconds); 0 before the first turn.
    """

    passed: float = 0.0
    turn: int = 0
    took: float = 0.0
    rows: int = 0
    turns: int = 0
    largest: int = 0
    each: float = 0.0
    cost: float = 0.0
    _sums: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)

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
        new = (1.0, rows, worked, rows * rows, rows * worked)
        self._sums = tuple(known * _STAYING + one for known, one in zip(self._sums, new, strict=True))
        count, *sums = self._sums
        row, time, square, product = (one / count for one in sums)
        slope = (product - row * time + _PRIOR * row * time) / (square - row**2 + _PRIOR * row**2)
        self.cost = min(max(slope, _LEAST * time / row), time / row)
        self.each = time - self.cost * row

    def expected(self, rows: int) -> float:
        """The time that operators need for a turn (seconds)."""
        return self.each + self.cost * rows

    def fitting(self, seconds: float) -> int:
        """The number of rows for which a turn takes so long. Half of that is for rows whatever else it takes.

        Args:
            seconds: how long it may take.
        """
        most = max(_FIRST, self.largest * _GROWTH)
        if not self.cost:
            return most
        return max(1, min(most, int(max(seconds - self.each, seconds / 2) / self.cost)))
