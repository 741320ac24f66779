"""EXPLAIN COST, and what it expects beside what a run keeps and yields."""

from __future__ import annotations

import re
from statistics import median
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError

STREAM = "CREATE STREAM {} FROM nexmark OPTIONS (events=150000, seed={}, rate=1000) TIMESTAMP BY ts"
QUERIES = {
    "sliding": "SELECT auction, COUNT(*) AS n FROM bid [RANGE 20 SECONDS] GROUP BY auction",
    "hop": "SELECT bidder, SUM(price) AS s FROM bid [RANGE 30 SECONDS SLIDE 3 SECONDS] GROUP BY bidder",
    "filtered": "SELECT COUNT(*) AS n FROM bid [RANGE 10 SECONDS] WHERE price > 500",
    "join": "SELECT price, seller FROM bid, auction [RANGE 60 SECONDS] a WHERE auction = a.id",
    "rows": "SELECT auction, price FROM bid [PARTITION BY auction ROWS 3]",
    "distinct": "SELECT DISTINCT bidder FROM bid [RANGE 20 SECONDS]",
    "values": "SELECT MEDIAN(price) AS m FROM bid [RANGE 20 SECONDS]",
    "over": "SELECT price, SUM(price) OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '20' "
    "SECONDS PRECEDING AND CURRENT ROW) AS s FROM bid",
    "left join": "SELECT seller, COUNT(*) AS n FROM bid b LEFT JOIN auction [RANGE 60 SECONDS] a "
    "ON b.auction = a.id GROUP BY seller",
    "top": "SELECT * FROM (SELECT price, bidder, ROW_NUMBER() OVER (PARTITION BY bidder ORDER BY price DESC) "
    "AS place FROM bid [RANGE 30 SECONDS]) WHERE place <= 3",
    "for ever": "SELECT auction, MIN(price) AS least, MAX(price) AS most, COUNT(DISTINCT bidder) FILTER "
    "(WHERE price > 500) AS bidders FROM bid [RANGE UNBOUNDED] GROUP BY auction",
    "of what changes": "SELECT AVG(n) AS n FROM "
    "(SELECT auction, COUNT(*) AS n FROM bid [RANGE UNBOUNDED] GROUP BY auction)",
    "join of sums": "SELECT seller, n FROM auction a, (SELECT auction, COUNT(*) AS n FROM bid "
    "[RANGE 20 SECONDS] GROUP BY auction) c WHERE a.id = c.auction",
    "top for ever": "SELECT * FROM (SELECT price, auction, ROW_NUMBER() OVER (PARTITION BY auction "
    "ORDER BY price DESC) AS place FROM bid [RANGE UNBOUNDED]) WHERE place <= 3",
    "session": "SELECT bidder, COUNT(*) AS n FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, "
    "DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY bidder, window_start, window_end",
}


