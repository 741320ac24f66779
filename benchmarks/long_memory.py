"""What early answers cost where rows are corrected for three days: a sliding sum per auction.

The stream is declared with a disorder of 72 hours, and so many rows of these hours have come that almost
nothing of them is final. Then epochs of 10,000 rows follow, in turn in order and with 1 % of the rows at
random instants of the 72 hours. `python benchmarks/consistency.py --memory` runs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from headrace import connect
from results import Section

LIVE: Final = (1_000_000, 10_000_000)
"""So many rows are remembered."""
TIMED: Final = 12
"""So many epochs of each kind are timed."""
GROWN: Final = (100_000, 1_000_000)
"""So many rows come where it is measured how time grows."""
LEVELS: Final = ("STRONG", "MIDDLE")
KEYS: Final = 1_000
EPOCH: Final = 10_000
LOADED: Final = 500_000
"""Rows of the epochs before those that are timed."""
LATE: Final = 0.01
BUCKETS: Final = 4
TEXT: Final = (
    f"A sum per auction over 10 minutes, {KEYS:,} auctions, {BUCKETS} buckets, DISORDER 72 HOURS; seconds\n"
    "of the processor with the inline runner. Epochs in order and epochs with late rows, at random instants\n"
    "of the 72 hours, take turns, and the medians count. What all epochs take together has the merging of\n"
    "runs in it."
)
"""What is said before the figures."""
Runner = Literal["inline", "spark"]
Push = Callable[[int, float], float]
"""Pushes so many rows, of which a share is late; the seconds until they have been committed."""
_SECOND: Final = 1_000_000
_BEGIN: Final = 1_700_000_000 * _SECOND
_HOURS: Final = 72 * 3_600 * _SECOND


def sections(live: Sequence[int] = LIVE, runner: Runner = "inline") -> list[Section]:
    """All figures.

    Args:
        live: numbers of rows that are remembered.
        runner: `inline` or `spark`.
    """
    return [epochs(live, runner), growth(runner)]


def epochs(live: Sequence[int], runner: Runner) -> Section:
    """What an epoch takes, in order and with late rows."""
    rows = []
    for count in live:
        found = {level: _seconds(count, level, runner) for level in LEVELS}
        strong = found["STRONG"][1]
        for level, (ordered, late) in found.items():
            figures = f"{ordered:.3f}", f"{late:.3f}", f"{late / ordered:.2f}", f"{late / strong:.2f}"
            rows.append((f"{count:,}", level, *figures))
    heads = (
        "remembered",
        "CONSISTENCY",
        "in order",
        f"{LATE:.0%} late",
        "late/in order",
        "late/STRONG",
    )
    title = f"Seconds of an epoch of {EPOCH:,} rows, 72 hours remembered, {runner}"
    return Section(title, heads, tuple(rows))


def growth(runner: Runner) -> Section:
    """What ten times the rows of the same 72 hours and keys take, in epochs of one size."""
    rows = []
    for level in LEVELS:
        _whole(2 * EPOCH, level, runner)  # loads what is compiled
        few, many = (_whole(count, level, runner) for count in GROWN)
        rows.append((level, f"{few:.2f}", f"{many:.2f}", f"{many / few:.1f}"))
    heads = ("CONSISTENCY", *(f"{count:,} rows" for count in GROWN), "ratio")
    title = f"Seconds in all, in epochs of {EPOCH:,} rows, {LATE:.0%} of them late, {runner}"
    return Section(title, heads, tuple(rows))


def _seconds(live: int, level: str, runner: Runner) -> tuple[float, float]:
    """What an epoch in order and one with late rows take, once so many rows have come."""
    with _running(live, level, runner) as push:
        for _ in range(live // LOADED):
            push(LOADED, 0)
        pairs = [(push(EPOCH, 0), push(EPOCH, LATE)) for _ in range(TIMED)]
    ordered, late = zip(*pairs, strict=True)
    return median(ordered), median(late)


def _whole(rows: int, level: str, runner: Runner) -> float:
    """What some rows take in all."""
    with _running(rows, level, runner) as push:
        return sum(push(EPOCH, LATE) for _ in range(rows // EPOCH))


@contextmanager
def _running(live: int, level: str, runner: Runner) -> Iterator[Push]:
    """A query that runs over a stream with so many rows in 72 hours."""
    clock = time.process_time if runner == "inline" else time.perf_counter
    random, came = np.random.default_rng(7), 0
    with connect(runner=runner, buckets=BUCKETS, keep_results=False) as db:
        db.execute(
            "CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts "
            "DISORDER 72 HOURS"
        )
        db.query(
            f"CREATE QUERY q CONSISTENCY {level} AS SELECT auction, SUM(price) AS total "
            "FROM bid [RANGE 10 MINUTES] GROUP BY auction"
        )
        db.start()

        def push(count: int, share: float) -> float:
            nonlocal came
            rows = _rows(random, came, count, share, _HOURS // live)
            came += count
            begin = clock()
            db.push("bid", rows)
            return clock() - begin

        yield push


def _rows(random: np.random.Generator, first: int, count: int, share: float, step: int) -> pa.RecordBatch:
    times = _BEGIN + (first + np.arange(count)) * step
    earliest = max(times[0] - _HOURS, _BEGIN)
    late = random.random(count) < share
    times[late] = random.integers(earliest, times[-1] + 1, np.count_nonzero(late))
    return pa.record_batch(
        {
            "auction": random.integers(0, KEYS, count),
            "price": random.integers(1, 1_000, count),
            "ts": pa.array(times, pa.timestamp("us")),
        }
    )
