"""What an epoch takes of bounded streams, and which of its tasks reads what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.runtime.intake.streams import BoundedStream, Intake, LiveStream
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.tasks.messages import Split
from headrace.time import INFINITY

Streams = Mapping[str, BoundedStream | LiveStream]


def next_share(streams: Streams, points: Mapping[str, StreamPoint], epoch_rows: int) -> dict[str, Intake]:
    """What the next epoch takes of the bounded streams, as a function of how far they have been read.

    Every epoch takes the same share of what is left of every stream, so that streams which cover the same
    time advance together and little has to wait.

    Args:
        streams: by name; live ones have no share.
        points: how far each has been read.
        epoch_rows: about how many rows an epoch takes.
    """
    left = sum(_rows_left(stream, points[name]) for name, stream in _bounded(streams))
    epochs = max(1, -(-left // epoch_rows))
    share = {}
    for name, stream in _bounded(streams):
        point, size = points[name], stream.source.size
        if point.heartbeat != INFINITY:
            end = min(point.position - (point.position - size) // epochs, point.position + _most(stream))
            share[name] = Intake(end, stream.source, point.position, end, ended=end == size)
    return share


def total_rows(streams: Streams) -> int:
    """About how many rows there are in all bounded streams together."""
    return sum(stream.source.rows for _, stream in _bounded(streams))


def assignments(intakes: Mapping[str, Intake], tasks: int) -> tuple[tuple[Split, ...], ...]:
    """What each task of level 0 reads: an equal part of every stretch.

    Args:
        intakes: what the epoch takes of each stream.
        tasks: how many tasks there are.
    """
    spans = {name: (take.start, take.end) for name, take in intakes.items() if take.source is not None}
    return tuple(
        tuple(Split(name, *_part(span, task, tasks)) for name, span in spans.items()) for task in range(tasks)
    )


def _bounded(streams: Streams) -> Iterator[tuple[str, BoundedStream]]:
    for name, stream in streams.items():
        if isinstance(stream, BoundedStream):
            yield name, stream


def _rows_left(stream: BoundedStream, point: StreamPoint) -> int:
    size = stream.source.size
    return stream.source.rows * (size - point.position) // max(size, 1)


def _most(stream: BoundedStream) -> int:
    """How many positions of a stream an epoch may take."""
    size, rows = stream.source.size, stream.source.rows
    return size if stream.max_rows is None else max(1, size * stream.max_rows // max(rows, 1))


def _part(span: tuple[int, int], part: int, parts: int) -> tuple[int, int]:
    start, end = span
    return start + (end - start) * part // parts, start + (end - start) * (part + 1) // parts
