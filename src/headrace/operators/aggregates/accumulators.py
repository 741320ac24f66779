"""Aggregates as sums: what each one adds up per element.

Counts, sums, averages, variances and covariances are invertible: a retraction subtracts what an insertion
added. Everything is summed exactly, as 32-bit limbs in 64-bit counters (`headrace.kernels.numbers.limbs`),
so that only the *result* can overflow, never an intermediate sum. The result is rounded once
(`sum_values`), so it does not depend on the order of rows, nor on rows that have left. Integers and
decimals have a fixed number of limbs, doubles and products those that their values need. NaN and infinities
are counted apart. MIN, MAX and other aggregates that depend on which values there are keep the live values
instead (`live_values`). An aggregate of distinct values adds up the intervals in which a value is present
(`distinct_values`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.elements import BoolArray, Float64Array, Int64Array, integers
from headrace.expressions.aggregates.aggregates import effective_argument, masked
from headrace.expressions.aggregates.functions import KeptValues, function_of
from headrace.expressions.tree import AggregateCall, Expression
from headrace.kernels.numbers.integers import LIMB_BITS, MASK
from headrace.kernels.numbers.limbs import multiply_limbs, split_doubles, split_integers, spread_limbs
from headrace.operators.state.sum_columns import SumColumns, limb_name
from headrace.schema import BOOLEAN, DOUBLE

_PLACES: Final = 136
"""More places than the limbs of products of doubles have."""


@dataclass(frozen=True)
class Sums:
    """Which columns of a sum matrix belong to one argument, or to some that go together.

    Attributes:
        argument: what is summed.
        partners: the other column of CORR and COVAR, or those of COUNT(DISTINCT a, b, c).
        distinct: whether the presence of its values is summed, not the elements.
        exact: the number of columns of limbs of an integer or decimal, 0 where only a count is kept.
        floating: whether limbs of doubles are kept, of both columns where there are two.
        products: how many sums of products are kept: the squares (STDDEV, VARIANCE), or with a partner the
            squares of both and their product.
        ints: its first column: the count; the limbs of an integer or decimal follow.
        terms: the number of its first sum that has limbs as needed: those of doubles, then those of products,
            then the counts of NaNs, infinities and negative infinities, as if they were limbs.
    """

    argument: Expression
    partners: tuple[Expression, ...]
    distinct: bool
    exact: int
    floating: bool
    products: int
    ints: int
    terms: int

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """The expressions it adds up."""
        return (self.argument, *self.partners)

    @property
    def width(self) -> int:
        """How many columns it always has."""
        return 1 + self.exact

    @property
    def linear(self) -> int:
        """How many sums of doubles are kept."""
        return len(self.inputs) if self.floating else 0

    @property
    def odd(self) -> int:
        """The number of the counts of what is not finite."""
        return self.terms + self.linear + self.products


@dataclass(frozen=True)
class SumLayout:
    """All sums of an aggregation; column 0 is the number of rows.

    Attributes:
        sums: one entry per distinct argument.
        width: how many columns there are without limbs that are there as needed.
    """

    sums: tuple[Sums, ...]
    width: int

    @property
    def of_elements(self) -> tuple[Sums, ...]:
        """The sums that every element adds to."""
        return tuple(entry for entry in self.sums if not entry.distinct)


def is_invertible(call: AggregateCall) -> bool:
    """Whether the aggregate is read off sums, and not off the values that are there."""
    return function_of(call).kept.is_sum


_Identity = tuple[Expression, tuple[Expression, ...], bool]


def identity_of(call: AggregateCall) -> _Identity | None:
    """What an invertible aggregate adds up: argument, partners, distinct; None for a count of all rows."""
    argument = effective_argument(call)
    partners = tuple(masked(part, call.condition) for part in call.others)
    return None if argument is None else (argument, partners, call.distinct)


def layout_of(calls: tuple[AggregateCall, ...]) -> SumLayout:
    """The columns needed for all invertible aggregates, shared where their arguments are equal."""
    needs: dict[_Identity, set[KeptValues]] = {}
    for call in calls:
        identity = identity_of(call)
        if is_invertible(call) and identity is not None:
            needs.setdefault(identity, set()).add(function_of(call).kept)
    width, terms, sums = 1, 0, []
    for (argument, partners, distinct), kept in needs.items():
        added = kept != {KeptValues.COUNT}
        limbs = _limbs(argument.type) if added else 0
        products = 3 if KeptValues.PRODUCTS in kept else int(KeptValues.SQUARES in kept)
        floating = added and limbs == 0
        entry = Sums(argument, partners, distinct, limbs, floating, products, width, terms)
        sums.append(entry)
        width += entry.width
        terms = entry.odd + 1
    return SumLayout(tuple(sums), width)


def has_sums(part: SumLayout, whole: SumLayout) -> bool:
    """Whether a layout has at least the sums of another one, so that `places_in` finds them."""
    entries = {(entry.inputs, entry.distinct): entry for entry in whole.sums}
    for entry in part.sums:
        found = entries.get((entry.inputs, entry.distinct))
        if found is None or found.exact < entry.exact:
            return False
        if found.floating < entry.floating or found.products < entry.products:
            return False
    return True


def places_in(part: SumLayout, whole: SumLayout) -> tuple[list[int], dict[int, int]]:
    """Where the columns of one layout are in another one that has at least the same sums.

    Returns:
        For each column that is always there its place in the whole; and for each sum of the whole that has
        limbs as needed, its number in the part, if it is there.
    """
    entries = {(entry.inputs, entry.distinct): entry for entry in whole.sums}
    places, terms = [0], dict[int, int]()
    for entry in part.sums:
        found = entries[entry.inputs, entry.distinct]
        places += range(found.ints, found.ints + entry.width)
        terms |= {found.terms + place: entry.terms + place for place in range(entry.linear)}
        theirs, ours = found.terms + found.linear, entry.terms + entry.linear
        terms |= {theirs + place: ours + place for place in range(entry.products)}
        if entry.floating:
            terms[found.odd] = entry.odd
    return places, terms


def _limbs(dtype: pa.DataType) -> int:
    if pa.types.is_decimal(dtype):
        return int(dtype.bit_width // LIMB_BITS)
    return {DOUBLE: 0, BOOLEAN: 1}.get(dtype, 2)


def accumulate(layout: SumLayout, arguments: list[pa.Array], w: Int64Array) -> SumColumns:
    """What each element adds to the sums; nothing to those of distinct values.

    Args:
        layout: the columns.
        arguments: the columns of all `inputs` of `layout.of_elements`, n rows.
        w: int64[n], multiplicities.
    """
    columns = iter(arguments)
    added = [(entry, [next(columns) for _ in entry.inputs]) for entry in layout.of_elements]
    sums = _added(layout, added, w)
    sums.values[:, 0] = w
    return sums


def accumulate_distinct(
    layout: SumLayout, inputs: tuple[Expression, ...], columns: list[pa.Array], w: Int64Array
) -> SumColumns:
    """What the presence of values adds to the sums of distinct values of some inputs, and to no other."""
    added = [(entry, columns) for entry in layout.sums if entry.distinct and entry.inputs == inputs]
    return _added(layout, added, w)


def _added(layout: SumLayout, added: list[tuple[Sums, list[pa.Array]]], w: Int64Array) -> SumColumns:
    """The sums of each row of some entries' columns."""
    fixed = np.zeros((len(w), layout.width), dtype=np.int64)
    given = [(entry, columns) for entry, columns in added if not any(map(_is_of_nulls, columns))]
    limbs = [part for entry, columns in given for part in _add(entry, columns, w, fixed)]
    idle = frozenset(range(layout.width)) - {0}
    idle -= {entry.ints + place for entry, _ in given for place in range(entry.width)}
    if not limbs:
        return SumColumns(fixed, idle=idle)
    return SumColumns(
        np.concatenate([fixed, *(part.values for part in limbs)], axis=1),
        tuple(name for part in limbs for name in part.limbs),
        idle,
    )


