"""The queries of other systems' users, in their spelling.

Windows are written as for Flink and Spark: by TUMBLE and HOP, grouped by their ends, and frames by OVER.
`bid` and `auction` are those of NEXMark; `few` has bids on a hundred auctions that stay. Needs the standard
library alone: the very same texts run on Flink.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
        "SELECT auction, price, seller "
        "FROM bid [NOW], auction WINDOW(RANGE 60 SECONDS) a WHERE auction = a.id",
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
