"""The benchmarks of Headrace alone; `peers.py` has those beside other systems.

    python benchmarks/bench.py                  # prints the figures
    python benchmarks/bench.py --only spelled   # of one section
    python benchmarks/bench.py --write          # also writes them to benchmarks/RESULTS.md

Warm-up runs are not counted, and a rate is the median of the counted runs. Absolute figures depend on the
machine and on what else it does: compare the ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pyspark.sql import SparkSession

import consistency
import heartbeats
import long_texts
import migration
import ours
import timed_streams
from bids import EVENTS, prepare
from headrace.errors import shortened
from measured import Measured
from processes import Watch
from results import RESULTS, Section, machine, write_part
from spellings import SPELLED

TITLE: Final = "Benchmark results"


class Bench:
    """What the sections are measured with, made when it is first needed.

    Args:
        options: of the command line.
        folder: a temporary one.
    """

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder

    @cached_property
    def spark(self) -> SparkSession:
        """A session that lasts until the end."""
        return ours.start_spark(self.options.master)

    @cached_property
    def bids(self) -> Path:
        """The usual bids, in 50 files."""
        return prepare(self.folder / "usual", self.options.events)

    def scaled(self, times: int) -> Path:
        """The bids of so many times the events of the smaller scaling run, in ten files."""
        return prepare(self.folder / f"scaled-{times}", times * self.options.scale_events, files=10)


def main() -> int:
    """Run the benchmarks that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS, help="NEXMark events; 92 percent are bids")
    parser.add_argument("--scale-events", type=int, default=500_000, help="events of the smaller scaling run")
    parser.add_argument("--runs", type=int, default=3, help="counted runs")
    parser.add_argument("--live", type=int, nargs="*", default=[1_000_000], help="live rows for recovery")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="which sections")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    options = parser.parse_args()
    if options.write and set(options.only) != set(SECTIONS):
        parser.error("--write is for all sections together")
    sections, failed = [], False
    with TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder))
        for name in SECTIONS:
            if name in options.only:
                print(f"{name} ...", file=sys.stderr, flush=True)
                section, went_well = _measured(bench, name)
                print(section, end="\n\n", flush=True)
                sections.append(str(section))
                failed |= not went_well
    if options.write:
        write_part(TITLE, "\n\n".join([_preamble(options), *sections]))
    return int(failed)


def _measured(bench: Bench, name: str) -> tuple[Section, bool]:
    """A section with the load of others, and whether all of it was measured."""
    with Watch() as watch:
        try:
            section, went_well = SECTIONS[name](bench), True
        except Exception as error:
            what = shortened(f"{type(error).__name__}: {error}", 200)
            section, went_well = Section(name, ("failed",), ((what,),)), False
    text = f"{section.text} Other processes used {watch.used.foreign:.0%} of the machine in the meantime."
    return replace(section, text=text.strip()), went_well and not section.incomplete


def _startup(bench: Bench) -> Section:
    found = ours.startup(bench.options.runs)
    row = tuple(f"{seconds:.2f} s" for seconds in found.values())
    return Section("From the start of a command to its end", tuple(found), (row,))


def _spelled(bench: Bench) -> Section:
    """Each runner has a process of its own, so that its memory is its alone."""
    spark, inline = (_run_spelled(bench, *where) for where in ((), ("--inline",)))
    rows = []
    for name in SPELLED:
        cells = [cell for found in (spark, inline) for cell in _spelled_cells(found, name)]
        rows.append((name, *cells))
    columns = ("M rows/s", "to q0", "CPU s per million", "memory of all, MB", "other load")
    heads = ("query", *(f"{column}, {where}" for where in ("Spark", "inline") for column in columns))
    text = (
        "The first half is on Spark, over files, the second in one process. Memory is that of all processes "
        "together, at its highest in the counted runs."
    )
    incomplete = not all(name in found for name in SPELLED for found in (spark, inline))
    return Section("Queries as users of Flink write them", heads, tuple(rows), text, incomplete)


def _run_spelled(bench: Bench, *where: str) -> Mapping[str, Measured]:
    """What was measured of the queries; those that failed are not among them."""
    report = bench.folder / "spelled.json"
    report.unlink(missing_ok=True)
    options = {"folder": bench.bids.parent, "runs": bench.options.runs, "json": report}
    arguments = [f"--{name}={value}" for name, value in options.items()]
    script = Path(__file__).with_name("spelled.py")
    subprocess.run([sys.executable, script, *arguments, *where], check=False, stdout=sys.stderr)
    found = json.loads(report.read_text()) if report.exists() else {}
    return {name: Measured.read(figures) for name, figures in found.items()}


def _spelled_cells(found: Mapping[str, Measured], name: str) -> tuple[str, ...]:
    if name not in found:
        return ("failed", "", "", "", "")
    measured, first = found[name], found.get("q0")
    return (
        f"{measured.rate / 1e6:.2f}",
        f"{measured.rate / first.rate:.2f}" if first else "",
        f"{measured.processor:.2f}",
        f"{measured.used.peak_bytes / 1e6:,.0f}",
        f"{measured.used.foreign:.0%}",
    )


def _streamed(bench: Bench) -> Section:
    def figures(queries: Sequence[str]) -> tuple[str, ...]:
        split = ours.measure(bench.spark, bench.bids, queries, bench.options.runs)
        streamed = ours.measure(bench.spark, bench.bids, queries, bench.options.runs, streamed=True)
        return (
            f"{split.rate:,.0f}",
            f"{streamed.rate:,.0f}",
            f"{streamed.rate / split.rate:.2f}",
            f"{streamed.processor / streamed.rows * 1e6:.2f}",
        )

    heads = ("query", "rows/s from files", "rows/s streamed", "ratio", "CPU s per million rows streamed")
    title = f"Bids through a streaming data frame of Spark's, {ours.FILES_PER_BATCH} of the files at a time"
    return _by_query(title, heads, ours.FIVE, figures)


