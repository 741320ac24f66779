"""Memory for precision (STREAM, section 5.3): how many pairs of a join are found within some memory.

Two streams are joined by a key over windows of the same length, while rows of the first come `--faster` times
as often. Four ways of keeping what fits are compared, each with the rate of false negatives that is expected
and the one that was measured beside the exact answer:

- the same share of both streams is kept, and the others are dropped (sampling);
- the shares of both are such that most pairs are found of samples: half of the memory for each;
- joins remember shares of their rows, and look up all that come: the same share of both;
- the same with the shares by which most pairs are found (`WITHIN MEMORY`).

Then a run is left to find its shares by itself, with bytes of state beside the limit.

    python benchmarks/papers/memory_for_precision.py [--rows 12000] [--window 1000] [--faster 3]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

import headrace as hr
from headrace.elements import Int64Array
from headrace.runtime.driver.facts.remembered import KeptSide, MemoryOfQuery, part_found
from headrace.runtime.driver.remembering.allocation import allocated

Both = tuple[Int64Array, Int64Array]
"""A column of both streams."""
PARTS = (0.75, 0.5, 0.25, 0.1)
"""The memory, of that for the exact answer."""
STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts
"""


def instants(rows: int, faster: int) -> Both:
    """The instants of the rows of both streams: of the first at each, of the second more seldom."""
    every = np.arange(rows, dtype=np.int64)
    return every, every[::faster]


def found_of(
    ts: Both, keys: Both, window: int, shares: Sequence[float], draw: np.random.Generator, *, samples: bool
) -> float:
    """The part of the pairs that is found, counted pair by pair.

    Args:
        ts: the instants of both streams.
        keys: their keys.
        window: how long their windows are.
        shares: what is kept of each.
        draw: decides on rows.
        samples: whether rows that are not kept are not looked up either.
    """
    kept = [draw.random(len(one)) < share for one, share in zip(ts, shares, strict=True)]
    all_pairs = found = 0
    for key in np.unique(keys[1]):
        one, other = (np.flatnonzero(of == key) for of in keys)
        apart = ts[0][one][:, None] - ts[1][other][None, :]
        near = np.abs(apart) < window
        ours, theirs = kept[0][one][:, None], kept[1][other][None, :]
        older = np.where(apart < 0, ours, np.where(apart > 0, theirs, True))
        good = ours & theirs if samples else older
        all_pairs += int(near.sum())
        found += int((near & good).sum())
    return found / all_pairs


def ways(faster: int, part: float) -> Iterator[tuple[str, tuple[float, float], bool, float]]:
    """Each way with its shares, whether it samples, and the rate of false negatives that is expected."""
    sizes, room = (float(faster), 1.0), part * (faster + 1)
    halves = [min(1.0, room / 2 / size) for size in sizes]
    # What one stream does not need is the other's.
    halves[0] = min(1.0, (room - halves[1] * sizes[1]) / sizes[0])
    kept = [KeptSide((number,), size) for number, size in enumerate(sizes)]
    best = allocated(kept, (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), room)
    yield "samples, the same share of both", (part, part), True, 1 - part * part
    yield "samples, half of the memory each", (halves[0], halves[1]), True, 1 - halves[0] * halves[1]
    yield "remembered, the same share of both", (part, part), False, 1 - part
    yield "WITHIN MEMORY", (best[0], best[1]), False, 1 - part_found(best, (1.0, 1.0))


def run(
    ts: tuple[Int64Array, Int64Array], keys: tuple[Int64Array, Int64Array], window: int, limit: str
) -> None:
    """Let a run find its shares, and print what it keeps and misses."""
    pairs = f"SELECT x.k, x.v, y.v AS w FROM a [RANGE {window}] x JOIN b [RANGE {window}] y ON x.k = y.k"
    with hr.connect(runner="inline") as db:
        db.execute(f"{STREAMS}; CREATE QUERY q WITHIN MEMORY '{limit}' AS {pairs}")
        db.execute(f"CREATE QUERY exact AS {pairs}")
        db.start()
        memories: list[MemoryOfQuery] = []
        before = [0, 0]
        last = int(ts[0][-1]) + 1
        for begin in range(0, last, 100):
            if begin == last // 2 // 100 * 100:
                before = [db[name].changes().num_rows for name in ("q", "exact")]
            for name, of, by in zip("ab", ts, keys, strict=True):
                inside = np.flatnonzero((of >= begin) & (of < begin + 100))
                given = [{"k": int(by[row]), "v": int(row), "ts": int(of[row])} for row in inside]
                db.push(name, given)
            memory = db.status.query("q").memory
            memories += [] if memory is None else [memory]
        joins = (one for one in db.status.operators if one.text.startswith("Join"))
        exact = next(one for one in joins if "MEMORY" not in one.text)
        changes = [db[name].changes().num_rows for name in ("q", "exact")]
        ours, whole = (now - had for now, had in zip(changes, before, strict=True))
        largest, memory = max(one.used for one in memories), memories[-1]
        shares = ", ".join(f"{one.share / 1e6:.2f} of {one.name}" for one in memory.shares)
        print(
            f"{limit:>8} | {largest / 1000:8.1f} kB | {exact.state_bytes / 1000:8.1f} kB | {shares:22} | "
            f"{memory.expected:8.3f} | {memory.measured or 0:8.3f} | {1 - ours / whole:8.3f}"
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--window", type=int, default=1000)
    parser.add_argument("--faster", type=int, default=3)
    parser.add_argument("--keys", type=int, default=200)
    asked = parser.parse_args()
    draw = np.random.default_rng(1)
    ts = instants(asked.rows, asked.faster)
    keys = draw.integers(0, asked.keys, len(ts[0])), draw.integers(0, asked.keys, len(ts[1]))
    print("memory |                                    | of a | of b | FN expected | FN counted")
    for part in PARTS:
        for name, shares, samples, expected in ways(asked.faster, part):
            found = found_of(ts, keys, asked.window, shares, draw, samples=samples)
            a, b = shares
            print(f"{part:6} | {name:34} | {a:.2f} | {b:.2f} | {expected:11.3f} | {1 - found:10.3f}")
    print("\n   limit |    at most  | exact join  | remembers              | expected | measured |   missed")
    for limit in ("90 kB", "60 kB", "40 kB", "25 kB"):
        run(ts, keys, asked.window, limit)


if __name__ == "__main__":
    main()
