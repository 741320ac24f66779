"""A hundred dashboard queries over NEXMark beside the twenty shapes that they have.

    python benchmarks/dashboards.py --folder /tmp/nexmark --events 500000

Every shape is asked with five constants. The twenty are each shape with the first one. Runs take turns, in
this process and without Spark; the figure is the median of the ratios of their processor seconds, each the
hundred's by the twenty's.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace import Database, connect
from headrace.algebra.properties import is_stateful
from headrace.workloads.nexmark import TABLES
from nexmark import write_events

TEN: Final = "WINDOW(RANGE 10 SECONDS SLIDE 10 SECONDS)"
SOLD: Final = "auction WINDOW(RANGE 10 SECONDS) a JOIN bid WINDOW(RANGE 1 SECOND) b ON a.id = b.auction"
SELLERS: Final = (
    "person WINDOW(RANGE 10 SECONDS) p JOIN auction WINDOW(RANGE 10 SECONDS) a ON p.id = a.seller"
)
AUCTIONS: Final = ("1000", "1010", "1020", "1030", "1040")
PEOPLE: Final = ("1000", "1007", "1014", "1021", "1028")
COUNTS: Final = ("50", "100", "200", "400", "800")
PRICES: Final = ("1000000", "1200000", "1400000", "1600000", "1800000")
CATEGORIES: Final = ("10", "11", "12", "13", "14")
STATES: Final = ("OR", "CA", "WA", "ID", "AZ")
CHANNELS: Final = ("Google", "Facebook", "Baidu", "Apple", "channel-1")
SHAPES: Final[tuple[tuple[str, Sequence[str]], ...]] = (
    # One auction, one bidder, one channel.
    (f"SELECT COUNT(*) AS bids, MAX(price) AS top FROM bid {TEN} WHERE auction = {{}}", AUCTIONS),
    (f"SELECT AVG(price) AS mean FROM bid {TEN} WHERE auction = {{}}", AUCTIONS),
    (f"SELECT COUNT(*) AS bids FROM bid {TEN} WHERE bidder = {{}}", PEOPLE),
    (f"SELECT COUNT(*) AS bids, AVG(price) AS mean FROM bid {TEN} WHERE channel = '{{}}'", CHANNELS),
    (
        "SELECT MAX(price) AS top FROM bid WINDOW(RANGE 30 SECONDS SLIDE 10 SECONDS) WHERE channel = '{}'",
        CHANNELS,
    ),
    # What is above a limit.
    (f"SELECT auction, COUNT(*) AS n FROM bid {TEN} GROUP BY auction HAVING COUNT(*) > {{}}", COUNTS),
    (f"SELECT bidder, COUNT(*) AS n FROM bid {TEN} GROUP BY bidder HAVING COUNT(*) > {{}}", COUNTS),
    (
        f"SELECT auction, MAX(price) AS top FROM bid {TEN} GROUP BY auction HAVING MAX(price) > {{}}",
        PRICES,
    ),
    (
        f"SELECT channel, COUNT(DISTINCT bidder) AS n FROM bid {TEN} GROUP BY channel "
        "HAVING COUNT(DISTINCT bidder) > {}",
        ("100", "200", "500", "1000", "2000"),
    ),
    # Rows as they come.
    (
        "SELECT auction, bidder, price FROM bid WHERE price > {}",
        PRICES,
    ),
    ("SELECT bidder, price FROM bid WHERE auction = {}", AUCTIONS),
    # People and what they sell.
    (f"SELECT COUNT(*) AS people FROM person {TEN} WHERE state = '{{}}'", STATES),
    (
        f"SELECT COUNT(*) AS people, MIN(name) AS first FROM person {TEN} WHERE city = '{{}}'",
        ("Portland", "Seattle", "Boise", "Phoenix", "Bend"),
    ),
    (
        f"SELECT COUNT(*) AS auctions, AVG(reserve) AS mean FROM auction {TEN} WHERE category = {{}}",
        CATEGORIES,
    ),
    (f"SELECT COUNT(*) AS auctions FROM auction {TEN} WHERE seller = {{}}", PEOPLE),
    # An overview of a join, and the parts of it that somebody looks at.
    (
        f"SELECT a.category, AVG(b.price) AS mean FROM {SOLD} GROUP BY a.category HAVING AVG(b.price) > {{}}",
        ("20000", "30000", "50000", "70000", "90000"),
    ),
    (
        f"SELECT a.id, a.item, b.price FROM {SOLD} WHERE b.price > {{}}",
        PRICES,
    ),
    (
        f"SELECT b.bidder, b.price, a.seller FROM {SOLD} WHERE a.category = {{}} AND b.price > 100000",
        CATEGORIES,
    ),
    (
        f"SELECT p.state, COUNT(*) AS n FROM {SELLERS} GROUP BY p.state HAVING COUNT(*) > {{}}",
        ("1", "2", "3", "4", "5"),
    ),
    (f"SELECT p.name, a.item FROM {SELLERS} WHERE p.state = '{{}}'", STATES),
)


def dashboards(constants: int) -> list[str]:
    """The shapes, each with so many constants."""
    return [shape.format(constant) for shape, found in SHAPES for constant in found[:constants]]


def processor_seconds(folder: Path, queries: Sequence[str]) -> tuple[float, int]:
    """What defining and answering some queries takes, and how many operators with state there were."""
    begun = time.process_time()
    with connect(runner="inline", keep_results=False) as db:
        _define(db, folder, queries)
        db.run()
        used = time.process_time() - begun
        return used, sum(is_stateful(node.plan) for node in db.status.graph.nodes)


def _define(db: Database, folder: Path, queries: Sequence[str]) -> None:
    for table in TABLES:
        db.execute(f"CREATE STREAM {table} FROM parquet OPTIONS (path '{folder / table}') TIMESTAMP BY ts")
    for query in queries:
        db.query(query)


def main() -> None:
    """Measure both sets of queries by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the events are, or are written to")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not options.folder.exists():
        write_events(options.folder, options.events)
    ratios = []
    for turn in range(options.rounds + 1):
        few, kept = processor_seconds(options.folder, dashboards(1))
        many, kept_by_many = processor_seconds(options.folder, dashboards(5))
        if turn:
            ratios.append(many / few)
            print(
                f"20: {few:.2f} s, {kept} operators with state; 100: {many:.2f} s, {kept_by_many}; "
                f"ratio {many / few:.2f}",
                flush=True,
            )
    print(
        f"median of the ratios {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
