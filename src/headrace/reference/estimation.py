"""The definition of adaptive estimation: figure 4 of Srivastava and Widom, PODS 2004, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class PairEstimate:
    """The numbers of figure 4 for one pair of streams and one wait."""

    delta: float = 0
    largest: float = 0
    number: int = 0

    def take(self, measured: float, window: float, alpha: float) -> None:
        """Lines 5 to 14."""
        self.number += 1
        if measured > self.delta:
            self.delta, self.largest, self.number = measured, 0, 0
            return
        self.largest = max(self.largest, measured)
        if self.number > window:
            self.delta = alpha * self.delta + (1 - alpha) * self.largest
            self.largest, self.number = 0, 0


def estimated(
    rows: Sequence[tuple[int, int, int]], first: int, second: int, wait: int, window: float, alpha: float
) -> float | None:
    """The estimate for a pair of streams after some rows; None if nothing could be compared.

    As printed, a row is compared with itself too; here it is with the rows before it only.

    Args:
        rows: when they came, on which stream and with which timestamp; one at a time, in order.
        first, second: the streams, from and to.
        wait: so long before a row those have come that it is compared with.
        window: `W`, in rows; infinite for estimates that are never lowered (section 6.1).
        alpha: the weight of the former estimate.
    """
    found = PairEstimate()
    compared = False
    for place, (_, stream, instant) in enumerate(rows):
        # What holds when a row comes was concluded at the one before it.
        latest = rows[place - 1][0] - wait if place else 0
        known = [one for at, other, one in rows[:place] if other == first and at <= latest]
        if stream == second and known:
            compared = True
            found.take(max(max(known) - instant + 1, 0), window, alpha)
    return found.delta if compared else None
