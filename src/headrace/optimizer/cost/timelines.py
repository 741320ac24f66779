"""What a timeline is expected to keep, and how often the rows of its groups change."""

from __future__ import annotations

import math
from typing import Final

from headrace.optimizer.cost.flow import Flow
from headrace.optimizer.cost.growth import Growth

_EULER: Final = 0.5772


def kept_rows(flow: Flow, groups: Growth) -> float:
    """The rows of a timeline: groups now, and per group the instants ahead at which something changes.

    Of elements whose end is not known there is nothing ahead.
    """
    # What has come since the last step begins and ends ahead.
    begun = 2 * groups.at(flow.rate * flow.step / 2) if flow.step > 1 else 0.0
    ends = 0.0 if flow.is_open else min(flow.live, groups.at(flow.rate * flow.step) * steps_ahead(flow))
    return groups.at(flow.live) + ends + begun


def steps_ahead(flow: Flow) -> float:
    """At how many instants ahead valid elements end."""
    return max(1.0, flow.lifetime / flow.step)


def changes(flow: Flow, groups: Growth, elapsed: float) -> float:
    """How often the row of some group changes, per instant: where an element begins, and where one ends.

    In the thesis these are 2/d for each group (equations 22.6, 22.7), less where several fall on an instant.
    Elements that are valid until the end of the input do not end within it, and where others take their place
    both is one change.
    """
    per_step = groups.at(flow.rate * flow.step)
    is_once = flow.lifetime <= flow.step or flow.lifetime >= elapsed or flow.is_replaced
    both = 1.0 if is_once else 2.0
    return min(both * per_step, both * groups.at(flow.live)) / flow.step


def records(rows: float) -> float:
    """How many of so many rows in random order are better than all before them: 1 + 1/2 + ... + 1/rows."""
    return min(rows, 1.0) if rows <= 1 else math.log(rows) + _EULER + 1 / (2 * rows)


def records_of(rows: float, places: float) -> float:
    """How many of so many rows in random order are among the first so many of those up to them."""
    if rows <= places:
        return rows
    return places * (1 + records(rows) - records(places))
