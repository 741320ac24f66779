"""The state that a process has at hand from the epoch before, so that the next one need not read it again.

State is written and committed in any case, and any worker can read it. Where the next epoch runs in the same
process, the runs are still there, decoded and with the indexes that were looked at: of an epoch of a thousand
rows reading them again is a quarter of the work.
"""

from __future__ import annotations

import threading
from typing import Final

from headrace.operators.contract import Operator
from headrace.operators.state.runs import Run, RunRef
from headrace.runtime.tasks.messages import StateKey

ENOUGH: Final = 2**27
"""So many bytes are at hand at most."""

_Runs = dict[RunRef, Run]


class RunsAtHand:
    """The runs of operators as they were stored last, the longest unused of which go first.

    A run is known by where it is stored, which no other run ever is. So whatever becomes of an epoch, what is
    at hand is what its commit names, or is not used.

    Args:
        most: so many bytes it holds at most.
    """

    def __init__(self, most: int = ENOUGH) -> None:
        self._most = most
        self._held = 0
        self._runs: dict[StateKey, tuple[_Runs, int]] = {}
        self._lock = threading.Lock()

    def lend(self, key: StateKey, operator: Operator) -> None:
        """Give an operator that is to read its state those of its runs that are here."""
        runs, _ = self._runs.get(key, ({}, 0))
        if runs:
            for area in operator.areas.values():
                area.runs = [run if run.ref is None else runs.get(run.ref, run) for run in area.runs]

    def keep(self, key: StateKey, operator: Operator) -> None:
        """Keep the runs of an operator whose state has been stored, in place of those it had before."""
        runs = {
            run.ref: run
            for area in operator.areas.values()
            for run in area.runs
            if run.ref is not None and run.is_loaded
        }
        size = sum(run.size for run in runs.values())
        with self._lock:
            self._drop(key)
            if not runs or size > self._most:
                return
            while self._held + size > self._most:
                self._drop(next(iter(self._runs)))
            self._runs[key] = runs, size
            self._held += size

    def _drop(self, key: StateKey) -> None:
        _, size = self._runs.pop(key, ({}, 0))
        self._held -= size
