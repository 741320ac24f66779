"""The state that a process has at hand from the epoch before, so that the next one need not read it again.

State is written and committed in any case, and any worker can read it. Where the next epoch runs in the same
process, the runs are still there, decoded and with the indexes that were looked at: of an epoch of a thousand
rows reading them again is a quarter of the work.

What is at hand was decoded from a copy of the bytes that are stored. An operator's own arrays may be views of
rows as they came, which belong to whoever pushed them, or lie in a file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container
from typing import Final

import pyarrow as pa

from headrace.elements import read_rows
from headrace.lowering.graph import Graph
from headrace.operators.contract import Operator
from headrace.operators.state.runs import RunPart, RunRef, SortedRun, stored_run
from headrace.runtime.tasks.messages import StateKey

ENOUGH: Final = 2**27
"""So many bytes are at hand at most."""

StatePlace = tuple[str, StateKey]
"""The token of a driver's run, and an operator and bucket of it."""

_Runs = dict[RunRef, SortedRun]


class RunsAtHand:
    """The runs of operators as they were stored last, of as many operators as there is room for.

    Each epoch looks at the state of all operators that have something to do, in the same order. So what does
    not fit is not kept: in place of what is, it would never be there when it is wanted. Only what other runs
    of the driver's have left makes room.

    A run is known by where it is stored, which no other run ever is. So whatever becomes of an epoch, what is
    at hand is what its commit names, or is not used.

    Args:
        most: so many bytes it holds at most.
    """

    def __init__(self, most: int = ENOUGH) -> None:
        self._most = most
        self._held = 0
        self._runs: dict[StatePlace, tuple[_Runs, int]] = {}
        self._lock = threading.Lock()
        self._followed: tuple[str, Graph] | None = None

    def lend(self, place: StatePlace, operator: Operator) -> None:
        """Give an operator that is to read its state those of its runs that are here."""
        runs, _ = self._runs.get(place, ({}, 0))
        if runs:
            for area in operator.areas.values():
                area.runs = [run if run.ref is None else runs.get(run.ref, run) for run in area.runs]

    def keep(self, place: StatePlace, operator: Operator, content: Callable[[RunPart], pa.Buffer]) -> None:
        """Keep the runs of an operator whose state has been stored, in place of those it had before.

        Args:
            place: the operator's.
            operator: the operator.
            content: gives the bytes of a run that is stored; nobody else may change them, and they may be
                part of nothing larger.
        """
        with self._lock:
            before = self._drop(place)
            parts = {ref.part: run for ref, run in before.items()}
            stored = {
                run.ref: run
                for area in operator.areas.values()
                for run in area.runs
                if run.ref is not None and (run.ref.part in parts or run.is_loaded)
            }
            size = sum(run.size for run in stored.values())
            if not stored or not self._has_room(size, place[0]):
                return
            runs = {}
            for ref in stored:
                if ref in before:
                    runs[ref] = before[ref]
                elif ref.part in parts:
                    runs[ref] = parts[ref.part].under(ref)
                else:
                    runs[ref] = _decoded(ref, content(ref.part))
            self._runs[place] = runs, size
            self._held += size

    def forget_all_but(self, token: str, keys: Container[StateKey], graph: Graph) -> None:
        """Let go of the runs of all operators but some, of one of the driver's runs.

        Args:
            token: the run's.
            keys: the operators and buckets whose runs stay.
            graph: what the operators are of; while it is the same, none goes.
        """
        if self._followed is not None and self._followed[0] == token and self._followed[1] is graph:
            return
        with self._lock:
            self._followed = token, graph
            for place in [place for place in self._runs if place[0] == token and place[1] not in keys]:
                self._drop(place)

    def _has_room(self, size: int, token: str) -> bool:
        """Whether so many bytes can be added, once what others have left makes room for them."""
        if self._held + size <= self._most:
            return True
        for other in [place for place in self._runs if place[0] != token]:
            if self._held + size > self._most:
                self._drop(other)
        return self._held + size <= self._most

    def _drop(self, place: StatePlace) -> _Runs:
        runs, size = self._runs.pop(place, ({}, 0))
        self._held -= size
        return runs


def _decoded(ref: RunRef, content: pa.Buffer) -> SortedRun:
    rows = read_rows(content)
    return stored_run(ref, lambda _: rows)
