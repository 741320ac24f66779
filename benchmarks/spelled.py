"""The queries of other systems' users, in their spelling, over the same bids.

    python benchmarks/spelled.py --only tumbling over --runs 5

Windows are written as for Flink and Spark: by TUMBLE and HOP, grouped by their ends, and frames by OVER.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace import Database, connect
from processes import Usage
from structured_streaming import write_bids

_TUMBLE: Final = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
_HOP: Final = "TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECONDS))"
_FRAME: Final = "ORDER BY ts RANGE BETWEEN INTERVAL '60' SECONDS PRECEDING AND CURRENT ROW"


def _over(table: str, partition: str) -> str:
    frame = f"OVER ({partition} {_FRAME})"
    return f"SELECT auction, bidder, price, SUM(price) {frame} AS total, COUNT(*) {frame} AS n FROM {table}"


def _counts(number: int) -> tuple[str, ...]:
    return tuple(
        f"SELECT window_start, window_end, COUNT(*) AS n FROM {_TUMBLE} "
        f"WHERE MOD(auction, {number}) = {place} GROUP BY window_start, window_end"
        for place in range(number)
    )


def _shapes() -> tuple[str, ...]:
    """A hundred queries of ten kinds: keys, windows and aggregates differ."""
    keys = ("auction", "bidder", "MOD(auction, 100)", "MOD(bidder, 1000)", "MOD(auction + bidder, 50)")
    values = ("COUNT(*)", "SUM(price)", "MAX(price)", "AVG(price)")
    seconds = (5, 10, 20, 30, 60)
    return tuple(
        f"SELECT {key} AS k, {value} AS v "
        f"FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '{length}' SECONDS)) "
        f"GROUP BY {key}, window_start, window_end"
        for key in keys
        for value in values
        for length in seconds
    )


SPELLED: Final[Mapping[str, tuple[str, ...]]] = {
    "q0": ("SELECT * FROM bid",),
    "project": ("SELECT auction, price * 0.908 AS euro, bidder FROM bid WHERE price > 100",),
    "over": (_over("bid", "PARTITION BY auction"),),
    "over, 100 keys": (_over("few", "PARTITION BY auction"),),
    "over, no keys": (_over("bid", ""),),
    "sliding": (
        "SELECT auction, COUNT(*) AS n, SUM(price) AS total "
        "FROM bid WINDOW(RANGE 60 SECONDS) GROUP BY auction",
    ),
    "join": (
        "SELECT auction, price, seller FROM bid, auction WINDOW(RANGE 60 SECONDS) a WHERE auction = a.id",
    ),
    "tumbling": (
        "SELECT auction, window_start, window_end, COUNT(*) AS n, SUM(price) AS total, MAX(price) AS top "
        f"FROM {_TUMBLE} GROUP BY auction, window_start, window_end",
    ),
    "distinct": (
        "SELECT window_start, window_end, COUNT(DISTINCT bidder) AS bidders "
        f"FROM {_TUMBLE} GROUP BY window_start, window_end",
    ),
    "hop": (
        "SELECT auction, window_start, window_end, COUNT(*) AS n, SUM(price) AS total "
        f"FROM {_HOP} GROUP BY auction, window_start, window_end",
    ),
    "1 count": (
        f"SELECT window_start, window_end, COUNT(*) AS n FROM {_TUMBLE} "
        "WHERE MOD(auction, 2) = 1 GROUP BY window_start, window_end",
    ),
    "10 counts": _counts(10),
    "100 counts": _counts(100),
    "100 shapes": _shapes(),
}
"""The queries, by name."""


def write_few(bids: Path, few: Path, keys: int = 100) -> None:
    """Copy bids, with so many auctions, all of them there from the first to the last."""
    few.mkdir()
    for path in sorted(bids.glob("*.parquet")):
        table = pq.read_table(path)
        auctions = pa.array(np.asarray(table["auction"]) * 7919 % 1_000_003 % keys)
        place = table.schema.get_field_index("auction")
        pq.write_table(table.set_column(place, "auction", auctions), few / path.name)


def prepare(folder: Path, events: int) -> None:
    """Write the bids, the auctions and the bids on few auctions, where they are not there."""
    if not folder.exists():
        for table in ("bid", "auction"):
            path = folder / table
            path.mkdir(parents=True)
            write_bids(path, events, files=50, table=table)
        write_few(folder / "bid", folder / "few")


def _database(folder: Path, epoch_rows: int | None, options: Mapping[str, object]) -> Database:
    rows = {} if epoch_rows is None else {"epoch_rows": epoch_rows}
    db = connect(keep_results=False, **rows, **options)
    for name in ("bid", "auction", "few"):
        db.execute(f"CREATE STREAM {name} FROM parquet OPTIONS (path='{folder / name}') TIMESTAMP BY ts")
    return db


def main() -> None:
    """Run the queries that are asked for, and print the median rate of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the bids are, or are written to")
    parser.add_argument("--events", type=int, default=5_434_783)
    parser.add_argument("--only", nargs="+", choices=SPELLED, default=list(SPELLED))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--epoch-rows", type=int)
    parser.add_argument("--inline", action="store_true")
    options = parser.parse_args()
    prepare(options.folder, options.events)
    where: dict[str, object] = {"runner": "inline"}
    if not options.inline:
        from pyspark.sql import SparkSession

        from ours import session_settings

        builder = SparkSession.builder.master("local[2]")
        for name, value in session_settings("local[2]").items():
            builder = builder.config(name, value)
        where = {"spark": builder.getOrCreate()}
    for name in options.only:
        seconds, before = [], None
        for run in range(options.warm_ups + options.runs):
            if run == options.warm_ups:
                before = Usage.now()
            with _database(options.folder, options.epoch_rows, where) as db:
                for query in SPELLED[name]:
                    db.query(query)
                summary = db.run()
            seconds.append(summary.seconds)
        after = Usage.now()
        counted = sorted(seconds[options.warm_ups :])
        used = (after.seconds - before.seconds) / options.runs / summary.rows * 1e6
        rate = summary.rows / counted[len(counted) // 2] / 1e6
        print(
            f"{name:16} {rate:7.3f} M/s  cpu {used:6.2f} s/M  emitted {sum(summary.emitted.values()):>10,} "
            f"worker {after.worker_bytes / 1e6:6.0f} MB  state {summary.state_rows_peak:,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
