"""What an epoch takes of bounded streams, and which of its tasks reads what."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from headrace.runtime.intake.streams import (
    BoundedRelation,
    BoundedStream,
    Intake,
    LiveStream,
    Streams,
    is_read,
)
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.later import later
from headrace.runtime.tasks.messages import SplitRange
from headrace.time import INFINITY

FIRST_ROWS: Final = 500_000
"""About how many rows the first epoch takes, and every one beside streams that never end."""
MOST_PASSED: Final = 2_500_000
"""About how many rows an epoch takes at most whose rows only pass through level 0, batch by batch."""
MOST_HELD: Final = 1_000_000
"""About how many rows an epoch takes at most whose rows are held by the operators of a further level."""
_GROWTH: Final = 2
"""So many times the rows that were read before it an epoch takes."""

_PARTS: Final = 2**16
"""Into so many parts a share is cut that has too many bytes."""

_NEAR: Final = 8
"""A cut is moved to a border of blocks that is at most such a part of its stretch away."""


def next_share(
    streams: Streams, points: Mapping[str, StreamPoint], epoch_rows: int, epoch_bytes: int
) -> dict[str, Intake]:
    """What the next epoch takes of the bounded streams, as a function of how far they have been read.

    Relations come first, until they are read whole: joins need not keep a stream's rows for them. Then every
    epoch takes the same share of what is left of every stream, so that streams which cover the same time
    advance together and little has to wait.

    Args:
        streams: by name; live ones have no share.
        points: how far each has been read.
        epoch_rows: about how many rows an epoch takes.
        epoch_bytes: about how many bytes of them, as far as they are known before they are read.
    """
    unread = {name: streams[name] for name in relations_to_read(streams, points)}
    if unread:
        streams, epoch_rows = unread, MOST_HELD
    left = {
        name: (points[name].position, stream.source.size, stream)
        for name, stream in _bounded(streams)
        if points[name].heartbeat != INFINITY
    }
    rows = sum(_rows_left(stream, points[name]) for name, (_, _, stream) in left.items())
    epochs = max(1, -(-rows // epoch_rows))
    ends = {
        name: min(start - (start - size) // epochs, start + _most(stream))
        for name, (start, size, stream) in left.items()
    }

    def part(places: int) -> dict[str, int]:
        """The ends of so many of the equal parts of the share, but at least one position of each stream."""
        return {
            name: min(end, left[name][0] + max(1, (end - left[name][0]) * places // _PARTS))
            for name, end in ends.items()
        }

    def is_light(places: int) -> bool:
        weights = (left[name][2].source.weigh(left[name][0], end) for name, end in part(places).items())
        return sum(weights) <= epoch_bytes

    fitting = _PARTS
    if not is_light(_PARTS):
        fitting = bisect_left(range(1, _PARTS), True, key=lambda places: not is_light(places))
    found = {}
    for name, limit in part(fitting).items():
        start, size, stream = left[name]
        end = _near(stream.source.borders, limit, (limit - start) // _NEAR, 0)
        found[name] = Intake(end, stream.source, start, end, ended=end == size)
    return found


def relations_to_read(streams: Streams, points: Mapping[str, StreamPoint]) -> tuple[str, ...]:
    """The relations that have not been read whole: no stream is read before.

    Args:
        streams: by name.
        points: how far each has been read.
    """
    return tuple(
        name
        for name, stream in streams.items()
        if isinstance(stream, BoundedRelation) and not is_read(stream, points[name])
    )


def has_bounded(streams: Streams) -> bool:
    """Whether there is a stream that ends: only those have shares."""
    return any(isinstance(stream, BoundedStream | BoundedRelation) for stream in streams.values())


def grown_rows(streams: Streams, points: Mapping[str, StreamPoint], most: int) -> int:
    """About how many rows the next epoch takes where nobody has said it, as a function of the positions.

    The first answers come soon, and later epochs, fewer and larger, cost less.

    Args:
        streams: by name; beside live ones, whose rows do not wait, epochs stay small.
        points: how far each has been read.
        most: how many rows at most.
    """
    bounded = dict(_bounded(streams))
    if _has_live(streams):
        return FIRST_ROWS
    read = sum(stream.source.rows - _rows_left(stream, points[name]) for name, stream in bounded.items())
    return min(max(FIRST_ROWS, _GROWTH * read), most)


def rows_left(streams: Streams, points: Mapping[str, StreamPoint]) -> int | None:
    """About how many rows have not been read yet; None where a stream never ends.

    Args:
        streams: by name.
        points: how far each has been read.
    """
    if _has_live(streams):
        return None
    return sum(_rows_left(stream, points[name]) for name, stream in _bounded(streams))


def assignments(
    intakes: Mapping[str, Intake], tasks: int, whole: Collection[str] = ()
) -> tuple[tuple[SplitRange, ...], ...]:
    """What each task of level 0 reads: about an equal part of every stretch.

    Args:
        intakes: what the epoch takes of each stream.
        tasks: how many tasks there are.
        whole: the streams of which a single task reads everything, the next one of each.
    """
    cuts = {name: _cuts(take, tasks) for name, take in intakes.items() if name not in whole}
    found = [
        [SplitRange(name, *borders[task : task + 2]) for name, borders in cuts.items() if borders]
        for task in range(tasks)
    ]
    read = {name for name in whole if name in intakes and intakes[name].source is not None}
    for place, name in enumerate(sorted(read)):
        found[place % tasks] += [SplitRange(name, intakes[name].start, intakes[name].end)]
    return tuple(map(tuple, found))


def _has_live(streams: Streams) -> bool:
    """Whether a stream never ends."""
    return any(isinstance(stream, LiveStream) for stream in streams.values())


def _bounded(streams: Streams) -> Iterator[tuple[str, BoundedStream | BoundedRelation]]:
    """Those that end; beside live ones, which go on, without those that are away for now."""
    waits = not _has_live(streams)
    for name, stream in streams.items():
        if isinstance(stream, BoundedStream | BoundedRelation):
            away = later(stream.source)
            if away is None or waits or away.reached():
                yield name, stream


def _rows_left(stream: BoundedStream | BoundedRelation, point: StreamPoint) -> int:
    size = stream.source.size
    return stream.source.rows * (size - point.position) // max(size, 1)


def _most(stream: BoundedStream | BoundedRelation) -> int:
    """How many positions of a stream an epoch may take."""
    size, rows = stream.source.size, stream.source.rows
    if isinstance(stream, BoundedRelation):
        return size
    return size if stream.max_rows is None else max(1, size * stream.max_rows // max(rows, 1))


def _cuts(take: Intake, parts: int) -> list[int]:
    """Where the parts of a stretch begin and end; nothing where there is no source to read."""
    if take.source is None:
        return []
    length = take.end - take.start
    reach, borders = length // (parts * _NEAR), take.source.borders
    inner = (take.start + length * part // parts for part in range(1, parts))
    return [take.start, *(_near(borders, cut, reach, reach) for cut in inner), take.end]


def _near(borders: Sequence[int], position: int, below: int, above: int) -> int:
    """The border that is nearest to a position and not too far below or above it; the position if none is."""
    found = borders[bisect_left(borders, position - below) : bisect_right(borders, position + above)]
    return min(found, key=lambda border: abs(border - position), default=position)
