"""The definitions of windows that look back at what was valid at each instant so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from headrace.algebra.nodes import HopWindow, Plan, instant_type
from headrace.reference.contents import Content
from headrace.schema import BIGINT

Past = Mapping[int, Content]
"""The content of a stream of chronons at every instant at which it is not empty, up to some instant."""


def hop_content(plan: HopWindow, instant: int, past: Past) -> Content:
    """The rows of the latest window whose last instant is not after this one."""
    phase = plan.size.length + plan.offset.length
    end = instant + 1 - (instant + 1 - phase) % plan.slide.length
    start = end - plan.size.length
    bounds = instant_value(start, plan), instant_value(end, plan)
    content: Content = Counter()
    for then, rows in past.items():
        if start <= then < end:
            content.update({row + bounds: count for row, count in rows.items()})
    return content


def hop_changes(plan: HopWindow, instant: int) -> Iterator[int]:
    """The last instants of the windows that hold an instant, and where the windows after them take over."""
    size, slide = plan.size.length, plan.slide.length
    start = instant - (instant - plan.offset.length) % slide
    while start > instant - size:
        yield start + size - 1
        yield start + size - 1 + slide
        start -= slide


def instant_value(instant: int, plan: Plan) -> object:
    """An instant as a value of a column that holds instants of the plan."""
    if instant_type(plan) == BIGINT:
        return instant
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
