"""Approximate aggregates beside exact ones: the worst error, what is kept, and how fast rows are taken in.

A sliding window moves over rows that come evenly, in bursts, and with a few values that are there very often.
Each aggregate is a query in a database of its own. The error is the largest of those at forty instants: in
percent of the exact answer, and for percentiles in percent of the rows of the window. The state is the
largest of those after each epoch.

    python benchmarks/summaries.py [--rows 120000] [--window 60000] [--percent 5] [--epoch 5000] [--write]

With `--growth` windows of more and more rows, in epochs of half a million: the rates of a query, and of its
kernels alone, and what is kept.

    python benchmarks/summaries.py --growth 1000000 10000000 100000000 [--percent 1]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import headrace as hr
from results import Section, machine, write_part

ASKED = 40
FRACTION = 0.9
Values = np.ndarray


def evenly(count: int, draw: np.random.Generator) -> tuple[Values, Values]:
    """A row at each instant, with values that are equally frequent."""
    return np.arange(count), draw.integers(0, 10**6, count)


def in_bursts(count: int, draw: np.random.Generator) -> tuple[Values, Values]:
    """Bursts of some hundred rows at an instant, at the instants of a Poisson process."""
    gaps = draw.exponential(200, count // 200 + 1)
    instants = np.repeat(np.cumsum(gaps).astype(np.int64), draw.poisson(200, len(gaps)) + 1)[:count]
    return instants, draw.exponential(1000, len(instants)).astype(np.int64)


def of_zipf(count: int, draw: np.random.Generator) -> tuple[Values, Values]:
    """A row at each instant, with values of which few are there very often (Zipf, 1.3)."""
    return np.arange(count), np.minimum(draw.zipf(1.3, count), 10**9)


DATA = {"even": evenly, "bursts": in_bursts, "Zipf": of_zipf}
CALLS = {
    "COUNT": "COUNT(*)",
    "SUM": "SUM(v)",
    "AVG": "AVG(v)",
    "distinct": "COUNT(DISTINCT v)",
    "percentile": f"PERCENTILE(v, {FRACTION})",
}
EXACT: dict[str, Callable[[Values], float]] = {
    "COUNT": len,
    "SUM": lambda values: float(values.sum()),
    "AVG": lambda values: float(values.mean()),
    "distinct": lambda values: len(np.unique(values)),
}


@dataclass(frozen=True)
class Taken:
    """What a query took.

    Attributes:
        error: the worst one (percent).
        rows, bytes: the most that were kept.
        seconds: of processor time.
    """

    error: float
    rows: int
    bytes: int
    seconds: float


def run(call: str, name: str, window: int, epoch: int, rows: tuple[Values, Values]) -> Taken:
    """One query over all rows."""
    instants, values = rows
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        query = db.query(f"SELECT {call} AS x FROM s [RANGE {window}]", name="q")
        db.start()
        kept, size, begun = 0, 0, time.process_time()
        for at in range(0, len(values), epoch):
            part = slice(at, at + epoch)
            db.push("s", pa.table({"v": values[part], "ts": instants[part]}))
            state = [(operator.state_rows, operator.state_bytes) for operator in db.status.operators]
            kept, size = max(kept, sum(one for one, _ in state)), max(size, sum(one for _, one in state))
        seconds = time.process_time() - begun
        asked = np.linspace(instants[0], instants[-1] - 1, ASKED + 1).astype(np.int64)[1:]
        worst = max(_errors(name, query, asked, window, rows))
    return Taken(worst, kept, size, seconds)


def _errors(
    name: str, query: hr.Query, asked: Values, window: int, rows: tuple[Values, Values]
) -> Iterator[float]:
    instants, values = rows
    for at in asked.tolist():
        (found,) = query.snapshot(at).column("x").to_pylist()
        low, high = np.searchsorted(instants, [at - window + 1, at + 1])
        inside = values[low:high]
        if name == "percentile":
            below, upto = (inside < found).mean(), (inside <= found).mean()
            yield max(0.0, below - FRACTION, FRACTION - upto) * 100
        else:
            exact = EXACT[name](inside)
            yield abs(found - exact) / exact * 100


def section(title: str, rows: tuple[Values, Values], asked: argparse.Namespace) -> Section:
    """All aggregates of some rows, exact and within some percent."""
    lines = []
    for name, call in CALLS.items():
        for text in (call, f"{call} WITHIN {asked.percent} PERCENT"):
            taken = run(text, name, asked.window, asked.epoch, rows)
            rate = len(rows[1]) / taken.seconds
            cells = (text, f"{taken.error:.3f}", f"{taken.rows:,}", f"{taken.bytes / 1e3:,.0f}")
            lines.append((*cells, f"{rate / 1e3:,.0f}", f"{taken.seconds:.2f}"))
    heads = ("Aggregate", "Worst error, %", "Rows kept", "kB kept", "Thousand rows a second", "CPU, s")
    return Section(title, heads, tuple(lines))


GROWING = ("COUNT(*)", "SUM(v)", "COUNT(DISTINCT v)", f"PERCENTILE(v, {FRACTION})")
LONG = 500_000
"""The rows of an epoch where windows grow."""


@contextmanager
def kernels_timed() -> Iterator[list[float]]:
    """The seconds that each call of a kernel by an operator takes inside, of its thread's processor time."""
    spent: list[float] = []

    def timed(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begun = time.thread_time()
            try:
                return kernel(*arguments, **named)
            finally:
                spent.append(time.thread_time() - begun)

        return call

    patches = [
        patch.object(module, name, timed(value))
        for path, module in list(sys.modules.items())
        if path.startswith("headrace.operators.")
        for name, value in list(vars(module).items())
        if getattr(value, "__module__", "").startswith("headrace.kernels.")
        and callable(value)
        and not isinstance(value, type)
    ]
    try:
        for one in patches:
            one.start()
        yield spent
    finally:
        for one in patches:
            one.stop()


def grown(text: str, window: int) -> tuple[str, ...]:
    """The cells of an aggregate, of a tenth more rows than the window has, and of 4 million at least."""
    rows, kept, size = max(4_000_000, window * 11 // 10), 0, 0
    draw = np.random.default_rng(7)
    with hr.connect(runner="inline", threads=1) as db, kernels_timed() as spent:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.query(f"SELECT {text} AS x FROM s [RANGE {window}]", name="q")
        db.start()
        seconds = 0.0
        for at in range(0, rows, LONG):
            part = pa.table({"v": draw.integers(0, 10**6, LONG), "ts": np.arange(at, at + LONG)})
            begun = time.process_time()
            db.push("s", part)
            seconds += time.process_time() - begun
            kept = max(kept, sum(operator.state_rows for operator in db.status.operators))
            size = max(size, sum(operator.state_bytes for operator in db.status.operators))
    rates = (f"{rows / taken / 1e6:.1f}" for taken in (seconds, sum(spent)))
    return (text, f"{window:,}", *rates, f"{kept:,}", f"{size / 1e3:,.0f}")


def growth(windows: Sequence[int], percent: str) -> Section:
    """Windows of so many rows, one at each instant."""
    lines = [grown(f"{call} WITHIN {percent} PERCENT", window) for call in GROWING for window in windows]
    heads = ("Aggregate", "Rows in the window", "M rows/s", "kernels alone", "Rows kept", "kB kept")
    return Section("Growth", heads, tuple(lines))


def main() -> None:
    """Measure all, and print it or write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--window", type=int, default=60_000)
    parser.add_argument("--percent", default="5")
    parser.add_argument("--epoch", type=int, default=5_000)
    parser.add_argument("--write", action="store_true", help="replace the part of RESULTS.md")
    parser.add_argument("--growth", type=int, nargs="+", metavar="ROWS", help="windows of so many rows alone")
    asked = parser.parse_args()
    # Kernels are compiled before anything is timed.
    for call in CALLS.values():
        for text in (call, f"{call} WITHIN 20 PERCENT"):
            run(text, "COUNT", 100, 100, evenly(500, np.random.default_rng(1)))
    if asked.growth:
        print(growth(asked.growth, asked.percent))
        return
    found = []
    for title, made in DATA.items():
        found.append(section(title, made(asked.rows, np.random.default_rng(7)), asked))
        if not asked.write:
            print(found[-1], "\n", flush=True)
    if asked.write:
        what = f"{asked.rows:,} rows in epochs of {asked.epoch:,}, `[RANGE {asked.window}]`, inline."
        head = f"{machine()}. {what}"
        write_part("Summaries", "\n\n".join([head, *map(str, found)]))


if __name__ == "__main__":
    main()
