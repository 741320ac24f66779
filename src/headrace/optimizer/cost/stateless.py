"""What nodes without state are expected to yield (thesis, section 22.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from headrace.algebra.nodes import (
    Clip,
    Draw,
    Early,
    Filter,
    Granularity,
    Lifetime,
    Match,
    Project,
    Remember,
    Rstream,
    SemanticDrop,
    Shed,
    Split,
    Stateless,
    TimeWindow,
    Union,
    Unnest,
    Weighing,
    WindowBounds,
    column,
)
from headrace.expressions.evaluation.evaluate import evaluate
from headrace.expressions.tree import Call, Column, Literal, columns_of
from headrace.nested import offsets_of
from headrace.optimizer.cost.flow import Flow, lasting
from headrace.optimizer.cost.growth import Growth
from headrace.schema import DOUBLE
from headrace.steps import WHOLE, value_at
from headrace.time import INFINITY, Duration


def passed(plan: Stateless, inputs: Sequence[Flow], elapsed: float) -> Flow:
    """What a node without state yields.

    Args:
        plan: the node.
        inputs: how its inputs flow.
        elapsed: after so long (instants): what is valid for ever is so for this long.
    """
    below = inputs[0]
    match plan:
        case Filter() | Match():
            return _selected(plan, below)
        case Project() | Unnest():
            return _projected(plan, below) if isinstance(plan, Project) else _multiplied(plan, below)
        case Union():
            return united(inputs)
        case TimeWindow(size=size, slide=slide):
            return replace(
                below,
                lifetime=min(length(size), elapsed),
                step=float(slide.length),
                is_open=size.length == INFINITY,
                is_replaced=False,
            )
        case Lifetime(granule=granule):
            fixed = plan.fixed
            lifetime = math.inf if fixed is None or fixed == INFINITY else float(fixed)
            return replace(
                below,
                lifetime=min(lifetime, elapsed),
                step=float(granule.length),
                is_open=fixed == INFINITY,
                is_replaced=False,
            )
        case WindowBounds(slide=slide):
            return _with_bounds(_cut(below, float(slide.length)), float(slide.length))
        case Granularity(granule=granule):
            return _coarser(below, float(granule.length))
        case Split():
            return _cut(below, 1.0)
        case Clip():
            return replace(below, is_open=below.is_open and plan.end == INFINITY)
        case Weighing():
            return _weighed(plan, below)
        case Rstream() | Early() | Remember():
            return below
        case _:
            assert_never(plan)


def _weighed(plan: Weighing, below: Flow) -> Flow:
    """The rows with a column or two more: as many as there are, since all are kept of a query that is new.

    So each has the weight 1.
    """
    if isinstance(plan, SemanticDrop):
        return below
    width = len(plan.input.schema)
    kept = tuple((name, column(plan.input, place)) for place, name in enumerate(plan.input.schema.names))
    added = tuple(
        (field.name, Literal(1.0 if field.type == DOUBLE else 0, field.type))
        for field in plan.schema.fields[width:]
    )
    sample = None if below.sample is None else below.sample.projected((*kept, *added))
    whole = below.growth([part for _, part in kept])
    one = below.growth([])
    values = (*below.values, *{Shed: (whole, one), Draw: (whole, whole)}.get(type(plan), (one,)))
    return replace(below, values=values, sample=sample)


def _projected(plan: Project, below: Flow) -> Flow:
    values = tuple(below.growth([expression]) for _, expression in plan.items)
    extremes = {
        place: below.extremes[part.index]
        for place, (_, part) in enumerate(plan.items)
        if isinstance(part, Column) and part.index in below.extremes
    }
    projected = None if below.sample is None else below.sample.projected(plan.items)
    return replace(below, values=values, sample=projected, extremes=extremes)


def _multiplied(plan: Unnest, below: Flow) -> Flow:
    """As many rows for each as the sampled ones have on average; one where nothing is sampled."""
    kept = tuple(below.values[place] for place in plan.kept)
    added = (below.growth([]),) * (len(plan.schema) - len(kept))
    each = 1.0
    if below.sample is not None:
        found = evaluate(plan.values, below.sample.rows).values
        each = int(offsets_of(found)[-1] - offsets_of(found)[0]) / max(1, len(found))
    return replace(below, rate=below.rate * each, values=(*kept, *added), sample=None, extremes={})


def _selected(plan: Filter | Match, below: Flow) -> Flow:
    if isinstance(plan, Filter):
        part = _of_weight(plan)
        return below.where(plan.predicate) if part is None else replace(below, rate=below.rate * part)
    found = united([below.where(predicate) for _, predicate in plan.predicates])
    return replace(found, values=(*found.values, found.growth([])), sample=None)


def _of_weight(plan: Filter) -> float | None:
    """The part of the rows that are kept of a share whose weight fulfils a condition; None for any other.

    All weigh 1, or all weigh more: by the share that is in force.
    """
    shed, predicate = plan.input, plan.predicate
    if not isinstance(shed, Shed) or columns_of(predicate) != {len(shed.schema) - 1}:
        return None
    if not isinstance(predicate, Call) or predicate.function not in ("=", ">"):
        return None
    all_are_kept = value_at(WHOLE, shed.steps, INFINITY) == WHOLE
    return float(all_are_kept == (predicate.function == "="))


def united(flows: Sequence[Flow]) -> Flow:
    """The union of flows (equation 22.3)."""
    if len(flows) == 1:
        return flows[0]
    rate = sum(flow.rate for flow in flows)
    live = sum(flow.live for flow in flows)
    columns = zip(*(flow.values for flow in flows), strict=True)
    values = tuple(max(column, key=lambda growth: growth.at(live)) for column in columns)
    return Flow(
        rate,
        lasting(live, rate),
        min(flow.step for flow in flows),
        values,
        is_open=all(flow.is_open for flow in flows),
        is_replaced=all(flow.is_replaced for flow in flows),
    )


def length(duration: Duration) -> float:
    """A duration (instants), infinite if it has no end."""
    return math.inf if duration.length == INFINITY else float(duration.length)


def _with_bounds(flow: Flow, slide: float) -> Flow:
    """With the two columns of a window's ends: as many values as there are slides in which the rows come."""
    slides = Growth(((1.0, 1.0), (max(2.0, flow.rate * slide), 1.0 + 1e-9), (1e18, 1e9)))
    return replace(flow, values=(*flow.values, slides, slides), sample=None)


def _cut(flow: Flow, length: float) -> Flow:
    """Elements cut into pieces of at most some length (equation 22.8)."""
    pieces = max(1.0, flow.lifetime / length)
    return replace(flow, rate=flow.rate * pieces, lifetime=flow.lifetime / pieces, sample=None, is_open=False)


def _coarser(flow: Flow, granule: float) -> Flow:
    """Elements that begin and end at granules, without those that lie between two (equation 22.9)."""
    if granule <= flow.step:
        return flow
    kept = min(1.0, flow.lifetime / granule)
    return replace(flow, rate=flow.rate * kept, lifetime=max(flow.lifetime, granule), step=granule)
