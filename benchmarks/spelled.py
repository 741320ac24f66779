"""The queries of other systems' users, in their spelling, on Headrace.

    python benchmarks/spelled.py --folder build/bids --only tumbling over --runs 5

Runs are on a Spark session that is started as `headrace run` does, or with --inline in this process, on all
cores or as many threads as --threads says.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from bids import EVENTS, auctions_of, few_of, prepare, rows_of
from headrace import Database, Summary, connect
from headrace.runtime.tasks.heap import keep_freed_memory
from measured import Measured, measure
from spellings import SPELLED

MASTER = "local[2]"

_LONG = {"100 shapes": 1}
"""For queries that take half a minute, the runs that are counted, and those that warm up."""


class Headrace:
    """Headrace, and the Spark session that all of its runs share.

    Args:
        inline: whether queries run in this process, without Spark.
        threads: how many threads do the work then; all cores if None.
    """

    def __init__(self, *, inline: bool, threads: int | None = None) -> None:
        self._inline = inline
        self._threads = threads
        # As `headrace run` does.
        keep_freed_memory()
        # A session lives until the last database that uses it is closed.
        self._holder = self._connect()
        self._holder.stream("nothing", pa.table({"ts": [0]}), timestamp="ts")
        self._holder.query("SELECT * FROM nothing")
        self._holder.run()

    def __enter__(self) -> Headrace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._holder.close()

    def run(self, queries: Sequence[str], bids: Path) -> float:
        """Compute and count the results of queries over a folder of bids, and write them nowhere.

        Returns:
            The seconds from the first epoch's start to the last one's end.

        Raises:
            RuntimeError: a query failed.
        """
        with self._database(bids, keep_results=False) as db:
            for query in queries:
                db.query(query)
            return _checked(db.run()).seconds

    def save(self, queries: Sequence[str], bids: Path, answer: Path) -> None:
        """Write the results of queries to Parquet files in a folder."""
        with self._database(bids, keep_results=True) as db:
            answers = [db.query(query) for query in queries]
            _checked(db.run())
            for number, query in enumerate(answers):
                rows = query.history().drop_columns(["valid_from", "valid_to"])
                pq.write_table(rows, answer / f"{number}.parquet")

    @contextmanager
    def _database(self, bids: Path, *, keep_results: bool) -> Iterator[Database]:
        with self._connect(keep_results=keep_results) as db:
            for name, path in (("bid", bids), ("auction", auctions_of(bids)), ("few", few_of(bids))):
                if path.exists():
                    db.execute(f"CREATE STREAM {name} FROM parquet OPTIONS (path='{path}') TIMESTAMP BY ts")
            yield db

    def _connect(self, *, keep_results: bool = True) -> Database:
        if self._inline:
            return connect(runner="inline", threads=self._threads, keep_results=keep_results)
        return connect(master=MASTER, keep_results=keep_results)


def _checked(summary: Summary) -> Summary:
    if summary.failed:
        raise RuntimeError(str(summary.failed))
    return summary


def measure_all(
    names: Sequence[str], bids: Path, *, inline: bool, threads: int | None, warm_ups: int, runs: int
) -> Iterator[tuple[str, Measured | str]]:
    """Measure queries one after the other; each with its figures, or with what went wrong."""
    rows = rows_of(bids)
    with Headrace(inline=inline, threads=threads) as headrace:
        for name in names:
            try:
                run = partial(headrace.run, SPELLED[name], bids)
                for _ in range(_LONG.get(name, warm_ups)):
                    run()
                yield name, measure(run, rows, _LONG.get(name, runs))
            except Exception as error:
                yield name, f"{type(error).__name__}: {error}"


def main() -> int:
    """Run the queries that are asked for, and print the median rate of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the bids are, or are written to")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--only", nargs="+", choices=SPELLED, default=list(SPELLED))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--threads", type=int, help="threads of --inline")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    bids = prepare(options.folder, options.events)
    found = {}
    how = {"inline": options.inline, "threads": options.threads}
    for name, measured in measure_all(
        options.only, bids, **how, warm_ups=options.warm_ups, runs=options.runs
    ):
        print(f"{name:16} {measured}", flush=True)
        if isinstance(measured, Measured):
            found[name] = asdict(measured)
    if options.json:
        options.json.write_text(json.dumps(found))
    return int(len(found) < len(options.only))


if __name__ == "__main__":
    sys.exit(main())
