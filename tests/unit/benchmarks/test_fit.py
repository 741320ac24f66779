"""Constants are found again from runs that took what they say."""

from __future__ import annotations

import numpy as np
import pytest

from fit import Ran, fitted
from headrace.optimizer.cost.machine import Constants, Machine
from headrace.optimizer.cost.work import Work, WorkKind

CONSTANTS = {
    WorkKind.JOIN: Constants(2e-7, 1e-7, 3e-7, 2e-3),
    WorkKind.SUMS: Constants(5e-8, 0.0, 1e-7, 1e-3),
    WorkKind.STORE: Constants(1e-8, 0.0, 4e-8, 5e-4),
}


def test_constants_are_found_from_what_runs_took() -> None:
    random = np.random.default_rng(1)
    machine = Machine("some", CONSTANTS)
    runs = []
    for number in range(30):
        works = tuple(
            (Work(kind, *map(float, random.integers(1, [1_000_000, 1_000_000, 1_000_000, 50]))),)
            for kind in CONSTANTS
        )
        runs.append(Ran(str(number), 1, works, tuple(map(machine.seconds, works)), (), 0))
    found = fitted(runs).constants
    for kind, wanted in CONSTANTS.items():
        for name in ("taken", "given", "kept", "epoch"):
            assert getattr(found[kind], name) == pytest.approx(getattr(wanted, name), rel=1e-3, abs=1e-12)
    assert found[WorkKind.OVER] == Constants()
