import numpy as np

from headrace.workloads.randomness import below, choice, draw, modulo, splitmix64

PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]
"""The first outputs for seed 1234567, the usual test vector of SplitMix64 implementations."""


def test_splitmix64_gives_the_published_sequence() -> None:
    assert splitmix64(1234567, np.arange(5)).tolist() == PUBLISHED
    assert splitmix64(1234567, np.array([4, 2])).tolist() == [PUBLISHED[4], PUBLISHED[2]]


def test_series_and_seeds_differ() -> None:
    numbers = np.arange(1000)
    series = [draw(seed, name, numbers) for seed in (0, 1, -1, 2**40) for name in ("a", "b")]
    assert len({bits.tobytes() for bits in series}) == len(series)


def test_numbers_are_uniform_and_in_range() -> None:
    bits = draw(3, "x", np.arange(100_000))
    for values, bound in ((below(bits, 7), 7), (choice(bits, 7), 7), (modulo(bits, 7), 7)):
        tally = np.bincount(values, minlength=bound)
        assert len(tally) == bound
        assert abs(tally - len(bits) / bound).max() < 700
    bounds = np.arange(1, 100_001)
    drawn = below(bits, bounds)
    assert (drawn >= 0).all()
    assert (drawn < bounds).all()
