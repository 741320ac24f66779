"""The answer as of an epoch is what was read after that epoch, and differences lead from one to the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
from headrace.reference.contents import content_within
from headrace.time import BEGINNING, INFINITY, ManualClock
from how_many import examples
from inside import reader_of

QUERIES = {
    "passed": "SELECT k, v FROM s",
    "counted": "SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY k",
    "standing": "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]",
    "news": "SELECT ISTREAM(k) FROM s [RANGE 5]",
}

batches = st.lists(
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 3), st.integers(0, 30)), max_size=4),
    min_size=1,
    max_size=6,
)


@dataclass(frozen=True)
class Read:
    """What was read of a query after an epoch."""

    clock: int
    history: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    heartbeat: int


def database(disorder: int, clock: ManualClock, retain: int | None) -> hr.Database:
    db = hr.connect(runner="inline", clock=clock, retain_epochs=retain)
    text = "CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
    db.execute(f"{text} DISORDER {disorder}")
    for name, query in QUERIES.items():
        db.query(query, name=name)
    return db


def run(
    db: hr.Database, clock: ManualClock, pushed: list[list[tuple[str, int, int]]]
) -> dict[str, dict[int, Read]]:
    """Push rows epoch by epoch; what is read of each query after each epoch."""
    seen: dict[str, dict[int, Read]] = {name: {} for name in QUERIES}
    db.start()
    for rows in pushed:
        clock.advance(1_000_000)
        db.push("s", [{"k": k, "v": v, "ts": ts} for k, v, ts in rows])
        for query in db.queries:
            if (epoch := last_epoch(query)) and epoch not in seen[query.name]:
                history, changes = query.history().to_pylist(), query.changes().to_pylist()
                seen[query.name][epoch] = Read(clock.now(), history, changes, query.heartbeat)
    return seen


def last_epoch(query: hr.Query) -> int:
    epochs = query.epochs().column("epoch").to_pylist()
    return max(epochs, default=0)


@examples(5, 15)
@given(batches, st.integers(0, 6))
def test_the_answer_as_of_an_epoch_is_what_was_read_after_it(
    pushed: list[list[tuple[str, int, int]]], disorder: int
) -> None:
    clock = ManualClock()
    with database(disorder, clock, None) as db:
        seen = run(db, clock, pushed)
        db.stop()
        for query in db.queries:
            for epoch, read in seen[query.name].items():
                at_that_time = "1970-01-01T00:00:%09.6fZ" % (read.clock / 1e6)
                for as_of in (epoch, at_that_time):
                    assert query.history(as_of=as_of).to_pylist() == read.history
                    assert query.changes(as_of=as_of).to_pylist() == read.changes
                for instant in range(0, 32, 5):
                    assert_snapshot(query, instant, epoch, read)


def assert_snapshot(query: hr.Query, instant: int, epoch: int, read: Read) -> None:
    """A snapshot as of an epoch is what the history that was read then says about the instant."""
    if instant >= read.heartbeat:
        with pytest.raises(hr.UserError, match="final"):
            query.snapshot(instant, as_of=epoch)
        return
    rows = [row for row in read.history if row["valid_from"] <= instant < (row["valid_to"] or INFINITY)]
    expected = Counter(tuple(row.values())[:-2] for row in rows)
    assert Counter(tuple(row.values()) for row in query.snapshot(instant, epoch).to_pylist()) == expected


@examples(5, 15)
@given(batches, st.integers(0, 6), st.data())
def test_differences_lead_from_one_answer_to_the_other(
    pushed: list[list[tuple[str, int, int]]], disorder: int, data: st.DataObject
) -> None:
    clock = ManualClock()
    with database(disorder, clock, None) as db:
        seen = run(db, clock, pushed)
        for query in db.queries:
            if not seen[query.name]:
                continue
            before, after = sorted(data.draw(st.sampled_from(sorted(seen[query.name]))) for _ in range(2))
            changed = query.difference(before, after)
            earlier, later = (seen[query.name][epoch] for epoch in (before, after))
            for instant in range(40):
                expected = content(later.history, instant)
                expected.subtract(content(earlier.history, instant))
                assert +content(changed.to_pylist(), instant) == +expected
                assert -content(changed.to_pylist(), instant) == -expected
            event(f"something became final: {changed.num_rows > 0}")
            if earlier.heartbeat > 0:
                # A strong answer never changes where it was final.
                assert not query.difference(before, after, at=min(earlier.heartbeat, 40) - 1).num_rows


def content(rows: list[dict[str, Any]], instant: int) -> Counter[tuple[Any, ...]]:
    """The signed content of history rows at an instant."""
    found = Counter[tuple[Any, ...]]()
    for row in rows:
        *payload, begin, end = (value for name, value in row.items() if name != "change")
        if begin <= instant < (INFINITY if end is None else end):
            found[tuple(payload)] += row.get("change", 1)
    return found


@examples(5, 15)
@given(batches, st.integers(0, 6), st.integers(1, 3))
def test_with_retention_what_is_kept_is_the_same_from_the_boundary_on(
    pushed: list[list[tuple[str, int, int]]], disorder: int, retain: int
) -> None:
    clock = ManualClock()
    with database(disorder, clock, retain) as db:
        seen = run(db, clock, pushed)
        for query in db.queries:
            kept = query.epochs().column("epoch").to_pylist()
            reader = reader_of(db, query)
            for epoch, read in seen[query.name].items():
                event(f"no longer kept: {epoch < reader.first}")
                if epoch < reader.first:
                    with pytest.raises(hr.UserError, match="is no longer kept, only from"):
                        query.history(as_of=epoch)
                    continue
                assert epoch in kept
                found = query.history(as_of=epoch).to_pylist()
                for instant in range(max(reader.boundary, 0), 40):
                    assert content(found, instant) == content(read.history, instant)
                assert [row for row in found if row["valid_from"] < max(reader.boundary, BEGINNING)] == []


@examples(5, 15)
@given(batches, st.integers(0, 6), st.integers(-2, 20), st.integers(1, 12))
def test_a_span_has_the_events_in_it_or_what_was_there_at_some_instant(
    pushed: list[list[tuple[str, int, int]]], disorder: int, begin: int, length: int
) -> None:
    clock = ManualClock()
    with database(disorder, clock, None) as db:
        seen = run(db, clock, pushed)
        for query in db.queries:
            for epoch, read in seen[query.name].items():
                if begin + length > read.heartbeat:
                    with pytest.raises(hr.UserError, match="final"):
                        query.snapshot(begin + length - 1, epoch, last=length)
                    continue
                rows = [
                    (tuple(row.values())[:-2], row["valid_from"], row["valid_to"] or INFINITY, 1)
                    for row in read.history
                ]
                expected = content_within(rows, begin, begin + length, events=query.is_events)
                last = query.snapshot(begin + length - 1, epoch, last=length)
                assert Counter(tuple(row.values()) for row in last.to_pylist()) == expected
                assert query.snapshot(begin + length - 1, epoch, since=begin) == last
                assert query.within(begin, begin + length, epoch) == last
