"""The queries of NEXMark as DuckDB computes them from all events at once, with the intervals of their rows.

Each text yields the columns of the answer and then from when on a row is in it and until when. Times are
BIGINTs in DuckDB, in microseconds. `instants` has every instant at which something happens, and the next one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, Final

import duckdb
import pyarrow as pa

from headrace.time import INFINITY
from headrace.workloads.nexmark.queries import SIDE_INPUT

_EVENT: Final = "ts, ts + 1"
_SLIDE: Final = 2_000_000
_SIZE: Final = 10_000_000
_SO_FAR: Final = "ts <= instant"
_TEN: Final = f"(ts // {_SIZE} + 1) * {_SIZE}"
_ENDED: Final = "finish - 1, finish"
_DAY: Final = "strftime(make_timestamp(ts), '%Y-%m-%d')"
_DAYS: Final = f"(SELECT *, {_DAY} AS day FROM instants JOIN bid ON {_SO_FAR})"
_PRICES: Final = ("price >= 0", "price < 100", "price >= 100 AND price < 10000", "price >= 10000")
_RANKS: Final = ", ".join(f"count(*) FILTER ({prices})" for prices in _PRICES)
_DISTINCT: Final = ", ".join(
    f"count(DISTINCT {counted}) FILTER ({prices})" for counted in ("bidder", "auction") for prices in _PRICES
)
_MET: Final = "auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires"

TEXTS: Final[Mapping[str, str]] = {
    "q0": f"SELECT auction, bidder, price, ts, extra, {_EVENT} FROM bid",
    "q1": f"SELECT auction, bidder, 0.908 * price, ts, extra, {_EVENT} FROM bid",
    "q2": f"SELECT auction, price, {_EVENT} FROM bid WHERE auction % 123 = 0",
    "q3": """
        SELECT name, city, state, a.id, greatest(a.ts, p.ts), greatest(a.ts, p.ts) + 1
        FROM auction a JOIN person p ON seller = p.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')""",
    "q4": f"""
        SELECT category, avg(final), instant, following
        FROM (
            SELECT instant, following, category, max(price) AS final
            FROM instants JOIN (SELECT a.id, category, price, b.ts FROM {_MET}) ON {_SO_FAR}
            GROUP BY instant, following, id, category)
        GROUP BY instant, following, category""",
    "q5": f"""
        WITH counts AS (
            SELECT auction, count(*) AS num, finish
            FROM bid, LATERAL (
                SELECT (ts // {_SLIDE} + place) * {_SLIDE} AS finish
                FROM range(1, {_SIZE // _SLIDE + 1}) windows(place))
            GROUP BY auction, finish)
        SELECT auction, num, {_ENDED}
        FROM counts QUALIFY num = max(num) OVER (PARTITION BY finish)""",
    "q6": """
        WITH sold AS (
            SELECT c.ts, c.id, a.seller, max(b.price) AS price
            FROM closed c JOIN auction a USING (id) JOIN bid b ON b.auction = c.id AND b.ts <= c.ts
            GROUP BY ALL),
        latest AS (
            SELECT instant, following, seller, price FROM instants JOIN sold ON ts <= instant
            QUALIFY row_number() OVER (PARTITION BY instant, seller ORDER BY ts DESC, id DESC) <= 10)
        SELECT seller, avg(price), instant, following FROM latest GROUP BY instant, following, seller""",
    "q7": f"""
        SELECT auction, b.price, bidder, ts, extra, greatest(ts, finish - 1), greatest(ts, finish - 1) + 1
        FROM bid b JOIN (SELECT max(price) AS price, {_TEN} AS finish FROM bid GROUP BY finish) w
            ON b.price = w.price AND ts BETWEEN finish - {_SIZE} AND finish""",
    "q8": f"""
        SELECT DISTINCT id, name, finish - {_SIZE}, {_ENDED}
        FROM (SELECT *, {_TEN} AS finish FROM person)
        JOIN (SELECT seller AS id, {_TEN} AS finish FROM auction) USING (id, finish)""",
    "q9": f"""
        SELECT id, item, description, initial_bid, reserve, opened, expires, seller, category, extra,
            auction, bidder, price, bid_ts, bid_extra, instant, following
        FROM instants JOIN (
            SELECT a.* RENAME (ts AS opened), auction, bidder, price, b.ts AS bid_ts, b.extra AS bid_extra
            FROM {_MET}) ON bid_ts <= instant
        QUALIFY row_number() OVER (
            PARTITION BY instant, id ORDER BY price DESC, bid_ts, bidder, bid_extra) = 1""",
    "q10": f"""
        SELECT auction, bidder, price, ts, extra, {_DAY}, strftime(make_timestamp(ts), '%H:%M'), {_EVENT}
        FROM bid""",
    "q11": f"""
        WITH cut AS (
            SELECT *, (ts - lag(ts) OVER (PARTITION BY bidder ORDER BY ts) < {_SIZE}) IS NOT TRUE AS begins
            FROM bid),
        numbered AS (
            SELECT *, sum(begins::INT) OVER (
                PARTITION BY bidder ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session
            FROM cut)
        SELECT bidder, count(*), min(ts), max(ts) + {_SIZE}, max(ts) + {_SIZE} - 1, max(ts) + {_SIZE}
        FROM numbered GROUP BY bidder, session""",
    "q12": f"""
        SELECT bidder, count(*), finish - {_SIZE}, finish, {_ENDED}
        FROM (SELECT bidder, {_TEN} AS finish FROM arriving) GROUP BY bidder, finish""",
    "q13": f"""
        SELECT auction, bidder, price, ts, value, {_EVENT}
        FROM bid JOIN read_csv('{SIDE_INPUT}') ON auction % 10000 = key""",
    "q14": f"""
        SELECT auction, bidder, 0.908 * price AS euro,
            CASE WHEN hour(make_timestamp(ts)) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN hour(make_timestamp(ts)) <= 6 OR hour(make_timestamp(ts)) >= 20 THEN 'nightTime'
                ELSE 'otherTime' END,
            ts, extra, len(regexp_extract_all(extra, 'c')), {_EVENT}
        FROM bid WHERE euro > 10000 AND euro < 500000""",
    "q15": f"""
        SELECT day, {_RANKS}, {_DISTINCT}, instant, following
        FROM {_DAYS} GROUP BY instant, following, day""",
    "q16": f"""
        SELECT channel, day, max(strftime(make_timestamp(ts), '%H:%M')), {_RANKS}, {_DISTINCT},
            instant, following
        FROM {_DAYS} GROUP BY instant, following, channel, day""",
    "q17": f"""
        SELECT auction, day, {_RANKS}, min(price), max(price), avg(price), sum(price), instant, following
        FROM {_DAYS} GROUP BY instant, following, auction, day""",
    "q18": f"""
        SELECT auction, bidder, price, channel, url, ts, extra, instant, following
        FROM instants JOIN bid ON {_SO_FAR}
        QUALIFY row_number() OVER (
            PARTITION BY instant, bidder, auction ORDER BY ts DESC, price, channel, url, extra) = 1""",
    "q19": f"""
        SELECT auction, bidder, price, channel, url, extra, ts, place, instant, following
        FROM (
            SELECT *, row_number() OVER (
                PARTITION BY instant, auction ORDER BY price DESC, bidder, channel, url, extra, ts) AS place
            FROM instants JOIN bid ON {_SO_FAR})
        WHERE place <= 10""",
    "q20": """
        SELECT auction, bidder, price, channel, url, b.ts, b.extra, item, description, initial_bid, reserve,
            a.ts, expires, seller, category, a.extra, greatest(a.ts, b.ts), greatest(a.ts, b.ts) + 1
        FROM bid b JOIN auction a ON auction = id WHERE category = 10""",
    "q21": f"""
        SELECT auction, bidder, price, channel, number, {_EVENT}
        FROM (
            SELECT *, coalesce(
                MAP {{'Apple': '0', 'Google': '1', 'Facebook': '2', 'Baidu': '3'}}[channel],
                nullif(split_part(split_part(url, '&channel_id=', 2), '&', 1), '')) AS number
            FROM bid)
        WHERE number IS NOT NULL""",
    "q22": f"""
        SELECT auction, bidder, price, channel, folders[1], folders[2], folders[3], {_EVENT}
        FROM (
            SELECT *, regexp_extract_all(url, '/([a-z]{{5}})/', 1) AS folders
            FROM (SELECT * REPLACE (replace(url, '/', '//') AS url) FROM bid))""",
}
"""The queries, by name."""

