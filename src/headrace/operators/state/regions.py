"""Regions: intervals of keys, and what a timeline holds of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.elements import Int64Array, integers
from headrace.kernels.instants.intervals import joined_intervals
from headrace.operators.state.keys import order_by
from headrace.operators.state.runs import TIME
from headrace.operators.state.schedule import Schedule
from headrace.operators.state.sum_columns import SumColumns, all_limbs, sums_of
from headrace.operators.state.timeline import Timeline, TimelineInput


@dataclass(frozen=True, eq=False)
class Regions:
    """Intervals of keys that do not meet.

    Attributes:
        keys: the key columns of k keys, and hashes: their hashes (int64[k]).
        codes, starts, ends: int64[r], the key of each region, and from when to when it is (instants).
    """

    keys: list[pa.Array]
    hashes: Int64Array
    codes: Int64Array
    starts: Int64Array
    ends: Int64Array

    @classmethod
    def of(
        cls,
        keys: list[pa.Array],
        hashes: Int64Array,
        codes: Int64Array,
        starts: Int64Array,
        ends: Int64Array,
    ) -> Regions:
        """The instants that some interval of a key has; int64[n] each, in any order."""
        order = order_by(codes, starts, len(hashes))
        return cls(keys, hashes, *joined_intervals(order, codes, starts, ends))


@dataclass(frozen=True, eq=False)
class RegionContent:
    """What a timeline holds of some regions.

    Attributes:
        at_starts: one element for each region, with the sums at its start.
        covered: int64[r], up to where the operator has emitted what the key has at the heartbeat.
        later: what changes within them, each as an element up to the end of its region.
        codes: int64[n], the region of each of these.
    """

    at_starts: TimelineInput
    covered: Int64Array
    later: TimelineInput
    codes: Int64Array


def content_of(timeline: Timeline, regions: Regions, since: int) -> RegionContent:
    """What a timeline holds of some regions.

    Args:
        timeline: at some heartbeat; what is to come is in one schedule.
        regions: none begins more than an instant before the heartbeat.
        since: the heartbeat (instant).
    """
    schedule = schedule_of(timeline)
    rows = pa.array(regions.codes)
    keys, hashes = [key.take(rows) for key in regions.keys], regions.hashes[regions.codes]
    after = regions.starts + 1
    bases, covered = timeline.bases_of(regions.hashes, regions.keys)
    held = SumColumns(bases.values[regions.codes], bases.limbs)
    sums = _added(held, schedule.sums_between(hashes, keys, since, after))
    at_starts = TimelineInput(keys, regions.starts, regions.ends, sums)
    places, found = schedule.between(hashes, keys, np.maximum(after, since), regions.ends)
    own = [key.take(pa.array(places)) for key in keys]
    ends = regions.ends[places]
    if found is None:
        none = SumColumns(np.zeros((0, len(schedule.layout.ints)), dtype=np.int64))
        return RegionContent(at_starts, covered[regions.codes], TimelineInput(own, ends, ends, none), places)
    later = TimelineInput(own, integers(found.column(TIME)), ends, sums_of(found, schedule.layout.ints))
    return RegionContent(at_starts, covered[regions.codes], later, places)


def schedule_of(timeline: Timeline) -> Schedule:
    """What is to come of a timeline that keeps it in one schedule."""
    assert isinstance(timeline.deltas, Schedule)
    return timeline.deltas


def _added(first: SumColumns, second: SumColumns) -> SumColumns:
    limbs = all_limbs([first, second])
    return SumColumns(first.with_limbs(limbs).values + second.with_limbs(limbs).values, limbs)


def part_of(changes: TimelineInput, kept: Int64Array, ends: Int64Array) -> TimelineInput:
    """Some elements, with other ends; int64[n] each."""
    rows = pa.array(kept)
    sums = SumColumns(changes.sums.values[kept], changes.sums.limbs)
    return TimelineInput([key.take(rows) for key in changes.keys], changes.ts[kept], ends, sums)
