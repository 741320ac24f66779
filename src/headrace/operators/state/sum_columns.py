"""Columns that are added up: those that are always there, and limbs of exact sums where they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import LIMB, Int64Array, integers, limbs_of


@dataclass(frozen=True, eq=False)
class SumColumns:
    """Sums side by side.

    Attributes:
        values: int64[n, c], the columns that are always there, then the limbs.
        limbs: the names of the limbs, in ascending order.
        idle: columns that are known to be 0 in all rows; others may be as well.
    """

    values: Int64Array
    limbs: tuple[str, ...] = ()
    idle: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.values)

    def with_limbs(self, limbs: tuple[str, ...]) -> SumColumns:
        """The same sums with more limbs, which are 0; `limbs` has all that there are."""
        if limbs == self.limbs:
            return self
        fixed = self.values.shape[1] - len(self.limbs)
        values = np.zeros((len(self.values), fixed + len(limbs)), dtype=np.int64)
        values[:, :fixed] = self.values[:, :fixed]
        for place, name in enumerate(self.limbs, fixed):
            values[:, fixed + limbs.index(name)] = self.values[:, place]
        return SumColumns(values, limbs)

    def has_term(self, term: int) -> bool:
        """Whether one exact sum has a limb."""
        return any(name.startswith(limb_name(term)) for name in self.limbs)

    def of_term(self, term: int) -> tuple[Int64Array, Int64Array]:
        """The limbs of one exact sum: their places (int64[p], ascending, at least one), and int64[p, n]."""
        prefix, fixed = limb_name(term), self.values.shape[1] - len(self.limbs)
        found = {name: column for column, name in enumerate(self.limbs, fixed) if name.startswith(prefix)}
        if not found:
            return np.zeros(1, dtype=np.int64), np.zeros((1, len(self.values)), dtype=np.int64)
        places = np.array([int(name.removeprefix(prefix)) for name in found])
        return places, np.ascontiguousarray(self.values.T[list(found.values())])


def limb_name(term: int, place: int | None = None) -> str:
    """The name of a limb of an exact sum, or how the names of all its limbs begin.

    The order of names is that of sums and places.
    """
    return f"{LIMB}{term:04d}_" + ("" if place is None else f"{place:03d}")


def term_of(limb: str) -> tuple[int, int]:
    """The sum and the place of a limb, from its name."""
    term, place = limb.removeprefix(LIMB).split("_")
    return int(term), int(place)


def all_limbs(parts: Sequence[SumColumns]) -> tuple[str, ...]:
    """The limbs that some part has."""
    return tuple(sorted({name for part in parts for name in part.limbs}))


def concat_sums(parts: Sequence[SumColumns]) -> SumColumns:
    """The rows of all parts, in order."""
    limbs = all_limbs(parts)
    full = [part for part in parts if len(part)]
    if len(full) == 1:
        return full[0].with_limbs(limbs)
    return SumColumns(np.concatenate([part.with_limbs(limbs).values for part in parts]), limbs)


def sums_of(rows: pa.RecordBatch, names: tuple[str, ...]) -> SumColumns:
    """The sums among the columns of rows: those of the names, and limbs."""
    limbs = limbs_of(rows)
    return SumColumns(matrix(rows, (*names, *limbs)), limbs)


def matrix(rows: pa.RecordBatch, names: tuple[str, ...]) -> Int64Array:
    """Columns of integers without NULLs side by side, rows first; int64[n, len(names)]."""
    result = np.zeros((rows.num_rows, len(names)), dtype=np.int64)
    for place, name in enumerate(names):
        column = integers(rows.column(name))
        if not is_idle(column):
            result[:, place] = column
    return result


def is_idle(column: Int64Array) -> bool:
    """Whether all of a column is 0, where that is soon seen of one that is not.

    So are the sums of an aggregate whose condition is true of no row.

    Args:
        column: int64[n].
    """
    return not len(column) or bool(column[0] == 0 == column[-1] and not column.any())


def sum_arrays(
    names: tuple[str, ...], limbs: tuple[str, ...], values: Int64Array, idle: frozenset[int] = frozenset()
) -> dict[str, pa.Array]:
    """Sums, int64[c, n], as Arrow columns by name; limbs that are 0 in all rows are left out.

    Args:
        names, limbs: of the columns.
        values: int64[c, n].
        idle: the numbers of columns that are known to be 0.
    """
    nothing = pa.array(np.zeros(values.shape[1], dtype=np.int64)) if idle else None
    columns = {
        name: nothing if place in idle else pa.array(column)
        for place, (name, column) in enumerate(zip((*names, *limbs), values, strict=True))
    }
    for name, column in zip(limbs, values[len(names) :], strict=True):
        if not column.any():
            del columns[name]
    return columns
