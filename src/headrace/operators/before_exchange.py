"""What is done to the input of an operator before it travels, so that less of it does."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from headrace.algebra.nodes import Aggregate, TopK
from headrace.elements import Batch
from headrace.operators.aggregates.accumulation import Accumulation
from headrace.operators.contract import Report
from headrace.operators.state.keys import normalise
from headrace.operators.top_k.skyband import reachable
from headrace.schema import Schema


def reduced_schema(plan: Aggregate | TopK) -> Schema:
    """The columns of what travels."""
    return Accumulation.of(plan).schema if isinstance(plan, Aggregate) else plan.input.schema


def reduce(plan: Aggregate | TopK, batch: Batch, report: Report) -> Batch:
    """What travels of elements, in the form in which it does."""
    match plan:
        case Aggregate():
            form = Accumulation.of(plan)
            return form.combine(form.accumulate(batch, report))
        case TopK():
            return reachable(plan, batch)
        case _:
            assert_never(plan)


def reduce_again(plan: Aggregate | TopK, batch: Batch) -> Batch:
    """What travels of batches that were reduced one by one and put together.

    What TopK leaves of each is so little, or can be made so little less, that another look does not pay.
    """
    match plan:
        case Aggregate():
            return Accumulation.of(plan).combine(batch)
        case TopK():
            return batch
        case _:
            assert_never(plan)


def reduced_keys(plan: Aggregate | TopK, batch: Batch) -> list[pa.Array]:
    """The normalised keys of what travels, by which it finds its bucket."""
    match plan:
        case Aggregate():
            return [batch.payload.column(name) for name in Accumulation.of(plan).key_names]
        case TopK(keys=keys):
            return [normalise(batch.payload.column(key.index)) for key in keys]
        case _:
            assert_never(plan)
