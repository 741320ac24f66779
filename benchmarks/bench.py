"""The benchmarks: Headrace beside plain Structured Streaming, and what durability costs.

    python benchmarks/bench.py            # prints the figures
    python benchmarks/bench.py --write    # also writes them to benchmarks/RESULTS.md

Both systems run on one local Spark session in one process, over Parquet files written alike; start-up and a
warm-up run are not counted, and a rate is the median of the counted runs. Absolute figures depend on the
machine and on what else it does: compare the ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

import ours
import structured_streaming as peer

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True)
class Section:
    """Some figures under a heading, as a Markdown table."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [f"## {self.title}", "", _line(self.heads), _line(("---",) * len(self.heads))]
        return "\n".join([*lines, *map(_line, self.rows)])


def main() -> None:
    """Run the benchmarks that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000, help="NEXMark events; 92 percent are bids")
    parser.add_argument("--peer-events", type=int, default=200_000, help="events for Structured Streaming")
    parser.add_argument("--runs", type=int, default=3, help="counted runs")
    parser.add_argument("--live", type=int, nargs="*", default=[1_000_000], help="live rows for recovery")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    spark = peer.start_spark(options.master)
    sections = []
    for section in _sections(spark, options):
        print(section, end="\n\n", flush=True)
        sections.append(section)
    if options.write:
        RESULTS.write_text("\n\n".join([_preamble(options), *map(str, sections)]) + "\n")
    spark.stop()


def _sections(spark: SparkSession, options: argparse.Namespace) -> Iterator[Section]:
    with TemporaryDirectory() as folder:
        bids, few = Path(folder, "bids"), Path(folder, "few")
        for path, events in ((bids, options.events), (few, options.peer_events)):
            path.mkdir()
            peer.write_bids(path, events, files=10)
        yield _beside_the_peer(spark, bids, few, options.runs)
        yield _durability(spark, bids, options.runs)
        yield _small_epochs(spark)
    if options.live:
        yield _recovery(spark, options.live)


def _beside_the_peer(spark: SparkSession, bids: Path, few: Path, runs: int) -> Section:
    rows = []
    for name, query in (("sliding", ours.SLIDING), ("tumbling", ours.TUMBLING)):
        mine = ours.measure(spark, bids, query, runs)
        theirs = peer.measure(spark, name, few, runs=runs)
        state = f"{mine.state_rows:,} rows, {mine.state_bytes / 1e6:.1f} MB"
        ratio = f"{mine.rate / theirs.rate:.1f}"
        rows.append(
            (name, f"{mine.rate:,.0f}", f"{theirs.rate:,.0f}", ratio, state, f"{theirs.state_rows:,} rows")
        )
    heads = ("query", "Headrace rows/s", "Structured Streaming rows/s", "ratio", "our state", "its state")
    return Section("Beside Structured Streaming", heads, tuple(rows))


def _durability(spark: SparkSession, bids: Path, runs: int) -> Section:
    pairs = []
    for _ in range(runs):
        without = ours.measure(spark, bids, ours.SLIDING, 1)
        durable = ours.measure(spark, bids, ours.SLIDING, 1, durable=True)
        pairs.append((without.rate, durable.rate))
    rates = [statistics.median(column) for column in zip(*pairs, strict=True)]
    ratio = statistics.median(with_ / without for without, with_ in pairs)
    row = (f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{ratio:.2f}")
    return Section("The price of durability (sliding)", ("rows/s without", "rows/s with", "ratio"), (row,))


def _small_epochs(spark: SparkSession) -> Section:
    seconds = [ours.small_epochs(spark, 60, durable=durable) for durable in (False, True)]
    row = tuple(f"{second * 1000:.0f} ms" for second in seconds)
    return Section("An epoch of 1,000 rows, one level (median)", ("without durability", "with"), (row,))


def _recovery(spark: SparkSession, live: list[int]) -> Section:
    rows = []
    for wanted in live:
        first, ordinary, held = ours.recovery(spark, wanted)
        rows.append((f"{wanted:,}", f"{held:,}", f"{first:.2f} s", f"{ordinary * 1000:.0f} ms"))
    heads = ("live rows", "rows of state", "until the first new commit", "an ordinary epoch of 2,000 rows")
    return Section("Recovery", heads, tuple(rows))


def _preamble(options: argparse.Namespace) -> str:
    return "\n".join(
        [
            "# Benchmark results",
            "",
            f"`python benchmarks/bench.py --events {options.events} --peer-events {options.peer_events} "
            f"--runs {options.runs} --write`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores "
            f"({platform.machine()}), Python {platform.python_version()}, Spark {version('pyspark')}, "
            f"`{options.master}`.",
            "",
            "NEXMark bids, half of them on hot auctions, event time 10,000 events/s, in 10 Parquet files.",
            "",
            f"- sliding: `{ours.SLIDING}`; exact at every event. Structured Streaming cannot say this:",
            "  it runs the nearest thing, a 60 s window every second.",
            f"- tumbling: `{ours.TUMBLING}`",
        ]
    )


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
