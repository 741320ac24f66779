"""Horizons: up to which instant an answer is said before it is final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headrace.algebra.arrival import NO_PAST, Dial, Past, Unit
from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True, repr=False)
class Horizon:
    """Up to where a query speaks that does not wait for its heartbeat (CEDR, CIDR 2007, section 4.4).

    Attributes:
        streams: the streams that the query reads, by which it is known how far its time has come.
        block: so far behind the newest of their rows the answer is said, by the unit; at 0 the instant of the
            newest row is said at once, and at -INFINITY all that follows from the rows.
        relations: those that are refreshed. They are spoken about as far as the streams: until they are
            read again they are what they were.
        unit: by TIME so many instants behind the newest row. By ARRIVAL up to the newest row of what had come
            so many microseconds ago, and by ROWS of what had come before the last so many rows of a stream.
    """

    streams: tuple[str, ...]
    block: int
    relations: tuple[str, ...] = ()
    unit: Unit = Unit.TIME

    def __repr__(self) -> str:
        """What names the state of operators above early answers; without the last two as before."""
        relations = f", relations={self.relations!r}" if self.relations else ""
        unit = "" if self.unit is Unit.TIME else f", unit={self.unit.value}"
        return f"Horizon(streams={self.streams!r}, block={self.block!r}{relations}{unit})"

    @property
    def dial(self) -> Dial | None:
        """How far back it looks at what its streams had brought; None if it does not."""
        return None if self.unit is Unit.TIME else Dial(self.unit, self.block)

    def of(
        self,
        heartbeats: Mapping[str, int],
        newest: Mapping[str, int],
        read: Mapping[str, str] = MappingProxyType({}),
        pasts: Mapping[str, Past] = MappingProxyType({}),
    ) -> dict[str, int]:
        """How far each input is spoken about: to its heartbeat, or to the horizon if that is further.

        Args:
            heartbeats: of the inputs (instants).
            newest: of the streams, the largest timestamp that came (instant), BEGINNING before the first.
            read: which inputs are readings of relations that are refreshed, with the relations' names.
            pasts: what the streams had brought before; nothing is said early of those that are not named.
        """
        spoken = {*self.streams, *self.relations}
        if self.dial is None:
            latest = max((newest[name] for name in self.streams), default=BEGINNING)
            latest = latest if latest == BEGINNING else latest - self.block
        else:
            found = (pasts.get(name, NO_PAST).newest(self.dial) for name in self.streams)
            latest = max(found, default=BEGINNING)
        reached = BEGINNING if latest == BEGINNING else min(latest + 1, INFINITY)
        return {
            name: max(heartbeat, reached) if read.get(name, name) in spoken else heartbeat
            for name, heartbeat in heartbeats.items()
        }
