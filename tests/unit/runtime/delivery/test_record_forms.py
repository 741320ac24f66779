"""The present row of each key in a topic: that of the heartbeat, whatever fails and begins again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace import connect
from headrace.runtime.delivery.contract import Origin
from headrace.runtime.delivery.record_forms import UpsertForm
from headrace.runtime.delivery.records import JsonRecords
from headrace.runtime.results.changes import Change
from headrace.time import INFINITY
from how_many import examples


class Topics:
    """A sink that keeps what a topic and the one beside it would have, by key."""

    name = "topics"

    def __init__(self, failing: set[int], ending: set[int]) -> None:
        self.failing = failing
        self.ending = ending
        self.present: dict[bytes | None, bytes] = {}
        self.beside: dict[bytes, bytes | None] = {}
        self.seen: list[tuple[int, list[dict[str, Any]]]] = []
        self.form = UpsertForm("t", (), JsonRecords())

    def open(self, origin: Origin) -> None:
        self.origin = origin
        self.form.open(origin)
        self.form.restore(iter(()))

    def write(self, change: Change) -> None:
        if change.epoch in self.failing:
            # Kafka has not taken them.
            self.form.records(change)
        if change.epoch in self.ending:
            # Another process goes on.
            self.form = UpsertForm("t", (), JsonRecords())
            self.form.open(self.origin)
            self.form.restore(iter(self.beside.items()))
        for record in self.form.records(change):
            if record.topic != "t":
                assert record.key is not None
                self.beside[record.key] = record.value
            elif record.value is None:
                del self.present[record.key]
            else:
                assert self.present.get(record.key) != record.value
                self.present[record.key] = record.value
        self.form.committed()
        rows = [json.loads(value) for value in self.present.values()]
        self.seen.append((change.heartbeat, sorted(rows, key=repr)))


@examples(17)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), min_size=6),
    st.sampled_from(["[RANGE 5]", "[RANGE 4 SLIDE 4]", "[RANGE UNBOUNDED]", "[NOW]"]),
    st.sets(st.integers(1, 6)),
    st.sets(st.integers(1, 6)),
)
def test_the_topic_has_the_content_at_each_heartbeat(
    steps: list[tuple[int, str | None]], window: str, failing: set[int], ending: set[int]
) -> None:
    times, keys, now = [], [], 0
    for step, key in steps:
        now += step
        times.append(now)
        keys.append(key)
    sink = Topics(failing, ending)
    with connect(runner="inline", epoch_rows=3) as db:
        rows = {"ts": pa.array(times, pa.int64()), "k": pa.array(keys, pa.string())}
        db.stream("s", pa.table(rows), timestamp="ts")
        query = db.query(f"SELECT k, COUNT(*) AS n FROM s {window} GROUP BY k", name="q")
        query.deliver(sink)
        db.run()
        for heartbeat, found in sink.seen:
            at = heartbeat - 1 if heartbeat != INFINITY else INFINITY - 1
            assert found == sorted(query.snapshot(at=at).to_pylist(), key=repr), heartbeat
    # What is due some time is forgotten then.
    assert not any(sink.beside.values())
