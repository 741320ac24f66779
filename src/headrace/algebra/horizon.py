"""Horizons: up to which instant an answer is said before it is final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True, repr=False)
class Horizon:
    """Up to where a query speaks that does not wait for its heartbeat (CEDR, CIDR 2007, section 4.4).

    Attributes:
        streams: the streams that the query reads, by which it is known how far its time has come.
        block: so far behind the newest of their rows the answer is said (instants); at 0 the instant of the
            newest row is said at once.
        relations: those that are refreshed. They are spoken about as far as the streams: until they are
            read again they are what they were.
    """

    streams: tuple[str, ...]
    block: int
    relations: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What names the state of operators above early answers; without relations as it was before them."""
        relations = f", relations={self.relations!r}" if self.relations else ""
        return f"Horizon(streams={self.streams!r}, block={self.block!r}{relations})"

    def of(
        self,
        heartbeats: Mapping[str, int],
        newest: Mapping[str, int],
        read: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, int]:
        """How far each input is spoken about: to its heartbeat, or to the horizon if that is further.

        Args:
            heartbeats: of the inputs (instants).
            newest: of the streams, the largest timestamp that came (instant), BEGINNING before the first.
            read: which inputs are readings of relations that are refreshed, with the relations' names.
        """
        spoken = {*self.streams, *self.relations}
        latest = max((newest[name] for name in self.streams), default=BEGINNING)
        reached = BEGINNING if latest == BEGINNING else min(latest - self.block + 1, INFINITY)
        return {
            name: max(heartbeat, reached) if read.get(name, name) in spoken else heartbeat
            for name, heartbeat in heartbeats.items()
        }