def kept(text: str) -> float:
    """The rows of state of a query between epochs, half-way through its input."""
    seen: list[int] = []
    with hr.connect(runner="inline", dialect="pipes", epoch_rows=5_000, keep_results=False) as db:
        db.execute(f"{STREAM.format('bid', 7)}; {STREAM.format('auction', 7)}")
        db.query(text)
        db.run(lambda progress: seen.append(sum(part.state_rows for part in db.status.operators)))
    return median(seen[len(seen) // 2 : -1])


@pytest.mark.parametrize("name", QUERIES)
def test_the_rows_that_a_query_keeps_are_expected_within_a_factor_of_two(name: str) -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        # Not the rows that are run.
        db.execute(f"{STREAM.format('bid', 1)}; {STREAM.format('auction', 1)}")
        text = str(db.execute(f"EXPLAIN COST {QUERIES[name]}")[0])
    expected = float(text.splitlines()[-1].split()[2].replace(",", ""))
    assert 0.5 < expected / kept(QUERIES[name]) < 2


HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
TUMBLE = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
RATES = {
    "session": QUERIES["session"],
    "counts of hops": f"SELECT auction, COUNT(*) AS n FROM {HOP} GROUP BY auction, window_start, window_end",
    "groups of one window": f"""
        SELECT b.auction, b.n
        FROM (SELECT auction, COUNT(*) AS n, window_end AS w FROM {TUMBLE.format("bid")}
              GROUP BY auction, window_start, window_end) b
        JOIN (SELECT id, window_end AS w FROM {TUMBLE.format("auction")}
              GROUP BY id, window_start, window_end) a
        ON a.id = b.auction AND a.w = b.w""",
    "the most of all counts": f"""
        SELECT c.auction, c.n
        FROM (SELECT auction, COUNT(*) AS n, window_end AS w FROM {HOP}
              GROUP BY auction, window_start, window_end) c
        JOIN (SELECT MAX(n) AS most, w
              FROM (SELECT COUNT(*) AS n, window_end AS w FROM {HOP}
                    GROUP BY auction, window_start, window_end)
              GROUP BY w) m
        ON c.w = m.w AND c.n >= m.most""",
}
"""Queries of whose results the rate is expected within a factor of two."""


def yields(text: str) -> float:
    """The rows of a query's result per second of application time, in the second half of its input."""
    seen: list[tuple[int, int]] = []

    def look(_: object) -> None:
        operators = db.status.operators
        newest = max(part.last or 0 for part in operators if not part.inputs)
        result = db.status.graph.node_of(db.status.graph.outputs[0][1])
        seen.append((newest, operators[result].rows_out))

    with hr.connect(runner="inline", dialect="pipes", epoch_rows=3_000, keep_results=False) as db:
        db.execute(f"{STREAM.format('bid', 7)}; {STREAM.format('auction', 7)}")
        db.query(text)
        db.run(look)
    (begin, before), (end, after) = seen[len(seen) // 2], seen[-2]
    return (after - before) / (end - begin) * 1e6


@pytest.mark.parametrize("name", RATES)
def test_the_rates_of_results_are_expected_within_a_factor_of_two(name: str) -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        # Not the rows that are run.
        db.execute(f"{STREAM.format('bid', 1)}; {STREAM.format('auction', 1)}")
        text = str(db.execute(f"EXPLAIN COST {RATES[name]}")[0])
    rates = re.findall(r"^ +([\d.,e+-]+) rows/s", text, re.MULTILINE)
    assert 0.5 < float(rates[-1].replace(",", "")) / yields(RATES[name]) < 2


TAKES = re.compile(r"; takes [\d.,e-]+ s$")


def explained(rows: Any, query: str) -> list[str]:
    """The lines of a query that is explained, without the seconds of operators."""
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", rows, timestamp="ts")
        lines = str(db.execute(f"EXPLAIN COST {query}")[0]).splitlines()
    assert all(TAKES.search(line) for line in lines if line.startswith("       "))
    return [TAKES.sub("", line) for line in lines]


def test_the_seconds_of_operators_add_up_and_are_a_part_of_a_processor() -> None:
    query = "SELECT auction, COUNT(*) AS n FROM bid [RANGE 20 SECONDS] GROUP BY auction"
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.execute(STREAM.format("bid", 1))
        text = str(db.execute(f"EXPLAIN COST {query}")[0])
    operators = [float(part) for part in re.findall(r"; takes ([\d.e-]+) s$", text, re.MULTILINE)]
    whole = re.search(
        r"^takes about ([\d.]+) s of processor time for a million rows that it reads: "
        r"([\d.]+) % of a processor at 920 rows/s$",
        text,
        re.MULTILINE,
    )
    assert whole is not None
    assert len(operators) == 3
    assert sum(operators) == pytest.approx(float(whole[1]), rel=0.02)
    assert float(whole[2]) == pytest.approx(float(whole[1]) * 920 / 1e6 * 100, rel=0.02)


def test_smaller_epochs_take_more() -> None:
    query = "EXPLAIN COST SELECT auction, COUNT(*) AS n FROM bid [RANGE 20 SECONDS] GROUP BY auction"

    def taken(epoch_rows: int | None) -> float:
        with hr.connect(runner="inline", dialect="pipes", epoch_rows=epoch_rows) as db:
            db.execute(STREAM.format("bid", 1))
            lines = str(db.execute(query)[0]).splitlines()
        return float(lines[-2].split()[2])

    assert taken(1_000) > 1.5 * taken(None)


def test_rates_lifetimes_and_state_follow_each_operator() -> None:
    rows = pa.table({"k": [place % 4 for place in range(1_000)], "ts": [2 * place for place in range(1_000)]})
    lines = explained(rows, "SELECT k, COUNT(*) AS n FROM s [RANGE 100] WHERE k < 2 GROUP BY k")
    assert lines == [
        "level 0",
        "  #0 Source s (k) by ts",
        "       0.5 rows per instant",
        "  #1 Filter k < 2  <- #0",
        "       0.25 rows per instant",
        "  #2 TimeWindow RANGE 100  <- #1",
        "       0.25 rows per instant, each for 100",
        "level 1",
        "  #3 Aggregate BY k: COUNT(*) AS n  <- #2 by hash of k  [state]",
        "       0.5 rows per instant, each for 4; keeps 27 rows",
        "result <- #3",
        lines[-2],
        "keeps about 27 rows in all",
    ]
    assert re.fullmatch(r"takes about [\d.]+ s of processor time for a million rows that it reads", lines[-2])


def test_a_relation_is_shown_by_its_rows_not_by_a_rate() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.stream("s", pa.table({"k": [1, 2, 1], "ts": [1, 2, 3]}), timestamp="ts")
        db.relation("names", pa.table({"k": [1, 2], "name": ["a", "b"]}))
        text = str(db.execute("EXPLAIN COST SELECT name FROM s, names WHERE s.k = names.k")[0])
    relation, rows = text.splitlines()[3:5]
    assert relation == "  #1 Relation names (k, name)"
    assert rows.startswith("       2 rows; takes ")
    assert text.endswith("keeps about 2 rows in all")


@pytest.mark.parametrize("query", QUERIES.values())
def test_streams_without_rows_are_explained(query: str) -> None:
    ts = pa.array([], pa.timestamp("us", "UTC"))
    with hr.connect(runner="inline", dialect="pipes") as db:
        for name, columns in (("bid", ("auction", "price", "bidder")), ("auction", ("id", "seller"))):
            rows = pa.table({column: pa.array([], pa.int64()) for column in columns} | {"ts": ts})
            db.stream(name, rows, timestamp="ts")
        assert str(db.execute(f"EXPLAIN COST {query}")[0]).endswith("keeps about 0 rows in all")


def test_a_stream_without_rows_or_with_disorder_is_explained() -> None:
    empty = pa.table({"k": pa.array([], pa.int64()), "ts": pa.array([], pa.int64())})
    joined = "SELECT a.k FROM s [RANGE 5] a JOIN s [RANGE 5] b ON a.k = b.k"
    assert explained(empty, joined)[-1].endswith("rows in all")
    mixed = pa.table({"k": [1, 1, 1], "ts": [20, 0, 10]})
    assert explained(mixed, joined)[2] == "       0.143 rows per instant"


def test_streams_that_never_end_or_have_no_timestamps_are_refused() -> None:
    with hr.connect(runner="inline", dialect="pipes") as db:
        db.execute("CREATE STREAM p (k BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        with pytest.raises(LanguageError, match=r"1:1: .*the stream p never ends.*start the database"):
            db.execute("EXPLAIN COST SELECT k FROM p")
        db.stream("a", pa.table({"k": [1]}), timestamp=hr.ByArrival())
        with pytest.raises(LanguageError, match=r"1:1: .*the stream a is timed as its rows arrive"):
            db.execute("EXPLAIN COST SELECT k FROM a")
        with pytest.raises(LanguageError, match="write EXPLAIN COST CREATE QUERY"):
            db.execute("EXPLAIN COST CREATE OR REPLACE QUERY q AS SELECT k FROM p")
        with pytest.raises(LanguageError, match="write EXPLAIN SELECT"):
            db.execute("EXPLAIN COST CREATE STREAM q AS SELECT k FROM p")