_INSTANTS: Final = f"""
    CREATE TABLE instants AS
    SELECT ts AS instant, lead(ts, 1, {INFINITY}) OVER (ORDER BY ts) AS following
    FROM (SELECT DISTINCT ts FROM ({{}}))"""


def expected(name: str, tables: Mapping[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    """The history of a query over these tables: its rows, each with its two instants."""
    with duckdb.connect() as database:
        for table, rows in tables.items():
            database.register(table, as_numbers(rows))
        stretches = " UNION ALL ".join(f"SELECT ts FROM {table}" for table in tables)
        database.execute(_INSTANTS.format(stretches))
        return canonical(database.execute(TEXTS[name]).fetchall())


def as_numbers(rows: pa.Table) -> pa.Table:
    """A table with its instants as microseconds."""
    columns = [
        rows[name].cast(pa.int64()) if pa.types.is_timestamp(rows[name].type) else rows[name]
        for name in rows.column_names
    ]
    return pa.table(columns, names=rows.column_names)


def canonical(pieces: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows with maximal intervals; the j-th of equal rows is there wherever at least j of them are."""
    steps: dict[tuple[Any, ...], Counter[int]] = defaultdict(Counter)
    for *row, begin, end in pieces:
        steps[tuple(row)][begin] += 1
        steps[tuple(row)][end] -= 1
    found: Counter[tuple[Any, ...]] = Counter()
    for payload, changes in steps.items():
        times = sorted(changes)
        counts = list(accumulate(changes[time] for time in times))
        for layer in range(1, max(counts) + 1):
            begin = None
            for time, count in zip(times, counts, strict=True):
                if begin is None and count >= layer:
                    begin = time
                elif begin is not None and count < layer:
                    found[*payload, begin, time] += 1
                    begin = None
    return found
