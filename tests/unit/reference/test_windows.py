"""Window functions against the worked examples of Flink's documentation, and by hand."""

from __future__ import annotations

from typing import Any

from headrace.algebra.nodes import Aggregate, Plan, SessionWindow, Source, TimeWindow, WindowBounds, column
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import Duration, TimeDomain

SCHEMA = Schema((Field("item", STRING), Field("price", BIGINT), Field("bidtime", BIGINT)))
BID = Source("bid", SCHEMA, "bidtime", TimeDomain.INTEGER)
BIDS = [("C", 4, 485), ("A", 2, 487), ("D", 5, 489), ("B", 3, 491), ("E", 1, 493), ("F", 6, 497)]
"""Flink, "Windowing table-valued functions": bids of 2020-04-15, 8:05 to 8:17, in minutes of the day."""


def history(plan: Plan, rows: list[tuple[Any, ...]] = BIDS) -> list[tuple[Any, ...]]:
    elements = [(row, row[-1], row[-1] + 1, 1) for row in rows]
    return [(*row, ts, te) for row, ts, te in evaluate(plan, {"bid": Stream(SCHEMA.names, elements)})]


def sums(windows: Plan) -> Plan:
    keys = [(f"k{place}", column(windows, place)) for place in (3, 4)]
    total = resolve_aggregate("SUM", column(windows, 1))
    return Aggregate(windows, tuple(keys), (("total", total),))


def hop_of(size: int, slide: int, offset: int = 0) -> Plan:
    lengths = Duration(size), Duration(slide), Duration((size + offset) % slide)
    return WindowBounds(TimeWindow(BID, *lengths), *lengths)


def test_tumble() -> None:
    tumble = hop_of(10, 10)
    assert tumble.schema.names == ("item", "price", "bidtime", "window_start", "window_end")
    assert history(sums(tumble)) == [(480, 490, 11, 489, 499), (490, 500, 10, 499, 509)]


def test_hop() -> None:
    hop = hop_of(10, 5)
    assert history(sums(hop)) == [
        (480, 490, 11, 489, 494),
        (485, 495, 15, 494, 499),
        (490, 500, 10, 499, 504),
        (495, 505, 6, 504, 509),
    ]


def test_an_offset_moves_all_windows() -> None:
    moved = hop_of(10, 10, 7)
    assert history(sums(moved)) == [
        (477, 487, 4, 486, 496),
        (487, 497, 11, 496, 506),
        (497, 507, 6, 506, 516),
    ]


def test_a_slide_longer_than_the_size_passes_rows_over() -> None:
    sampled = hop_of(2, 10)
    rows = [("x", 1, 489), ("y", 2, 490), ("z", 3, 491), ("x", 4, -10), ("x", 5, -11)]
    assert history(sampled, rows) == [
        ("x", 4, -10, -10, -8, -9, 1),
        ("y", 2, 490, 490, 492, 491, 501),
        ("z", 3, 491, 490, 492, 491, 501),
    ]


def test_sessions_end_a_gap_after_their_last_row() -> None:
    rows = [("a", 1, 0), ("b", 2, 4), ("a", 3, 9), ("a", 4, 14), ("a", 5, 14), ("b", 6, 30)]
    sessions = SessionWindow(BID, Duration(5))
    assert history(sessions, rows) == [
        ("a", 1, 0, 0, 9, 8, 13),
        ("b", 2, 4, 0, 9, 8, 13),
        ("a", 3, 9, 9, 14, 13, 18),
        ("a", 4, 14, 14, 19, 18, 23),
        ("a", 5, 14, 14, 19, 18, 23),
        ("b", 6, 30, 30, 35, 34, 39),
    ]
    by_item = SessionWindow(BID, Duration(10), (column(BID, 0),))
    assert [row[:5] for row in history(by_item, rows)] == [
        ("b", 2, 4, 4, 14),
        ("a", 1, 0, 0, 24),
        ("a", 3, 9, 0, 24),
        ("a", 4, 14, 0, 24),
        ("a", 5, 14, 0, 24),
        ("b", 6, 30, 30, 40),
    ]


def test_a_session_of_a_longest_length_ends_and_the_next_row_begins_another_one() -> None:
    rows = [("a", 1, 0), ("a", 2, 4), ("a", 3, 8), ("a", 4, 11), ("a", 5, 12), ("a", 6, 20)]
    longest = SessionWindow(BID, Duration(5), (), Duration(12))
    assert history(longest, rows) == [
        ("a", 1, 0, 0, 12, 11, 16),
        ("a", 2, 4, 0, 12, 11, 16),
        ("a", 3, 8, 0, 12, 11, 16),
        ("a", 4, 11, 0, 12, 11, 16),
        ("a", 5, 12, 12, 17, 16, 21),
        ("a", 6, 20, 20, 25, 24, 29),
    ]