def _is_of_nulls(column: pa.Array) -> bool:
    """Whether no row has a value, as where a condition is true of none: there is nothing to add up."""
    return bool(column.null_count == len(column))


def _add(entry: Sums, columns: list[pa.Array], w: Int64Array, fixed: Int64Array) -> list[SumColumns]:
    """Add the values of one entry to its columns; its limbs, in the order of their names."""
    weights = w * np.logical_and.reduce([_valid(column) for column in columns])
    fixed[:, entry.ints] = weights
    for limb, part in enumerate(_split_exact(columns[0], entry.exact), entry.ints + 1):
        fixed[:, limb] = part * weights
    if not entry.floating and not entry.products:
        return []
    odd = []
    if entry.floating:
        values = [np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False)) for column in columns]
        finite = np.logical_and.reduce([np.isfinite(part) for part in values])
        if not finite.all():
            odd = [_odd_values(entry, values, finite, weights)]
            values = [np.where(finite, part, 0.0) for part in values]
        numbers = [_Numbers(*split_doubles(part)) for part in values]
    else:
        numbers = [_split_words(columns[0])]
    one, other = numbers[0], numbers[-1]
    products = [(one, one), (other, other), (one, other)][: entry.products]
    summed = [*numbers[: entry.linear], *(left.times(right) for left, right in products)]
    return [*(_spread_out(part, weights, term) for term, part in enumerate(summed, entry.terms)), *odd]


