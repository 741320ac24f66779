"""The exponential histogram of Datar, Gionis, Indyk and Motwani (SODA 2002), beside our waves.

How many of the last N elements are ones: buckets of 1, 2, 4 ... ones, of which the oldest one may be partly
outside. As printed it misses its bound. Two things are mended here, and can be left as they are printed: a
merged bucket has the instant of the more recent one, as the definition says and the algorithm does not; and
of size 1 there are k to k + 1 buckets, not k/2, while a last bucket of size 1 counts in full.

    python benchmarks/papers/exponential_histogram.py [--ones 20000] [--window 1000]
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pyarrow as pa

import headrace as hr

Buckets = tuple[tuple[int, int], ...]
"""The size and the instant of each bucket, the oldest one first."""


@dataclass(frozen=True)
class Rule:
    """The rules by which buckets are merged.

    Attributes:
        half: so many of a size are left, or one more; k/2 in the paper.
        ones: the same of size 1.
        older: whether a merged bucket has the instant of the older one.
        exact_ones: whether a last bucket of size 1 counts in full.
    """

    half: int
    ones: int
    older: bool = False
    exact_ones: bool = True

    @staticmethod
    def within(error: float) -> Rule:
        """The rule that keeps a relative error."""
        k = ceil(1 / error)
        return Rule(ceil(k / 2), k)

    @staticmethod
    def as_printed(error: float) -> Rule:
        """The rule of the paper, which does not."""
        half = ceil(ceil(1 / error) / 2)
        return Rule(half, half, older=True, exact_ones=False)


def without_gone(buckets: Buckets, until: int) -> Buckets:
    """The buckets but for those of which all is at instants up to one."""
    gone = 0
    while gone < len(buckets) and buckets[gone][1] <= until:
        gone += 1
    return buckets[gone:]


def with_one(buckets: Buckets, instant: int, rule: Rule) -> Buckets:
    """The buckets after another one at an instant."""
    found, size = [*buckets, (1, instant)], 1
    while True:
        same = [place for place, bucket in enumerate(found) if bucket[0] == size]
        if len(same) < (rule.ones if size == 1 else rule.half) + 2:
            return tuple(found)
        first, second = same[:2]
        found[first : second + 1] = [(2 * size, found[first if rule.older else second][1])]
        size *= 2


def estimate(buckets: Buckets, rule: Rule) -> float:
    """All but half of the oldest bucket."""
    total, last = sum(size for size, _ in buckets), buckets[0][0] if buckets else 0
    return total if last == 1 and rule.exact_ones else total - last / 2


def sizes(ones: int, rule: Rule) -> list[int]:
    """The sizes of the buckets after so many ones of which none has gone, the oldest first."""
    buckets: Buckets = ()
    for instant in range(ones):
        buckets = with_one(buckets, instant, rule)
    return [size for size, _ in buckets]


def worst(instants: Sequence[int], window: int, rule: Rule) -> tuple[float, int]:
    """The worst relative error at any instant, and the most buckets that there were."""
    buckets: Buckets = ()
    live: deque[int] = deque()
    found, most = 0.0, 0
    coming = deque(instants)
    for now in range(instants[0], instants[-1] + 1):
        buckets = without_gone(buckets, now - window)
        while live and live[0] <= now - window:
            live.popleft()
        if coming[0] == now:
            coming.popleft()
            live.append(now)
            buckets = with_one(buckets, now, rule)
        most = max(most, len(buckets))
        if live:
            found = max(found, abs(estimate(buckets, rule) - len(live)) / len(live))
    return found, most


def of_wave(instants: Sequence[int], window: int, percent: str) -> tuple[float, int]:
    """The same of `COUNT(*) WITHIN`, by the answer at every instant and the rows in its state."""
    with hr.connect(runner="inline", buckets=1) as db:
        db.execute("CREATE STREAM s (ts BIGINT) FROM push TIMESTAMP BY ts")
        about = db.query(f"SELECT COUNT(*) WITHIN {percent} PERCENT AS n FROM s [RANGE {window}]", name="a")
        db.start()
        most = 0
        for at in range(0, len(instants), window // 4):
            db.push("s", pa.table({"ts": instants[at : at + window // 4]}))
            most = max(most, sum(one.state_rows for one in db.status.operators))
        said = list(_by_instant(about.history(), instants[0], instants[-1]))
    known = np.asarray(instants)
    errors = []
    for now, number in said:
        exact = int(np.searchsorted(known, now, "right") - np.searchsorted(known, now - window, "right"))
        if exact:
            errors.append(abs(number - exact) / exact)
    return max(errors), most


def _by_instant(history: pa.Table, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for row in history.to_pylist():
        for now in range(max(row["valid_from"], begin), min(row["valid_to"] or end, end)):
            yield now, row["n"]


def main() -> None:
    """Print example 1 and a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ones", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=1_000)
    asked = parser.parse_args()
    print("Example 1, which is printed with k/2 = 2 and holds for k/2 = 1:")
    for ones in (76, 77, 79):
        print(f"  {ones} ones:", *sizes(ones, Rule(1, 1)))
    draw = np.random.default_rng(3)
    print(f"{'ones':>8} {'within':>7} {'as printed':>19} {'mended':>19} {'COUNT(*) WITHIN':>19}")
    for density in (0.9, 0.3, 0.05):
        instants = np.cumsum(draw.geometric(density, asked.ones)).tolist()
        for error in (0.25, 0.1, 0.05, 0.01):
            cells = [worst(instants, asked.window, rule(error)) for rule in (Rule.as_printed, Rule.within)]
            cells.append(of_wave(instants, asked.window, f"{100 * error:g}"))
            shown = (f"{off:.4f}, keeps {kept:4}" for off, kept in cells)
            print(f"{density:8} {error:7}", *(f"{text:>19}" for text in shown), flush=True)


if __name__ == "__main__":
    main()
