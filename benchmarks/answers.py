"""Whether two systems answered alike: their results compared row by row, as multisets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

_NUMBER, _TEXT, _TIME = "CAST({} AS DECIMAL(38, 6))", "{}", "epoch_us(CAST({} AS TIMESTAMPTZ))"
_AUCTION: Final = {"auction": _NUMBER}
_BID: Final = {"auction": _NUMBER, "bidder": _NUMBER, "price": _NUMBER}
_WINDOW: Final = {"window_start": _TIME, "window_end": _TIME}
_SUM: Final = {"n": _NUMBER, "total": _NUMBER}
_COUNT: Final = {**_WINDOW, "n": _NUMBER}

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "q0": {**_BID, "channel": _TEXT, "ts": _TIME},
    "project": {"auction": _NUMBER, "euro": _NUMBER, "bidder": _NUMBER},
    "over": {**_BID, "total": _NUMBER, "n": _NUMBER},
    "join": {"auction": _NUMBER, "price": _NUMBER, "seller": _NUMBER},
    "tumbling": {**_AUCTION, **_WINDOW, **_SUM, "top": _NUMBER},
    "distinct": {**_WINDOW, "bidders": _NUMBER},
    "hop": {**_AUCTION, **_WINDOW, **_SUM},
    "1 count": _COUNT,
    "10 counts": _COUNT,
    "100 counts": _COUNT,
}
"""The columns of each query's answer, and how each is made comparable."""


@dataclass(frozen=True)
class Comparison:
    """An answer beside another one.

    Attributes:
        rows: of the answer that is taken for right.
        missing: rows of it that the other one lacks.
        extra: rows that only the other one has.
    """

    rows: int
    missing: int
    extra: int

    @property
    def equal(self) -> bool:
        """Whether there was something to compare, and no difference."""
        return self.rows > 0 == self.missing == self.extra


def compare(query: str, right: Path, other: Path, until: int | None = None) -> Comparison:
    """Compare the answers that two systems wrote.

    Args:
        query: one of `COLUMNS`.
        right: a folder with an answer, in Parquet files or CSV files without a header.
        other: a folder with another one.
        until: if given, only windows that end by this instant are compared; microseconds since 1970.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, folder in (("a", right), ("b", other)):
            connection.execute(f"CREATE TABLE {name} AS {_select(query, folder, until)}")
        return Comparison(
            _count(connection, "SELECT * FROM a"),
            _count(connection, "SELECT * FROM a EXCEPT ALL SELECT * FROM b"),
            _count(connection, "SELECT * FROM b EXCEPT ALL SELECT * FROM a"),
        )


def _select(query: str, folder: Path, until: int | None) -> str:
    columns = COLUMNS[query]
    values = ", ".join(f"{made.format(name)} AS {name}" for name, made in columns.items())
    files = sorted(folder.rglob("*.parquet"))
    read = f"read_parquet({[*map(str, files)]})"
    if not files:
        found = [str(path) for path in sorted(folder.rglob("part-*"))]
        read = f"read_csv({found}, header = false, all_varchar = true)"
    wanted = "" if until is None or "window_end" not in columns else f"WHERE window_end <= {until}"
    return f"SELECT * FROM (SELECT {values} FROM {read} AS rows({', '.join(columns)})) {wanted}"


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM ({query})").fetchone()
    assert found is not None
    return int(found[0])
