"""The heartbeats of a graph's nodes as they were computed last: most of them are the next ones, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headrace.algebra.arrival import Pasts

HeartbeatInputs = tuple[Mapping[str, int], Mapping[str, int], Pasts]
"""What heartbeats follow from: those of the inputs, the largest timestamps, and what there was before."""

_MOST = 3
"""So many are known at a time: those of an epoch's start and of its end, and of one that was tried."""


class _Heartbeats(NamedTuple):
    """Heartbeats that are known: what they follow from, and those of all nodes."""

    given: HeartbeatInputs
    found: tuple[int, ...]


class KnownHeartbeats:
    """Heartbeats of the nodes of one graph, which are computed anew only where they may have moved."""

    def __init__(self) -> None:
        self._known: tuple[_Heartbeats, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        return KnownHeartbeats, ()

    def of(
        self,
        given: HeartbeatInputs,
        nodes: int,
        heartbeat: Callable[[int, Sequence[int]], int],
        depending: Callable[[str], Sequence[int]],
    ) -> tuple[int, ...]:
        """The heartbeat of every node's output (instants).

        Args:
            given: what they follow from.
            nodes: how many nodes there are.
            heartbeat: that of a node by its number, and those of the nodes before it.
            depending: the nodes that depend on an input by its name, in order.
        """
        for known in self._known:
            if known.given == given:
                return known.found
        numbers: Sequence[int] = range(nodes)
        result = [0] * nodes
        if self._known:
            before, found = self._known[0]
            result, numbers = list(found), _changed(before, given, depending)
        for number in numbers:
            result[number] = heartbeat(number, result)
        inputs, newest, pasts = given
        latest = _Heartbeats((dict(inputs), dict(newest), dict(pasts)), tuple(result))
        self._known = (latest, *self._known[: _MOST - 1])
        return latest.found


def _changed(
    before: HeartbeatInputs, after: HeartbeatInputs, depending: Callable[[str], Sequence[int]]
) -> Sequence[int]:
    """The nodes whose heartbeats may be others, in order."""
    names = {
        name
        for old, new in zip(before, after, strict=True)
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name)
    }
    return sorted({number for name in names for number in depending(name)})
