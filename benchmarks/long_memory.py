"""What early answers cost where rows are corrected for three days: a sliding sum per auction.

The stream is declared with a disorder of 72 hours, and so many rows of these hours have come that almost
nothing of them is final. Then epochs of 10,000 rows follow, in turn in order and with 1 % of the rows at
random instants of the 72 hours. `python benchmarks/consistency.py --memory` runs it. With `--corrected` the
stream has corrections instead: 1 % of an epoch's rows take an earlier one back, or put another price in its
place, so that what comes is added up (Finalize) before it is summed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from headrace import Database, connect
from results import Section

LIVE: Final = (1_000_000, 10_000_000)
"""So many rows are remembered."""
TIMED: Final = 12
"""So many epochs of each kind are timed."""
GROWN: Final = 1_000_000
"""So many rows come where it is measured how time grows, and a tenth of them."""
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
    "runs in it. With the same auctions ten times the rows are ten times as dense, so that each meets more\n"
    "of its auction in ten minutes and more than ten times as much is said; with a tenth of the auctions\n"
    "before, the density is the same."
)
"""What is said before the figures."""
Runner = Literal["inline", "spark"]
_LATE: Final = "TIMESTAMP BY ts DISORDER 72 HOURS"
_CORRECTED: Final = "CHANGES BY change TIMESTAMP BY ts CORRECTIONS WITHIN 72 HOURS"
Push = Callable[[int, float], float]
"""Pushes so many rows, of which a share is late; the seconds until they have been committed."""
_SECOND: Final = 1_000_000
_BEGIN: Final = 1_700_000_000 * _SECOND
_HOURS: Final = 72 * 3_600 * _SECOND


def sections(
    live: Sequence[int] = LIVE, runner: Runner = "inline", *, corrected: bool = False, grown: int = GROWN
) -> list[Section]:
    """All figures.

    Args:
        live: numbers of rows that are remembered.
        runner: `inline` or `spark`.
        corrected: whether earlier rows are corrected; else rows are late.
        grown: how many rows come where it is measured how time grows, too; 0 if it is not.
    """
    found = [epochs(live, runner, corrected)] if live else []
    return [*found, *([growth(runner, corrected, grown)] if grown else [])]


def epochs(live: Sequence[int], runner: Runner, corrected: bool) -> Section:
    """What an epoch takes, in order and with late rows."""
    rows, what = [], "corrected" if corrected else "late"
    for count in live:
        found = {level: _seconds(count, level, runner, corrected) for level in LEVELS}
        strong = found["STRONG"][1]
        for level, (ordered, late) in found.items():
            figures = f"{ordered:.3f}", f"{late:.3f}", f"{late / ordered:.2f}", f"{late / strong:.2f}"
            rows.append((f"{count:,}", level, *figures))
    heads = (
        "remembered",
        "CONSISTENCY",
        "in order",
        *(f"{LATE:.0%} {what}", f"{what}/in order", f"{what}/STRONG"),
    )
    title = f"Seconds of an epoch of {EPOCH:,} rows, 72 hours remembered, {runner}"
    return Section(title, heads, tuple(rows))


def growth(runner: Runner, corrected: bool, grown: int) -> Section:
    """What ten times the rows of the same 72 hours take, in epochs of one size.

    With the same auctions each row meets ten times as many of its auction in its window, so that what is said
    grows faster than what comes; with ten times the auctions it grows alike.
    """
    rows, what = [], "corrections" if corrected else "late"
    for level in LEVELS:
        _whole(2 * EPOCH, level, runner, corrected, KEYS)  # loads what is compiled
        many, said = _whole(grown, level, runner, corrected, KEYS)
        for keys in (KEYS, KEYS // 10):
            few, less = _whole(grown // 10, level, runner, corrected, keys)
            times = f"{said / less:.1f}" if less else ""
            rows.append((level, f"{keys:,}", f"{few:.2f}", f"{many:.2f}", f"{many / few:.1f}", times))
    before, after = (f"{count:,} rows" for count in (grown // 10, grown))
    heads = (
        "CONSISTENCY",
        "auctions before",
        before,
        f"{after}, {KEYS:,} auctions",
        "ratio",
        "of what is said",
    )
    title = f"Seconds in all, in epochs of {EPOCH:,} rows, {LATE:.0%} of them {what}, {runner}"
    return Section(title, heads, tuple(rows))


def _seconds(live: int, level: str, runner: Runner, corrected: bool) -> tuple[float, float]:
    """What an epoch in order and one with late rows take, once so many rows have come."""
    with _running(live, level, runner, corrected, KEYS) as (push, _):
        for _ in range(live // LOADED):
            push(LOADED, 0)
        pairs = [(push(EPOCH, 0), push(EPOCH, LATE)) for _ in range(TIMED)]
    ordered, late = zip(*pairs, strict=True)
    return median(ordered), median(late)


def _whole(rows: int, level: str, runner: Runner, corrected: bool, keys: int) -> tuple[float, int]:
    """What some rows take in all, and how many changes the query says of them."""
    with _running(rows, level, runner, corrected, keys) as (push, db):
        seconds = sum(push(EPOCH, LATE) for _ in range(rows // EPOCH))
        return seconds, db.status.query("q").changes


@contextmanager
def _running(
    live: int, level: str, runner: Runner, corrected: bool, keys: int
) -> Iterator[tuple[Push, Database]]:
    """A query that runs over a stream with so many rows and auctions in 72 hours."""
    clock = time.process_time if runner == "inline" else time.perf_counter
    random, came = np.random.default_rng(7), 0
    with connect(runner=runner, buckets=BUCKETS, keep_results=False) as db:
        db.execute(
            "CREATE STREAM bid (auction BIGINT, price BIGINT, ts TIMESTAMP, change BIGINT) FROM push "
            f"{_CORRECTED if corrected else _LATE}"
        )
        db.query(
            f"CREATE QUERY q CONSISTENCY {level} AS SELECT auction, SUM(price) AS total "
            "FROM bid [RANGE 10 MINUTES] GROUP BY auction"
        )
        db.start()
        known: list[pa.RecordBatch] = []

        def push(count: int, share: float) -> float:
            nonlocal came
            rows = _rows(random, came, count, keys, 0 if corrected else share, _HOURS // live)
            if corrected:
                rows = _correcting(random, rows, known, int(count * share))
            came += count
            begin = clock()
            db.push("bid", rows)
            return clock() - begin

        yield push, db


def _rows(
    random: np.random.Generator, first: int, count: int, keys: int, share: float, step: int
) -> pa.RecordBatch:
    times = _BEGIN + (first + np.arange(count)) * step
    earliest = max(times[0] - _HOURS, _BEGIN)
    late = random.random(count) < share
    times[late] = random.integers(earliest, times[-1] + 1, np.count_nonzero(late))
    return pa.record_batch(
        {
            "auction": random.integers(0, keys, count),
            "price": random.integers(1, 1_000, count),
            "ts": pa.array(times, pa.timestamp("us")),
            "change": np.ones(count, dtype=np.int64),
        }
    )


def _correcting(
    random: np.random.Generator, rows: pa.RecordBatch, known: list[pa.RecordBatch], count: int
) -> pa.RecordBatch:
    """Rows of which the last take back some of those that came before, and put others in their places.

    Args:
        random: chooses the rows that are corrected, each once at most.
        rows: those of the epoch.
        known: those that came before and have not been corrected; the epoch's are added.
        count: how many rows of the epoch belong to corrections, two to each.
    """
    found = [rows.slice(0, len(rows) - count)]
    if known and count:
        chosen = pa.concat_batches(list(_taken(random, known, count // 2)))
        prices = pa.array(random.integers(1, 1_000, len(chosen)))
        back = pa.array(np.full(len(chosen), -1))
        found += [chosen.set_column(3, "change", back), chosen.set_column(1, "price", prices)]
    known.append(found[0])
    return pa.concat_batches(found)


def _taken(random: np.random.Generator, known: list[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """So many of the known rows, at random, which are known no longer."""
    sizes = np.array([len(batch) for batch in known])
    places, counts = np.unique(random.choice(len(known), count, p=sizes / sizes.sum()), return_counts=True)
    for place, share in zip(places, counts, strict=True):
        chosen = np.zeros(sizes[place], dtype=bool)
        chosen[random.choice(sizes[place], min(share, sizes[place]), replace=False)] = True
        yield known[place].filter(pa.array(chosen))
        known[place] = known[place].filter(pa.array(~chosen))
