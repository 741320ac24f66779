"""What other systems write and we understand: each text has the plan of the one beside it."""

from __future__ import annotations

import pytest

from auctions import define
from headrace.algebra.nodes import Plan
from headrace.language.catalog import Catalog

STREAMS = """
    CREATE STREAM bid (ts TIMESTAMP, item STRING, price BIGINT, bidder BIGINT)
        FROM csv OPTIONS (path 'bids.csv') TIMESTAMP BY ts;
    CREATE STREAM tick (at BIGINT, id BIGINT) FROM csv OPTIONS (path 'ticks.csv') TIMESTAMP BY at;
"""


def plan_of(text: str) -> Plan:
    """The plan of a query over the streams above."""
    return define(f"{STREAMS} {text}", Catalog())[1][0]


_HOUR = "INTERVAL '1' HOUR"
_TUMBLE = f"TUMBLE(TABLE bid, DESCRIPTOR(ts), {_HOUR})"
_BY = "GROUP BY window_start, window_end"

WINDOWS = [
    (
        f"SELECT item, TUMBLE_START(ts, {_HOUR}) AS s, TUMBLE_END(ts, {_HOUR}) AS e, COUNT(*) AS n "
        f"FROM bid WHERE price > 5 GROUP BY item, TUMBLE(ts, {_HOUR}) HAVING COUNT(*) > 1",
        f"SELECT item, window_start AS s, window_end AS e, COUNT(*) AS n FROM {_TUMBLE} "
        "WHERE price > 5 GROUP BY item, window_start, window_end HAVING COUNT(*) > 1",
    ),
    (
        "SELECT COUNT(*) AS n FROM bid b GROUP BY HOP(b.ts, INTERVAL '5' MINUTES, INTERVAL '1' HOUR), b.item",
        "SELECT COUNT(*) AS n FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '1' HOUR) b "
        "GROUP BY b.item, window_start, window_end",
    ),
    (
        "SELECT window.start, window.end, MAX(window.end) AS m FROM bid GROUP BY window(ts, '1 hour')",
        f"SELECT window_start AS start, window_end AS `end`, MAX(window_end) AS m FROM {_TUMBLE} {_BY}",
    ),
    (
        "SELECT COUNT(*) AS n FROM bid GROUP BY window(ts, '60 minutes', '5 minutes', '2 minutes')",
        "SELECT COUNT(*) AS n FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES, "
        f"INTERVAL '60' MINUTES, INTERVAL '2' MINUTES) {_BY}",
    ),
    (
        f"SELECT item, SESSION_START(ts, {_HOUR}) AS s FROM bid WHERE price > 5 "
        f"GROUP BY item, SESSION(ts, {_HOUR})",
        "SELECT item, window_start AS s FROM SESSION(TABLE (SELECT * FROM bid WHERE price > 5) "
        f"PARTITION BY item, DESCRIPTOR(ts), {_HOUR}) GROUP BY item, window_start, window_end",
    ),
    (
        f"SELECT SESSION_END(ts, {_HOUR}, INTERVAL '1' DAY) AS e FROM bid "
        f"GROUP BY SESSION(ts, {_HOUR}, INTERVAL '1' DAY)",
        "SELECT window_end AS e FROM "
        f"SESSION(DATA => TABLE bid, GAP => {_HOUR}, MAX => INTERVAL '1' DAY) {_BY}",
    ),
    (
        "SELECT COUNT(*) AS n FROM bid GROUP BY session_window(ts, '1 hour', '1 day')",
        f"SELECT COUNT(*) AS n FROM SESSION(TABLE bid, DESCRIPTOR(ts), {_HOUR}, INTERVAL '1' DAY) {_BY}",
    ),
    (
        "SELECT session_window.end FROM bid GROUP BY session_window(ts, '1 hour')",
        f"SELECT window_end AS `end` FROM SESSION(TABLE bid, DESCRIPTOR(ts), {_HOUR}) {_BY}",
    ),
    (
        "SELECT TUMBLE_START(at, 10) AS s FROM tick GROUP BY TUMBLE(at, 10)",
        f"SELECT window_start AS s FROM TUMBLE(tick, DESCRIPTOR(at), 10) {_BY}",
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), WINDOWS)
def test_a_window_in_group_by_is_the_one_in_from(theirs: str, ours: str) -> None:
    assert plan_of(theirs) == plan_of(ours)


def test_a_series_is_an_array_of_its_numbers() -> None:
    array = "UNNEST(GENERATE_SERIES(1, t.id, 2)) WITH ORDINALITY AS g (i, place)"
    series = array.replace("UNNEST(", "").replace("))", ")")
    for join in (", {}", " CROSS JOIN {}", " LEFT JOIN {} ON TRUE", ", LATERAL {}"):
        texts = (f"SELECT t.id, i, place FROM tick t{join.format(table)}" for table in (series, array))
        assert len({plan_of(text) for text in texts}) == 1
