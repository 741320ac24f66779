"""DuckDB among the peers: the queries over Parquet files as a batch, each answered from scratch.

A batch knows all rows before it answers, keeps no state and never has to wait, so it is the speed to look
up to, not a system for the same purpose. Results are discarded by `EXPLAIN ANALYZE`, which computes all of
them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import duckdb

from peer import CORES, serve

_FRAME: Final = (
    "(PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL 60 SECONDS PRECEDING AND CURRENT ROW)"
)
_TEN: Final = "time_bucket(INTERVAL 10 SECONDS, ts)"
_WINDOW: Final = f"{_TEN} AS window_start, {_TEN} + INTERVAL 10 SECONDS AS window_end"


def _counts(number: int, places: range) -> tuple[str, ...]:
    return tuple(
        f"SELECT {_WINDOW}, count(*) AS n FROM bid WHERE auction % {number} = {place} GROUP BY ALL"
        for place in places
    )


TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "q0": ("SELECT * FROM bid",),
    "project": ("SELECT auction, price * 0.908 AS euro, bidder FROM bid WHERE price > 100",),
    "over": (
        f"SELECT auction, bidder, price, sum(price) OVER w, count(*) OVER w FROM bid WINDOW w AS {_FRAME}",
    ),
    "join": (
        "SELECT b.auction, b.price, a.seller FROM bid b, auction a "
        "WHERE b.auction = a.id AND b.ts >= a.ts AND b.ts < a.ts + INTERVAL 60 SECONDS",
    ),
    "tumbling": (f"SELECT auction, {_WINDOW}, count(*), sum(price), max(price) FROM bid GROUP BY ALL",),
    "distinct": (f"SELECT {_WINDOW}, count(DISTINCT bidder) FROM bid GROUP BY ALL",),
    "hop": (
        # Each second is added up once, and not for each of its 60 windows.
        "WITH seconds AS (SELECT auction, time_bucket(INTERVAL 1 SECOND, ts) AS second, "
        "count(*) AS n, sum(price) AS total FROM bid GROUP BY ALL) "
        "SELECT auction, second - i * INTERVAL 1 SECOND AS window_start, "
        "window_start + INTERVAL 60 SECONDS AS window_end, sum(n), sum(total) "
        "FROM seconds, range(60) AS starts(i) GROUP BY ALL",
    ),
    "1 count": _counts(2, range(1, 2)),
    "10 counts": _counts(10, range(10)),
    "100 counts": _counts(100, range(100)),
}
"""The queries, by name."""


class DuckDB:
    """A database in memory, on two cores."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": CORES})
        self._connection.execute("SET TimeZone = 'UTC'")

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def run(self, query: str, data: Path) -> float:
        self._define(data)
        begun = time.perf_counter()
        for text in TEXTS[query]:
            self._connection.execute(f"EXPLAIN ANALYZE {text}").fetchall()
        return time.perf_counter() - begun

    def save(self, query: str, data: Path, answer: Path) -> None:
        self._define(data)
        for number, text in enumerate(TEXTS[query]):
            self._connection.execute(f"COPY ({text}) TO '{answer}/{number}.parquet'")

    def count(self, query: str, data: Path) -> int:
        """How many rows the results have."""
        self._define(data)
        found = (self._connection.execute(f"SELECT count(*) FROM ({text})") for text in TEXTS[query])
        return sum(one.fetchall()[0][0] for one in found)

    def _define(self, data: Path) -> None:
        for table in ("bid", "auction"):
            self._connection.execute(
                f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM read_parquet('{data}/{table}/*.parquet')"
            )


if __name__ == "__main__":
    serve(DuckDB)
