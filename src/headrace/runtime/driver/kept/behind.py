"""Kept rows as the input of queries that are behind others.

A stream of a lane is what is kept of the stream, from a place of its own on: that is the queue of STREAM
(section 2.2), on disk. Heartbeats come with the rows, as they came when these were new; who has taken all
rows is told the heartbeat that the stream has by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from headrace.heartbeats.timing import Timing
from headrace.lowering.behind import lane_of
from headrace.runtime.driver.kept.letters import all_columns
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.retained import RetainedSource
from headrace.runtime.intake.streams import BoundedStream, Incoming, Intake, LiveStream, Streams
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.journal.retained import Retained
from headrace.runtime.store.segments import Store
from headrace.runtime.tasks.messages import RetainedFile
from headrace.time import BEGINNING

AS_KEPT: Final = Timing(disorder=None)
"""Of rows that were accepted before: none is late, and heartbeats come with them."""


def kept_part(stream: Incoming) -> Incoming:
    """The rows that are kept of a stream, as a stream; a relation as it is."""
    if isinstance(stream, BoundedStream | LiveStream):
        return LiveStream(all_columns(stream), stream.timestamp, AS_KEPT, stream.changes)
    return stream


def part_behind(stream: Incoming) -> Incoming:
    """The same for a lane: the dead letters that it brings are kept for as long as those of the stream."""
    part = kept_part(stream)
    if isinstance(part, LiveStream) and isinstance(stream, BoundedStream | LiveStream):
        return replace(part, letters_kept=stream.letters_kept)
    return part


def point_behind(point: StreamPoint) -> StreamPoint:
    """The point of a stream from which on queries are behind, where it is now.

    What its source says of disorder, producers and files says nothing of rows that are kept.

    Args:
        point: the stream's.
    """
    return StreamPoint(
        0 if point.retained is None else point.retained.end,
        replace(point.time, pending=(), counting=()),
        arrived=point.arrived,
    )


def untaken(queries: QuerySet, points: Mapping[str, StreamPoint]) -> dict[str, int]:
    """Per stream that lanes read the place of the first kept row that one of them has yet to take."""
    found: dict[str, int] = {}
    for name, declared in queries.inputs.items():
        if lane_of(name) is not None and declared in queries.read_behind:
            place = points[name].position
            found[declared] = min(place, found.get(declared, place))
    return found


@dataclass(frozen=True)
class Backlog:
    """The rows and heartbeats that a lane has yet to take.

    Attributes:
        lane: the lane.
        files: the files with such rows, in the order of their epochs, each with its stream's name.
        told: the heartbeats that its streams have by now (instants), by name.
        points: how far the lane has read them, by name.
    """

    lane: int
    files: tuple[tuple[str, RetainedFile], ...]
    told: Mapping[str, int]
    points: Mapping[str, StreamPoint]

    @property
    def rows(self) -> int:
        """The number of rows that wait."""
        return sum(file.end - max(file.at, self.points[name].position) for name, file in self.files)

    @property
    def is_present(self) -> bool:
        """Whether the lane is where its streams are."""
        return not self.files and all(self.points[name].heartbeat >= told for name, told in self.told.items())

    @property
    def oldest(self) -> int | None:
        """The epoch that took the first row that waits; None where none does."""
        return self.files[0][1].first if self.files else None

    def intakes(self, store: Store, streams: Streams, rows: int) -> dict[str, Intake]:
        """The intakes of a turn: about so many rows, of the oldest epochs, and the heartbeats with them.

        A heartbeat comes with the last row of an epoch, and the present one where no row waits.

        Args:
            store: where the rows are.
            streams: what is read, by the names of the inputs.
            rows: how many rows, of all streams together.
        """
        found, waiting = dict(self._parts(store, streams, rows)), {name for name, _ in self.files}
        for name, told in self.told.items():
            if name not in waiting and told > self.points[name].heartbeat:
                found[name] = Intake(self.points[name].position, promise=told)
        return found

    def _parts(self, store: Store, streams: Streams, rows: int) -> Iterator[tuple[str, Intake]]:
        left, ends = rows, dict[str, int]()
        for _, group in groupby(self.files, lambda one: one[1].last):
            for name, file in group:
                begin = max(file.at, self.points[name].position)
                if left > 0:
                    ends[name] = min(file.end, begin + left)
                    left -= ends[name] - begin
        for name, end in ends.items():
            files = [file for known, file in self.files if known == name and file.at < end]
            stream, position = streams[name], self.points[name].position
            assert isinstance(stream, LiveStream)
            source = RetainedSource(store, tuple(files), stream.schema, stream.timestamp)
            first = files[0].at
            begin = max(first, position)
            yield name, Intake(end, source, begin - first, end - first, promise=self._promise(name, end))

    def _promise(self, name: str, end: int) -> int:
        """The heartbeat of a stream of which all below a place is taken; BEGINNING where none follows."""
        of_stream = [file for known, file in self.files if known == name]
        if end >= of_stream[-1].end:
            return self.told[name]
        done = [file for file in of_stream if file.end <= end]
        following = next(file for file in of_stream if file.end > end)
        # Rows of one epoch are in several files, whose heartbeat is that after all of them.
        whole = [file.heartbeat for file in done if file.last < following.first]
        return whole[-1] if whole else BEGINNING


def backlog(lane: int, queries: QuerySet, points: Mapping[str, StreamPoint]) -> Backlog:
    """The rows and heartbeats that a lane has yet to take of its streams.

    Args:
        lane: the lane.
        queries: those that are answered.
        points: how far inputs have been read.
    """
    read = {
        name: declared
        for name, declared in queries.inputs.items()
        if lane_of(name) == lane and declared in queries.read_behind
    }
    files = [
        (name, file)
        for name, declared in read.items()
        for file in (points[declared].retained or Retained()).files
        if file.end > points[name].position
    ]
    return Backlog(
        lane,
        tuple(sorted(files, key=lambda one: (one[1].last, one[0], one[1].at))),
        {name: points[declared].heartbeat for name, declared in read.items()},
        {name: points[name] for name in read},
    )
