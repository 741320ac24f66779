"""Thousands of queries that select rows of one stream, beside compiled predicates and DuckDB's join.

    python benchmarks/many_selections.py --numbers 1000 10000 --write

A row has three numbers, and a query compares one or two of them with constants. A loop asks every compiled
predicate for every row; DuckDB joins the rows with a table that has a range of each number for each query.
All count the pairs of a query and a row, which have to be the same. Seconds are of processor time, since
others may use the machine, and are medians of epochs of 1,000 rows.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from headrace import Database, connect
from headrace.lowering import matched_groups, selections
from results import RESULTS, Section, machine, write_part

ROWS: Final = 1_000
EPOCHS: Final = 3
"""Epochs that are counted, after one that warms up."""
TOP: Final = 1_000_000
"""The numbers of a row are below this."""
COLUMNS: Final = ("a", "b", "c")
COUNTED: Final = "SELECT COUNT(*) AS n, MAX(ts) AS newest FROM s [RANGE 1000 SLIDE 100]"
_FEW: Final = 1_000
"""More queries than these take too long to be asked alone where each has state."""

Bounds = dict[str, tuple[int, int]]
"""For each number that a query looks at the least and the largest one that it selects."""


@dataclass(frozen=True)
class Figures:
    """What some queries took.

    Attributes:
        define: defining one (CPU seconds).
        epoch: an epoch, or the same rows for others (CPU seconds).
        pairs: the pairs of a query and a row of all epochs.
        change: to add 1,000 queries in one change while it runs (CPU seconds); None if that was not measured.
        one: to add one (CPU seconds).
    """

    define: float
    epoch: float
    pairs: int
    change: float | None = None
    one: float | None = None


def queries(number: int, share: float, seed: int = 1) -> list[tuple[str, Bounds]]:
    """Conditions as text and as bounds.

    Args:
        number: how many.
        share: the part of the rows that each selects, about.
        seed: of the constants.
    """
    drawn = random.Random(seed)
    width = max(1, int(share * TOP))
    found: list[tuple[str, Bounds]] = []
    for place in range(number):
        one, other = drawn.sample(COLUMNS, 2)
        low = drawn.randrange(TOP - width)
        high = low + width - 1
        shapes: tuple[tuple[str, Bounds], ...] = (
            (f"{one} = {low}", {one: (low, low)}),
            (f"{one} < {width}", {one: (0, width - 1)}),
            (f"{one} <= {width - low % 7}", {one: (0, width - low % 7)}),
            (f"{one} > {TOP - width - low % 7}", {one: (TOP - width - low % 7 + 1, TOP)}),
            (f"{one} >= {TOP - width}", {one: (TOP - width, TOP)}),
            (f"{one} BETWEEN {low} AND {high}", {one: (low, high)}),
            (
                f"{one} BETWEEN {low} AND {high} AND {other} < {TOP // 2}",
                {one: (low, high), other: (0, TOP // 2 - 1)},
            ),
            (f"{one} > {low} AND {one} <= {high}", {one: (low + 1, high)}),
        )
        found.append(shapes[place % 8])
    return found


def epochs() -> list[pa.Table]:
    """The rows of each epoch, the first of which warms up."""
    drawn = np.random.default_rng(0)
    found = []
    for epoch in range(EPOCHS + 1):
        numbers = {name: drawn.integers(0, TOP, ROWS) for name in COLUMNS}
        found.append(pa.table({**numbers, "ts": np.arange(epoch * ROWS, (epoch + 1) * ROWS)}))
    return found


def _timed(work: Callable[[pa.Table], int]) -> tuple[float, int]:
    """The median of the counted epochs, and the pairs of all."""
    seconds, pairs = [], 0
    for place, rows in enumerate(epochs()):
        begun = time.process_time()
        found = work(rows)
        if place:
            seconds.append(time.process_time() - begun)
        pairs += found
    return statistics.median(seconds), pairs


def headrace(asked: Sequence[tuple[str, Bounds]], select: str, *, index: bool = True) -> Figures:
    """The queries here, by the index or each asked alone.

    Args:
        asked: their conditions.
        select: the queries without these.
        index: whether they are asked together.
    """
    with _together(index), connect(runner="inline") as db:
        db.execute("CREATE STREAM s (a BIGINT, b BIGINT, c BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        define = _defined(db, "q", select, [text for text, _ in asked]) / len(asked)
        db.start()
        epoch, _ = _timed(lambda rows: int(db.push("s", rows)))
        change = _defined(db, "more", select, [f"a < {n}" for n in range(1_000)])
        one = _defined(db, "last", select, ["a < 77777"])
        pairs = sum(db.stop().emitted.values())
    return Figures(define, epoch, pairs, change, one)


@contextmanager
def _together(index: bool) -> Iterator[None]:
    """With or without queries that are asked together."""
    before = selections.FEWEST
    modules: tuple[Any, ...] = (selections, matched_groups)
    for module in modules:
        module.FEWEST = before if index else 1_000_000
    try:
        yield
    finally:
        for module in modules:
            module.FEWEST = before


def _defined(db: Database, prefix: str, select: str, conditions: Sequence[str]) -> float:
    """Define queries in one change; CPU seconds."""
    texts = (f"CREATE QUERY {prefix}{n} AS {select} WHERE {one}" for n, one in enumerate(conditions))
    begun = time.process_time()
    db.execute("; ".join(texts))
    return time.process_time() - begun


def loop(asked: Sequence[tuple[str, Bounds]]) -> Figures:
    """A loop over the rows and the predicates, which Python has compiled."""
    begun = time.process_time()
    predicates = [eval(f"lambda a, b, c: {_python(bounds)}") for _, bounds in asked]
    define = (time.process_time() - begun) / len(asked)

    def work(rows: pa.Table) -> int:
        numbers = zip(*(rows[name].to_pylist() for name in COLUMNS), strict=True)
        return sum(1 for row in numbers for predicate in predicates if predicate(*row))

    return Figures(define, *_timed(work))


def _python(bounds: Bounds) -> str:
    return " and ".join(f"{low} <= {name} <= {high}" for name, (low, high) in bounds.items())


def ranges_join(asked: Sequence[tuple[str, Bounds]]) -> Figures:
    """DuckDB's join of the rows with a table of ranges."""
    listed = [[bounds.get(name, (0, TOP)) for name in COLUMNS] for _, bounds in asked]
    ends = {
        f"{name}_{end}": [ranges[place][side] for ranges in listed]
        for place, name in enumerate(COLUMNS)
        for side, end in enumerate(("low", "high"))
    }
    condition = " AND ".join(f"r.{name} BETWEEN q.{name}_low AND q.{name}_high" for name in COLUMNS)
    with duckdb.connect() as connection:
        begun = time.process_time()
        connection.register("given", pa.table({"query": range(len(asked)), **ends}))
        connection.execute("CREATE TABLE q AS SELECT * FROM given")
        define = (time.process_time() - begun) / len(asked)

        def work(rows: pa.Table) -> int:
            connection.register("r", rows)
            found = connection.sql(f"SELECT q.query, r.* FROM r JOIN q ON {condition}")
            return int(found.to_arrow_table().num_rows)

        return Figures(define, *_timed(work))


