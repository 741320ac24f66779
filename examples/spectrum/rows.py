"""Rows for the three scenarios of CEDR: machines, a web site, and a stock ticker.

    python examples/spectrum/rows.py [FOLDER] [--seed S]

writes machines.csv, web.csv and ticker.csv, in the order in which the rows arrive. The same seed gives the
same rows. The scenarios are those of *Consistency Sensitive Streaming Operators in CEDR*, section 1.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
Row = tuple[datetime, datetime, tuple[object, ...]]
"""When a row arrives, its timestamp, and its other columns."""


def machines(random: Random, count: int = 600) -> Iterable[Row]:
    """Machines install a patch and come up again; where the network is cut, rows are up to 40 minutes late.

    One machine in thirty does not come up.
    """
    cut = {random.randrange(24) for _ in range(6)}
    for machine in range(count):
        installed = BEGIN + timedelta(seconds=random.randrange(12 * 3600))
        events = [(installed, "install")]
        if random.random() > 1 / 30:
            events.append((installed + timedelta(seconds=random.randrange(60, 480)), "up"))
        for ts, kind in events:
            late = random.randrange(40 * 60) if ts.hour * 2 + ts.minute // 30 in cut else random.randrange(5)
            yield ts + timedelta(seconds=late), ts, (f"m{machine:03}", kind)


def web(random: Random, count: int = 6_000) -> Iterable[Row]:
    """Views of pages, most of them of a few; one in fifty is up to half an hour late."""
    for _ in range(count):
        ts = BEGIN + timedelta(milliseconds=random.randrange(2 * 3600 * 1000))
        late = random.randrange(30 * 60) if random.random() < 0.02 else 0
        page = f"/{min(int(random.expovariate(0.5)), 9)}"
        yield ts + timedelta(seconds=late), ts, (page,)


def ticker(random: Random, count: int = 2_500) -> Iterable[Row]:
    """Prices of shares over ten days; one in twenty is wrong, and corrected within 72 hours."""
    prices = {"AAA": 10_000, "BBB": 4_000, "CCC": 25_000}
    for number in range(count):
        ts = BEGIN + timedelta(seconds=number * 10 * 24 * 3600 // count)
        symbol = random.choice(sorted(prices))
        prices[symbol] += random.randrange(-50, 51)
        price = prices[symbol]
        if random.random() > 0.05:
            yield ts, ts, ("insert", symbol, price)
            continue
        wrong = price + random.choice((-1, 1)) * random.randrange(500, 5_000)
        corrected = ts + timedelta(seconds=random.randrange(60, 72 * 3600))
        yield ts, ts, ("insert", symbol, wrong)
        yield corrected, ts, ("delete", symbol, wrong)
        yield corrected, ts, ("insert", symbol, price)


SCENARIOS = {
    "machines": (machines, ("machine", "kind")),
    "web": (web, ("page",)),
    "ticker": (ticker, ("op", "symbol", "price")),
}


def write(folder: Path, seed: int) -> None:
    """Write the rows of all scenarios into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, columns) in SCENARIOS.items():
        rows = sorted(make(Random(f"{name} {seed}")))
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("ts", *columns))
            writer.writerows((ts.isoformat(), *rest) for _, ts, rest in rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the rows of the scenarios.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write(given.folder, given.seed)
