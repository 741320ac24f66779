"""L_p norms of a sliding window by exponential histograms of sketches (Datar and others, SODA 2002, 5).

The norm to the power of p of how often each value is in the window: of p = 1 the rows, of p = 2 what a join
of the window with itself would have. A bucket has a sketch: sums of random numbers from a p-stable
distribution, one for each value and place, whose median tells the norm (Indyk, FOCS 2000). Two buckets
become one where both together are at most 1/k of all newer ones; the answer is that of all but the oldest.
Beside it a histogram whose buckets have the counts themselves shows what each part adds to the error.

    python benchmarks/papers/norms.py [--rows 3000] [--window 500] [--places 400]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

Vector = np.ndarray


def stable(p: float, shape: tuple[int, ...], draw: np.random.Generator) -> Vector:
    """Random numbers from the symmetric p-stable distribution (Chambers, Mallows and Stuck, 1976)."""
    angle, other = draw.uniform(-np.pi / 2, np.pi / 2, shape), draw.exponential(1.0, shape)
    turned = np.sin(p * angle) / np.cos(angle) ** (1 / p)
    return turned * (np.cos((1 - p) * angle) / other) ** ((1 - p) / p)


@dataclass(frozen=True)
class Sketches:
    """Sketches of how often values are there.

    Attributes:
        p: of the norm, from 1 to 2.
        numbers: float64[values, places], the random numbers.
        middle: the median of the absolute values of such numbers; None where each value has a place of its
            own, so that all is told.
    """

    p: float
    numbers: Vector
    middle: float | None = None

    @staticmethod
    def exact(p: float, values: int) -> Sketches:
        """The counts of all values in place of sketches."""
        return Sketches(p, np.eye(values))

    @staticmethod
    def drawn(p: float, values: int, places: int, seed: int = 1) -> Sketches:
        """Sketches of values from 0 on."""
        draw = np.random.default_rng(seed)
        middle = float(np.median(np.abs(stable(p, (10**6,), draw))))
        return Sketches(p, stable(p, (values, places), draw), middle)

    def power(self, sketch: Vector) -> float:
        """The norm to the power of p that a sketch tells."""
        if self.middle is None:
            return float((np.abs(sketch) ** self.p).sum())
        return float((np.median(np.abs(sketch)) / self.middle) ** self.p)


@dataclass
class Histogram:
    """The buckets of a window, the newest one first.

    Attributes:
        sketches: what a bucket has.
        k: 1 / k is what two neighbours may be of all newer ones before they become one.
        window: in instants.
        buckets: the instant of the newest row of each, and its sketch.
    """

    sketches: Sketches
    k: int
    window: int
    buckets: list[tuple[int, Vector]]

    def add(self, instant: int, value: int) -> None:
        """Take in a row: a bucket of its own; then neighbours become one where they are small."""
        self.buckets = [one for one in self.buckets if one[0] > instant - self.window]
        self.buckets.insert(0, (instant, self.sketches.numbers[value]))
        sizes = [self.sketches.power(sketch) for _, sketch in self.buckets]
        place, newer = 0, 0.0
        while place + 1 < len(self.buckets):
            if sizes[place] + sizes[place + 1] <= newer / self.k:
                instant_of, sketch = self.buckets[place]
                self.buckets[place : place + 2] = [(instant_of, sketch + self.buckets[place + 1][1])]
                sizes[place : place + 2] = [self.sketches.power(self.buckets[place][1])]
            else:
                newer += sizes[place]
                place += 1

    def estimate(self) -> float:
        """The norm to the power of p of all but the oldest bucket; of one bucket all."""
        newer = [sketch for _, sketch in self.buckets[: max(1, len(self.buckets) - 1)]]
        return self.sketches.power(np.sum(newer, axis=0))


@dataclass(frozen=True)
class Found:
    """The errors of the answers.

    Attributes:
        below, above: the largest parts of the answer by which it was too small and too large.
        buckets: the most that were kept.
    """

    below: float
    above: float
    buckets: int


def measure(sketches: Sketches, k: int, values: Vector, window: int) -> Found:
    """A row at each instant, and the answer at each after the first window."""
    histogram = Histogram(sketches, k, window, [])
    below, above, buckets = 0.0, 0.0, 0
    for instant, value in enumerate(values.tolist()):
        histogram.add(instant, value)
        buckets = max(buckets, len(histogram.buckets))
        if instant >= window:
            counts = np.bincount(values[instant - window + 1 : instant + 1])
            off = float((counts.astype(np.float64) ** sketches.p).sum()) / histogram.estimate() - 1
            below, above = max(below, off), max(above, -off)
    return Found(below, above, buckets)


def inputs(rows: int, seed: int = 7) -> dict[str, Vector]:
    """Values that are equally frequent, few that are there very often, and each one for a while."""
    draw = np.random.default_rng(seed)
    return {
        "even": draw.integers(0, 200, rows),
        "Zipf": np.minimum(draw.zipf(1.3, rows), 500) - 1,
        "in runs": np.arange(rows) // 100 % 200,
    }


def bound(p: float, k: int) -> float:
    """The part of the answer by which it may be too small, but for the sketch: C²/k + C - 1.

    C is 2^(p - 1): the norms to the power of p of two buckets are at least 1/C of that of both together.
    """
    most = float(2.0 ** (p - 1))
    return most**2 / k + most - 1


def main() -> None:
    """Print the errors of the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--window", type=int, default=500)
    parser.add_argument("--places", type=int, default=400)
    asked = parser.parse_args()
    print(
        "| Values | p | k | bound | counts: too small by | sketches: too small by | too large by | buckets |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, values in inputs(asked.rows).items():
        for p in (1.0, 1.5, 2.0):
            for k in (4, 16):
                most = int(values.max()) + 1
                counted = measure(Sketches.exact(p, most), k, values, asked.window)
                drawn = Sketches.drawn(p, most, asked.places)
                found = measure(drawn, k, values, asked.window)
                errors = (bound(p, k), counted.below, found.below, found.above)
                cells = (name, p, k, *(f"{one:.3f}" for one in errors), found.buckets)
                print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
