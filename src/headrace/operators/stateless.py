"""Operators that handle each element alone: filter, project, the time windows, split, union and the like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import (
    Clip,
    Draw,
    Early,
    Filter,
    Granularity,
    LargestWeight,
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
    WindowEvents,
    instant_type,
)
from headrace.elements import Batch, Int64Array, integers, record_batch, take_rows
from headrace.kernels.instants.windows import cut_by_window
from headrace.operators.contract import Report, evaluate_all, evaluate_predicate
from headrace.operators.match import matched
from headrace.operators.semantic_drop import dropped
from headrace.operators.shed import shed, with_draws, with_largest_weight
from headrace.operators.unnest import unnested
from headrace.steps import value_or_values
from headrace.time import INFINITY, MIN_INSTANT


def apply(node: Stateless, batch: Batch, report: Report) -> Batch:
    """The elements that a stateless node makes of some of its input.

    All are linear: a retraction is treated as an insertion with the other sign.

    Args:
        node: the plan node.
        batch: elements of one of its inputs.
        report: receives the elements for which an expression fails; they are left out.
    """
    match node:
        case Filter() | Match():
            return _filter(node, batch, report)
        case Project() | Unnest():
            return _mapped(node, batch, report)
        case TimeWindow():
            return windowed(node, batch)
        case Lifetime():
            return _lifetime(node, batch, report)
        case WindowBounds():
            return _bounds(node, batch)
        case Granularity():
            return _granules(node, batch)
        case Split():
            return _split(batch)
        case Clip(begin=begin, end=end):
            return _clip(batch, begin, end)
        case Union():
            return batch.with_payload(record_batch(batch.payload.columns, node.schema, len(batch)))
        case Weighing():
            return _weighed(node, batch)
        case Rstream() | Early() | Remember():
            return batch


def _filter(node: Filter | Match, batch: Batch, report: Report) -> Batch:
    if isinstance(node, Match):
        return matched(node, batch)
    return evaluate_predicate(node.predicate, batch, report)


def _weighed(node: Weighing, batch: Batch) -> Batch:
    match node:
        case Shed():
            return shed(node, batch)
        case Draw():
            return with_draws(node, batch)
        case SemanticDrop():
            return dropped(node, batch)
        case LargestWeight():
            return with_largest_weight(node, batch)
        case _:
            raise AssertionError(f"{type(node).__name__} knows no share")


def _mapped(node: Project | Unnest, batch: Batch, report: Report) -> Batch:
    return _project(node, batch, report) if isinstance(node, Project) else unnested(node, batch, report)


def _project(node: Project, batch: Batch, report: Report) -> Batch:
    good, columns = evaluate_all([expression for _, expression in node.items], batch, report)
    return good.with_payload(record_batch(columns, node.schema, len(good)))


def windowed(node: TimeWindow, batch: Batch) -> Batch:
    """The elements of a window's input, valid for as long as they are in it."""
    size, slide, offset = node.size.length, node.slide.length, node.offset.length
    # Within bounds the size is that of each row's own instant (thesis, section 21.2.1).
    te = batch.ts + value_or_values(size, node.steps, batch.ts) if node.steps else _ends(batch.ts, size)
    if slide == 1:
        return Batch(batch.payload, batch.ts, te, batch.w)
    # Thesis, Algorithm 18: the start moves up to the next slide, the end to the slide that drops it.
    ts = -(-(batch.ts + 1 - offset) // slide) * slide + offset - 1
    if size != INFINITY:
        te = (te + slide - offset) // slide * slide + offset - 1
    return Batch(batch.payload, ts, te, batch.w).filter(ts < te)


def _lifetime(node: Lifetime, batch: Batch, report: Report) -> Batch:
    """A retraction has the instant and the duration of what it retracts, and so the same lifetime."""
    good, (lengths,) = evaluate_all([node.duration], batch, report)
    length = integers(lengths.fill_null(0))
    rounded = good.ts // node.granule.length * node.granule.length
    # The first instant is compared with before the sum, which would otherwise leave 64 bits.
    ts = np.maximum(rounded, MIN_INSTANT - node.shift) + node.shift
    te = np.where(length == INFINITY, INFINITY, ts + np.minimum(length, INFINITY - np.maximum(ts, 0)))
    return Batch(good.payload, ts, te, good.w).filter(length > 0)


def _bounds(node: WindowBounds, batch: Batch) -> Batch:
    """Elements are cut where one window takes over from another; their ends are known, as a window's are."""
    rows, ts, te, ends = cut_by_window(batch.ts, batch.te, node.slide.length, node.offset.length)
    one_each = len(rows) == len(batch)
    if isinstance(node, WindowEvents):
        first = ts == ends - 1
        one_each = one_each and bool(first.all())
        rows, ts, ends = (rows, ts, ends) if one_each else (rows[first], ts[first], ends[first])
        te = ends
    payload, w = batch.payload, batch.w
    if not one_each:
        payload, w = take_rows(payload, rows), w[rows]
    bounds = [pa.array(instants).cast(instant_type(node)) for instants in (ends - node.size.length, ends)]
    return Batch(record_batch([*payload.columns, *bounds], node.schema, len(rows)), ts, te, w)


def _granules(node: Granularity, batch: Batch) -> Batch:
    # Thesis, Algorithm 24: an interval without a multiple of the granule is dropped.
    # Within bounds the granule is that of each row's own instant (section 21.2.2).
    granule = value_or_values(node.granule.length, node.steps, batch.ts)
    ts = batch.ts + -batch.ts % granule
    endless = batch.te > INFINITY - granule
    te = np.where(endless, INFINITY, batch.te + -np.where(endless, 0, batch.te) % granule)
    return Batch(batch.payload, ts, te, batch.w).filter(ts < te)


def _split(batch: Batch) -> Batch:
    # Thesis, Algorithm 15, with pieces of one instant; they need not wait, since nothing depends on order.
    lengths = batch.te - batch.ts
    if (lengths == 1).all():
        return batch
    rows = np.repeat(np.arange(len(batch)), lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ts = batch.ts[rows] + within
    return Batch(take_rows(batch.payload, rows), ts, ts + 1, batch.w[rows])


def _clip(batch: Batch, begin: int, end: int) -> Batch:
    # Thesis, Algorithm 26, without the fork: each of two plans clips what both are sent.
    ts, te = np.maximum(batch.ts, begin), np.minimum(batch.te, end)
    return Batch(batch.payload, ts, te, batch.w).filter(ts < te)


def _ends(ts: Int64Array, size: int) -> Int64Array:
    if size == INFINITY:
        return np.full(len(ts), INFINITY, dtype=np.int64)
    return ts + size
