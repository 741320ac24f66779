"""The state that there will be, or the processor time, as a function of the numbers that may change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.elements import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class Load:
    """The state that the operators of a run keep, as a function of the windows and granules below them.

    A window of a stream with r rows per instant has r w rows when it is full, where w is its size; a window
    of rows has p w, where p is the number of its partitions. What an operator keeps grows with the rows in
    the windows below it; with their product where they are joined below it.

    An operator that keeps rows for groups and the instants at which something changes keeps one for all that
    happens to a group at an instant. With granules there are w/g such instants for each of G groups, and of
    so many cells n rows leave some empty: G w/g (1 - exp(-n g / (G w))) are not (thesis, equation 22.30).

    Attributes:
        fixed: what does not depend on windows (bytes, or cores).
        per_row: float64[n], for each operator what it needs for a row in the windows below it.
        rows: float64[n], with how many rows there that was measured.
        degrees: float64[n], the power with which it grows with them: 1, and 1 more for each join below.
        groups: float64[n], how many groups it has; infinite where rows of one instant stay apart.
        owners: int64[m], the windows below operators: whose each is, increasing.
        rates: float64[m], the rows of their streams per instant, or the partitions of a window of rows.
        lags: float64[m], for how long rows stay besides, since others may come late (instants).
        knobs: int64[m], which of the numbers that may change is their size; -1 for none.
        lengths: float64[m], their sizes where these never change (instants).
        granule_knobs: int64[m], which of the numbers that may change is their granule; -1 for none.
        granules: float64[m], their granules where these never change (instants).
    """

    fixed: float
    per_row: Float64Array
    rows: Float64Array
    degrees: Float64Array
    groups: Float64Array
    owners: Int64Array
    rates: Float64Array
    lags: Float64Array
    knobs: Int64Array
    lengths: Float64Array
    granule_knobs: Int64Array
    granules: Float64Array

    def at(self, values: Int64Array) -> float:
        """The need when all windows are full and rows come as they come now.

        Args:
            values: int64[k], the numbers that may change (instants, or rows).
        """
        if not len(self.owners):
            return self.fixed
        known = np.append(values, 0)
        spans = np.where(self.knobs < 0, self.lengths, known[self.knobs]) + self.lags
        granules = np.where(self.granule_knobs < 0, self.granules, known[self.granule_knobs])
        each = occupied(self.rates * spans, self.groups[self.owners], spans / granules)
        rows = np.bincount(self.owners, each, len(self.per_row))
        grown = (rows / self.rows) ** (self.degrees - 1)
        return self.fixed + float((self.per_row * rows * grown).sum())


def occupied(rows: Float64Array, groups: Float64Array, steps: Float64Array) -> Float64Array:
    """float64[n]: how many cells are not empty, one for each group and instant, if rows fall at random.

    This is Cardenas' formula, which the thesis uses for the same.

    Args:
        rows: float64[n], how many rows.
        groups: float64[n], how many groups; infinite where each row has a cell of its own.
        steps: float64[n], at how many instants; infinite likewise.
    """
    finite = np.isfinite(groups) & np.isfinite(steps)
    cells = np.maximum(np.where(finite, groups, 1.0) * np.where(finite, steps, 1.0), 1e-9)
    found: Float64Array = np.where(finite, -cells * np.expm1(-rows / cells), rows)
    return found
