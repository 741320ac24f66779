"""Examples of the PIPES thesis that print no table: 12.1, 14.1 and 17.7. The data is ours."""

from __future__ import annotations

from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
    Distinct,
    Filter,
    Istream,
    Join,
    Plan,
    Project,
    SemiJoin,
    Source,
    TimeWindow,
    column,
)
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, resolve
from headrace.reference.contents import Stream
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain
from worked.tables import emitted, equivalent, same


def source(name: str, *columns: Field) -> Source:
    return Source(name, Schema(columns), "t", TimeDomain.INTEGER)


BID = source("Bid", Field("price", BIGINT))
PERSON = source("Person", Field("id", BIGINT), Field("name", STRING))
OPEN_AUCTION = source("OpenAuction", Field("item", BIGINT), Field("seller", BIGINT))


def chronons(*rows: tuple[object, ...]) -> list[tuple[tuple[object, ...], int, int, int]]:
    """Elements of rows whose last value is the instant."""
    return [(row, int(str(at)), int(str(at)) + 1, 1) for *payload, at in rows for row in (tuple(payload),)]


def test_a_maximum_that_stays_is_one_element() -> None:
    # Example 12.1 coalesces the maximum before the semi-join of Highest Bid, up to 10 minutes; here the
    # aggregation does it, so that a Coalesce above it finds nothing to do.
    bids = TimeWindow(BID, Duration(10))
    maximum = Aggregate(bids, (), (("price", resolve_aggregate("MAX", column(bids, 0))),))
    streams = {"Bid": Stream(("price",), chronons((5, 0), (9, 2), (3, 4), (7, 6), (8, 9), (4, 11), (6, 13)))}
    stretches = [((5,), 0, 2, 1), ((9,), 2, 12, 1), ((8,), 12, 19, 1), ((6,), 19, 23, 1)]
    assert sorted(emitted(maximum, streams), key=lambda row: row[1]) == stretches
    assert sorted(emitted(Coalesce(maximum), streams), key=lambda row: row[1]) == stretches
    for cuts in (1, 2, 7):
        equivalent(highest_bid(bids, maximum), highest_bid(bids, Coalesce(maximum)), streams, cuts)
    same(highest_bid(bids, maximum), "5[0,2) 9[2,12) 8[12,19) 6[19,23)", streams)


def highest_bid(bids: Plan, maximum: Plan) -> Plan:
    return SemiJoin(bids, maximum, ((column(bids, 0), column(maximum, 0)),), None)


def test_no_false_alarm() -> None:
    # Example 14.1: window, sum, and an alarm where the sum exceeds 6. Printed are a 7 that enters at t and a
    # 2 that leaves at t, and a correct sum of 5 in a state that is empty; but in that state there is no 2.
    # So a 5 enters here: 5 is the sum at t, and 7 that of an operator that does not wait for all of t.
    values = source("values", Field("v", BIGINT))
    window = TimeWindow(values, Duration(3))
    total = Aggregate(window, (), (("sum", resolve_aggregate("SUM", column(window, 0))),))
    alarm = Filter(total, resolve(">", (column(total, 0), literal(6))))
    streams = {"values": Stream(("v",), chronons((2, 1), (5, 4)))}
    same(total, "2[1,4) 5[4,7)", streams)
    for cuts in (1, 2):
        # Not even one that is taken back.
        assert emitted(alarm, streams, cuts) == []
    # With all of an instant's rows there it does go off.
    same(alarm, "7[4,5)", {"values": Stream(("v",), chronons((2, 2), (5, 4)))})


OPENED = ((10, 1, 4), (11, 1, 4), (12, 1, 12), (15, 3, 10), (13, 2, 16), (14, 2, 17))
"""Item, seller and instant."""


def test_new_users() -> None:
    # Example 17.7 with Person as the time-varying relation it is: a person is in it from registration on.
    # Istream(Person) holds each at that instant alone; DISTINCT lists who opens several auctions once.
    registered = Istream(PERSON)
    recent = TimeWindow(registered, Duration(12))
    join = Join(
        recent,
        OPEN_AUCTION,
        ((column(recent, 0), column(OPEN_AUCTION, 1)),),
        None,
        ("id", "name", "item", "seller"),
    )
    sellers = Distinct(Project(join, (("id", column(join, 0)), ("name", column(join, 1)))))
    streams = {
        "Person": Stream(
            ("id", "name"),
            [((1, "Ada"), 0, INFINITY, 1), ((2, "Ben"), 5, INFINITY, 1), ((3, "Cy"), 6, 9, 1)],
        ),
        # At 4 Ada opens two auctions; at 12 her twelve hours are over. Cy has left before he opens one, but
        # what counts is when he registered.
        "OpenAuction": Stream(("item", "seller"), chronons(*OPENED)),
    }
    same(sellers, "1Ada[4,5) 2Ben[16,17) 3Cy[10,11)", streams)
