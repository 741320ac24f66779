"""Horizons: up to which instant an answer is said before it is final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.time import BEGINNING, INFINITY


@dataclass(frozen=True)
class Horizon:
    """Up to where a query speaks that does not wait for its heartbeat (CEDR, CIDR 2007, section 4.4).

    Attributes:
        streams: the streams that the query reads, by which it is known how far its time has come.
        block: so far behind the newest of their rows the answer is said (instants); at 0 the instant of the
            newest row is said at once.
    """

    streams: tuple[str, ...]
    block: int

    def of(self, heartbeats: Mapping[str, int], newest: Mapping[str, int]) -> dict[str, int]:
        """How far each input is spoken about: to its heartbeat, or to the horizon if that is further.

        Args:
            heartbeats: of the inputs (instants).
            newest: of the streams, the largest timestamp that came (instant), BEGINNING before the first.
        """
        latest = max((newest[name] for name in self.streams), default=BEGINNING)
        reached = BEGINNING if latest == BEGINNING else min(latest - self.block + 1, INFINITY)
        return {
            name: max(heartbeat, reached) if name in self.streams else heartbeat
            for name, heartbeat in heartbeats.items()
        }
