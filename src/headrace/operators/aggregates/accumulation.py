"""The accumulated form of an aggregation's input, and how it is added up before it travels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.nodes import Aggregate
from headrace.algebra.properties import is_insert_only
from headrace.elements import Batch, Int64Array, limbs_of
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.aggregates.ordering import Ordering
from headrace.expressions.tree import AggregateCall, Expression
from headrace.kernels.instants.timeline import add_by_code
from headrace.kernels.values.extremes import smallest_rows
from headrace.operators.aggregates.accumulators import (
    SumLayout,
    accumulate,
    is_invertible,
    layout_of,
    places_in,
)
from headrace.operators.contract import Report, evaluate_all
from headrace.operators.state.keys import Codes, encode_keys, hash_rows, normalise
from headrace.operators.state.order import rank_rows
from headrace.operators.state.sum_columns import (
    SumColumns,
    concat_sums,
    limb_name,
    sum_arrays,
    sums_of,
    term_of,
)
from headrace.schema import BIGINT, Field, Schema


@dataclass(frozen=True)
class Extremes:
    """The values of an insert-only input that can be the smallest or the largest.

    Attributes:
        ends: by how they are sorted, which ends matter: 0.0 the smallest, 1.0 the largest, or both.
    """

    ends: tuple[tuple[Ordering, tuple[float, ...]], ...]


@dataclass(frozen=True)
class Accumulation:
    """How an aggregation's input is turned into keys, live values and sums.

    Attributes:
        keys: the grouping expressions.
        values: what aggregates of distinct or live values read, each expression once.
        sums: the layout of everything invertible.
        schema: the columns of the accumulated form: `__k*` keys, `__v*` values, `__i*` sums; limbs
            follow where they are needed.
        extremes: which of the values of one interval matter, if not all.
    """

    keys: tuple[Expression, ...]
    values: tuple[Expression, ...]
    sums: SumLayout
    schema: Schema
    extremes: Extremes | None

    @staticmethod
    def of(node: Aggregate) -> Accumulation:
        """The accumulation of a plan node."""
        return _accumulation_of(node)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The key columns of the accumulated form."""
        return tuple(f"__k{place}" for place in range(len(self.keys)))

    @property
    def int_names(self) -> tuple[str, ...]:
        """The sums of the accumulated form, without limbs."""
        return tuple(f"__i{place}" for place in range(self.sums.width))

    def accumulate(self, batch: Batch, report: Report) -> Batch:
        """The accumulated form of elements: every sum is already multiplied by `w`, which becomes 1."""
        batch, columns, sums = self._accumulated(batch, report)
        return self._batch(columns, batch.ts, batch.te, sums)

    def accumulate_combined(self, batch: Batch, report: Report) -> Batch:
        """The accumulated form of elements, combined."""
        batch, columns, sums = self._accumulated(batch, report)
        return self._combined(columns, batch.ts, batch.te, sums)

    def combine(self, batch: Batch) -> Batch:
        """Accumulated elements of one key, one set of values and one interval, added up.

        Done before an exchange where many elements share an interval, or all share a key. Where only the
        smallest or the largest value can matter, the others go.
        """
        columns = batch.payload.columns[: len(self.keys) + len(self.values)]
        return self._combined(columns, batch.ts, batch.te, sums_of(batch.payload, self.int_names))

    def _accumulated(self, batch: Batch, report: Report) -> tuple[Batch, list[pa.Array], SumColumns]:
        """The elements for which nothing fails, their normalised keys and values, and what each adds."""
        arguments = [part for entry in self.sums.of_elements for part in entry.inputs]
        batch, columns = evaluate_all([*self.keys, *self.values, *arguments], batch, report)
        width = len(self.keys) + len(self.values)
        sums = accumulate(self.sums, columns[width:], batch.w)
        return batch, [normalise(column) for column in columns[:width]], sums

    def _combined(self, columns: list[pa.Array], ts: Int64Array, te: Int64Array, sums: SumColumns) -> Batch:
        values = columns[len(self.keys) :]
        compared = columns if self.extremes is None else columns[: len(self.keys)]
        identity = [*compared, *_intervals(ts, te)]
        codes = encode_keys(identity, hash_rows(identity, len(ts)))
        added = SumColumns(add_by_code(codes.codes, sums.values, len(codes)), sums.limbs)
        rows = codes.first
        if self.extremes is not None:
            rows, added = self._with_extremes(self.extremes, values, codes, added)
        kept = pa.array(rows)
        return self._batch([column.take(kept) for column in columns], ts[rows], te[rows], added)

    def part_of(self, other: Accumulation, batch: Batch) -> Batch:
        """The form of an input that came in the form of another aggregation.

        Args:
            other: that aggregation's, with the same keys and at least the same values and sums.
            batch: elements in its form.
        """
        rows, width = batch.payload, len(other.keys) + len(other.values)
        values = [rows.column(len(other.keys) + other.values.index(value)) for value in self.values]
        places, terms = places_in(self.sums, other.sums)
        columns = dict(zip(self.schema.names, [*rows.columns[: len(self.keys)], *values], strict=False))
        sums = (rows.column(width + place) for place in places)
        columns |= dict(zip(self.int_names, sums, strict=True))
        for name in limbs_of(rows):
            term, place = term_of(name)
            if term in terms:
                columns[limb_name(terms[term], place)] = rows.column(name)
        return batch.with_payload(pa.RecordBatch.from_pydict(columns))

    def _batch(self, columns: list[pa.Array], ts: Int64Array, te: Int64Array, sums: SumColumns) -> Batch:
        """Keys and values, and the sums beside them."""
        named = dict(zip(self.schema.names, columns, strict=False))
        named |= sum_arrays(self.int_names, sums.limbs, sums.values.T, sums.idle)
        return Batch(pa.RecordBatch.from_pydict(named), ts, te, np.ones(len(ts), dtype=np.int64))

    def _with_extremes(
        self,
        extremes: Extremes,
        values: list[pa.Array],
        codes: Codes,
        sums: SumColumns,
    ) -> tuple[Int64Array, SumColumns]:
        """For each code the row with the first extreme value and all sums; for each other one a row, too."""
        found = [row for end in extremes.ends for row in self._ends(*end, values, codes)]
        first = np.where(found[0] < 0, codes.first, found[0])
        wanted = np.zeros(len(codes.codes), dtype=np.bool_)
        wanted[np.concatenate([rows[rows >= 0] for rows in found])] = True
        wanted[first] = False
        others = np.flatnonzero(wanted)
        # Each counts for one of the rows that were added up, so that none counts for none.
        more = np.zeros((len(others), sums.values.shape[1]), dtype=np.int64)
        more[:, 0] = 1
        np.subtract.at(sums.values[:, 0], codes.codes[others], 1)
        sums = concat_sums([sums, SumColumns(more, sums.limbs)])
        return np.concatenate([first, others]), sums

    def _ends(
        self, ordering: Ordering, fractions: tuple[float, ...], values: list[pa.Array], codes: Codes
    ) -> list[Int64Array]:
        """For each end that matters the row of each code that has its value, -1 where no row counts."""
        columns = [values[self.values.index(key.expression)] for key in ordering.keys]
        rows = np.arange(len(codes.codes))
        if ordering.needed is not None:
            needed = values[self.values.index(ordering.needed)]
            rows = np.flatnonzero(np.asarray(needed.is_valid().to_numpy(zero_copy_only=False)))
        ranks = rank_rows(columns, ordering.keys)
        ends = [ranks if fraction == 0.0 else ~ranks for fraction in fractions]
        return [smallest_rows(codes.codes, end, rows, len(codes)) for end in ends]


