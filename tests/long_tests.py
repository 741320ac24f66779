"""A plain test that takes long says so by a mark, or the run names it at its end.

A plain test is one that is none of `spark`, `kills` and `runs`. Counted is the processor time of the test and
of processes that it has started and waited for, on a machine that takes as long as usual for a fixed loop. It
fails no run, since machines differ.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

import pytest

LONGEST: Final = 5.0
"""Seconds of processor time that a plain test may take without a mark."""
_MARKS: Final = ("spark", "kills", "runs", "slow")
_LOOPS: Final = 2_000_000
_USUAL: Final = 0.12
"""Seconds that the loop took where the bound was chosen."""
_NAME: Final = "processor seconds"


def loop_seconds() -> float:
    """How long a fixed loop takes here (seconds of processor time)."""
    begin = time.process_time()
    total = 0
    for number in range(_LOOPS):
        total += number
    return time.process_time() - begin


def _used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class LongTests:
    """The plugin: it measures in the processes of tests, and judges where their reports come together."""

    def __init__(self) -> None:
        self._loop = loop_seconds()
        self._found: list[tuple[float, str]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Note how much a plain test uses."""
        begin = _used()
        try:
            return (yield)
        finally:
            taken = _used() - begin
            if taken > LONGEST and not any(item.get_closest_marker(mark) for mark in _MARKS):
                # The machine as it is now: others may be at work on it.
                item.user_properties.append((_NAME, taken * _USUAL / max(self._loop, loop_seconds(), _USUAL)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember those that took too long."""
        if report.when == "call":
            taken = dict(report.user_properties).get(_NAME)
            if isinstance(taken, float) and taken > LONGEST:
                self._found.append((taken, report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them, and say how fast the machine is."""
        terminalreporter.write_line(f"a fixed loop took {self._loop:.3f} s, where {_USUAL} s are usual")
        for taken, name in sorted(self._found, reverse=True):
            terminalreporter.write_line(
                f"{name} took {taken:.1f} s of processor time: make it shorter, or give it a mark with its "
                f'reason, @pytest.mark.slow("why")'
            )
