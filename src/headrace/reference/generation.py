"""The definition of heartbeats: what follows from bounds and from what came, by looking at everything.

Srivastava and Widom, PODS 2004, sections 2 and 3. Time-based bounds only, and small numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

DeclaredBounds = Mapping[tuple[int, int], Sequence[tuple[int, int]]]
"""By pair of streams, from and to: pairs of a wait and how far behind."""

ArrivedRow = tuple[int, int, int]
"""A row that came: when, on which stream, and its timestamp."""

Sent = tuple[int, int, int]
"""A row that was sent: when, on which stream, and its timestamp."""


def figure_2(
    bounds: DeclaredBounds, latencies: Sequence[int], rows: Sequence[ArrivedRow], now: int
) -> list[int | None]:
    """Figure 2 as printed: per stream `tau` at a moment, None for nothing; of one array entry per instant."""
    tau: list[dict[int, int]] = [{} for _ in latencies]
    for when, first, instant in rows:
        for second, latency in enumerate(latencies):
            for wait, delta in bounds.get((first, second), ()):
                place = when + wait + latency
                tau[second][place] = max(tau[second].get(place, instant - delta), instant - delta)
    return [max((value for when, value in array.items() if when <= now), default=None) for array in tau]


def obeys(bounds: DeclaredBounds, sent: Sequence[Sent], end: int) -> bool:
    """Whether rows obey the bounds, which hold between the clocks of the sources.

    A clock that has reached `tau` at some time makes others reach `tau - delta` after the wait; a row sets
    the clocks in motion, and afterwards each row must be above what the clock of its source has reached.
    """
    streams = {stream for pair in bounds for stream in pair} | {stream for _, stream, _ in sent}
    # What a source has promised at a time, of rows that it sends later, and what it has sent or promised.
    reached: dict[tuple[int, int], int] = {}
    for _ in range(len(streams) + 1):
        for when in range(end):
            for first, second in bounds:
                for wait, delta in bounds[first, second]:
                    known = [instant for at, stream, instant in sent if stream == first and at == when]
                    known += [reached[first, at] for at in range(when + 1) if (first, at) in reached]
                    for instant in known:
                        place = (second, when + wait)
                        reached[place] = max(reached.get(place, instant - delta), instant - delta)
    return all(
        instant > value
        for when, stream, instant in sent
        for (other, at), value in reached.items()
        if other == stream and at < when
    )


def _ways(latencies: Sequence[int], rows: Sequence[ArrivedRow]) -> Iterator[list[Sent]]:
    """All ways in which rows can have been sent."""
    moments = [range(max(when - latencies[stream], 0), when + 1) for when, stream, _ in rows]
    for chosen in product(*moments):
        yield [(when, stream, instant) for when, (_, stream, instant) in zip(chosen, rows, strict=True)]


def least_later(
    bounds: DeclaredBounds,
    latencies: Sequence[int],
    rows: Sequence[ArrivedRow],
    now: int,
    stream: int,
    instants: Sequence[int],
) -> int | None:
    """The least timestamp that a row of a stream can have that comes after a moment: the heartbeat at it.

    Args:
        bounds: that all sources obey.
        latencies: per stream.
        rows: all that came up to the moment.
        now: the moment.
        stream: its number.
        instants: which timestamps are tried, rising; None is returned if none of them is possible.
    """
    earliest = max(now + 1 - latencies[stream], 0)
    for instant in instants:
        for sent in _ways(latencies, rows):
            for when in range(earliest, now + 2):
                if obeys(bounds, [*sent, (when, stream, instant)], now + 2):
                    return instant
    return None
