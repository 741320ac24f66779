"""What turns have taken: for how many rows, and in how much time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FIRST: Final = 64
"""So many rows are taken in the first turn, of which nobody knows how long it takes."""
_GROWTH: Final = 4
"""So many times as many rows as ever before are taken at most."""
_KEPT: Final = 0.8
"""The part of what is known that stays so with each turn."""
_ALIKE: Final = 0.01
"""Turns whose numbers of rows vary by less (squared, beside the mean) do not say what a row takes."""


@dataclass
class Measured:
    """What is known of who takes turns.

    A turn takes some time whatever its rows, and some more for each of them. The two are told apart by a line
    through the last turns, by least squares, as far as these took different numbers of rows.

    Attributes:
        passed: the time that it has had (seconds), divided by its weight.
        turn: the number of its last turn, counted from 1; 0 if it has had none.
        took: the time that all its turns took (seconds).
        rows: the rows of all its turns.
        turns: how many it has had.
        largest: the most rows that one of them took.
    """

    passed: float = 0.0
    turn: int = 0
    took: float = 0.0
    rows: int = 0
    turns: int = 0
    largest: int = 0
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
        new = (1.0, rows, worked, rows * rows, rows * worked)
        self._sums = tuple(known * _KEPT + one for known, one in zip(self._sums, new, strict=True))

    @property
    def cost(self) -> float:
        """The time that operators need for one row more (seconds); 0 before the first turn."""
        return self._line[1]

    def expected(self, rows: int) -> float:
        """The time that operators need for a turn (seconds)."""
        whole, each = self._line
        return whole + each * rows

    def fitting(self, seconds: float) -> int:
        """The number of rows for which a turn takes so long; at least as many as are worth a turn.

        Args:
            seconds: how long it may take.
        """
        whole, each = self._line
        most = max(_FIRST, self.largest * _GROWTH)
        if not each:
            return most
        return max(1, min(most, int(max(seconds - whole, whole) / each)))

    @property
    def _line(self) -> tuple[float, float]:
        """The time of a turn whatever its rows, and that of a row (seconds)."""
        count, rows, worked, squares, products = self._sums
        if not rows:
            return 0.0, 0.0
        variance = squares / count - (rows / count) ** 2
        if variance <= _ALIKE * (rows / count) ** 2:
            return 0.0, worked / rows
        each = (products / count - rows / count * worked / count) / variance
        each = min(max(each, 0.0), worked / rows)
        return max(0.0, (worked - each * rows) / count), each
