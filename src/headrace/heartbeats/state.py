"""What heartbeat generation remembers between epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from headrace.algebra.arrival import Moment
from headrace.elements import Int64Array
from headrace.heartbeats.counting import Counting, Due, merged
from headrace.heartbeats.positions import Positions
from headrace.heartbeats.skew import Bound
from headrace.heartbeats.tally import NOTHING_TALLIED, Tally
from headrace.time import BEGINNING


@dataclass(frozen=True)
class StreamState:
    """What is remembered of a stream; its size is bounded by the waits of its bounds, in granules.

    Attributes:
        heartbeat: its promise (instant).
        latest: the largest timestamp that came (instant), BEGINNING before the first.
        rows: how many came, late ones included.
        clock: its counted time after the last epoch (microseconds).
        heard: its counted time when it last sent something (microseconds).
        pending: promises that time-based bounds have made and when they hold, by its counted time
            (microseconds); both rise. The array of figure 2, without the entries that change nothing.
        counting: those of tuple-based bounds.
        tally: what its external CTIs wait for.
    """

    heartbeat: int = BEGINNING
    latest: int = BEGINNING
    rows: int = 0
    clock: int = 0
    heard: int = 0
    pending: Due = ()
    counting: tuple[Counting, ...] = ()
    tally: Tally = NOTHING_TALLIED

    def to_json(self) -> dict[str, Any]:
        """Numbers and lists of numbers by name, for a commit record; what is empty is left out."""
        found: dict[str, Any] = {
            "heartbeat": self.heartbeat,
            "latest": self.latest,
            "rows": self.rows,
            "clock": self.clock,
            "heard": self.heard,
        }
        if self.pending:
            found["pending"] = [list(one) for one in self.pending]
        if counting := [one for one in self.counting if one.ahead or one.counted]:
            found["counting"] = [
                [one.wait, one.rows, int(one.own), list(map(list, one.ahead)), list(map(list, one.counted))]
                for one in counting
            ]
        if self.tally != NOTHING_TALLIED:
            found["tally"] = self.tally.to_json()
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> StreamState:
        """The state of which `to_json` made this.

        Raises:
            KeyError, TypeError, ValueError: it made no such thing.
        """
        numbers = {name: int(found[name]) for name in ("heartbeat", "latest", "rows", "clock", "heard")}
        counting = tuple(
            Counting(int(wait), int(rows), bool(own), _due(ahead), _due(counted))
            for wait, rows, own, ahead, counted in found.get("counting", ())
        )
        tally = Tally.from_json(found["tally"]) if "tally" in found else NOTHING_TALLIED
        return cls(**numbers, pending=_due(found.get("pending", ())), counting=counting, tally=tally)


def _due(found: Any) -> Due:
    return tuple((int(when), int(promise)) for when, promise in found)


NOTHING_SEEN: Final = StreamState()
"""Of a stream of which nothing has come."""


@dataclass(frozen=True, eq=False)
class State:
    """What is remembered of all streams, as arrays that nobody writes to.

    Attributes:
        heartbeats, latest, rows, clocks, heard: int64[streams], as in `StreamState`.
        pending: int64[streams, granules], the wrap-around array of section 5.1: what a stream promises when
            its counted time reaches a granule (instant), BEGINNING for nothing. The granules after that of
            its clock lie at their number modulo the width.
        counting: per stream.
        tallies: what its external CTIs wait for, per stream.
    """

    heartbeats: Int64Array
    latest: Int64Array
    rows: Int64Array
    clocks: Int64Array
    heard: Int64Array
    pending: Int64Array
    counting: tuple[tuple[Counting, ...], ...]
    tallies: tuple[Tally, ...]

    @classmethod
    def of(cls, streams: Sequence[StreamState], granule: int, width: int) -> State:
        """The arrays for the states of streams.

        Args:
            streams: their states, whose promises may have been made for another granule.
            granule: of counted time (microseconds).
            width: for how many granules after the present one there must be room.
        """
        due = [
            [(max(-(-when // granule), one.clock // granule + 1), promise) for when, promise in one.pending]
            for one in streams
        ]
        furthest = (
            when - one.clock // granule for one, found in zip(streams, due, strict=True) for when, _ in found
        )
        width = max(width, *furthest, 1)
        pending = np.full((len(streams), width), BEGINNING, dtype=np.int64)
        for row, found in zip(pending, due, strict=True):
            for when, promise in found:
                row[when % width] = max(row[when % width], promise)
        numbers = [(one.heartbeat, one.latest, one.rows, one.clock, one.heard) for one in streams]
        columns = np.array(numbers, dtype=np.int64).reshape(-1, 5).T
        heartbeats, latest, rows, clocks, heard = np.ascontiguousarray(columns)
        counting = tuple(one.counting for one in streams)
        tallies = tuple(one.tally for one in streams)
        return cls(heartbeats, latest, rows, clocks, heard, pending, counting, tallies)

    def counted_on(self, found: Mapping[int, Sequence[Counting]]) -> State:
        """The same with what rows promise by their position, for some streams by number."""
        counting = list(self.counting)
        for place, by_position in found.items():
            for known in by_position:
                counting[place] = tuple(
                    replace(one, counted=merged(one.counted, known.counted)) if one.is_like(known) else one
                    for one in counting[place]
                )
        return replace(self, counting=tuple(counting))

    def tallied_on(self, found: Mapping[int, Tally]) -> State:
        """The same with what external CTIs wait for, for some streams by number."""
        tallies = (found.get(place, one) for place, one in enumerate(self.tallies))
        return replace(self, tallies=tuple(tallies))

    def positions(self, place: int, bounds: tuple[Bound, ...], disorder: int | None) -> Positions:
        """How far the rows of a stream have been counted, to judge rows by their position.

        Args:
            place: the number of the stream.
            bounds: of the stream with itself, that count rows and wait for nothing else.
            disorder: how much older than the newest row before it a row may be (instants), or None.
        """
        starts = (Counting(0, bound.rows, own=True) for bound in bounds)
        counting = tuple(
            next((one for one in self.counting[place] if one.is_like(start)), start) for start in starts
        )
        return Positions(bounds, disorder, counting, int(self.rows[place]), int(self.heartbeats[place]))

    def moments(self, clock: int) -> Iterator[Moment]:
        """What each stream has brought, at a reading of the clock (microseconds since 1970-01-01 UTC)."""
        for rows, newest in zip(self.rows.tolist(), self.latest.tolist(), strict=True):
            yield Moment(clock, rows, newest)

    def streams(self, granule: int) -> tuple[StreamState, ...]:
        """The state of each stream."""
        arrays = (self.heartbeats, self.latest, self.rows, self.clocks, self.heard)
        numbers = np.stack(arrays, axis=1).tolist()
        return tuple(
            StreamState(heartbeat, latest, rows, clock, heard, self._due(place, granule), counting, tally)
            for place, ((heartbeat, latest, rows, clock, heard), counting, tally) in enumerate(
                zip(numbers, self.counting, self.tallies, strict=True)
            )
        )

    def _due(self, place: int, granule: int) -> Due:
        """The promises of a stream that will move its heartbeat, in order of time."""
        found = []
        width = self.pending.shape[1]
        row, now = self.pending[place].tolist(), int(self.clocks[place]) // granule
        highest = int(self.heartbeats[place])
        for due in range(now + 1, now + 1 + width):
            if row[due % width] > highest:
                highest = row[due % width]
                found.append((due * granule, highest))
        return tuple(found)
