"""What an epoch takes of bounded streams: rows, and bytes as far as they are known before they are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace
from headrace.heartbeats.state import StreamState
from headrace.runtime.intake.shares import (
    FIRST_ROWS,
    MOST_HELD,
    MOST_PASSED,
    assignments,
    grown_rows,
    next_share,
    rows_left,
)
from headrace.runtime.intake.streams import BoundedStream, Intake, LiveStream, Streams
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources import SplitSource, open_source, write_arrow
from headrace.time import INFINITY
from support import TableSource

MEGABYTE = 2**20


def table(*sizes: int) -> pa.Table:
    """A row per size, with a text of so many bytes."""
    return pa.table({"t": range(len(sizes)), "s": ["x" * size for size in sizes]})


def epochs(sources: Mapping[str, SplitSource], rows: int, size: int) -> list[dict[str, tuple[int, int]]]:
    """What one epoch after the other takes."""
    streams = {name: BoundedStream(source, "t") for name, source in sources.items()}
    points = dict.fromkeys(streams, StreamPoint(0))
    found = []
    while share := next_share(streams, points, rows, size):
        found.append({name: (take.start, take.end) for name, take in share.items()})
        for name, take in share.items():
            points[name] = StreamPoint(take.end, StreamState(INFINITY if take.ended else 0))
    return found


def test_an_epoch_ends_at_whichever_limit_it_reaches_first() -> None:
    source = TableSource(table(*[100] * 100))
    assert len(epochs({"a": source}, 10, MEGABYTE)) == 10
    assert len(epochs({"a": source}, 1_000, source.weigh(0, 25))) == 4
    assert epochs({"a": source}, 1_000, 1) == [{"a": (row, row + 1)} for row in range(100)]


def test_large_rows_among_small_ones() -> None:
    source = TableSource(table(*[10] * 50, *[100_000] * 10, *[10] * 50))
    limit = 250_000
    found = [epoch["a"] for epoch in epochs({"a": source}, 1_000, limit)]
    assert [start for start, _ in found[1:]] == [end for _, end in found[:-1]]
    assert all(source.weigh(start, end) <= limit for start, end in found)
    assert len(found) < 15


def test_streams_advance_together_and_end() -> None:
    sources = {
        "a": TableSource(table(*[1_000] * 100)),
        "b": TableSource(table(*[10] * 10)),
        "c": TableSource(table()),
    }
    found = epochs(sources, 1_000, 30_000)
    assert len(found) in (4, 5)
    assert found[0]["c"] == (0, 0)
    assert [found[-1][name][1] for name in "ab" if name in found[-1]] == [100, 10]
    assert found[1]["b"][1] in range(4, 7)


def grown(events: int, most: int, start: int = 0) -> list[int]:
    """Up to which event one epoch after the other reads where nobody has said how large they are."""
    source = open_source("nexmark", {"events": str(events)}, None, "ts", "bid", Path())
    streams = {"bid": BoundedStream(source, "ts")}
    points = {"bid": StreamPoint(start)}
    ends = []
    while share := next_share(streams, points, grown_rows(streams, points, most), 2**40):
        take = share["bid"]
        ends.append(take.end)
        points["bid"] = StreamPoint(take.end, StreamState(INFINITY if take.ended else 0))
    return ends


@pytest.mark.parametrize("most", [MOST_PASSED, MOST_HELD])
def test_epochs_grow_with_what_was_read_up_to_a_bound(most: int) -> None:
    events = 50_000_000
    ends = grown(events, most)
    rows = [int((end - start) * 0.92) for start, end in zip([0, *ends], ends, strict=False)]
    assert ends[-1] == events
    assert rows[0] <= FIRST_ROWS
    assert max(rows) <= most
    assert rows[-1] > 0.9 * most
    for read, taken in zip([int(end * 0.92) for end in ends], rows[1:], strict=False):
        assert taken <= max(FIRST_ROWS, 2 * read)
    assert len(rows) <= events // most + 4


def test_a_run_that_goes_on_cuts_as_the_uninterrupted_one() -> None:
    ends = grown(20_000_000, MOST_PASSED)
    for place, end in enumerate(ends[:-1]):
        assert grown(20_000_000, MOST_PASSED, end) == ends[place + 1 :]


def test_few_rows_are_one_epoch() -> None:
    assert len(grown(500_000, MOST_PASSED)) == 1


def test_epochs_stay_small_beside_a_stream_that_never_ends() -> None:
    source = TableSource(table(*[1] * 10))
    streams: Streams = {"a": BoundedStream(source, "t"), "b": LiveStream(source.schema, "t")}
    points = {"a": StreamPoint(9), "b": StreamPoint(7)}
    assert grown_rows(streams, points, MOST_PASSED) == FIRST_ROWS


def test_what_is_left_follows_from_the_positions() -> None:
    bounded = {name: BoundedStream(TableSource(table(*[1] * 100)), "t") for name in ("a", "b")}
    points = {"a": StreamPoint(40), "b": StreamPoint(100, StreamState(INFINITY))}
    assert rows_left(bounded, points) == 60
    live: Streams = {**bounded, "c": LiveStream(bounded["a"].schema, "t")}
    assert rows_left(live, points) is None


def test_a_run_that_is_at_its_end_has_read_all(tmp_path: Path) -> None:
    """The number of rows of a text file is an estimate, and its rows are of different lengths."""
    lines = [f"{ts},{'x' * (ts % 50)}" for ts in range(1_000)]
    (tmp_path / "s.csv").write_text("\n".join(["ts,s", *lines, ""]))
    shares: list[float | None] = []
    with headrace.connect(runner="inline", epoch_rows=300) as db:
        db.execute(f"CREATE STREAM s FROM csv OPTIONS (path '{tmp_path / 's.csv'}') TIMESTAMP BY ts")
        db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]")
        db.run(lambda progress: shares.append(progress.share))
    known = [share for share in shares if share is not None]
    assert known == shares == sorted(known)
    assert len(known) > 2
    assert known[0] < 0.6
    assert known[-1] == 1.0


def test_cuts_are_where_row_groups_end_if_that_is_near(tmp_path: Path) -> None:
    """Elsewhere, two tasks or two epochs decode the same row group."""
    for number in range(10):
        pq.write_table(table(*[10] * 1_000), tmp_path / f"{number}.parquet", row_group_size=250)
    source = open_source("parquet", {"path": str(tmp_path)}, None, "t", "s", Path())
    found = epochs({"a": source}, 2_345, MEGABYTE)
    ends = [epoch["a"][1] for epoch in found]
    assert all(end % 250 == 0 for end in ends)
    assert len(found) <= 6
    assert max(end - start for start, end in (epoch["a"] for epoch in found)) <= 2_345
    (parts,) = zip(*assignments({"a": Intake(2_100, source, 100, 2_100)}, 3), strict=True)
    assert [(part.start, part.end) for part in parts] == [(100, 750), (750, 1_500), (1_500, 2_100)]
    far = [epoch["a"] for epoch in epochs({"a": source}, 1_100, MEGABYTE)]
    assert far[0] == (0, 1_000)
    assert epochs({"a": source}, 130, MEGABYTE)[0]["a"] == (0, 130), "250 is too far away"


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "arrow", "multiline"])
def test_sources_know_their_bytes_before_they_are_read(tmp_path: Path, form: str) -> None:
    rows = table(*[1_000] * 1_000)
    path = tmp_path / "f"
    options = {"path": "f"}
    match form:
        case "parquet":
            pq.write_table(rows, path, row_group_size=100, use_dictionary=False)
        case "arrow":
            write_arrow(rows, path)
        case "json":
            path.write_text("".join(f'{{"t": {t}, "s": "{"x" * 1_000}"}}\n' for t in range(1_000)))
        case _:
            path.write_text("t,s\n" + "".join(f"{t},{'x' * 1_000}\n" for t in range(1_000)))
            if form == "multiline":
                options["multiline"] = "true"
    source = open_source("csv" if form == "multiline" else form, options, None, "t", "s", tmp_path)
    assert 1_000_000 < source.weigh(0, source.size) < 1_100_000
    half = source.size // 2
    assert source.weigh(0, half) + source.weigh(half, source.size) == pytest.approx(
        source.weigh(0, source.size), abs=2
    )
    assert source.weigh(half, half) == 0
    assert len(epochs({"a": source}, 10_000, 300_000)) == (2 if form == "multiline" else 4)


def test_ranges_of_a_row_group_that_is_too_large_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.runtime.sources.columnar.parquet._KEPT_BYTES", 1)
    monkeypatch.setattr("headrace.runtime.sources.columnar.parquet.BATCH_BYTES", 5_000)
    pq.write_table(table(*[100] * 1_000), tmp_path / "f", row_group_size=700)
    source = open_source("parquet", {"path": "f"}, None, "t", "s", tmp_path)
    for start, end in ((0, 1_000), (3, 7), (650, 750), (699, 700), (990, 1_000)):
        found = [t for read in source.read(start, end, ("t",)) for t in read.rows["t"].to_pylist()]
        assert found == list(range(start, end))


def test_the_cut_by_bytes_does_not_change_answers() -> None:
    histories = []
    for size in (None, 5_000):
        with headrace.connect(runner="inline", epoch_bytes=size) as db:
            db.stream("s", table(*range(0, 2_000, 100)), timestamp="t")
            query = db.query("SELECT SUM(LENGTH(s)) AS n FROM s [RANGE 3]")
            summary = db.run()
            histories.append(query.history())
            assert (summary.epochs > 3) == (size is not None)
    assert histories[0] == histories[1]
