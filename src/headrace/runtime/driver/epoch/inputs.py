"""What an epoch takes of each input, in the form that its tasks get."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headrace.algebra.changes import Changes
from headrace.algebra.letters import letters_name
from headrace.heartbeats.timing import Timing
from headrace.lowering.behind import declared_name, lane_of
from headrace.runtime.driver.clock.timekeeper import values_of
from headrace.runtime.driver.kept.behind import part_behind
from headrace.runtime.driver.kept.letters import all_columns
from headrace.runtime.driver.query_set import QuerySet
from headrace.runtime.intake.streams import (
    BoundedRelation,
    BoundedStream,
    Incoming,
    Intake,
    LiveStream,
    Streams,
)
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.messages import RelationInput, StreamInput
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT


@dataclass(frozen=True)
class Inputs:
    """What an epoch takes.

    Attributes:
        streams: of each stream, by its name.
        relations: of each reading of a relation, by its name.
    """

    streams: dict[str, StreamInput]
    relations: dict[str, RelationInput]


def inputs_of(
    streams: Streams,
    points: Mapping[str, StreamPoint],
    timings: Mapping[str, Timing],
    taken: Mapping[str, Intake],
    columns: Mapping[str, tuple[str, ...]],
    clock: int,
) -> Inputs:
    """What an epoch takes of each input.

    Args:
        streams: what the queries read.
        points: how far each has been read.
        timings: what holds of the time of each in this epoch.
        taken: what is taken of each.
        columns: which columns of each are read.
        clock: the clock's reading for this epoch (microseconds).
    """
    schemas = {
        name: stream.schema.select(tuple(map(stream.schema.names.index, columns[name])))
        for name, stream in streams.items()
    }
    found = Inputs({}, {})
    for name, stream in streams.items():
        point = points[name]
        if isinstance(stream, BoundedRelation):
            found.relations[name] = RelationInput(
                *(taken[name].source, schemas[name], stream.valid, point.heartbeat, stream.changes),
                changed_at=taken[name].changed_at,
                arrived=point.arrived - taken[name].start,
            )
        else:
            found.streams[name] = StreamInput(
                taken[name].source,
                schemas[name],
                stream.timestamp,
                timings[name],
                point.heartbeat,
                in_order=stream.timing.is_in_order and not taken[name].is_batch,
                newest=MAX_INSTANT if stream.timing.ahead is None else clock + stream.timing.ahead,
                latest=point.time.latest,
                values=values_of(stream.timing, point),
                arrival=stream.timing.arrival(clock, point.heartbeat),
                changes=stream.changes,
                letters=all_columns(stream) if keeps_letters(name, stream, streams) else None,
                replayed=None if (replay := taken[name].replay) is None else replay.queries,
                retained=is_retained(stream),
                computed=stream.computed if isinstance(stream, LiveStream) else None,
                arrived=None if taken[name].is_batch else point.arrived - taken[name].start,
            )
    return found


def keeps_letters(name: str, stream: Incoming, streams: Collection[str]) -> bool:
    """Whether dead letters of a stream are kept with all columns: where it says so, and where they are read.

    Args:
        name: that by which it is read.
        stream: the stream.
        streams: what the queries read.
    """
    if not isinstance(stream, BoundedStream | LiveStream):
        return False
    return stream.letters_kept is not None or letters_name(declared_name(name)) in streams


def is_retained(stream: Incoming) -> bool:
    """Whether rows of a stream are kept once they have been read."""
    return isinstance(stream, BoundedStream | LiveStream) and stream.retain is not None


def promises_of(intakes: Mapping[str, Intake]) -> dict[str, int]:
    """The heartbeats that streams have sent beside their rows; INFINITY of those that end."""
    promised = {name: INFINITY if take.ended else take.promise for name, take in intakes.items()}
    return {name: promise for name, promise in promised.items() if promise > BEGINNING}


def columns_of(queries: QuerySet, streams: Streams) -> dict[str, tuple[str, ...]]:
    """Per stream the columns that are read: those that queries need, and that its heartbeats are made from.

    Where rows are only counted, one column is read all the same: Spark hands over no rows without columns.
    """
    found = {}
    for name, columns in queries.columns.items():
        stream = streams[queries.inputs[name]]
        if lane_of(name) is not None:
            stream = part_behind(stream)
        if name in queries.read_behind or keeps_letters(name, stream, queries.inputs) or is_retained(stream):
            found[name] = tuple(sorted(stream.schema.names))
            continue
        changes = () if stream.changes is None else stream.changes.columns
        read = {*columns, *stream.timing.columns, *changes}
        if not isinstance(stream, BoundedRelation) and stream.timing.by_arrival:
            read.discard(stream.timestamp)
        if isinstance(stream.changes, Changes):
            read.discard(stream.changes.arrived)
        found[name] = tuple(sorted(read)) or stream.schema.names[:1]
    return found
