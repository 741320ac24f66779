"""Contents of streams in plain Python: multisets of payloads, and histories made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.elements import Batch, to_rows
from headrace.errors import HistoryError
from headrace.time import INFINITY

Payload = tuple[object, ...]
Element = tuple[Payload, int, int, int]
"""Payload, ts, te and signed multiplicity."""

Content = Counter[Payload]
"""A payload's multiplicity is how often it is in the content, never zero."""

History = list[tuple[Payload, int, int]]
"""Payload, ts and te of maximal, coalesced intervals, sorted by ts, payload and te."""

NAN: Final = float("nan")
"""The one NaN in payloads; being one object, it is equal to itself in tuples."""


@dataclass(frozen=True)
class Stream:
    """A source's elements.

    Attributes:
        columns: the names of the payload's columns.
        elements: any elements, in any order; the multiplicities add up to no less than 0 at every instant.
    """

    columns: Sequence[str]
    elements: Sequence[Element]

    @staticmethod
    def of(batch: Batch) -> Stream:
        """The elements of a batch."""
        return Stream(batch.payload.schema.names, to_rows(batch))


def equal_form(value: object) -> object:
    """The representative of all values that are equal in grouping: one NaN, 0 for -0.

    An ARRAY is a tuple of its values, a STRUCT one of its fields' values, a MAP one of pairs.
    """
    if isinstance(value, float):
        return NAN if value != value else value + 0.0
    if isinstance(value, dict):
        return tuple(map(equal_form, value.values()))
    return tuple(map(equal_form, value)) if isinstance(value, list | tuple) else value


def payload(values: Iterable[object]) -> Payload:
    """A payload that is equal, as a Python tuple, to every payload that is equal in grouping."""
    return tuple(map(equal_form, values))


def content_at(elements: Iterable[Element], instant: int) -> Content:
    """The content at an instant: the sum of the multiplicities of the elements valid there.

    Raises:
        HistoryError: a sum is below zero.
    """
    content = counts_at(elements, instant)
    if any(count < 0 for count in content.values()):
        raise HistoryError(f"a payload's multiplicity is below zero at {instant}")
    return +content


def counts_at(elements: Iterable[Element], instant: int) -> Content:
    """The sum of the multiplicities of the elements valid at an instant, also where it is zero or below."""
    counts: Content = Counter()
    for values, ts, te, w in elements:
        if ts <= instant < te:
            counts[payload(values)] += w
    return counts


def content_within(elements: Iterable[Element], begin: int, end: int, *, events: bool) -> Content:
    """The content over a span: a standing answer whose window gets its ends when it is asked for.

    Args:
        elements: the answer's.
        begin, end: the first instant, and the first one after the last.
        events: whether its rows are of an instant each.

    Returns:
        Of events all of them; of others the rows that are there at some instant, each as often as it is there
        at once at most.

    Source:
        PSoup, sections 1.1 and 3.3.
    """
    found: Content = Counter()
    known = list(elements)
    for instant in range(begin, end):
        content = content_at(known, instant)
        found = found + content if events else found | content
    return found


def history_of(contents: Mapping[int, Content]) -> History:
    """The canonical history of a stream.

    Args:
        contents: the content from each of these instants to the next one, and from the last one for ever;
            before the first one the content is empty.
    """
    instants = sorted(contents)
    ends = [*instants[1:], INFINITY]
    most: Content = Counter()
    for content in contents.values():
        most |= content
    history: History = []
    for values, layers in most.items():
        for layer in range(1, layers + 1):
            since: int | None = None
            for instant, end in zip(instants, ends, strict=True):
                present = contents[instant][values] >= layer
                since = (instant if since is None else since) if present else None
                if since is not None and (end == INFINITY or contents[end][values] < layer):
                    history.append((values, since, end))
    return sorted(history, key=lambda row: (row[1], *map(order, row[0]), row[2]))


def order(value: object) -> tuple[int, object]:
    """A key that sorts the values of a column: NULL first, NaN last; ARRAYs by their first difference."""
    if value is None:
        return 0, 0
    if isinstance(value, tuple | list | dict):
        return 1, tuple(map(order, value.values() if isinstance(value, dict) else value))
    return (2, 0) if value != value else (1, value)
