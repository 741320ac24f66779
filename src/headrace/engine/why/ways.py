"""What would let a query go on that waits for a stream: alternatives, each as an order."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.engine.shown.status import instant_text
from headrace.heartbeats import bounded
from headrace.runtime.driver.facts.status import StreamStatus
from headrace.time import BEGINNING, MAX_INSTANT, TimeDomain, format_length


def ways_on(stream: StreamStatus, needed: int, said: str = "DISORDER") -> Iterator[str]:
    """What would move a stream's heartbeat far enough: alternatives, each as an order.

    Args:
        stream: the stream.
        needed: the heartbeat that it must reach (instant); BEGINNING if any will do.
        said: the clause that says by how much a row may be older than the newest one.
    """
    row = f"a row of {stream.name}"
    if stream.slowest is not None:
        row += f" with {stream.slowest.column} {stream.slowest.value}"
    if stream.problem is not None:
        yield f"mend what {stream.name} was given up for, then start the run again"
    elif stream.share is not None:
        yield f"let {stream.name} be read on: {100 * stream.share:.0f} % of it has been"
    elif stream.waits is not None:
        yield f"wait: {stream.name} declares WAIT"
    elif stream.by_arrival and needed != BEGINNING:
        yield f"wait until the clock has passed {instant_text(needed, stream.domain)}"
    elif needed == BEGINNING or stream.disorder is None:
        yield f"send {row}"
    else:
        at = instant_text(min(needed + stream.disorder, MAX_INSTANT), stream.domain)
        yield f"send {row} at {at} or later{_bound(stream, stream.disorder, said)}"


def _bound(stream: StreamStatus, disorder: int, said: str) -> str:
    match disorder:
        case 0:
            return ""
        case bounded.STRICT:
            return " (STRICT)"
        case _:
            said = "an estimated DISORDER of" if stream.estimated else said
            return f" ({said} {format_length(disorder, stream.domain)})"


def ways_without(stream: StreamStatus, *, alone: bool) -> Iterator[str]:
    """What would let a query go on without further rows of a stream: alternatives, each as an order.

    No time counts for one that was given up, so that it is never idle.

    Args:
        stream: the stream.
        alone: whether the query reads no other stream.
    """
    never_ends, given_up = stream.share is None, stream.problem is not None
    if given_up or not never_ends or stream.by_arrival or stream.waits is not None:
        return
    for clause, length, useful in (
        ("IDLE AFTER", stream.idle_after, not alone or stream.slowest is not None),
        ("TIMEOUT", stream.timeout, alone and stream.heartbeat <= stream.latest),
    ):
        if useful and length is None:
            yield f"write ALTER STREAM {stream.name} {clause} 30 SECONDS"
        elif useful and length is not None:
            yield f"wait: it declares {clause} {format_length(length, TimeDomain.TIMESTAMP)}"
