"""What has to be said anew beyond a heartbeat, where only some keys and instants have changed.

An operator that answers at an instant from what each key has at that instant says nothing new in an epoch but

- of the keys of new elements, at the instants at which these are valid, and
- at instants that come within the horizon, of keys that change there.

These are the *regions*. What the operator would say of them, from what it held before the epoch, up to the
old horizon, is what has to be taken back; from that and the new elements, up to the new horizon, what has to
be said. Both are the answers of operators without state to elements that are cut to the regions. The cost
follows the new elements and what is held of their regions, however much waits elsewhere.

It is the same difference as that of two forks (`headrace.operators.early`), at all instants. So either may be
taken in every epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from headrace.elements import Batch, BoolArray, integers
from headrace.operators.contract import Operator
from headrace.operators.state.keys import encode_keys, hash_rows
from headrace.operators.state.region_values import RegionValues, ValuedElements, none
from headrace.operators.state.regions import RegionContent, Regions, content_of, part_of, schedule_of
from headrace.operators.state.runs import HASH
from headrace.operators.state.timeline import Timeline, TimelineInput, append_changes
from headrace.time import BEGINNING, INFINITY


class TimelineOperator(Operator, Protocol):
    """An operator all of whose state is one timeline, whose changes to come are in one schedule."""

    @property
    def timeline(self) -> Timeline:
        """Its state."""
        ...

    def entered(self) -> TimelineInput:
        """What has been processed."""
        ...

    def held_values(self, regions: Regions) -> list[RegionValues | None]:
        """What it holds of regions beside the timeline: the values of each ordering."""
        ...

    def entered_values(self) -> list[ValuedElements]:
        """The same of what has been processed."""
        ...

    def answer(
        self, changes: TimelineInput, window: tuple[int, int], values: Sequence[ValuedElements]
    ) -> Batch:
        """What it says when elements enter and the horizon moves (instants).

        Args:
            changes: the elements.
            window: the old and the new horizon (instants).
            values: by ordering, those that count beside the sums.
        """
        ...


@dataclass(frozen=True)
class Span:
    """What an epoch changes for an operator that speaks up to a horizon.

    Attributes:
        since: the heartbeat before the epoch.
        old, new: the horizons before and after it; no smaller than the heartbeats (instants).
    """

    since: int
    old: int
    new: int


def waiting(operator: TimelineOperator, span: Span) -> int:
    """How many changes an operator holds between its heartbeat and the old horizon."""
    return schedule_of(operator.timeline).count(span.since, span.old)


def differences(
    make: Callable[[], TimelineOperator], held: TimelineOperator, entering: TimelineOperator, span: Span
) -> tuple[Batch, Batch]:
    """What has to be taken back in an epoch, and what has to be said.

    Args:
        make: makes the operator without state.
        held: the operator with its state before the epoch.
        entering: the operator without state, which has processed what the epoch brings.
        span: of the epoch.
    """
    new = entering.entered()
    regions, stirred = _regions(held.timeline, new, span)
    content = content_of(held.timeline, regions, span.since)
    before, after = _before(content, regions, stirred), append_changes(_after(content, regions), new)
    known, added = held.held_values(regions), entering.entered_values()
    still = ~stirred[regions.codes]
    ends = np.where(still, np.minimum(regions.ends, content.covered), regions.ends)
    values = [
        part.until(ends, still) if part else none(more) for part, more in zip(known, added, strict=True)
    ]
    said = make().answer(before, (BEGINNING, span.old), values)
    values = [more.then(part.values) if part else more for part, more in zip(known, added, strict=True)]
    return said, make().answer(after, (BEGINNING, span.new), values)


def _regions(timeline: Timeline, entering: TimelineInput, span: Span) -> tuple[Regions, BoolArray]:
    """The regions of an epoch, and of which of their keys something changes below the old horizon."""
    schedule, count = schedule_of(timeline), len(entering.ts)
    keys, hashes = entering.keys, hash_rows(entering.keys, count)
    due = schedule.due(span.old, span.new)
    if due is not None:
        stored = [due.column(name) for name in schedule.layout.keys]
        keys = [pa.concat_arrays(pair) for pair in zip(keys, stored, strict=True)]
        hashes = np.concatenate([hashes, integers(due.column(HASH))])
    codes = encode_keys(keys, hashes)
    keys, hashes = [key.take(pa.array(codes.first)) for key in keys], hashes[codes.first]
    changes = schedule.next_times(hashes, keys, span.since)
    stirred = changes < span.old
    # Beyond the new horizon nothing is said but up to the next endpoint, which the region has, or to where it
    # was said before.
    limits = schedule.next_times(hashes, keys, span.new)
    limits[limits < INFINITY] += 1
    limits[~stirred] = np.maximum(limits, timeline.bases_of(hashes, keys)[1])[~stirred]
    near = np.flatnonzero(entering.ts < span.new)
    own = codes.codes[near]
    # What only waits can close a segment that goes beyond the horizon, if that was said above the heartbeat.
    spoken = changes < span.new
    spoken[own] = True
    ahead = np.flatnonzero(spoken)
    # From the last instant that was spoken of, so that what was said beyond the horizon is known.
    front = np.full(len(ahead), max(span.old, BEGINNING + 1) - 1, dtype=np.int64)
    regions = Regions.of(
        keys,
        hashes,
        np.concatenate([own, ahead]),
        np.concatenate([entering.ts[near], front]),
        np.concatenate([np.minimum(entering.te[near], limits[own]), limits[ahead]]),
    )
    return regions, stirred


def _before(content: RegionContent, regions: Regions, stirred: BoolArray) -> TimelineInput:
    """What the answers that were given of the regions come from.

    Of a key of which nothing changed above the heartbeat, they are what was said below it.
    """
    changed = stirred[regions.codes]
    ends = np.where(changed, regions.ends, np.minimum(regions.ends, content.covered))
    kept = np.flatnonzero(content.at_starts.sums.values.any(axis=1) & (regions.starts < ends))
    later = np.flatnonzero(changed[content.codes])
    return append_changes(
        part_of(content.at_starts, kept, ends[kept]), part_of(content.later, later, content.later.te[later])
    )


def _after(content: RegionContent, regions: Regions) -> TimelineInput:
    """What the operator held of the regions."""
    kept = np.flatnonzero(content.at_starts.sums.values.any(axis=1))
    return append_changes(part_of(content.at_starts, kept, regions.ends[kept]), content.later)
