"""What a timeline is expected to keep, and how often the rows of its groups change."""

from __future__ import annotations

import math
from typing import Final

from headrace.optimizer.cost.flow import Flow
from headrace.optimizer.cost.growth import Growth

_EULER: Final = 0.5772
_ROUNDS: Final = 100
"""More than enough rounds of an iteration that comes nearer with each."""


def kept_rows(flow: Flow, groups: Growth, at_once: float = 1.0) -> float:
    """The rows of a timeline: groups now, and per group the instants ahead at which something changes.

    Of elements whose end is not known there is nothing ahead.

    Args:
        flow: how the elements flow.
        groups: how many groups so many of them have.
        at_once: how many groups an element has at its instant.
    """
    # What has come since the last step begins and ends ahead.
    begun = 2 * groups.at(flow.rate * flow.step / 2) if flow.step > 1 else 0.0
    coming = begins(flow, groups, at_once) * flow.step
    ends = 0.0 if flow.is_open else min(flow.live, coming * steps_ahead(flow))
    return groups.at(flow.live) + ends + begun


def steps_ahead(flow: Flow) -> float:
    """At how many instants ahead valid elements end."""
    return max(1.0, flow.lifetime / flow.step)


def begins(flow: Flow, groups: Growth, at_once: float) -> float:
    """How often elements of some group begin, per instant; those that begin together count once.

    Args:
        flow: how the elements flow.
        groups: how many groups so many of them have.
        at_once: how many groups an element has at its instant.
    """
    if flow.step <= 1 and at_once < 1:
        return flow.rate * at_once
    return groups.at(flow.rate * flow.step) / flow.step


def changes(flow: Flow, groups: Growth, elapsed: float, at_once: float = 1.0) -> float:
    """How often the row of some group changes, per instant: where an element begins, and where one ends.

    In the thesis these are 2/d for each group (equations 22.6, 22.7), less where several fall on an instant.
    Elements that are valid until the end of the input do not end within it, and where others take their place
    both is one change. Where the last element of a group ends there is no row any more.
    """
    once = min(begins(flow, groups, at_once), groups.at(flow.live) / flow.step)
    is_once = flow.lifetime <= flow.step or flow.lifetime >= elapsed or flow.is_replaced
    if is_once or not once:
        return once
    return once * (2 - _part_left_empty(once * flow.lifetime / max(groups.at(flow.live), 1e-9)))


def _part_left_empty(together: float) -> float:
    """How often the end of an element leaves its group empty.

    Where elements come independently, n are expected at an instant, and none is there with e^-n; so there are
    n/(1 - e^-n) in a group that is not empty.

    Args:
        together: how many are valid together in a group that is not empty.
    """
    expected = max(together, 1.0)
    for _ in range(_ROUNDS):
        expected = together * -math.expm1(-expected)
    return math.exp(-expected)


def records(rows: float) -> float:
    """How many of so many rows in random order are better than all before them: 1 + 1/2 + ... + 1/rows."""
    return min(rows, 1.0) if rows <= 1 else math.log(rows) + _EULER + 1 / (2 * rows)


def records_of(rows: float, places: float) -> float:
    """How many of so many rows in random order are among the first so many of those up to them."""
    if rows <= places:
        return rows
    return places * (1 + records(rows) - records(places))
