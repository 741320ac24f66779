"""What would let a query go on that waits for a stream: alternatives, each as an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
        yield from _by_clock(stream, needed)
    else:
        at = instant_text(min(needed + stream.disorder, MAX_INSTANT), stream.domain)
        yield f"send {row} at {at} or later{_bound(stream, stream.disorder, said)}"
        yield from _by_clock(stream, needed)


def _by_clock(stream: StreamStatus, needed: int) -> Iterator[str]:
    """The use of AT MOST ... BEHIND."""
    if stream.behind is None:
        return
    if needed == BEGINNING:
        yield f"wait: it declares AT MOST {_seconds(stream.behind)} BEHIND"
    else:
        at = instant_text(min(needed + stream.behind, MAX_INSTANT), stream.domain)
        yield f"wait until the clock has passed {at}: it declares AT MOST {_seconds(stream.behind)} BEHIND"


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
    stream: StreamStatus, needed: int, beside: Iterable[StreamStatus], finished: int
) -> Iterator[str]:
    """What would let a query go on without further rows of a stream: alternatives, each as an order.

    Only what would move the heartbeat far enough is said: a silent stream follows those beside it, and once
    all of them are silent their heartbeats go to the end of the windows that hold rows, and no further. No
    time counts for one that was given up, so that it is never idle.

    Args:
        stream: the stream.
        needed: the heartbeat that it must reach (instant); BEGINNING if any will do.
        beside: the other streams that the query reads.
        finished: the heartbeat that the stream reaches when all of them are silent (instant), BEGINNING if
            none.
    """
    never_ends, given_up = stream.share is None, stream.problem is not None
    if given_up or not never_ends or stream.by_arrival or stream.waits is not None:
        return
    least, others = max(needed, BEGINNING + 1), [one for one in beside if one.idle_after != 0]
    ends, values = finished >= least, stream.slowest.reaches if stream.slowest else BEGINNING
    follows = max((values, *map(_heartbeat, others))) >= least
    if stream.idle_after is not None:
        if follows or (ends and all(one.idle_after is not None for one in others)):
            yield f"wait: it declares IDLE AFTER {_seconds(stream.idle_after)}"
    elif (others or stream.slowest is not None) and (follows or ends):
        yield f"write ALTER STREAM {stream.name} IDLE AFTER 30 SECONDS"
    if stream.timeout is not None and ends:
        yield f"wait: it declares TIMEOUT {_seconds(stream.timeout)}"
    elif stream.timeout is None and ends and not others and stream.idle_after is None:
        yield f"write ALTER STREAM {stream.name} TIMEOUT 30 SECONDS"


def _heartbeat(stream: StreamStatus) -> int:
    """The heartbeat of a stream that others may follow; an idle one is followed by nobody."""
    return BEGINNING if stream.idle else stream.heartbeat


def _seconds(length: int) -> str:
    return format_length(length, TimeDomain.TIMESTAMP)
