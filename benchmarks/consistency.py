"""What answers cost that do not wait, beside the strong one: a sliding sum per auction.

    python benchmarks/consistency.py [--events N] [--runner inline|spark] [--runs N]
    python benchmarks/consistency.py --memory [N ...] [--runner inline|spark] [--write]
    python benchmarks/consistency.py --memory [N ...] [--corrected] [--epochs | --grown N [--only-grown]]

The bids are in order, or 5 % of them are up to ten seconds late, and the stream is declared with that
disorder. Seconds are those of the processor in this process with the inline runner, and those of the clock on
Spark, whose tasks are other processes. The runs of a row alternate with those of the strong query; ratios
are those of the medians. `--memory` measures what they cost where 72 hours are remembered, with so many rows
(`benchmarks/long_memory.py`), and `--write` writes that into RESULTS.md; with `--corrected` rows are
corrected, with `--epochs` it is not measured how time grows, and with `--grown` how it grows to so many
rows from a tenth of them, with `--only-grown` nothing else.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from headrace import connect
from long_memory import GROWN, LIVE, TEXT, sections
from results import Section, machine, write_part

RATE: Final = 10_000
"""So many bids come per second of their time."""
LATE: Final = 10
"""Late bids are late by up to so many seconds."""
SHARE: Final = 0.05
EPOCH: Final = 100_000
LEVELS: Final = ("MIDDLE", "(BLOCK 1 SECOND)", "(BLOCK 5 SECONDS)")
Runner = Literal["inline", "spark"]
TITLE: Final = "Early answers over long memories"
_SECOND: Final = 1_000_000
_BEGIN: Final = 1_700_000_000 * _SECOND


@dataclass(frozen=True)
class Cost:
    """What a query did.

    Attributes:
        seconds: that it took.
        changes: how many elements it said.
        corrections: how many of these take something back.
    """

    seconds: float
    changes: int
    corrections: int


def section(events: int = 1_000_000, runner: Runner = "inline", runs: int = 3) -> Section:
    """All figures.

    Args:
        events: how many bids.
        runner: `inline` or `spark`.
        runs: how often each query runs.
    """
    rows = []
    for late in (False, True):
        bids = table(events, late=late)
        for level in LEVELS:
            pairs = [(one(bids, "", runner, late), one(bids, level, runner, late)) for _ in range(runs)]
            strong = median(first.seconds for first, _ in pairs)
            seconds = median(second.seconds for _, second in pairs)
            cost = pairs[0][1]
            changes, corrections = f"{cost.changes:,}", f"{cost.corrections:,}"
            where = f"{SHARE:.0%} late by up to {LATE} s" if late else "in order"
            ratio, least = f"{seconds / strong:.2f}", f"{pairs[0][0].changes:,}"
            rows.append((where, level, ratio, least, changes, corrections))
    heads = ("bids", "CONSISTENCY", "time to STRONG's", "STRONG's changes", "changes", "taken back")
    return Section(f"What early answers cost: a sliding sum, {events:,} bids, {runner}", heads, tuple(rows))


def table(events: int, *, late: bool) -> pa.Table:
    """Bids, half of them on a hundred hot auctions."""
    random = np.random.default_rng(7)
    hot = random.random(events) < 0.5
    auctions = np.where(hot, random.integers(0, 100, events), random.integers(0, 20_000, events))
    times = _BEGIN + np.arange(events) * (_SECOND // RATE)
    if late:
        times -= np.where(random.random(events) < SHARE, random.integers(0, LATE * _SECOND, events), 0)
    prices = random.integers(1, 1_000, events)
    return pa.table({"auction": auctions, "price": prices, "ts": pa.array(times, pa.timestamp("us"))})


def one(bids: pa.Table, level: str, runner: Runner, late: bool) -> Cost:
    """One query over some bids.

    Args:
        bids: the rows.
        level: what follows CONSISTENCY; empty for a strong query.
        runner: `inline` or `spark`.
        late: whether some rows are late.
    """
    clock = time.process_time if runner == "inline" else time.perf_counter
    with connect(runner=runner, epoch_rows=EPOCH) as db:
        db.stream("bid", bids, timestamp="ts", disorder=f"{LATE} SECONDS" if late else "0 SECONDS")
        clause = f"CONSISTENCY {level} " if level else ""
        query = db.query(
            f"CREATE QUERY q {clause}AS SELECT auction, SUM(price) AS total "
            "FROM bid [RANGE 60 SECONDS] GROUP BY auction"
        )
        begin = clock()
        db.run()
        seconds = clock() - begin
        change = query.changes().column("change").to_numpy()
        return Cost(seconds, len(change), int(np.count_nonzero(change < 0)))


def memory(live: Sequence[int], runner: Runner, write: bool, corrected: bool, grown: int) -> None:
    """Print what early answers cost over long memories.

    Args:
        live: numbers of rows that are remembered.
        runner: `inline` or `spark`.
        write: whether RESULTS.md is to have it.
        corrected: whether earlier rows are corrected; else rows are late.
        grown: how many rows come where it is measured how time grows, too; 0 if it is not.
    """
    counts = " ".join(map(str, live)) + " --corrected" * corrected + " --epochs" * (not grown)
    if grown not in (0, GROWN):
        counts += f" --grown {grown}" + " --only-grown" * (not live)
    command = (
        f"`python benchmarks/consistency.py --memory {counts} --runner {runner}" + " --write" * write + "`"
    )
    found = sections(live, runner, corrected=corrected, grown=grown)
    what = TEXT.replace("DISORDER 72", "CORRECTIONS WITHIN 72") if corrected else TEXT
    text = f"{command}, {machine()}.\n\n{what}\n\n" + "\n\n".join(map(str, found))
    print(text)
    if write:
        write_part(TITLE, text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What early answers cost.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runner", choices=("inline", "spark"), default="inline")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="*", help="so many rows are remembered")
    parser.add_argument("--write", action="store_true", help="with --memory: write the part of RESULTS.md")
    parser.add_argument("--corrected", action="store_true", help="with --memory: earlier rows are corrected")
    parser.add_argument("--epochs", action="store_true", help="with --memory: no growth, only epochs")
    parser.add_argument("--grown", type=int, default=GROWN, help="with --memory: time grows to so many rows")
    parser.add_argument("--only-grown", action="store_true", help="with --memory: only how time grows")
    given = parser.parse_args()
    if given.write and (given.corrected or given.epochs or given.only_grown):
        parser.error("RESULTS.md has all figures, with late rows: leave out --write, or the other options")
    if given.memory is None:
        print(section(given.events, given.runner, given.runs))
    else:
        live = () if given.only_grown else given.memory or LIVE
        grown = 0 if given.epochs else given.grown
        memory(live, given.runner, given.write, given.corrected, grown)