def selected(numbers: Sequence[int]) -> Section:
    """The figures of some numbers of queries that select rows, beside others."""
    rows: list[tuple[str, ...]] = []
    for number in numbers:
        asked = queries(number, 0.00001)
        found = {
            "index": headrace(asked, "SELECT * FROM s"),
            "each asked alone": headrace(asked, "SELECT * FROM s", index=False),
            "loop over compiled predicates": loop(asked),
            "DuckDB, join with ranges": ranges_join(asked),
        }
        pairs = {name: one.pairs for name, one in found.items()}
        if len(set(pairs.values())) > 1:
            raise AssertionError(f"the pairs differ: {pairs}")
        rows += [_cells(number, name, one, found["index"].epoch) for name, one in found.items()]
    text = (
        f"Queries that compare one or two of three numbers with constants; epochs of {ROWS:,} rows, whose "
        "results are written. CPU time, and its ratio to that of the index."
    )
    return Section("Selections", _heads("pairs"), tuple(rows), text)


def aggregated(numbers: Sequence[int]) -> Section:
    """The figures of some numbers of queries that aggregate the rows they select."""
    rows: list[tuple[str, ...]] = []
    for number in (number for number in numbers if number <= _FEW):
        asked = queries(number, 0.001)
        found = {"index": headrace(asked, COUNTED), "each asked alone": headrace(asked, COUNTED, index=False)}
        if len({one.pairs for one in found.values()}) > 1:
            raise AssertionError("the answers differ")
        rows += [_cells(number, name, one, found["index"].epoch) for name, one in found.items()]
    text = f"Conditions that select 100 times as many rows, under `{COUNTED}`."
    return Section("Aggregates of selected rows", _heads("elements"), tuple(rows), text)


def _heads(what: str) -> tuple[str, ...]:
    return (
        "queries",
        "by",
        f"{what} of an epoch",
        "an epoch",
        "ratio",
        "defining one",
        "1,000 more",
        "one more",
    )


def _cells(number: int, name: str, found: Figures, index: float) -> tuple[str, ...]:
    return (
        f"{number:,}",
        name,
        f"{found.pairs / (EPOCHS + 1):,.0f}",
        f"{found.epoch * 1e3:,.1f} ms",
        f"{found.epoch / index:.1f}",
        f"{found.define * 1e3:.3f} ms",
        "" if found.change is None else f"{found.change:.2f} s",
        "" if found.one is None else f"{found.one:.2f} s",
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--numbers", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    options = parser.parse_args()
    sections = [selected(options.numbers), aggregated(options.numbers)]
    listed = " ".join(map(str, options.numbers))
    head = f"`python benchmarks/many_selections.py --numbers {listed} --write`, {machine()}."
    text = "\n\n".join([head, *map(str, sections)])
    print(text)
    if options.write:
        write_part("Thousands of queries", text)


if __name__ == "__main__":
    main()
