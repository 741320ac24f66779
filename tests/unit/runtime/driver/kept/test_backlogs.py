"""Backlogs of lanes: which rows a turn takes, with which heartbeat, and which rows stay for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest

from headrace.heartbeats.state import StreamState
from headrace.runtime.driver.kept import rows as keeping
from headrace.runtime.driver.kept.behind import AS_KEPT, Backlog, point_behind
from headrace.runtime.driver.kept.rows import RowKeeper, keeping_untaken
from headrace.runtime.intake.streams import LiveStream, Retain
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.journal.retained import Retained
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.messages import RetainedFile
from headrace.runtime.tasks.retaining import write_retained
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY

SCHEMA = Schema((Field("ts", BIGINT),))
STREAM = LiveStream(SCHEMA, "ts", AS_KEPT)
S, T = "s behind 7", "t behind 7"


class Files:
    """Makes files of rows; the row at a place has the place as its timestamp."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def file(
        self, at: int, rows: int, epochs: tuple[int, int], heartbeat: int, tier: int = 0
    ) -> RetainedFile:
        table = pa.table({"ts": pa.array(range(at, at + rows), pa.int64())})
        part = write_retained(self.store, f"segments/{at}-{epochs}-{tier}", "s", table)
        return RetainedFile(part, rows, *epochs, at + rows - 1, heartbeat, tier, at)

    def taken(self, waiting: Backlog, rows: int) -> dict[str, tuple[list[int], int, int]]:
        """Per stream the rows that a turn takes, where it has read it then, and its heartbeat."""
        found = waiting.intakes(self.store, {S: STREAM, T: STREAM}, rows)
        return {
            name: (
                []
                if one.source is None
                else [
                    value
                    for read in one.source.read(one.start, one.end, ("ts",))
                    for value in read.rows["ts"].to_pylist()
                ],
                one.position,
                one.promise,
            )
            for name, one in found.items()
        }


@pytest.fixture
def files() -> Files:
    return Files()


def waits(
    files: Sequence[tuple[str, RetainedFile]], told: Mapping[str, int], at: Mapping[str, int]
) -> Backlog:
    points = {name: StreamPoint(at.get(name, 0), StreamState(heartbeat=3)) for name in told}
    return Backlog(7, tuple(files), told, points)


def test_the_heartbeat_comes_with_the_last_file_of_an_epoch(files: Files) -> None:
    one = [
        (S, files.file(0, 2, (5, 5), 10)),
        (S, files.file(2, 2, (5, 5), 10)),
        (S, files.file(4, 2, (6, 6), 20)),
    ]
    backlog = waits(one, {S: 30}, {})
    assert files.taken(backlog, 2) == {S: ([0, 1], 2, BEGINNING)}
    assert files.taken(backlog, 3) == {S: ([0, 1, 2], 3, BEGINNING)}
    assert files.taken(backlog, 4) == {S: ([0, 1, 2, 3], 4, 10)}
    assert files.taken(backlog, 5) == {S: ([0, 1, 2, 3, 4], 5, 10)}
    assert files.taken(backlog, 9) == {S: ([0, 1, 2, 3, 4, 5], 6, 30)}


def test_a_file_that_ends_amid_an_epoch_says_no_heartbeat(files: Files) -> None:
    one = [
        (S, files.file(0, 4, (3, 5), 10, tier=1)),
        (S, files.file(4, 2, (5, 5), 10)),
        (S, files.file(6, 1, (6, 6), 20)),
    ]
    assert files.taken(waits(one, {S: 30}, {}), 4) == {S: ([0, 1, 2, 3], 4, BEGINNING)}
    assert files.taken(waits(one, {S: 30}, {S: 4}), 2) == {S: ([4, 5], 6, 10)}


