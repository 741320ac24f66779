"""The benchmarks: Headrace beside plain Structured Streaming, and what durability costs.

    python benchmarks/bench.py            # prints the figures
    python benchmarks/bench.py --write    # also writes them to benchmarks/RESULTS.md

Both systems run on one local Spark session in one process, over Parquet files written alike; start-up and
warm-up runs are not counted, and a rate is the median of the counted runs. Absolute figures depend on the
machine and on what else it does: compare the ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

import long_texts
import ours
import structured_streaming as peer

RESULTS = Path(__file__).with_name("RESULTS.md")
SECTIONS = ("startup", "peer", "streamed", "further", "growth", "durability", "small", "recovery", "texts")


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
    parser.add_argument("--events", type=int, default=5_434_783, help="NEXMark events; 92 percent are bids")
    parser.add_argument("--scale-events", type=int, default=500_000, help="events of the smaller scaling run")
    parser.add_argument("--peer-events", type=int, default=200_000, help="events for Structured Streaming")
    parser.add_argument("--runs", type=int, default=3, help="counted runs")
    parser.add_argument("--live", type=int, nargs="*", default=[1_000_000], help="live rows for recovery")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="which sections")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    if options.write and set(options.only) != set(SECTIONS):
        parser.error("--write is for all sections together")
    # Measured before this process has a JVM of its own.
    sections = [_startup(options.runs)] if "startup" in options.only else []
    print(*sections, sep="\n\n", end="\n\n", flush=True)
    spark = peer.start_spark(options.master, ours.session_settings(options.master))
    for section in _sections(spark, options):
        print(section, end="\n\n", flush=True)
        sections.append(section)
    if options.write:
        RESULTS.write_text("\n\n".join([_preamble(options), *map(str, sections)]) + "\n")
    spark.stop()


def _sections(spark: SparkSession, options: argparse.Namespace) -> Iterator[Section]:
    runs = options.runs
    with TemporaryDirectory() as folder:
        bids, few, many = (Path(folder, name) for name in ("bids", "few", "many"))
        if {"peer", "streamed", "further", "durability"} & set(options.only):
            _write(bids, options.events, files=50)
        if "peer" in options.only:
            _write(few, options.peer_events, files=1)
            yield _beside_the_peer(spark, bids, few, runs)
        if "streamed" in options.only:
            yield _streamed(spark, bids, runs)
        if "further" in options.only:
            yield _further(spark, bids, runs)
        if "growth" in options.only:
            _write(many, 10 * options.scale_events, files=10)
            _write(few, options.scale_events, files=10)
            yield _growth(spark, few, many, runs)
        if "durability" in options.only:
            yield _durability(spark, bids, runs)
        if "small" in options.only:
            yield _small_epochs(spark)
    if "recovery" in options.only and options.live:
        yield _recovery(spark, options.live)
    if "texts" in options.only:
        yield _long_texts(spark, runs)


def _startup(runs: int) -> Section:
    found = ours.startup(runs)
    row = tuple(f"{seconds:.2f} s" for seconds in found.values())
    return Section("From the start of a command to its end", tuple(found), (row,))


def _write(bids: Path, events: int, files: int) -> None:
    """Write the bids and the auctions of so many events, the latter beside the former."""
    for path, table in ((bids, "bid"), (peer.auctions_of(bids), "auction")):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        peer.write_bids(path, events, files=files, table=table)


FILES_PER_BATCH = 5
"""Of the 50 files, so that Structured Streaming has batches as large as our epochs."""

_SLOW_THERE = ("sliding", "hundred")
"""For these Structured Streaming gets fewer events, in one batch; for others the same files as we do."""


def _beside_the_peer(spark: SparkSession, bids: Path, few: Path, runs: int) -> Section:
    rows = []
    for name, queries in ours.FIVE.items():
        mine = ours.measure(spark, bids, queries, runs)
        theirs = peer.measure(
            spark, name, few if name in _SLOW_THERE else bids, runs=1, files_per_batch=FILES_PER_BATCH
        )
        rows.append((name, *_figures(mine), f"{theirs.rate:,.0f}", f"{mine.rate / theirs.rate:.1f}"))
    heads = ("query", *_FIGURES, "Structured Streaming rows/s", "ratio")
    return Section("Beside Structured Streaming", heads, tuple(rows))


def _streamed(spark: SparkSession, bids: Path, runs: int) -> Section:
    rows = []
    for name, queries in ours.FIVE.items():
        split = ours.measure(spark, bids, queries, runs)
        streamed = ours.measure(spark, bids, queries, runs, streamed=True)
        rows.append(
            (
                name,
                f"{split.rate:,.0f}",
                f"{streamed.rate:,.0f}",
                f"{streamed.rate / split.rate:.2f}",
                f"{streamed.processor / streamed.rows * 1e6:.2f}",
            )
        )
    heads = ("query", "rows/s from files", "rows/s streamed", "ratio", "CPU s per million rows streamed")
    title = f"Bids through a streaming data frame of Spark's, {ours.FILES_PER_BATCH} of the files at a time"
    return Section(title, heads, tuple(rows))


def _further(spark: SparkSession, bids: Path, runs: int) -> Section:
    queries = {
        "sliding sum": ours.SLIDING,
        "sliding sum of DOUBLEs": ours.SLIDING_DOUBLES,
        "sliding STDDEV of DOUBLEs": ours.DEVIATIONS,
        "sliding MIN and MAX": ours.EXTREMES,
        "last ten of every auction": ours.LAST_TEN,
        "distinct bidders, tumbling": ours.BIDDERS,
        "highest ten, sliding": ours.HIGHEST,
        "highest three of every auction, tumbling": ours.HIGHEST_OF_EACH,
        "bids on what is asked for, a join": ours.ASKED_FOR,
    }
    rows = ((name, *_figures(ours.measure(spark, bids, (query,), runs))) for name, query in queries.items())
    return Section("Other windows and aggregates", ("query", *_FIGURES), tuple(rows))


def _growth(spark: SparkSession, few: Path, many: Path, runs: int) -> Section:
    """Ten times the events, the window, the queries; the second figure over the first."""
    short = ours.SLIDING.replace("60 SECONDS", "6 SECONDS")
    longer = ours.SLIDING.replace("60 SECONDS", "600 SECONDS")
    thousand = [ours.ONE_OF.format(1000, number) for number in range(1000)]
    # A short window, so that the smaller run is many windows long, too.
    one, ten = (ours.measure(spark, path, (short,), runs, epoch_rows=100_000) for path in (few, many))
    usual = ours.measure(spark, many, (ours.SLIDING,), runs)
    long = ours.measure(spark, many, (longer,), runs)
    hundred = ours.measure(spark, many, ours.FIVE["hundred"], runs)
    thousands = ours.measure(spark, many, thousand, runs)
    rows = (
        (
            "ten times the events: time",
            _ratio(statistics.median(ten.seconds) / statistics.median(one.seconds)),
        ),
        ("ten times the events: memory of a worker", _ratio(ten.worker_bytes / max(one.worker_bytes, 1))),
        ("a window ten times as long: time", _ratio(usual.rate / long.rate)),
        ("1,000 filtered counts over 100: time", _ratio(hundred.rate / thousands.rate)),
        ("bytes of state per row of state", f"{usual.state_bytes / max(usual.state_rows, 1):.1f}"),
    )
    return Section("How cost grows", ("what", "ratio"), rows)


def _ratio(value: float) -> str:
    return f"{value:.2f}"


_FIGURES = ("rows/s", "CPU s per million rows", "memory of a worker", "moved", "state")


def _figures(mine: ours.Measured) -> tuple[str, ...]:
    return (
        f"{mine.rate:,.0f}",
        f"{mine.processor / mine.rows * 1e6:.2f}",
        f"{mine.worker_bytes / 1e6:,.0f} MB",
        f"{mine.moved / 1e6:,.0f} MB",
        f"{mine.state_rows:,} rows, {mine.state_bytes / 1e6:.1f} MB",
    )


def _durability(spark: SparkSession, bids: Path, runs: int) -> Section:
    pairs = []
    for _ in range(runs):
        without = ours.measure(spark, bids, (ours.SLIDING,), 1)
        durable = ours.measure(spark, bids, (ours.SLIDING,), 1, durable=True)
        pairs.append((without.rate, durable.rate))
    rates = [statistics.median(column) for column in zip(*pairs, strict=True)]
    ratio = statistics.median(with_ / without for without, with_ in pairs)
    row = (f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{ratio:.2f}")
    return Section("The price of durability (sliding)", ("rows/s without", "rows/s with", "ratio"), (row,))


def _small_epochs(spark: SparkSession) -> Section:
    cells = [
        [
            f"{ours.small_epochs(spark, 60, durable=durable, query=query) * 1000:.0f} ms"
            for query in ours.LEVELS
        ]
        for durable in (False, True)
    ]
    rows = tuple((name, *row) for name, row in zip(("without durability", "with"), cells, strict=True))
    return Section("An epoch of 1,000 rows (median)", ("", "no level", "one level", "two levels"), rows)


def _recovery(spark: SparkSession, live: list[int]) -> Section:
    rows = []
    for wanted in live:
        first, ordinary, held = ours.recovery(spark, wanted)
        rows.append((f"{wanted:,}", f"{held:,}", f"{first:.2f} s", f"{ordinary * 1000:.0f} ms"))
    heads = ("live rows", "rows of state", "until the first new commit", "an ordinary epoch of 2,000 rows")
    return Section("Recovery", heads, tuple(rows))


def _long_texts(spark: SparkSession, runs: int) -> Section:
    rows = []
    for name, text in long_texts.TEXTS.items():
        here, there = long_texts.measure(spark, text, runs)
        beside = ("too complex", "") if there is None else (f"{there:.2f} s", f"{there / here:.1f}")
        rows.append((name, f"{here:.2f} s", *beside))
    heads = ("text", "to a graph", "Spark, to a physical plan", "ratio")
    return Section("From a long text to a plan", heads, tuple(rows))


def _preamble(options: argparse.Namespace) -> str:
    live = " ".join(map(str, options.live))
    return "\n".join(
        [
            "# Benchmark results",
            "",
            f"`python benchmarks/bench.py --events {options.events} --peer-events {options.peer_events} "
            f"--runs {options.runs} --live {live} --write`, {datetime.now(UTC):%Y-%m-%d}, "
            f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
            f"Spark {version('pyspark')}, `{options.master}`.",
            "",
            "NEXMark bids, half of them on hot auctions, event time 10,000 events/s, in 50 Parquet files.",
            "",
            f"- project: `{ours.PROJECT}`",
            f"- sliding: `{ours.SLIDING}`; exact at every event. Structured Streaming cannot say this:",
            "  it runs the nearest thing, a 60 s window every second.",
            f"- join: `{ours.JOIN}`",
            f"- tumbling: `{ours.TUMBLING}`",
            f"- hundred: `{ours.ONE_OF.format(100, 'i')}` for i from 0 to 99;",
            "  Structured Streaming runs ten of them.",
            "",
            "Medians of the counted runs after three that warm up. For sliding and hundred Structured",
            f"Streaming gets {options.peer_events:,} events in one batch, for the others the same files as",
            "we do, five at a time, which are the 500,000 rows of our epochs.",
            "",
            "CPU seconds are those of all processes; the memory is the most that one Python worker had,",
            "JVM and driver left out; what moved are the bytes sent between tasks. Streamed input is timed",
            "from when Spark begins to plan its first batch to the last commit.",
        ]
    )


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
