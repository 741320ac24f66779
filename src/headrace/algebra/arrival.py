"""What a stream had brought some time, or some rows, ago: by the moments that epochs have committed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from headrace.time import BEGINNING


class Unit(Enum):
    """What says how far an answer is behind its streams.

    Attributes:
        TIME: their timestamps.
        ARRIVAL: the clock, by when rows have come (microseconds).
        ROWS: how many rows of the same stream have come.
    """

    TIME = "TIME"
    ARRIVAL = "ARRIVAL"
    ROWS = "ROWS"


class Dial(NamedTuple):
    """So far back it is looked.

    Attributes:
        unit: ARRIVAL or ROWS.
        length: microseconds of the clock, or rows.
    """

    unit: Unit
    length: int


class Moment(NamedTuple):
    """What a stream had brought at the end of an epoch.

    Attributes:
        clock: the clock's reading for it (microseconds since 1970-01-01 UTC).
        rows: how many rows had come, late ones included.
        newest: the largest timestamp (instant), BEGINNING before the first.
    """

    clock: int
    rows: int
    newest: int

    def of(self, unit: Unit) -> int:
        """How far it is by a unit."""
        return self.clock if unit is Unit.ARRIVAL else self.rows


_PARTS: Final = 64
"""Of the moments within such a part of a dial's length the last one is kept."""


@dataclass(frozen=True)
class Past:
    """The moments of a stream that its queries look back to.

    Attributes:
        moments: in order; the last one is the present.
    """

    moments: tuple[Moment, ...] = ()

    def newest(self, dial: Dial) -> int:
        """The largest timestamp that had come so far back (instant), BEGINNING where that is not known."""
        if not self.moments:
            return BEGINNING
        limit = self.moments[-1].of(dial.unit) - dial.length
        before = (one.newest for one in reversed(self.moments) if one.of(dial.unit) <= limit)
        return next(before, BEGINNING)

    def then(self, moment: Moment, dials: Collection[Dial]) -> Past:
        """The past with another present, without what none of some dials reaches.

        Of moments in one part of each dial's length only the last one is kept: a row may be said later by so
        much, but never sooner.

        Args:
            moment: the present, no earlier than any before.
            dials: how far back it is looked.
        """
        kept = [*self.moments, moment]
        if len(kept) > 1 and all(_part(kept[-2], dial) == _part(moment, dial) for dial in dials):
            del kept[-2]
        while len(kept) > 1 and all(kept[1].of(unit) <= moment.of(unit) - length for unit, length in dials):
            del kept[0]
        return Past(tuple(kept))

    def brings_news(self, clock: int, dials: Collection[Dial]) -> bool:
        """Whether the clock alone moves what some dial reaches.

        Args:
            clock: its reading now (microseconds since 1970-01-01 UTC).
            dials: how far back it is looked.
        """
        if not self.moments:
            return False
        now = self.then(self.moments[-1]._replace(clock=max(clock, self.moments[-1].clock)), dials)
        return any(now.newest(dial) > self.newest(dial) for dial in dials)


NO_PAST: Final = Past()
"""Of a stream of which nobody looks back at what it had brought."""

Pasts = Mapping[str, Past]
"""What streams had brought before, by their names."""

NO_PASTS: Final[Pasts] = MappingProxyType({})


def _part(moment: Moment, dial: Dial) -> int:
    return moment.of(dial.unit) // max(dial.length // _PARTS, 1)