def test_a_file_of_several_epochs_is_taken_in_parts(files: Files) -> None:
    one = [(S, files.file(10, 6, (3, 5), 10, tier=1)), (S, files.file(16, 1, (6, 6), 20))]
    assert waits(one, {S: 30}, {S: 12}).rows == 5
    assert files.taken(waits(one, {S: 30}, {S: 12}), 2) == {S: ([12, 13], 14, BEGINNING)}
    assert files.taken(waits(one, {S: 30}, {S: 14}), 2) == {S: ([14, 15], 16, 10)}
    assert files.taken(waits(one, {S: 30}, {S: 14}), 3) == {S: ([14, 15, 16], 17, 30)}


def test_rows_of_the_oldest_epochs_come_first_whatever_their_stream(files: Files) -> None:
    one = [
        (T, files.file(0, 2, (3, 3), 8)),
        (S, files.file(0, 3, (4, 4), 9)),
        (T, files.file(2, 1, (5, 5), 11)),
    ]
    told = {S: 12, T: 13}
    assert files.taken(waits(one, told, {}), 1) == {T: ([0], 1, BEGINNING)}
    assert files.taken(waits(one, told, {}), 4) == {T: ([0, 1], 2, 8), S: ([0, 1], 2, BEGINNING)}
    # Of a stream of which nothing waits the present heartbeat comes along.
    assert files.taken(waits(one[1:2], told, {T: 3}), 1) == {S: ([0], 1, BEGINNING), T: ([], 3, 13)}
    assert files.taken(waits([], told, {S: 3, T: 3}), 0) == {S: ([], 3, 12), T: ([], 3, 13)}
    assert not waits([], told, {}).is_present
    assert waits([], {S: 3}, {}).is_present


def kept(files: Files, point: StreamPoint, stream: LiveStream, untaken: int | None) -> Retained:
    keeper = RowKeeper(files.store, "t", 9, untaken={} if untaken is None else {"s": untaken})
    with patch.object(keeping, "MOST_FILES", 2):
        found = keeper.after({"s": stream}, {"s": point}, {"s": point}, {}, [])["s"].retained
    assert found is not None
    return found


def places(found: Retained) -> list[tuple[int, int]]:
    return [(file.at, file.end) for file in found.files]


def test_rows_that_have_been_taken_are_not_put_together_with_others(files: Files) -> None:
    four = tuple(files.file(2 * place, 2, (place + 1,) * 2, place) for place in range(4))
    point = StreamPoint(8, StreamState(heartbeat=8, latest=7), retained=Retained(four, BEGINNING, 8))
    stream = replace(STREAM, retain=Retain(INFINITY, None))
    assert places(kept(files, point, stream, None)) == [(0, 4), (4, 8)]
    assert places(kept(files, point, stream, 4)) == [(0, 4), (4, 8)]
    assert places(kept(files, point, stream, 3)) == [(0, 2), (2, 6), (6, 8)]
    assert places(kept(files, point, stream, 2)) == [(0, 2), (2, 6), (6, 8)]
    assert [file.heartbeat for file in kept(files, point, stream, 2).files] == [0, 2, 3]


def test_rows_stay_until_all_have_taken_them(files: Files) -> None:
    three = tuple(files.file(2 * place, 2, (place + 1,) * 2, place, tier=place) for place in range(3))
    point = StreamPoint(6, StreamState(heartbeat=8, latest=5), retained=Retained(three, BEGINNING, 6))
    stream = keeping_untaken(STREAM)
    assert isinstance(stream, LiveStream)
    found = kept(files, point, stream, 3)
    assert (places(found), found.since, found.end) == ([(2, 4), (4, 6)], 2, 6)
    assert places(kept(files, point, stream, None)) == []
    short = replace(STREAM, retain=Retain(None, 1))
    assert places(kept(files, point, short, 0)) == [(0, 2), (2, 4), (4, 6)]
    assert places(kept(files, point, short, None)) == [(4, 6)]


def test_a_lane_counts_on_from_where_its_stream_is() -> None:
    point = StreamPoint(99, StreamState(heartbeat=5, rows=8), arrived=12, retained=Retained((), 0, 40))
    found = point_behind(point)
    assert (found.position, found.heartbeat, found.arrived) == (40, 5, 12)
