"""With retention, the changes of every epoch that is kept are those that a run without it tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import headrace as hr
from headrace.runtime.results.carried import written
from headrace.time import BEGINNING
from how_many import examples
from inside import core_of, reader_of

QUERIES = {
    "passed": "SELECT k, ts FROM a",
    "both": "SELECT k FROM a UNION ALL SELECT k FROM b",
    "counted": "SELECT k, COUNT(*) AS n FROM a [RANGE 4] GROUP BY k",
    "standing": "SELECT k, COUNT(*) AS n FROM a [RANGE UNBOUNDED] GROUP BY k",
    "newest": "SELECT k, ts FROM b [ROWS 2]",
    "joined": "SELECT a.k, b.ts FROM a [RANGE 3], b [RANGE 3] WHERE a.k = b.k",
}


@st.composite
def streams(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Rows that are out of order by less than the disorder they come with."""
    disorder = draw(st.integers(0, 12))
    times = sorted(draw(st.lists(st.integers(0, 40), min_size=1, max_size=25)))
    delays = draw(st.lists(st.integers(0, disorder), min_size=len(times), max_size=len(times)))
    arrived = [ts for _, ts in sorted(zip(map(sum, zip(times, delays, strict=True)), times, strict=True))]
    keys = draw(st.lists(st.sampled_from("xy"), min_size=len(times), max_size=len(times)))
    return pa.table({"k": keys, "ts": arrived}), disorder


def database(inputs: list[tuple[pa.Table, int]], **options: Any) -> hr.Database:
    db = hr.connect(runner="inline", **options)
    for name, (rows, disorder) in zip("ab", inputs, strict=True):
        db.stream(name, rows, timestamp="ts", disorder=disorder)
    for name, text in QUERIES.items():
        db.query(text, name=name)
    return db


@examples(6, 34)
@given(st.tuples(streams(), streams()), st.integers(1, 10), st.integers(1, 5))
def test_what_is_kept_tells_the_tail_of_all_changes(
    inputs: tuple[tuple[pa.Table, int], tuple[pa.Table, int]], epoch_rows: int, retain: int
) -> None:
    with (
        database(list(inputs), epoch_rows=epoch_rows) as whole,
        database(list(inputs), epoch_rows=epoch_rows, retain_epochs=retain) as kept,
    ):
        epochs = whole.run().epochs
        assert kept.run().epochs == epochs
        promised = max(1, epochs - retain + 1)
        for everything, some in zip(whole.queries, kept.queries, strict=True):
            rows = everything.changes().to_pylist()
            first = next(some.subscribe()).epoch
            assert first <= promised
            event(f"more is kept than promised: {first < promised}")
            for begin in range(first, epochs + 1):
                told = list(some.subscribe(from_epoch=begin))
                assert [change.epoch for change in told] == list(range(begin, epochs + 1))
                found = [row for change in told for row in change.rows.to_pylist()]
                assert found == [row for row in rows if row["epoch"] >= begin]
            assert some.changes().to_pylist() == [row for row in rows if row["epoch"] >= first]
            if first > 2:
                with pytest.raises(hr.UserError, match="no longer kept"):
                    next(some.subscribe(from_epoch=first - 1))


@examples(6, 34)
@given(st.tuples(streams(), streams()), st.integers(1, 10), st.integers(1, 9))
def test_from_the_boundary_on_the_history_is_that_of_a_run_that_keeps_everything(
    inputs: tuple[tuple[pa.Table, int], tuple[pa.Table, int]], epoch_rows: int, retain: int
) -> None:
    with (
        database(list(inputs), epoch_rows=epoch_rows) as whole,
        database(list(inputs), epoch_rows=epoch_rows, retain_epochs=retain) as kept,
    ):
        whole.run()
        kept.run()
        for everything, some in zip(whole.queries, kept.queries, strict=True):
            boundary = reader_of(kept, some).boundary
            event(f"something has gone: {boundary > BEGINNING}")
            assert rows_of(some.history()) == rows_of(everything.history(), boundary)
            begins = max(boundary, 0)
            for instant in (begins, begins + 3, begins + 50):
                assert some.snapshot(instant) == everything.snapshot(instant)
            assert some.latest() == everything.snapshot(max(boundary, core_of(whole).newest(everything)))
            if boundary > BEGINNING:
                with pytest.raises(hr.UserError, match="is no longer kept, only from "):
                    some.snapshot(boundary - 1)


def rows_of(history: pa.Table, boundary: int = BEGINNING) -> Counter[tuple[object, ...]]:
    """The rows of a history as far as they hold at or after an instant."""
    found = Counter[tuple[object, ...]]()
    for row in history.to_pylist():
        begin, end = row.pop("valid_from"), row.pop("valid_to")
        if end is None or end > boundary:
            found[*row.values(), max(begin, boundary), end] += 1
    return found


@examples(6, 34)
@given(streams(), st.integers(1, 10), st.integers(1, 5))
def test_nothing_is_kept_that_no_promised_epoch_releases(
    inputs: tuple[pa.Table, int], epoch_rows: int, retain: int
) -> None:
    """The oldest epoch that is kept is promised, or yielded an element that a promised one releases."""
    with database([inputs, inputs], epoch_rows=epoch_rows) as whole:
        epochs = whole.run().epochs
        promised = max(1, epochs - retain + 1)
        needed = promised
        for query in whole.queries:
            reader = reader_of(whole, query)
            before = reader.heartbeat_of(reader.epochs[promised - 2]) if promised > 1 else 0
            for part in reader.epochs[: promised - 1]:
                if any((batch.ts >= before).any() for batch in written(reader.query, reader.store, part)[0]):
                    needed = min(needed, part.epoch)
    with database([inputs, inputs], epoch_rows=epoch_rows, retain_epochs=retain) as kept:
        kept.run()
        results = reader_of(kept, kept.queries[0]).epochs
        assert Counter(part.epoch for part in results) == Counter(range(needed, epochs + 1))
