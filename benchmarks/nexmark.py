"""NEXMark's queries on Headrace: the rate of each, over the events in Parquet files.

    python benchmarks/nexmark.py                  # prints the figures
    python benchmarks/nexmark.py --only q5 q8     # of some of them
    python benchmarks/nexmark.py --write          # also writes them to benchmarks/RESULTS.md

Answers are computed and counted and written nowhere. A rate is the median of the counted runs, one run warms
up before them. What a query reads counts as its rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow.parquet as pq

import ours
from headrace import Database, Summary, connect
from headrace.workloads.nexmark import TABLES, Nexmark, generate
from headrace.workloads.nexmark.queries import SIDE_INPUT, nexmark_queries
from processes import Usage, Watch
from results import RESULTS, Section, machine, write_part

TITLE: Final = "NEXMark's queries"
QUERIES: Final = {query.name: query for query in nexmark_queries()}
MASTER: Final = "local[2]"


@dataclass(frozen=True)
class Figures:
    """What the counted runs of a query took.

    Attributes:
        rate: rows that it read, per second, in the median of the runs.
        processor: seconds of processor time per million rows that it read.
        summary: of the last run.
    """

    rate: float
    processor: float
    summary: Summary


def write_events(folder: Path, events: int, files: int = 10, seed: int = Nexmark.seed) -> None:
    """Write all tables below a folder, in so many Parquet files each, in order of time."""
    spec = Nexmark(events, seed=seed)
    for table, schema in TABLES.items():
        (folder / table).mkdir(parents=True)
        for number in range(files):
            first, last = (events * place // files for place in (number, number + 1))
            path = folder / table / f"part-{number:04}.parquet"
            with pq.ParquetWriter(path, schema.arrow()) as writer:
                writer.write_batch(generate(spec, table, first, last, schema.names))


class Runs:
    """Runs of the queries over a folder of events, on one Spark session or in this process."""

    def __init__(self, folder: Path, *, inline: bool) -> None:
        self._folder = folder
        self._spark = None if inline else ours.start_spark(MASTER)

    def close(self) -> None:
        """Stop the session."""
        if self._spark is not None:
            self._spark.stop()

    def measure(self, name: str, runs: int) -> Figures:
        """Run a query once to warm up, and then so many times.

        Raises:
            RuntimeError: it failed.
        """
        self._run(name)
        before = Usage.now().seconds
        summaries = [self._run(name) for _ in range(runs)]
        processor = (Usage.now().seconds - before) / runs
        last = summaries[-1]
        seconds = statistics.median(summary.seconds for summary in summaries)
        return Figures(last.rows / seconds, processor / last.rows * 1e6, last)

    def _run(self, name: str) -> Summary:
        with self._database() as db:
            for table in TABLES:
                db.execute(self._stream(table, table, "ts"))
            db.execute(self._stream("arriving", "bid", "ARRIVAL"))
            db.relation("side_input", SIDE_INPUT, key="key")
            db.execute(QUERIES[name].text)
            summary = db.run()
        if summary.failed:
            raise RuntimeError(str(summary.failed))
        return summary

    def _stream(self, name: str, table: str, timestamp: str) -> str:
        path = self._folder / table
        return f"CREATE STREAM {name} FROM parquet OPTIONS (path '{path}') TIMESTAMP BY {timestamp}"

    @contextmanager
    def _database(self) -> Iterator[Database]:
        if self._spark is None:
            with connect(runner="inline", keep_results=False) as db:
                yield db
        else:
            with connect(spark=self._spark, keep_results=False) as db:
                yield db


def section(folder: Path, names: Sequence[str], runs: int, *, inline: bool) -> Section:
    """The figures of the queries, with what went wrong with those that failed."""
    rows, incomplete = [], False
    measured = Runs(folder, inline=inline)
    with Watch() as watch:
        for name in names:
            try:
                rows.append((name, *_cells(measured.measure(name, runs))))
            except Exception as error:
                rows.append((name, f"failed: {error}", "", "", ""))
                incomplete = True
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
        measured.close()
    where = "In one process, without Spark" if inline else f"On Spark, `{MASTER}`"
    heads = ("query", "rows/s", "CPU s per million rows", "elements of the answer", "state at most")
    text = f"Other processes used {watch.used.foreign:.0%} of the machine in the meantime."
    return Section(where, heads, tuple(rows), text, incomplete)


def _cells(figures: Figures) -> tuple[str, ...]:
    summary = figures.summary
    return (
        f"{figures.rate:,.0f}",
        f"{figures.processor:.2f}",
        f"{sum(summary.emitted.values()):,}",
        f"{summary.state_rows_peak:,} rows, {summary.state_bytes_peak / 1e6:.1f} MB",
    )


def main() -> int:
    """Measure the queries that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000, help="of all tables together")
    parser.add_argument("--runs", type=int, default=3, help="counted runs")
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=list(QUERIES), help="which queries")
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    options = parser.parse_args()
    if options.write and options.only != list(QUERIES):
        parser.error("--write is for all queries together")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with TemporaryDirectory() as folder:
        write_events(Path(folder, "events"), options.events)
        sections = [
            section(Path(folder, "events"), options.only, options.runs, inline=inline)
            for inline in (False, True)
        ]
    text = "\n\n".join([_preamble(options), *map(str, sections)])
    print(text)
    if options.write:
        write_part(TITLE, text)
    return int(any(part.incomplete for part in sections))


def _preamble(options: argparse.Namespace) -> str:
    command = f"python benchmarks/nexmark.py --events {options.events} --runs {options.runs} --write"
    return "\n".join(
        [
            f"`{command}`, {machine()}, Spark {version('pyspark')}.",
            "",
            "Each query reads the streams that it needs from Parquet files; event time is 10,000 events/s.",
            "A rate counts the rows that are read, in the median of the counted runs after one that warms",
            "up. What the queries ask is in `docs/nexmark.md`.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
