"""How the input of an operator is reduced before it travels, so that less of it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, assert_never

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Aggregate, Distinct, Plan, TimeWindow, TopK
from headrace.algebra.properties import constants_of
from headrace.elements import Batch, concat
from headrace.kernels.values.extremes import smallest_rows
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.contract import Report
from headrace.operators.state.keys import encode_keys, hash_rows, normalise
from headrace.operators.stateless import windowed
from headrace.operators.top_k.skyband import reachable
from headrace.schema import Schema


class Reduction(Protocol):
    """What a producer does for an operator after an exchange."""

    @property
    def schema(self) -> Schema:
        """The columns of what travels."""
        ...

    def reduce(self, batch: Batch, report: Report) -> Batch:
        """What travels of elements, in the form in which it does."""
        ...

    def reduce_again(self, batch: Batch) -> Batch:
        """What travels of batches that were reduced one by one and put together."""
        ...

    def keys(self, batch: Batch) -> list[pa.Array]:
        """The normalised keys of what travels, which decide its bucket."""
        ...


def reduction_for(plan: Aggregate | TopK | Distinct) -> Reduction:
    """How the input of a plan's operator is reduced."""
    match plan:
        case Aggregate():
            return AddedUp(Accumulation.of(plan))
        case TopK():
            return OnlyReachable(plan)
        case Distinct():
            return OnlyFirst(plan)
        case _:
            assert_never(plan)


def part_for(plan: Plan, reduced_for: Aggregate | TopK | Distinct, batch: Batch) -> Batch:
    """What an operator gets of an input that was reduced for it, or for it and others together.

    Args:
        plan: the operator's plan.
        reduced_for: the plan that the exchange names.
        batch: what has travelled.
    """
    if not isinstance(plan, Aggregate) or not isinstance(reduced_for, Aggregate) or plan == reduced_for:
        return batch
    return Accumulation.of(plan).part_of(Accumulation.of(reduced_for), batch)


@dataclass(frozen=True)
class AddedUp:
    """For an aggregation: the accumulated form, added up where keys and intervals are equal."""

    form: Accumulation

    @property
    def schema(self) -> Schema:
        """The columns of the accumulated form."""
        return self.form.schema

    def reduce(self, batch: Batch, report: Report) -> Batch:
        """The accumulated form of elements."""
        return self.form.accumulate_combined(batch, report)

    def reduce_again(self, batch: Batch) -> Batch:
        """The same, added up across batches."""
        return self.form.combine(batch)

    def keys(self, batch: Batch) -> list[pa.Array]:
        """The grouping keys, which the accumulated form holds."""
        return [batch.payload.column(name) for name in self.form.key_names]


@dataclass(frozen=True)
class InPanes:
    """For aggregations over several windows: the accumulated form, added up in panes and then in windows.

    Attributes:
        length: of a pane (instants).
        form: what is added up in panes.
        windows: each window, and what is added up in it.
    """

    length: int
    form: Accumulation
    windows: tuple[tuple[TimeWindow, Accumulation], ...]

    def add_up(self, batch: Batch, report: Report) -> Batch:
        """The accumulated form of elements, all of which are valid for one instant, added up in panes."""
        starts = batch.ts - batch.ts % self.length
        panes = Batch(batch.payload, starts, starts + 1, batch.w)
        return self.form.combine(self.form.accumulate(panes, report))

    def joined(self, panes: list[Batch]) -> Batch:
        """What was added up of several batches, as one."""
        return self.form.combine(concat(self.form.schema, panes))

    def in_window(self, place: int, panes: Batch) -> Batch:
        """What travels of what was added up, for one of the windows by its place."""
        window, own = self.windows[place]
        return own.combine(windowed(window, own.part_of(self.form, panes)))


@dataclass(frozen=True)
class OnlyReachable:
    """For a top-k: the elements that can be among the first rows of some snapshot."""

    plan: TopK

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.plan.input.schema

    def reduce(self, batch: Batch, report: Report) -> Batch:
        """The elements without those that the operator can never show."""
        return reachable(self.plan, batch)

    def reduce_again(self, batch: Batch) -> Batch:
        """The batch unchanged: few rows are left, and a second pass does not pay."""
        return batch

    def keys(self, batch: Batch) -> list[pa.Array]:
        """The columns that make the groups."""
        return [normalise(batch.payload.column(key.index)) for key in self.plan.keys]


@dataclass(frozen=True)
class OnlyFirst:
    """For a DISTINCT of rows that are only added and never leave: of equal ones the first."""

    plan: Distinct

    @property
    def schema(self) -> Schema:
        """The input's columns."""
        return self.plan.schema

    def reduce(self, batch: Batch, report: Report) -> Batch:
        """The elements without those of rows that are there before."""
        return self.reduce_again(batch)

    def reduce_again(self, batch: Batch) -> Batch:
        """The same across batches."""
        keys = self.keys(batch)
        codes = encode_keys(keys, hash_rows(keys, len(batch)))
        return batch.take(smallest_rows(codes.codes, batch.ts, np.arange(len(batch)), len(codes)))

    def keys(self, batch: Batch) -> list[pa.Array]:
        """The columns in which rows may differ."""
        constants = constants_of(self.plan.input)
        columns = enumerate(batch.payload.columns)
        return [normalise(column) for place, column in columns if place not in constants]