def _made_of(node: Aggregate) -> Accumulation:
    calls = tuple(call for _, call in node.aggregates)
    sums = layout_of(calls)
    distinct = [part for entry in sums.sums if entry.distinct for part in entry.inputs]
    live = [part for call in calls if not is_invertible(call) for part in Ordering.of(call).expressions]
    values = tuple(dict.fromkeys((*distinct, *live)))
    keys = tuple(key for _, key in node.keys)
    fields = [Field(f"__k{place}", key.type) for place, key in enumerate(keys)]
    fields += [Field(f"__v{place}", value.type) for place, value in enumerate(values)]
    fields += [Field(f"__i{place}", BIGINT) for place in range(sums.width)]
    return Accumulation(keys, values, sums, Schema(tuple(fields)), _extremes_of(node, calls))


_accumulation_of: Final = ByObject(_made_of, REMEMBERED)
"""Asked for in each epoch; by the node itself: one that is equal may call another function of a user."""


def _intervals(ts: Int64Array, te: Int64Array) -> list[pa.Array]:
    """What distinguishes intervals: their starts alone where all have one length, as in most windows."""
    lengths = te - ts
    same = len(lengths) > 0 and bool((lengths == lengths[0]).all())
    return [pa.array(ts)] if same else [pa.array(te), pa.array(ts)]


def _extremes_of(node: Aggregate, calls: tuple[AggregateCall, ...]) -> Extremes | None:
    """Which values are all that combining must keep; None where it has to keep every value."""
    ends: dict[Ordering, set[float]] = {}
    for call in calls:
        if is_invertible(call):
            continue
        place = function_of(call).place
        if place is None:
            return None
        ends.setdefault(Ordering.of(call), set()).add(place)
    distinct = any(entry.distinct for entry in layout_of(calls).sums)
    if not ends or distinct or not is_insert_only(node.input):
        return None
    return Extremes(tuple((ordering, tuple(sorted(places))) for ordering, places in ends.items()))
