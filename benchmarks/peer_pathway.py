"""Pathway among the peers, in an environment of its own: two workers, which are threads of one process.

Rows are read from CSV files, which its engine does without Python, and which are written before a run:
Parquet it reads row by row in Python, and Delta with a licence key. So its q0 is the rate at which it reads
CSV. Times are milliseconds. Its windows are those of `pathway.temporal` without a behaviour: nothing waits,
results are corrected when more rows come, and nothing is forgotten. It has no OVER. A HOP of a minute by a
second takes minutes for 200,000 events, since each row is kept once for each of its 60 windows.

The own clock is that of `pw.run`.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from peer import CORES, Peer, serve

os.environ.setdefault("PATHWAY_THREADS", str(CORES))

import pathway as pw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND


_COLUMNS: Final[Mapping[str, Mapping[str, type]]] = {
    "bid": {"auction": int, "bidder": int, "price": int, "channel": str, "ts": int},
    # `id` is a name that Pathway does not give away.
    "auction": {"number": int, "seller": int, "ts": int},
}

Tables = Mapping[str, pw.Table]


def _tumbling(bids: pw.Table, instance: pw.ColumnReference | None = None) -> pw.GroupedTable:
    window = pw.temporal.tumbling(duration=10 * _SECOND)
    return bids.windowby(bids.ts, window=window, instance=instance)


def _counts(number: int, places: range) -> Callable[[Tables], list[pw.Table]]:
    def made(tables: Tables) -> list[pw.Table]:
        bids = tables["bid"]
        return [
            _tumbling(bids.filter(bids.auction % number == place)).reduce(
                window_start=pw.this._pw_window_start,
                window_end=pw.this._pw_window_end,
                n=pw.reducers.count(),
            )
            for place in places
        ]

    return made


def _q0(tables: Tables) -> list[pw.Table]:
    return [tables["bid"]]


def _project(tables: Tables) -> list[pw.Table]:
    bids = tables["bid"]
    some = bids.filter(bids.price > 100)
    return [some.select(some.auction, euro=some.price * 0.908, bidder=some.bidder)]


def _join(tables: Tables) -> list[pw.Table]:
    bids, auctions = tables["bid"], tables["auction"]
    before = pw.temporal.interval(1 - _MINUTE, 0)
    pairs = bids.interval_join(auctions, bids.ts, auctions.ts, before, bids.auction == auctions.number)
    return [pairs.select(bids.auction, bids.price, auctions.seller)]


def _grouped(tables: Tables) -> list[pw.Table]:
    bids = tables["bid"]
    return [
        _tumbling(bids, bids.auction).reduce(
            auction=pw.this._pw_instance,
            window_start=pw.this._pw_window_start,
            window_end=pw.this._pw_window_end,
            n=pw.reducers.count(),
            total=pw.reducers.sum(pw.this.price),
            top=pw.reducers.max(pw.this.price),
        )
    ]


def _distinct(tables: Tables) -> list[pw.Table]:
    return [
        _tumbling(tables["bid"]).reduce(
            window_start=pw.this._pw_window_start,
            window_end=pw.this._pw_window_end,
            bidders=pw.reducers.count_distinct(pw.this.bidder),
        )
    ]


TABLES: Final[Mapping[str, Callable[[Tables], list[pw.Table]]]] = {
    "q0": _q0,
    "project": _project,
    "join": _join,
    "tumbling": _grouped,
    "distinct": _distinct,
    "1 count": _counts(2, range(1, 2)),
    "10 counts": _counts(10, range(10)),
    "100 counts": _counts(100, range(100)),
}
"""The queries, by name."""


class _Pathway:
    def run(self, query: str, data: Path) -> float:
        return self._run(query, data, lambda table, _: pw.io.null.write(table))

    def save(self, query: str, data: Path, answer: Path) -> None:
        self._run(query, data, lambda table, place: pw.io.csv.write(table, answer / f"{place}.csv"))
        for path in answer.glob("*.csv"):
            _write_last(path, path.with_name(f"part-{path.stem}"))
            path.unlink()

    def _run(self, query: str, data: Path, write: Callable[[pw.Table, int], None]) -> float:
        pw.internals.parse_graph.G.clear()
        tables = {
            name: pw.io.csv.read(_written(data, name), schema=pw.schema_from_types(**types), mode="static")
            for name, types in _COLUMNS.items()
        }
        for place, table in enumerate(TABLES[query](tables)):
            write(table, place)
        begun = time.perf_counter()
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return time.perf_counter() - begun


def _write_last(changes: Path, rows: Path) -> None:
    """Write what holds in the end of an answer's changes, with times as times."""
    table = pyarrow.csv.read_csv(changes)
    counts = Counter[tuple[object, ...]]()
    names = [name for name in table.column_names if name not in ("time", "diff")]
    for name in names:
        if name == "ts" or name.startswith("window_"):
            table = _with(table, name, table[name].cast(pa.timestamp("ms", "UTC")).cast(pa.string()))
    for *row, change in zip(*(table[name].to_pylist() for name in (*names, "diff")), strict=True):
        counts[tuple(row)] += change
    lines = (",".join(map(str, row)) for row in counts.elements())
    rows.write_text("".join(f"{line}\n" for line in lines))


def _written(data: Path, name: str) -> Path:
    """The rows of a table as CSV files, written where they are missing."""
    folder = data / "csv" / name
    if not folder.exists():
        unfinished = folder.with_name(f"{name}-unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        for path in sorted((data / name).glob("*.parquet")):
            names = list(_COLUMNS[name])
            rows = pq.read_table(path, columns=["id" if one == "number" else one for one in names])
            rows = rows.rename_columns(names)
            times = rows["ts"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
            pyarrow.csv.write_csv(_with(rows, "ts", times), unfinished / f"{path.stem}.csv")
        unfinished.rename(folder)
    return folder


def _with(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)


@contextmanager
def _start() -> Iterator[Peer]:
    yield _Pathway()


if __name__ == "__main__":
    serve(_start)
