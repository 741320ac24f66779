"""Plans over streams whose rows have lifetimes and take others back answer as the reference does.

Some corrections take back what is not there, or not yet: chains of them come in any order, and with gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.events import Events, events_of
from headrace.algebra.nodes import Plan
from headrace.algebra.properties import is_insert_only
from headrace.elements import from_rows, to_rows
from headrace.heartbeats.timing import Timing
from headrace.history import canonical, equivalent
from headrace.reference.contents import Element, Stream
from headrace.reference.operators import evaluate
from headrace.runtime.intake.streams import BoundedStream
from headrace.schema import BIGINT, Field, Schema
from headrace.time import INFINITY, TimeDomain
from how_many import examples
from property.plan_strategies import FORMS, ROOTS, plans
from property.strategies import BUCKETS, PLAIN_TYPES, disordered, few_payloads, schemas
from support import TableSource, emitted_elements, run_plans

DISORDER = 3
ENDS = st.integers(1, 8) | st.just(INFINITY)
SIGNS = st.sampled_from((1, 1, 2, -1))


@dataclass(frozen=True)
class Corrected:
    """A stream of events.

    Attributes:
        name: the stream's.
        schema: the columns of its rows, `ts`, `te` and `w` among them.
        events: how they say when they are valid.
        elements: in order of arrival.
    """

    name: str
    schema: Schema
    events: Events
    elements: tuple[Element, ...]

    @property
    def leaf(self) -> Plan:
        """What is read of it."""
        return events_of(self.name, self.schema, "ts", TimeDomain.INTEGER, self.events)

    def stream(self) -> BoundedStream:
        """What a run reads."""
        table = pa.Table.from_batches([from_rows(self.schema, self._rows()).payload])
        return BoundedStream(TableSource(table), "ts", Timing(DISORDER), changes=self.events)

    def reference(self) -> Stream:
        """What the reference reads."""
        return Stream(self.schema.names, self._rows())

    def _rows(self) -> list[Element]:
        return [
            ((*row, ts, None if te == INFINITY else te, w), ts, te, w) for row, ts, te, w in self.elements
        ]


@st.composite
def corrected(draw: st.DrawFn, name: str, events: Events) -> Corrected:
    """Streams of a few rows, equal ones among them."""
    data = draw(schemas(PLAIN_TYPES, max_columns=2))
    signs = st.just(1) if events.change is None else SIGNS
    ends = ENDS if events.lasting else st.just(1)
    row = st.tuples(draw(few_payloads(data, False)), st.integers(0, 8), ends, signs)
    found = [
        (payload, ts, INFINITY if length == INFINITY else ts + length, w)
        for payload, ts, length, w in draw(st.lists(row, max_size=10))
    ]
    schema = Schema((*data, Field("ts", BIGINT), Field("te", BIGINT), Field("w", BIGINT)))
    return Corrected(name, schema, events, tuple(draw(disordered(found, DISORDER))))


KINDS = {
    "lifetimes": Events(lasting=True, ends="te"),
    "corrected lifetimes": Events(lasting=True, ends="te", change="w"),
    "corrected instants": Events(change="w", version="te"),
}


@pytest.mark.parametrize("root", ROOTS)
@examples(3, 12)
@given(st.data(), st.sampled_from(sorted(KINDS)), BUCKETS, st.sampled_from((1, 3, 1000)))
def test_plans_over_corrections(
    root: str, data: st.DataObject, kind: str, buckets: int, epoch_rows: int
) -> None:
    streams = [data.draw(corrected(name, KINDS[kind])) for name in ("s0", "s1")]
    leaves = [stream.leaf for stream in streams]
    plan = data.draw(FORMS)(data.draw(plans(leaves, depth=3, root=root)))
    inputs = {stream.name: stream.stream() for stream in streams}
    reader = run_plans({"q": plan}, inputs, buckets=buckets, epoch_rows=epoch_rows)["q"]
    history = evaluate(plan, {stream.name: stream.reference() for stream in streams})
    expected = from_rows(plan.schema, [(row, ts, te, 1) for row, ts, te in history])
    found = reader.elements()
    emitted = emitted_elements(reader)
    assert not plan.is_chronon or (emitted.te == emitted.ts + 1).all()
    assert not is_insert_only(plan) or (emitted.w > 0).all()
    assert equivalent(found, expected), (history, to_rows(canonical(found)))
