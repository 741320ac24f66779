"""The seconds that nodes of a graph are expected to take."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace.algebra.nodes import Aggregate, Source, TimeWindow, column
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.lowering.costs import expectations, seconds
from headrace.lowering.lower import lower
from headrace.optimizer.cost.flow import FlowSample
from headrace.optimizer.cost.machine import Constants, Machine
from headrace.optimizer.cost.work import WorkKind
from headrace.schema import BIGINT, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain

SOURCE = Source("s", Schema((Field("v", BIGINT),)), "t", TimeDomain.INTEGER)
ROWS = 1_000
SAMPLES = {
    "s": FlowSample(
        pa.RecordBatch.from_pydict({"v": pa.array(range(ROWS), pa.int64())}), np.arange(ROWS, dtype=np.int64)
    )
}


def counted(length: int, constants: Constants, epoch_rows: int) -> tuple[tuple[float, ...], float]:
    """The seconds of source, window and aggregation, where all work has the same constants; the state."""
    window = TimeWindow(SOURCE, Duration(length))
    plan = Aggregate(window, (("v", column(window, 0)),), (("n", resolve_aggregate("COUNT", None)),))
    graph = lower({"q": plan})
    found = expectations(graph, SAMPLES, {}, ROWS)
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine("some", dict.fromkeys(WorkKind, constants))
        patch.setattr("headrace.lowering.costs.MACHINE", machine)
        return seconds(graph, found, ROWS, epoch_rows), found[-1].state


def test_state_counts_in_every_epoch_and_while_it_grows_for_half() -> None:
    # It is both looked at and stored.
    (*_, growing), state = counted(INFINITY, Constants(kept=1.0), epoch_rows=100)
    assert growing == pytest.approx(2 * 10 * state / 2)
    (*_, settled), state = counted(10, Constants(kept=1.0), epoch_rows=100)
    assert settled == pytest.approx(2 * 10 * state * (1 - 5 / ROWS))


def test_what_is_read_taken_and_sent_counts_once() -> None:
    (source, window, aggregate), _ = counted(INFINITY, Constants(taken=1.0), epoch_rows=100)
    assert source == pytest.approx(ROWS)
    assert window == pytest.approx(ROWS)
    # Taken, sent there by the hash of v, and stored.
    assert aggregate == pytest.approx(3 * ROWS)
