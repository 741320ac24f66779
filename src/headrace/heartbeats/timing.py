"""What a stream declares about its time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from headrace.heartbeats.bounded import STRICT
from headrace.heartbeats.estimation import Adaptivity
from headrace.heartbeats.share import LateTarget
from headrace.heartbeats.skew import Bound, Bounds, Rate, within, without_redundant
from headrace.time import TimeDomain

Estimated: TypeAlias = LateTarget | Adaptivity
"""How a disorder is estimated: so that a share of the rows is late at most, or from the largest of late."""


@dataclass(frozen=True)
class Deviation:
    """The distance of the clock of a source from another one that it is set by.

    Attributes:
        length: at most, to either side (instants).
        clock: the name of that other clock, in lower case; none for true time.
        domain: what it counts.
    """

    length: int
    clock: str | None
    domain: TimeDomain


@dataclass(frozen=True)
class PerValue:
    """That each value of a column has a bound of its own.

    Attributes:
        column: its name.
        listed: the values that hold the stream back from the beginning, of the column's type.
        wait: for how long after the stream's first row its heartbeat does not move (wall-clock).
    """

    column: str
    listed: tuple[str | int, ...] = ()
    wait: int = 0


@dataclass(frozen=True)
class Follow:
    """Bounds to a stream from others, the same from each of them.

    Attributes:
        streams: their names; the stream itself may be among them and does not count.
        bounds: from each of them.
        estimated: how a bound is estimated from the rows, or None; `bounds` then are empty in what is
            declared, and the estimate by now in what holds for an epoch.
        followers: the streams that share an estimated bound; none where it is declared.
    """

    streams: tuple[str, ...]
    bounds: Bounds
    estimated: Adaptivity | None = None
    followers: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """What the others are known by in a durable store."""
        names = ", ".join(self.streams)
        if len(self.streams) > _NAMED:
            names = f"{len(self.streams)} streams {hashlib.sha256(names.encode()).hexdigest()[:16]}"
        return names

    @property
    def waits(self) -> tuple[int, ...]:
        """After how long the bounds hold that are estimated (microseconds of counted time)."""
        if self.estimated is None:
            return ()
        longest = self.estimated.wait
        return tuple(dict.fromkeys(longest * step // _STEPS for step in range(_STEPS + 1)))

    def key_after(self, wait: int) -> str:
        """What the estimate of the bound that holds after a wait is known by in a durable store."""
        return f"{self.key} after {wait}" if wait else self.key

    def describe(self) -> str:
        """What a durable store remembers of it."""
        if self.estimated is not None:
            return f"after {self.key} {self.estimated.describe()}"
        return f"after {self.key} {' '.join(f'{one.wait} {one.rows} {one.delta}' for one in self.bounds)}"


_STEPS: Final = 4
"""Into how many steps the longest wait of estimated bounds is divided; there is one for each of them."""

_NAMED: Final = 4
"""Of so many streams the names are remembered, of more a digest: each of a large group has all of them."""


@dataclass(frozen=True)
class Timing:
    """How the application time of a stream moves, as CREATE STREAM says after `TIMESTAMP BY column`.

    Wall-clock time is in microseconds, of time in which the system had taken all that the source had.

    Attributes:
        disorder: how much older than the newest row before it a row may be (instants), `STRICT`, or None for
            any age: then only `rows` or the source's own heartbeats say how far it has come.
        rows: after how many further rows none is older than a row, or None. If `disorder` is given as well,
            both hold.
        latency: for how long a row may be under way, so that those after it overtake it (wall-clock).
        idle_after: without rows for so long, the stream follows those that are read with it (wall-clock).
        timeout: if none of the streams that are read with it has rows for so long, all of them are taken to
            have reached the newest row of any, and the end of the windows that hold rows (wall-clock).
        ahead: how far a timestamp may be ahead of the clock (microseconds), or None.
        behind: how far the timestamp of a row may be behind the clock when the row comes (microseconds), so
            that the clock alone moves the heartbeat while nothing waits to be taken; or None.
        heartbeats: the column with the heartbeats that the source sends, or None: no later row is below it.
        by_cti: whether heartbeats are among the rows of a physical stream of CEDR, and nothing else is said.
        counts: the column with the counts of external CTIs, or None without such.
        estimated: how the disorder is estimated from the rows, or None; `disorder` then is None in what is
            declared, and the estimate by now in what holds for an epoch (`estimated.in_force`).
        follows: bounds from other streams to this one.
        deviation: of the clock that its timestamps are from, or None: those of one clock bound each other.
        rate: how fast that clock runs at least, or None.
        per: of what column each value has the bound `disorder` on its own, or None; the stream is then as
            far as the slowest value that is not idle.
        by_arrival: whether rows have no timestamp of their own, and get one that is new in each epoch.
    """

    disorder: int | None = 0
    rows: int | None = None
    latency: int = 0
    idle_after: int | None = None
    timeout: int | None = None
    ahead: int | None = None
    behind: int | None = None
    heartbeats: str | None = None
    by_cti: bool = False
    counts: str | None = None
    estimated: Estimated | None = None
    follows: tuple[Follow, ...] = ()
    deviation: Deviation | None = None
    rate: Rate | None = None
    per: PerValue | None = None
    by_arrival: bool = False

    @property
    def is_in_order(self) -> bool:
        """Whether each row is judged by all rows before it.

        Others are judged by the heartbeat before the epoch, or by the rows of their value.
        """
        return not (self.latency or self.per is not None or self.by_arrival)

    def with_itself(self, name: str) -> Bounds:
        """The bounds of the stream, which has this name, with itself: how far its rows are out of order.

        Those of CREATE SKEW FROM the stream TO itself are among them, and DISORDER is not where each value
        has its own.
        """
        found: list[Bound] = []
        if self.disorder is not None and self.per is None:
            found.append(within(self.disorder))
        if self.rows is not None:
            found.append(Bound(1, rows=self.rows))
        itself = (follow.bounds for follow in self.follows if follow.streams == (name,))
        return without_redundant((*found, *(bound for bounds in itself for bound in bounds)))

    def by_position(self, name: str) -> Bounds:
        """Of the bounds of the stream with itself those by which each row is judged: they count the rows
        before it."""
        if not self.is_in_order or self.counts is not None:
            return ()
        return tuple(bound for bound in self.with_itself(name) if bound.rows)

    def is_read_whole(self, name: str) -> bool:
        """Whether one task reads all rows of an epoch: how they are judged depends on more than the newest
        row before them."""
        counted = self.is_in_order and self.counts is not None
        return self.per is not None or counted or bool(self.by_position(name))

    def arrival(self, clock: int, heartbeat: int) -> int | None:
        """The instant of all rows of an epoch where they are timed by arrival, else None.

        It is at or above the heartbeat, so that no row is late. That of the epoch before is below it.

        Args:
            clock: the epoch's reading of it (microseconds since 1970-01-01 UTC).
            heartbeat: the stream's before the epoch (instant).
        """
        return max(clock, heartbeat) if self.by_arrival else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that heartbeats are made from, besides the timestamp."""
        per = None if self.per is None else self.per.column
        return tuple(name for name in (self.heartbeats, per, self.counts) if name is not None)

    def describe(self) -> str:
        """What a durable store remembers of it: what decides which rows are late."""
        said = {
            "disorder": "strict" if self.disorder == STRICT else self.disorder,
            "rows": self.rows,
            "latency": self.latency or None,
            "heartbeats": "CTI" if self.by_cti else self.heartbeats,
            "counts": self.counts,
            "estimated": self.estimated and self.estimated.describe(),
            "per": None if self.per is None else self.per.column,
            "deviation": self.deviation
            and f"{self.deviation.length} from {self.deviation.clock or 'true time'}",
            "rate": self.rate and f"{self.rate.gain} per {self.rate.time}",
            "of": (self.per and self.per.listed) or None,
        }
        texts = [f"{name} {value}" for name, value in said.items() if value is not None]
        return ", ".join([*texts, *(follow.describe() for follow in self.follows)])


BY_ARRIVAL: Final = Timing(disorder=STRICT, by_arrival=True)
"""Of a stream that is timed by arrival: instants rise from epoch to epoch."""

IN_ORDER: Final = Timing()
"""Of a stream that declares nothing: no row is older than one before it."""
