"""The heartbeats of one epoch, as the driver and every task of it make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.heartbeats.bounded import Arrivals
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate
from headrace.heartbeats.rules import Rules
from headrace.heartbeats.state import State


@dataclass(frozen=True, eq=False)
class EpochTime:
    """How the heartbeats of some streams follow from what arrives in an epoch.

    Attributes:
        names: the streams, by number.
        rules: their bounds and policies.
        state: what is remembered of them from the epoch before.
        clocks: the counted time of each when the epoch took its rows, and which were caught up.
        promises: by name, heartbeats that came from outside (instants); INFINITY where the stream ends.
    """

    names: tuple[str, ...]
    rules: Rules
    state: State
    clocks: DrainedClocks
    promises: Mapping[str, int]

    def after(self, arrivals: Mapping[str, Arrivals]) -> State:
        """What is remembered after the epoch, from what arrived in it."""
        places = {name: place for place, name in enumerate(self.names)}
        return generate(
            self.rules,
            self.state,
            {places[name]: seen for name, seen in arrivals.items()},
            self.clocks,
            {places[name]: promise for name, promise in self.promises.items()},
        )

    def heartbeats(self, state: State) -> dict[str, int]:
        """The heartbeats of a state, by the streams' names."""
        return dict(zip(self.names, state.heartbeats.tolist(), strict=True))

    def newest(self, state: State) -> dict[str, int]:
        """The largest timestamps of a state (instants), by the streams' names; BEGINNING before the first."""
        return dict(zip(self.names, state.latest.tolist(), strict=True))
