"""What would let a query go on that waits for a stream: alternatives, each as an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.engine.shown.status import instant_text
from headrace.heartbeats import bounded
from headrace.runtime.driver.facts.status import SlowestValue, StreamStatus
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


def ways_without(
    stream: StreamStatus, needed: int, others: Iterable[StreamStatus], *, alone: bool
) -> Iterator[str]:
    """What would let a query go on without further rows of a stream: alternatives, each as an order.

    No time counts for one that was given up, so that it is never idle.

    Args:
        stream: the stream.
        needed: the heartbeat that it must reach (instant); BEGINNING if any will do.
        others: the streams that are read in the same run.
        alone: whether the query reads no other stream.
    """
    never_ends, given_up = stream.share is None, stream.problem is not None
    if given_up or not never_ends or stream.by_arrival or stream.waits is not None:
        return
    if stream.idle_after is not None and alone and stream.slowest is not None:
        yield _when_values_are_idle(stream, stream.slowest, stream.idle_after, needed, others)
    elif stream.idle_after is not None and not alone:
        yield f"wait: it declares IDLE AFTER {_seconds(stream.idle_after)}"
    elif stream.idle_after is None and (not alone or stream.slowest is not None):
        yield f"write ALTER STREAM {stream.name} IDLE AFTER 30 SECONDS"
    if not alone or stream.heartbeat > stream.latest:
        return
    if stream.timeout is None:
        yield f"write ALTER STREAM {stream.name} TIMEOUT 30 SECONDS"
    else:
        yield f"wait: it declares TIMEOUT {_seconds(stream.timeout)}"


def _when_values_are_idle(
    stream: StreamStatus, slowest: SlowestValue, idle_after: int, needed: int, others: Iterable[StreamStatus]
) -> str:
    """The use of IDLE AFTER where each value of a column has a bound of its own.

    Values become idle one after the other, and each lets the stream go on to the next one. When the last one
    is idle, it stays where it is, unless another stream is ahead, which it follows.
    """
    length = _seconds(idle_after)
    ahead = (one.heartbeat for one in others if one.name != stream.name and not one.idle)
    if max((slowest.reaches, *ahead)) >= max(needed, BEGINNING + 1):
        return f"wait: it declares IDLE AFTER {length}"
    # A row that is newer than all is not late for any value.
    at = max(stream.latest, needed + (stream.disorder or 0) if needed > BEGINNING else BEGINNING)
    when = f" at {instant_text(min(at, MAX_INSTANT), stream.domain)} or later" if at > BEGINNING else ""
    return (
        f"when no {slowest.column} has brought a row for {length} (IDLE AFTER), send a row of {stream.name} "
        f"with any {slowest.column}{when}"
    )


def _seconds(length: int) -> str:
    return format_length(length, TimeDomain.TIMESTAMP)
