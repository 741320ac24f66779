"""What the first rows of groups are expected to be: how many, how often others, and what is kept for them."""

from __future__ import annotations

import math
from dataclasses import replace

from headrace.algebra.nodes import TopK, column
from headrace.algebra.properties import has_skyband
from headrace.optimizer.cost.flow import Flow, lasting
from headrace.optimizer.cost.growth import ALL
from headrace.optimizer.cost.timelines import kept_rows, records_of, steps_ahead


def topped(plan: TopK, flow: Flow, elapsed: float) -> tuple[Flow, float]:
    """How the rows that have a place flow, and how many rows are kept for them.

    Args:
        plan: which rows have a place.
        flow: how its input flows.
        elapsed: for how long (instants).
    """
    groups = flow.growth(plan.keys)
    number = max(1.0, groups.at(flow.live))
    size = flow.live / number
    most = math.inf if plan.limit is None else plan.limit + plan.offset
    shown = flow.among_first(plan.keys, most, flow.live)
    places = shown / number
    if has_skyband(plan):
        # Those that have a place, and those that have one when better ones have ended. Others do not arrive.
        steps = 1.0 if flow.is_open else steps_ahead(flow)
        band = number * records_of(min(size, places * steps), places)
        kept = groups.at(flow.live) + band + (0.0 if flow.is_open else band)
    else:
        rows = tuple(column(plan.input, place) for place in range(len(plan.input.schema)))
        kept = kept_rows(flow, groups) + kept_rows(flow, flow.growth(rows))
    rate = _rate(plan, flow, places, size, elapsed)
    added = () if plan.number is None else (ALL,)
    found = replace(flow, rate=rate, lifetime=lasting(shown, rate), values=flow.values + added, sample=None)
    return replace(found, is_replaced=True), kept


def _rate(plan: TopK, flow: Flow, places: float, size: float, elapsed: float) -> float:
    """How often some row comes to have a place or, where it is shown, another one."""
    is_growing = flow.lifetime >= elapsed
    entering = records_of(size, places) if is_growing else places
    rate = flow.rate * min(1.0, entering / max(size, 1e-9))
    if plan.number is None:
        return rate
    # A row that enters or leaves moves those after it, which are half of them.
    among = places / 2 if is_growing else places
    return rate * (1 + max(0.0, among - 1) / 2) * (1 if is_growing else 2)
