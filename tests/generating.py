"""Heartbeat generation driven without streams: epochs of rows with clocks that always run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from headrace.heartbeats.bounded import Arrivals, judge_in_order
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.generation import generate, start
from headrace.heartbeats.groups import GroupedMatrix
from headrace.heartbeats.rules import Rules, SilencePolicy
from headrace.heartbeats.skew import SkewMatrix
from headrace.heartbeats.state import State
from headrace.time import BEGINNING, MAX_INSTANT

Rows = Sequence[tuple[int, int]]
"""Rows of an epoch: the stream, and the timestamp."""


def rules_of(
    matrix: SkewMatrix | GroupedMatrix,
    granule: int = 1,
    policies: Sequence[SilencePolicy] = (),
    follows_on: bool = True,
    together: Sequence[tuple[int, ...]] = (),
) -> Rules:
    found = matrix if isinstance(matrix, GroupedMatrix) else GroupedMatrix.single(matrix)
    return Rules(
        found, tuple(policies) or (SilencePolicy(),) * found.size, granule, follows_on, tuple(together)
    )


def arrived(rows: Iterable[tuple[int, int]]) -> dict[int, Arrivals]:
    """The summaries of an epoch's rows."""
    found: dict[int, list[int]] = {}
    for stream, instant in rows:
        found.setdefault(stream, []).append(instant)
    return {
        stream: judge_in_order(np.array(instants, dtype=np.int64), BEGINNING, MAX_INSTANT).arrivals
        for stream, instants in found.items()
    }


class Driven:
    """Epochs one after the other.

    Args:
        rules: of the streams.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.state: State = start(rules)

    def epoch(self, now: int, rows: Rows = (), promises: dict[int, int] | None = None) -> list[int]:
        """Run an epoch at a reading of all clocks; the heartbeats after it."""
        clocks = DrainedClocks.running([now] * self.rules.matrix.size)
        self.state = generate(self.rules, self.state, arrived(rows), clocks, promises or {})
        return self.heartbeats

    @property
    def heartbeats(self) -> list[int]:
        """After the last epoch."""
        found: list[int] = self.state.heartbeats.tolist()
        return found
