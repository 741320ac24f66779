"""Lives of a store by a thousand seeds; see `simulation`."""

from __future__ import annotations

from collections import Counter

from simulation import broken_by

SEEDS = 1_000


def test_a_thousand_seeds() -> None:
    ends = Counter[str]()
    broken = {seed: wrong for seed in range(SEEDS) if (wrong := broken_by(seed, ends))}
    print(f"{SEEDS} seeds, lives: {dict(ends)}")
    assert not broken