def _valid(column: pa.Array) -> BoolArray:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numbers as limbs: signs, the places of the lowest limbs (int64[n]), and limbs (int64[n, k])."""

    signs: Int64Array
    first: Int64Array
    limbs: Int64Array

    def times(self, other: _Numbers) -> _Numbers:
        limbs = multiply_limbs(self.limbs, other.limbs)
        return _Numbers(self.signs * other.signs, self.first + other.first, limbs)


def _spread_out(numbers: _Numbers, weights: Int64Array, term: int) -> SumColumns:
    """So many times each number, in columns by place."""
    places, values = spread_limbs(numbers.signs * weights, numbers.first, numbers.limbs, _PLACES)
    return SumColumns(values, tuple(limb_name(term, place) for place in places.tolist()))


def _odd_values(
    entry: Sums, values: list[Float64Array], finite: BoolArray, weights: Int64Array
) -> SumColumns:
    """How often there is a NaN or an infinity; a pair with either is a NaN."""
    odd = values[0] if len(values) == 1 else np.where(finite, 0.0, np.nan)
    counts = [weights * part for part in (np.isnan(odd), np.isposinf(odd), np.isneginf(odd))]
    return SumColumns(np.column_stack(counts), tuple(limb_name(entry.odd, place) for place in range(3)))


def _split_exact(column: pa.Array, limbs: int) -> list[Int64Array]:
    """32-bit limbs of integers or unscaled decimals, lowest first; the last one is signed."""
    if limbs == 0:
        return []
    if limbs == 1:
        return [np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False)).astype(np.int64)]
    words = _words(column)
    found = [part for word in words.T for part in (word & MASK, (word >> LIMB_BITS) & MASK)]
    return [*found[:-1], words[:, -1] >> LIMB_BITS]


def _words(column: pa.Array) -> Int64Array:
    """Integers or unscaled decimals as words of 64 bits, lowest first; int64[n, 1, 2 or 4]. NULLs are 0."""
    if not pa.types.is_decimal(column.type):
        return (integers(column.fill_null(0)) if column.null_count else integers(column)).reshape(-1, 1)
    count = column.type.bit_width // 64
    if len(column) == 0:
        return np.empty((0, count), dtype=np.int64)
    column = column.fill_null(pa.scalar(Decimal(0), column.type)) if column.null_count else column
    words = np.frombuffer(column.buffers()[1], dtype=np.int64).reshape(-1, count)
    return words[column.offset : column.offset + len(column)]


def _split_words(column: pa.Array) -> _Numbers:
    """Integers or unscaled decimals as limbs."""
    signs, limbs = split_integers(np.ascontiguousarray(_words(column)))
    return _Numbers(signs, np.zeros(len(signs), dtype=np.int64), limbs)
