"""CEDR's streams of events, and what they say of one another (Goldstein and Hong, sections 2 and 3.1).

A stream is a sequence of insertions, retractions and CTIs. Intervals are `[start, end)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headrace.reference.contents import Payload
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Insert:
    """A tuple that is valid from `start` to `end`."""

    start: int
    end: int
    payload: Payload


@dataclass(frozen=True)
class Retraction:
    """What shortens the tuple `[start, end)` of a payload to `[start, new_end)`."""

    start: int
    end: int
    new_end: int
    payload: Payload


@dataclass(frozen=True)
class Cti:
    """The promise that no later event has a sync time below an instant."""

    at: int


Event = Insert | Retraction | Cti
Row = tuple[int, int, Payload]
"""Start, end and payload of a tuple."""

Table = Counter[Row]
"""A canonical history table: a bag of tuples."""

Combine = Callable[[Counter[Payload]], Sequence[Payload]]
"""What a snapshot-oriented operator makes of the payloads of a snapshot."""


class BrokenChainError(Exception):
    """A retraction of a tuple that is not there."""


def sync(event: Event) -> int:
    """The instant from which on an event changes something (section 2.1)."""
    match event:
        case Insert(start=start):
            return start
        case Retraction(new_end=new_end):
            return new_end
        case Cti(at=at):
            return at


def table_of(events: Iterable[Event]) -> Table:
    """The canonical history table of a stream.

    Raises:
        BrokenChainError: a retraction does not shorten a tuple that is there.
    """
    table: Table = Counter()
    for event in events:
        match event:
            case Insert(start=start, end=end, payload=payload):
                table[start, end, payload] += 1
            case Retraction(start=start, end=end, new_end=new_end, payload=payload):
                if not (table[start, end, payload] and start <= new_end < end):
                    raise BrokenChainError(event)
                table[start, end, payload] -= 1
                if new_end > start:
                    table[start, new_end, payload] += 1
            case Cti():
                pass
    return +table


def is_valid(events: Sequence[Event]) -> bool:
    """Whether CTIs hold, and retractions shorten what is there (section 2.2, a to c)."""
    promised = BEGINNING
    for event in events:
        if sync(event) < promised:
            return False
        promised = max(promised, event.at) if isinstance(event, Cti) else promised
    try:
        table_of(events)
    except BrokenChainError:
        return False
    return True


def is_ordered(events: Sequence[Event]) -> bool:
    """Whether no event is out of order (definition 3)."""
    return all(sync(one) <= sync(other) for one, other in pairwise(events))


def is_perfect(events: Sequence[Event]) -> bool:
    """Whether it is ordered and retracts nothing (definition 4)."""
    return is_ordered(events) and not any(isinstance(event, Retraction) for event in events)


def closed_up_to(events: Iterable[Event]) -> int:
    """The largest CTI, BEGINNING if there is none (definition 5, lemma 3)."""
    return max((event.at for event in events if isinstance(event, Cti)), default=BEGINNING)


def before(events: Iterable[Event], instant: int) -> list[Event]:
    """The events whose sync times are less than an instant (definition 8)."""
    return [event for event in events if sync(event) < instant]


def watermark(events: Iterable[Event]) -> int:
    """The output watermark: the largest end of all events (definition 10), BEGINNING if there is none."""
    return max((event.end for event in events if not isinstance(event, Cti)), default=BEGINNING)


def snapshots(table: Table, combine: Combine) -> Table:
    """What a snapshot-oriented operator makes of a table (section 3.1): tuples from one end to the next."""
    ends = sorted({end for start, stop, _ in table for end in (start, stop)})
    found: Table = Counter()
    for start, end in pairwise(ends):
        living: Counter[Payload] = Counter()
        for (begin, stop, payload), count in table.items():
            if begin <= start and stop >= end:
                living[payload] += count
        found.update((start, end, payload) for payload in combine(living))
    return found


def content(table: Table, instant: int) -> Counter[Payload]:
    """The payloads of the tuples that are valid at an instant."""
    found: Counter[Payload] = Counter()
    for (start, end, payload), count in table.items():
        if start <= instant < end:
            found[payload] += count
    return found


def same_content(one: Table, other: Table, until: int = INFINITY) -> bool:
    """Whether two tables have the same payloads at every instant before one, however they are cut."""
    ends = {end for table in (one, other) for start, stop, _ in table for end in (start, stop)}
    return all(content(one, at) == content(other, at) for at in ends if at < until)
