"""The definitions of lateness (which rows come too late) and of the instants of TIMESTAMP BY ARRIVAL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias


def late_rows(timestamps: Sequence[int | None], disorder: int) -> list[int]:
    """The places of the rows that are late: those older than the newest row before them, less the disorder.

    Args:
        timestamps: of a stream's rows, in the order of their positions (instants); None for a row that is
            rejected, which makes no other row late.
        disorder: how much older than the newest row before it a row may be; -1 where it has to be younger
            (STRICT).
    """
    return [place for place, behind in _behind(timestamps) if behind > disorder]


def late_with_limits(timestamps: Sequence[int | None], disorder: int) -> dict[int, int]:
    """By the place of each late row the heartbeat that it is below (instant); see `late_rows`."""
    late = set(late_rows(timestamps, disorder))
    before = ([one for one in timestamps[:place] if one is not None] for place in range(len(timestamps)))
    return {place: max(seen) - disorder for place, seen in enumerate(before) if place in late}


OwnBound: TypeAlias = tuple[int, int]
"""A bound of a stream with itself: after how many further rows it holds, and the `delta` of the paper: rows
then are above a row's timestamp less that. `DISORDER d` is `(0, d + 1)`, `DISORDER n ROWS` is `(n, 1)`."""


def late_by_bounds(timestamps: Sequence[int | None], bounds: Sequence[OwnBound]) -> list[int]:
    """The places of the rows that are late: those that some bound forbids.

    Args:
        timestamps: of a stream's rows, in the order of their positions (instants); None for a row that is
            rejected, and does not count.
        bounds: of the stream with itself.
    """
    usable = [place for place, instant in enumerate(timestamps) if instant is not None]
    times = [instant for instant in timestamps if instant is not None]
    limits = [heartbeat_by_bounds(times[:number], bounds) for number in range(len(times))]
    return [
        place
        for place, instant, limit in zip(usable, times, limits, strict=True)
        if limit is not None and instant < limit
    ]


def heartbeat_by_bounds(timestamps: Sequence[int], bounds: Sequence[OwnBound]) -> int | None:
    """The heartbeat of a stream after some rows: the largest that one of its bounds allows, None for none."""
    found = ((_newest_before(timestamps, rows), delta) for rows, delta in bounds)
    return max((newest - delta + 1 for newest, delta in found if newest is not None), default=None)


def _newest_before(timestamps: Sequence[int], rows: int) -> int | None:
    """The largest timestamp of the rows that so many others came after, None if there are none.

    From 64 rows on, a row counts once the number of rows that have come is a multiple of a 32nd of them.
    """
    step = max(1, rows // 32)
    reached = len(timestamps) // step * step - rows
    return max(timestamps[: max(reached, 0)], default=None)


@dataclass(frozen=True)
class Remembered:
    """What came of a stream in an epoch, for a query that may remember it for less than it allows.

    Attributes:
        times: the timestamps of the rows, in the order of their positions (instants).
        length: how much older than the newest row before it a row may be (instants), or for how many rows it
            may come after a newer one; None for all that the stream allows.
        by_rows: whether the length is a number of rows.
    """

    times: Sequence[int]
    length: int | None = None
    by_rows: bool = False


def late_for_memory(epochs: Sequence[Remembered], disorder: int) -> list[int]:
    """The places of the rows that are late for a query, whose memory of the stream may change between epochs.

    Its heartbeat never goes back. It is that of the stream, or if that is further the newest timestamp less
    the length. By rows it moves between epochs: to the newest timestamp of what had come by the end of an
    epoch since which so many rows have come, of those for which it counts.

    Args:
        epochs: in order.
        disorder: what the stream declares (instants).
    """
    found, place, newest = list[int](), 0, -inf
    heartbeat, moments = -inf, list[tuple[int, float]]()
    for epoch in epochs:
        length = disorder if epoch.length is None else min(epoch.length, disorder)
        moments = moments or [(place, newest)] if epoch.by_rows else []
        for ts in epoch.times:
            heartbeat = max(heartbeat, newest - (disorder if epoch.by_rows else length))
            if ts < heartbeat:
                found.append(place)
            newest, place = max(newest, ts), place + 1
        heartbeat = max(heartbeat, newest - (disorder if epoch.by_rows else length))
        if epoch.by_rows and epoch.length is not None:
            moments.append((place, newest))
            limit = place - epoch.length
            heartbeat = max(heartbeat, *(latest for rows, latest in moments if rows <= limit), -inf)
    return found


def needed_disorder(timestamps: Sequence[int | None]) -> int:
    """The smallest DISORDER with which no row is late."""
    return max((behind for _, behind in _behind(timestamps) if behind > 0), default=0)


def _behind(timestamps: Sequence[int | None]) -> list[tuple[int, int]]:
    """How far each row with a timestamp is behind the newest one before it, by its place."""
    found = []
    for place, instant in enumerate(timestamps):
        before = [earlier for earlier in timestamps[:place] if earlier is not None]
        if instant is not None and before:
            found.append((place, max(before) - instant))
    return found


def arrival_instants(epochs: Sequence[tuple[int, int]]) -> list[int]:
    """The instants of a stream's rows, in their order.

    All rows of an epoch have its instant: the clock's reading, but later than that of the epoch before.

    Args:
        epochs: for each the reading of the clock (microseconds), and how many rows it took.
    """
    found: list[int] = []
    before: int | None = None
    for reading, rows in epochs:
        instant = reading if before is None else max(reading, before + 1)
        found += [instant] * rows
        before = instant
    return found