def _further(bench: Bench) -> Section:
    queries = {
        **ours.FIVE,
        "sliding sum of DOUBLEs": (ours.SLIDING_DOUBLES,),
        "sliding STDDEV of DOUBLEs": (ours.DEVIATIONS,),
        "sliding MIN and MAX": (ours.EXTREMES,),
        "last ten of every auction": (ours.LAST_TEN,),
        "distinct bidders, tumbling": (ours.BIDDERS,),
        "highest ten, sliding": (ours.HIGHEST,),
        "highest three of every auction, tumbling": (ours.HIGHEST_OF_EACH,),
        "bids on what is asked for, a join": (ours.ASKED_FOR,),
    }
    return _by_query(
        "Windows, aggregates and joins in Headrace's own spelling",
        ("query", *_FIGURES),
        queries,
        lambda texts: _figures(ours.measure(bench.spark, bench.bids, texts, bench.options.runs)),
    )


def _by_query(
    title: str,
    heads: tuple[str, ...],
    queries: Mapping[str, Sequence[str]],
    figures: Callable[[Sequence[str]], tuple[str, ...]],
) -> Section:
    """A row of figures for each query, or what went wrong with it."""
    rows, incomplete = [], False
    for name, texts in queries.items():
        try:
            rows.append((name, *figures(texts)))
        except Exception as error:
            rows.append((name, f"failed: {error}", *[""] * (len(heads) - 2)))
            incomplete = True
        print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    return Section(title, heads, tuple(rows), incomplete=incomplete)


def _growth(bench: Bench) -> Section:
    """Ten times the events, the window, the queries; the second figure over the first."""
    spark, runs = bench.spark, bench.options.runs
    few, many = bench.scaled(1), bench.scaled(10)
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


def _durability(bench: Bench) -> Section:
    pairs = []
    for _ in range(bench.options.runs):
        without = ours.measure(bench.spark, bench.bids, (ours.SLIDING,), 1)
        durable = ours.measure(bench.spark, bench.bids, (ours.SLIDING,), 1, durable=True)
        pairs.append((without.rate, durable.rate))
    rates = [statistics.median(column) for column in zip(*pairs, strict=True)]
    ratio = statistics.median(with_ / without for without, with_ in pairs)
    row = (f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{ratio:.2f}")
    return Section("The price of durability (sliding)", ("rows/s without", "rows/s with", "ratio"), (row,))


def _small_epochs(bench: Bench) -> Section:
    cells = [
        [
            f"{ours.small_epochs(bench.spark, 60, durable=durable, query=query) * 1000:.0f} ms"
            for query in ours.LEVELS
        ]
        for durable in (False, True)
    ]
    rows = tuple((name, *row) for name, row in zip(("without durability", "with"), cells, strict=True))
    return Section("An epoch of 1,000 rows (median)", ("", "no level", "one level", "two levels"), rows)


def _recovery(bench: Bench) -> Section:
    rows = []
    for wanted in bench.options.live:
        first, ordinary, held = ours.recovery(bench.spark, wanted)
        rows.append((f"{wanted:,}", f"{held:,}", f"{first:.2f} s", f"{ordinary * 1000:.0f} ms"))
    heads = ("live rows", "rows of state", "until the first new commit", "an ordinary epoch of 2,000 rows")
    return Section("Recovery", heads, tuple(rows))


def _long_texts(bench: Bench) -> Section:
    rows = []
    for name, text in long_texts.TEXTS.items():
        here, there = long_texts.measure(bench.spark, text, bench.options.runs)
        beside = ("too complex", "") if there is None else (f"{there:.2f} s", f"{there / here:.1f}")
        rows.append((name, f"{here:.2f} s", *beside))
    heads = ("text", "to a graph", "Spark, to a physical plan", "ratio")
    return Section("From a long text to a plan", heads, tuple(rows))


SECTIONS: Final[Mapping[str, Callable[[Bench], Section]]] = {
    # Measured before this process has a JVM of its own.
    "startup": _startup,
    "spelled": _spelled,
    "streamed": _streamed,
    "further": _further,
    "growth": _growth,
    "durability": _durability,
    "small": _small_epochs,
    "recovery": _recovery,
    "texts": _long_texts,
    "heartbeats": lambda _: heartbeats.section(),
    "devices": lambda bench: timed_streams.devices_section(bench.options.runs),
    "generation": lambda _: timed_streams.generation_section(),
    "exchange": lambda _: migration.section(),
    "consistency": lambda _: consistency.section(runner="spark"),
}


def _preamble(options: argparse.Namespace) -> str:
    live = " ".join(map(str, options.live))
    return "\n".join(
        [
            f"`python benchmarks/bench.py --events {options.events} --runs {options.runs} --live {live} "
            f"--write`, {machine()}, Spark {version('pyspark')}, `{options.master}`.",
            "",
            "NEXMark bids, half of them on hot auctions, event time 10,000 events/s, in 50 Parquet files.",
            "",
            *(f"- {name}: `{queries[0]}`" for name, queries in ours.FIVE.items() if len(queries) == 1),
            f"- hundred: `{ours.ONE_OF.format(100, 'i')}` for i from 0 to 99",
            "- the queries as users of Flink write them are in `benchmarks/spellings.py`",
            "",
            "Rates are medians of the counted runs after some that warm up. CPU seconds are those of all",
            "processes; the memory of a worker is the most that one Python worker had, JVM and driver left",
            "out; what moved are the bytes sent between tasks. Streamed input is timed from when Spark",
            "begins to plan its first batch to the last commit.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
