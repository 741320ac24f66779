"""The events of the auction site: which rows a stretch of them has, and when they happen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from headrace.elements import Int64Array
from headrace.errors import UserError
from headrace.time import MAX_INSTANT, MIN_INSTANT
from headrace.workloads.randomness import BitsArray, below, choice, draw

BLOCK: Final = 50
"""Events per block: 1 person, 3 auctions, 46 bids."""

FIRST_ID: Final = 1000
"""The id of the first person and of the first auction."""

MIN_LIFE: Final = 2_000
"""The shortest life of an auction, in events."""

MAX_LIFE: Final = 64_000
"""No auction lives for so many events."""

PLACES: Final = {"person": (0, 1), "auction": (1, 3), "bid": (4, 46)}
"""Where a table's events lie in a block: the first one and their number."""

_LIFE_OCTAVES: Final = 5


@dataclass(frozen=True)
class Nexmark:
    """What to generate.

    Attributes:
        events: the number of events of all tables together.
        seed: any integer, taken modulo 2**64; another seed gives other data.
        rate: events per second of event time.
        disorder_us: how far a timestamp may be moved back, in microseconds.
        start: the instant of event 0, in microseconds since 1970-01-01 UTC.

    Raises:
        UserError: a number is out of range.
    """

    events: int
    seed: int = 1
    rate: int = 10_000
    disorder_us: int = 0
    start: int = 1_704_067_200_000_000

    def __post_init__(self) -> None:
        if self.events < 0 or self.rate < 1 or self.disorder_us < 0:
            raise UserError("NEXMark needs events >= 0, a rate >= 1 and a disorder >= 0")
        last = self.start + (self.events + MAX_LIFE) * 1_000_000 // self.rate
        if self.start - self.disorder_us < MIN_INSTANT or last > MAX_INSTANT or self.events > 2**42:
            raise UserError(
                "the timestamps of the NEXMark events are out of range",
                hint="generate fewer events or use a higher rate",
            )


def rank(table: str, event: int) -> int:
    """How many rows of a table have an event number below `event`."""
    start, width = PLACES[table]
    return event // BLOCK * width + min(max(event % BLOCK - start, 0), width)


@dataclass(frozen=True)
class TableRows:
    """Rows of one table.

    Attributes:
        spec: what to generate.
        table: person, auction or bid; closings are rows of the table auction.
        ordinals: int64[n], the rows' numbers in their table, from 0.
    """

    spec: Nexmark
    table: str
    ordinals: Int64Array

    @cached_property
    def blocks(self) -> Int64Array:
        """The number of each row's block, which is also that of the last person so far."""
        return self.ordinals // PLACES[self.table][1]

    @cached_property
    def events(self) -> Int64Array:
        """The number of each row's event."""
        start, width = PLACES[self.table]
        return self.ordinals + self.blocks * (BLOCK - width) + start

    @cached_property
    def closings(self) -> Int64Array:
        """The event at which each auction closes."""
        bits = draw(self.spec.seed, "auction.life", self.events)
        shortest = np.int64(MIN_LIFE // BLOCK) << choice(bits, _LIFE_OCTAVES)
        return self.events + BLOCK * (shortest + below(bits, shortest))

    def bits(self, column: str) -> BitsArray:
        """Random bits for a column of these rows."""
        return draw(self.spec.seed, f"{self.table}.{column}", self.events)


def arriving(spec: Nexmark, table: str, first: int, last: int) -> TableRows:
    """The persons, auctions or bids of a range of events."""
    return TableRows(spec, table, np.arange(rank(table, first), rank(table, last)))


def closings(spec: Nexmark, first: int, last: int) -> TableRows:
    """The auctions that close in a range of events, ordered by closing event, then id."""
    auctions = arriving(spec, "auction", max(first - MAX_LIFE, 0), max(last - MIN_LIFE, 0))
    closings = auctions.closings
    chosen = np.flatnonzero((closings >= first) & (closings < last))
    chosen = chosen[np.argsort(closings[chosen], kind="stable")]
    return TableRows(spec, "auction", auctions.ordinals[chosen])
