"""The bytes of state that there will be, as a function of the sizes of windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.elements import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Load:
    """The state that the operators of a run keep, as a function of the sizes of the windows below them.

    A window of a stream with r rows per instant has r w rows when it is full, where w is its size. What an
    operator keeps grows with the rows in the windows below it; with their product where they are joined
    below it.

    Attributes:
        fixed: what does not depend on windows (bytes).
        per_row: float64[n], for each operator the bytes that it keeps for a row in the windows below it.
        rows: float64[n], with how many rows there that was measured.
        degrees: float64[n], the power with which it grows with them: 1, and 1 more for each join below.
        owners: int64[m], the windows below operators: whose each is, increasing.
        rates: float64[m], the rows of their streams per instant.
        lags: float64[m], for how long rows stay besides, since others may come late (instants).
        knobs: int64[m], which of the sizes that may change is theirs; -1 for none.
        lengths: float64[m], their sizes where these never change (instants).
    """

    fixed: float
    per_row: Float64Array
    rows: Float64Array
    degrees: Float64Array
    owners: Int64Array
    rates: Float64Array
    lags: Float64Array
    knobs: Int64Array
    lengths: Float64Array

    def bytes_at(self, sizes: Int64Array) -> float:
        """The bytes that are kept when all windows are full and rows come as they come now.

        Args:
            sizes: int64[k], the sizes that may change (instants).
        """
        if not len(self.owners):
            return self.fixed
        known = np.append(sizes, 0)
        lengths = np.where(self.knobs < 0, self.lengths, known[self.knobs])
        rows = np.bincount(self.owners, self.rates * (lengths + self.lags), len(self.per_row))
        grown = (rows / self.rows) ** (self.degrees - 1)
        return self.fixed + float((self.per_row * rows * grown).sum())
