"""What queries mean: their plans, built by hand beside the text."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from auctions import CATALOG, define, plan_of
from headrace.algebra.nodes import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    Granularity,
    Istream,
    Join,
    Plan,
    Project,
    RowWindow,
    Rstream,
    Sample,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    column,
)
from headrace.algebra.properties import walk
from headrace.expressions.aggregates import aggregates
from headrace.expressions.functions import functions
from headrace.expressions.tree import Call, Cast, Column, Expression, Literal
from headrace.language.catalog import Catalog, DerivedStream, StreamInfo
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP
from headrace.time import INFINITY, Duration


def source(name: str) -> Source:
    entry = CATALOG.find(name)
    assert isinstance(entry, StreamInfo)
    return Source(entry.name, entry.schema, entry.timestamp, entry.domain)


BID, OPEN, CLOSED, TICK = (source(name) for name in ("Bid", "OpenAuction", "ClosedAuction", "tick"))
HOUR = 3_600_000_000


def named(plan: Plan, *names: str) -> tuple[tuple[str, Expression], ...]:
    """The columns of those names as items of a Project."""
    places = [plan.schema.find(name) for name in names]
    return tuple(
        (name, column(plan, place)) for name, place in zip(names, places, strict=True) if place is not None
    )


def equal(plan: Plan, left: int, right: int) -> Expression:
    return functions.resolve("=", (column(plan, left), column(plan, right)))


def expression_of(text: str) -> Expression:
    plan = plan_of(f"SELECT {text} AS x FROM tick")
    assert isinstance(plan, Project)
    return plan.items[0][1]


def test_q1_currency_conversion() -> None:
    plan = plan_of("SELECT itemID, bid_price * 0.908e0 AS euro, bidderID FROM Bid;")
    euro = functions.resolve("*", (column(BID, 1), Literal(0.908, DOUBLE)))
    assert plan == Project(BID, (("itemID", column(BID, 0)), ("euro", euro), ("bidderID", column(BID, 2))))


def test_q2_selection() -> None:
    plan = plan_of(
        "SELECT Bid.* FROM Bid WHERE itemID = 1007 OR itemID = 1020 "
        "OR itemID = 2001 OR itemID = 2019 OR itemID = 1087"
    )
    tests = [
        functions.resolve("=", (column(BID, 0), Literal(number, BIGINT)))
        for number in (1007, 1020, 2001, 2019, 1087)
    ]
    assert plan == Filter(BID, functions.resolve("OR", tuple(tests)))


def test_q3_short_auctions() -> None:
    plan = plan_of(
        "SELECT OpenAuction.* FROM OpenAuction O WINDOW(RANGE 5 HOURS), ClosedAuction C "
        "WHERE O.itemID = C.itemID;"
    )
    names = ("itemID", "sellerID", "start_price", "ts", "itemID_2", "buyerID", "ts_2")
    join = Join(TimeWindow(OPEN, Duration(5 * HOUR)), CLOSED, (), None, names)
    found = Filter(join, equal(join, 0, 4))
    assert plan == Project(found, named(found, "itemID", "sellerID", "start_price", "ts"))


def test_q5_closing_price() -> None:
    catalog, _ = define(
        """
        CREATE STREAM CurrentPrice AS
            SELECT P.itemID, P.price, O.sellerID AS sellerID
            FROM ((SELECT itemID, bid_price AS price
                    FROM Bid WINDOW(RANGE 2 DAYS))
                  UNION ALL
                (SELECT itemID, start_price AS price
                    FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
                      ClosedAuction C,
                      OpenAuction O WINDOW(RANGE 2 DAYS)
            WHERE P.itemID = C.itemID AND C.itemID = O.itemID;

        CREATE STREAM ClosingPriceStream AS
            SELECT itemID, sellerID, MAX(P.price) AS price
            FROM CurrentPrice P,
            GROUP BY P.itemID, P.sellerID;
        """,
        CATALOG,
    )
    entry = catalog.find("closingpricestream")
    assert isinstance(entry, DerivedStream)
    bids = TimeWindow(BID, Duration(48 * HOUR))
    opened = TimeWindow(OPEN, Duration(48 * HOUR))
    prices = Union(
        (
            Project(bids, (("itemID", column(bids, 0)), ("price", column(bids, 1)))),
            Project(opened, (("itemID", column(opened, 0)), ("price", column(opened, 2)))),
        )
    )
    first = Join(prices, CLOSED, (), None, ("itemID", "price", "itemID_2", "buyerID", "ts"))
    names = (*first.names, "itemID_3", "sellerID", "start_price", "ts_2")
    second = Join(first, opened, (), None, names)
    condition = functions.resolve("AND", (equal(second, 0, 2), equal(second, 2, 5)))
    found = Filter(second, condition)
    current = Project(found, named(found, "itemID", "price", "sellerID"))
    calls = (("price", aggregates.resolve_aggregate("MAX", column(current, 1))),)
    assert entry.plan == Aggregate(current, named(current, "itemID", "sellerID"), calls)


@pytest.mark.parametrize(
    ("pipes", "cql"),
    [
        ("Bid WINDOW(RANGE 10 MINUTES SLIDE 1 MINUTE) B", "Bid [RANGE 10 MINUTES SLIDE 1 MINUTE] AS B"),
        ("Bid B WINDOW(RANGE 600 SECONDS)", "Bid [Range 10 Minutes] B"),
        ("Bid WINDOW(RANGE UNBOUNDED)", "Bid [Range Unbounded]"),
        ("Bid WINDOW(NOW) B", "Bid [Now] B"),
        ("Bid", "Bid [NOW]"),
        (
            "(SELECT itemID FROM Bid) WINDOW(RANGE 5 HOURS) P",
            "(SELECT itemID FROM Bid [NOW]) [RANGE 5 HOURS] P",
        ),
    ],
)
def test_both_front_ends_give_equal_plans(pipes: str, cql: str) -> None:
    assert plan_of(f"SELECT COUNT(*) FROM {pipes}") == plan_of(f"SELECT COUNT(*) FROM {cql}")


def test_windows() -> None:
    assert plan_of("SELECT * FROM Bid") == BID
    assert plan_of("SELECT * FROM bid [NOW]") == BID
    assert plan_of("SELECT * FROM Bid [RANGE UNBOUNDED]") == TimeWindow(BID, Duration(INFINITY))
    assert plan_of("SELECT * FROM tick [RANGE 10 SLIDE 5]") == TimeWindow(TICK, Duration(10), Duration(5))
    assert plan_of("SELECT * FROM tick [RANGE 1]") == TICK
    inner = Filter(TICK, functions.resolve(">", (column(TICK, 0), Literal(1, BIGINT))))
    assert plan_of("SELECT * FROM (SELECT * FROM tick WHERE id > 1) [RANGE 3]") == TimeWindow(
        inner, Duration(3)
    )


def test_a_span_is_one_window_for_all_streams() -> None:
    text = "SELECT a.id FROM tick a JOIN tick b ON a.id = b.id, (SELECT at FROM tick) c WHERE a.id > 1"
    spanned = plan_of(f"{text} BEGIN (NOW - 10) END (NOW)")
    windowed = text.replace("tick a", "tick a [RANGE 11]").replace("tick b", "tick b [RANGE 11]")
    assert spanned == plan_of(windowed.replace(") c", ") c [RANGE 11]"))
    assert plan_of("SELECT id FROM tick BEGIN (NOW) END (NOW)") == plan_of("SELECT id FROM tick")
    timed = plan_of("SELECT * FROM Bid BEGIN (NOW - 2 SECONDS) END (NOW)")
    assert [node.size.length for node in walk(timed) if isinstance(node, TimeWindow)] == [2_000_001]


def test_arithmetic_of_queries_reads_the_first_and_asks_the_others() -> None:
    first, other = "SELECT MAX(id) {} FROM tick [RANGE 3]", "(SELECT COUNT(*) FROM tick [RANGE 5])"
    computed = plan_of(f"(({first.format('')}) - 1) / {other} + {other}")
    written = f"SELECT (f.value - 1) / {other} + {other} FROM ({first.format('AS value')}) f"
    assert computed == plan_of(written)
    assert plan_of(f"SELECT expression FROM ISTREAM({other} × 2) t").schema.names == ("expression",)


def test_the_column_that_over_orders_by_is_told_by_its_table() -> None:
    others = "FROM tick [RANGE 5] a, tick b"
    by_time = plan_of(f"SELECT b.id, ROW_NUMBER() OVER (ORDER BY b.at) AS n {others}")
    assert by_time == plan_of(
        f"SELECT b.id, COUNT(*) OVER (ORDER BY b.at ROWS UNBOUNDED PRECEDING) AS n {others}"
    )
    assert any(
        isinstance(node, TopK) for node in walk(plan_of(f"SELECT RANK() OVER (ORDER BY a.at) {others}"))
    )


def test_order_by_knows_the_windows_of_its_query() -> None:
    named_window = (
        "SELECT id FROM tick WINDOW w AS (PARTITION BY kind ORDER BY at) ORDER BY COUNT(*) OVER w LIMIT 2"
    )
    written_out = "SELECT id FROM tick ORDER BY COUNT(*) OVER (PARTITION BY kind ORDER BY at) LIMIT 2"
    assert plan_of(named_window) == plan_of(written_out)


def test_a_table_around_a_subquery_hides_the_stream_that_has_an_alias_in_it() -> None:
    subquery = "(SELECT AVG(b.price) FROM tick [RANGE 5] b WHERE b.kind = {}.kind)"
    around = plan_of(f"SELECT * FROM tick a WHERE a.price > {subquery.format('a')}")
    assert plan_of(f"SELECT * FROM tick WHERE tick.price > {subquery.format('tick')}") == around
    own = plan_of(f"SELECT * FROM tick a WHERE a.price > {subquery.format('b')}")
    assert plan_of(f"SELECT * FROM tick a WHERE a.price > {subquery.format('tick')}") == own
    two_out = (
        "SELECT 1 FROM tick [RANGE 5] c WHERE EXISTS (SELECT 1 FROM tick [RANGE 5] b WHERE b.id = {}.id)"
    )
    far = plan_of(f"SELECT * FROM tick a WHERE EXISTS ({two_out.format('a')})")
    assert plan_of(f"SELECT * FROM tick WHERE EXISTS ({two_out.format('tick')})") == far


def test_row_windows() -> None:
    assert plan_of("SELECT * FROM tick [ROWS 10]") == RowWindow(TICK, 10)
    assert plan_of("SELECT * FROM tick t WINDOW(ROWS 10 SLIDE 5)") == RowWindow(TICK, 10, 5)
    keys = (column(TICK, 1), column(TICK, 0))
    assert plan_of("SELECT * FROM tick t [PARTITION BY Kind, t.id ROWS 3]") == RowWindow(TICK, 3, 1, keys)


def test_samples_and_granules() -> None:
    sample = Sample(TICK, Decimal("2.5"), timed=True)
    assert plan_of("SELECT * FROM tick SAMPLE(2.50)") == sample
    assert plan_of("SELECT * FROM tick t [RANGE 5] SAMPLE(2.5)") == TimeWindow(sample, Duration(5))
    lasting = plan_of("SELECT * FROM (SELECT * FROM tick [RANGE 5]) SAMPLE(10)")
    assert lasting == Sample(TimeWindow(TICK, Duration(5)), Decimal(10))
    window = RowWindow(TICK, 5)
    assert plan_of("SELECT * FROM tick [ROWS 5] t GRANULARITY(10)") == Granularity(window, Duration(10))
    assert plan_of("SELECT * FROM tick GRANULARITY(10)") == Granularity(TICK, Duration(10))


def test_a_window_over_a_derived_stream_stands_over_its_instants() -> None:
    inner = TimeWindow(TICK, Duration(1000))
    assert plan_of("SELECT * FROM (SELECT * FROM tick [RANGE 1000]) [RANGE 5]") == TimeWindow(
        Split(inner), Duration(5)
    )
    assert plan_of("SELECT * FROM (SELECT * FROM tick [RANGE 1000]) [ROWS 5]") == RowWindow(Split(inner), 5)
    assert plan_of("SELECT * FROM (SELECT * FROM tick [RANGE 1000]) [NOW]") == inner


def test_the_rows_of_an_interval_are_the_same_by_partition() -> None:
    assert plan_of("SELECT * FROM tick [PARTITION BY kind RANGE 5 SLIDE 2]") == TimeWindow(
        TICK, Duration(5), Duration(2)
    )
    assert plan_of("SELECT * FROM tick [PARTITION BY kind NOW]") == TICK


def test_a_window_filter_stands_below_the_window() -> None:
    inner = Filter(TICK, functions.resolve(">", (column(TICK, 0), Literal(1, BIGINT))))
    assert plan_of("SELECT * FROM tick t [ROWS 3 WHERE t.id > 1]") == RowWindow(inner, 3)
    assert plan_of("SELECT * FROM tick [RANGE 3 PRECEDING WHERE id > 1]") == TimeWindow(inner, Duration(3))
    assert plan_of("SELECT * FROM tick [NOW WHERE id > 1]") == inner


def test_stream_operators() -> None:
    window = TimeWindow(TICK, Duration(10))
    assert plan_of("ISTREAM(SELECT * FROM tick [RANGE 10])") == Istream(window)
    assert plan_of("SELECT * FROM DSTREAM(SELECT * FROM tick [RANGE 10]) [RANGE 2]") == TimeWindow(
        Dstream(window), Duration(2)
    )
    assert plan_of("RSTREAM(tick [RANGE 10])") == Rstream(window)
    assert plan_of("SELECT * FROM ISTREAM(tick) T") == Istream(TICK)


def test_names_of_result_columns() -> None:
    plan = plan_of(
        "SELECT id, id, id + 1, UPPER(kind), CAST(price AS DOUBLE), 5, -5, CASE WHEN TRUE THEN 1 END, "
        "ID AS Id_2 FROM tick"
    )
    assert plan.schema.names == (
        "id",
        "id_3",
        "expression",
        "upper",
        "price",
        "literal",
        "literal_2",
        "case",
        "Id_2",
    )
    grouped = plan_of("SELECT kind k, COUNT(*), SUM(id), SUM(price) AS count FROM tick GROUP BY kind")
    assert grouped.schema.names == ("k", "count_2", "sum", "count")


def test_stars_and_names_in_any_case() -> None:
    assert plan_of("SELECT * FROM TICK") == TICK
    plan = plan_of("SELECT b.*, A.ID FROM tick a, Tick B")
    assert plan.schema.names == ("id", "kind", "price", "at", "id_2")
    assert [item.index for _, item in plan.items] == [4, 5, 6, 7, 0]  # type: ignore[union-attr]
    both = plan_of("SELECT * FROM tick a, tick b")
    assert isinstance(both, Join)
    assert both.names == ("id", "kind", "price", "at", "id_2", "kind_2", "price_2", "at_2")


def test_join_with_on_keeps_equalities_apart() -> None:
    plan = plan_of("SELECT * FROM tick a JOIN tick b ON b.kind = a.kind AND a.price < b.price AND a.id = 1")
    assert isinstance(plan, Join)
    assert plan.equalities == ((column(TICK, 1), column(TICK, 1)),)
    less = functions.resolve("<", (column(plan, 2), column(plan, 6)))
    one = functions.resolve("=", (column(plan, 0), Literal(1, BIGINT)))
    assert plan.residual == functions.resolve("AND", (less, one))


def test_join_of_different_types_casts_the_keys() -> None:
    plan = plan_of("SELECT * FROM tick a JOIN tick b ON a.id = b.price")
    assert isinstance(plan, Join)
    ((left, right),) = plan.equalities
    assert left == Cast(column(TICK, 0), pa.decimal128(22, 2))
    assert right == Cast(column(TICK, 2), pa.decimal128(22, 2))


def test_join_using_shows_its_columns_once() -> None:
    plan = plan_of("SELECT *, b.id AS other FROM tick a JOIN tick b USING (ID, kind) WHERE id > 3")
    assert plan.schema.names == ("id", "kind", "price", "at", "price_2", "at_2", "other")
    (join,) = (node for node in walk(plan) if isinstance(node, Join))
    assert join.equalities == tuple((column(TICK, place), column(TICK, place)) for place in (0, 1))


def test_a_limit_changes_nothing_about_whether_there_is_a_row() -> None:
    query = "SELECT * FROM tick a WHERE EXISTS (SELECT 1 FROM tick b WHERE a.id = b.price ORDER BY at{})"
    assert plan_of(query.format(" LIMIT 1")) == plan_of(query.format("")) != plan_of(query.format(" LIMIT 0"))


def test_columns_that_using_has_merged_come_first() -> None:
    for kind in ("", "LEFT", "RIGHT", "FULL"):
        plan = plan_of(
            f"SELECT * FROM (SELECT at, id FROM tick) a NATURAL {kind} JOIN (SELECT kind, id FROM tick) b"
        )
        assert plan.schema.names == ("id", "at", "kind")
    plan = plan_of(
        "SELECT * FROM tick a JOIN tick b USING (kind) CROSS JOIN (SELECT id AS other FROM tick) c"
    )
    assert plan.schema.names == ("kind", "id", "price", "at", "id_2", "price_2", "at_2", "other")


def test_commas_bind_less_than_join() -> None:
    plan = plan_of("SELECT * FROM tick a, tick b JOIN tick c ON b.id = c.id")
    assert isinstance(plan, Join)
    assert plan.left == TICK
    assert isinstance(plan.right, Join)
    assert plan.equalities == ()


def test_grouping_by_columns_aliases_ordinals_and_expressions() -> None:
    by_name = plan_of("SELECT kind, COUNT(*) AS n FROM tick GROUP BY kind")
    calls = (("n", aggregates.resolve_aggregate("COUNT", None)),)
    assert by_name == Aggregate(TICK, (("kind", column(TICK, 1)),), calls)
    assert by_name == plan_of("SELECT kind, COUNT(*) n FROM tick GROUP BY 1")
    assert by_name == plan_of("SELECT T.kind, COUNT(*) n FROM tick T GROUP BY tick.KIND")
    upper = plan_of("SELECT UPPER(kind) AS u, COUNT(*) AS n FROM tick GROUP BY u")
    assert upper == Aggregate(TICK, (("u", functions.resolve("UPPER", (column(TICK, 1),))),), calls)
    assert upper == plan_of("SELECT UPPER(kind) AS u, COUNT(*) AS n FROM tick GROUP BY UPPER(kind)")


def test_a_select_list_over_groups() -> None:
    plan = plan_of(
        "SELECT SUM(id) + COUNT(*) AS s, LOWER(kind) AS l, 7 AS c FROM tick GROUP BY LOWER(kind), price"
    )
    lower = functions.resolve("LOWER", (column(TICK, 1),))
    total, count = (
        aggregates.resolve_aggregate(name, argument)
        for name, argument in (("SUM", column(TICK, 0)), ("COUNT", None))
    )
    grouped = Aggregate(TICK, (("l", lower), ("price", column(TICK, 2))), (("sum", total), ("count", count)))
    items = (
        ("s", functions.resolve("+", (column(grouped, 2), column(grouped, 3)))),
        ("l", column(grouped, 0)),
        ("c", Literal(7, BIGINT)),
    )
    assert plan == Project(grouped, items)


def test_having_sees_aggregates_keys_and_aliases() -> None:
    plan = plan_of(
        "SELECT kind, MAX(price) AS price FROM tick GROUP BY kind HAVING price > 5 AND COUNT(*) > 1"
    )
    assert isinstance(plan, Project)
    assert isinstance(plan.input, Filter)
    grouped = plan.input.input
    assert isinstance(grouped, Aggregate)
    assert [call.function for _, call in grouped.aggregates] == ["MAX", "COUNT"]
    # The alias, not the ungrouped column of that name, as in Spark.
    assert 1 in {part.index for part in _columns(plan.input.predicate)}
    inside = plan_of("SELECT kind FROM tick GROUP BY kind HAVING MAX(price) > 5")
    assert isinstance(inside, Project)


def _columns(expression: Expression) -> list[Column]:
    match expression:
        case Column():
            return [expression]
        case Call(arguments=arguments):
            return [part for argument in arguments for part in _columns(argument)]
        case Cast(argument=argument):
            return _columns(argument)
        case _:
            return []


def test_scalar_aggregation_and_distinct() -> None:
    plan = plan_of("SELECT AVG(id) FROM tick [RANGE 5] WHERE kind = 'a'")
    assert isinstance(plan, Aggregate)
    assert plan.keys == ()
    assert plan_of("SELECT DISTINCT kind FROM tick") == Distinct(Project(TICK, named(TICK, "kind")))
    assert plan_of("SELECT DISTINCT(kind, id) FROM tick") == plan_of("SELECT DISTINCT kind, id FROM tick")
    assert plan_of("SELECT DISTINCT * FROM tick") == Distinct(TICK)


def test_unions_meet_in_common_types_under_the_first_names() -> None:
    plan = plan_of(
        "SELECT id AS x FROM tick UNION ALL SELECT price FROM tick UNION ALL SELECT NULL FROM tick"
    )
    assert isinstance(plan, Union)
    assert len(plan.inputs) == 3
    assert str(plan.schema) == "(x DECIMAL(22, 2))"
    nested = plan_of("SELECT id FROM tick UNION ALL (SELECT id FROM tick UNION ALL SELECT id FROM tick)")
    assert isinstance(nested, Union)
    assert isinstance(nested.inputs[1], Union)


def test_with() -> None:
    plan = plan_of("WITH a AS (SELECT id FROM tick), tick AS (SELECT id + 1 AS id FROM a) SELECT * FROM tick")
    first = Project(TICK, named(TICK, "id"))
    assert plan == Project(first, (("id", functions.resolve("+", (column(first, 0), Literal(1, BIGINT)))),))


def test_literals() -> None:
    assert expression_of("10") == Literal(10, BIGINT)
    assert expression_of("10L") == Literal(10, BIGINT)
    assert expression_of("-9223372036854775808") == Literal(-(2**63), BIGINT)
    assert expression_of("0.908") == Literal(Decimal("0.908"), pa.decimal128(3, 3))
    assert expression_of("-.5") == Literal(Decimal("-0.5"), pa.decimal128(1, 1))
    assert expression_of("5BD") == Literal(Decimal(5), pa.decimal128(1, 0))
    assert expression_of("1e3") == Literal(1000.0, DOUBLE)
    assert expression_of("1.5D") == Literal(1.5, DOUBLE)
    assert expression_of("TRUE") == Literal(True, BOOLEAN)
    assert expression_of("NULL") == Literal(None, pa.null())
    assert expression_of("CAST(NULL AS BIGINT)") == Literal(None, BIGINT)
    assert expression_of(r"'it''s a \'quoted\' \\ text'") == Literal("it's a 'quoted' \\ text", STRING)
    assert expression_of('"double quotes are strings"') == Literal("double quotes are strings", STRING)
    assert expression_of("DATE '2024-02-29'") == Literal(date(2024, 2, 29), DATE)
    noon = Literal(datetime(2024, 2, 29, 12, tzinfo=UTC), TIMESTAMP)
    assert expression_of("TIMESTAMP '2024-02-29 12:00:00'") == noon
    assert expression_of("TIMESTAMP '2024-02-29T13:00:00+01:00'") == noon


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("id BETWEEN 1 AND 2", "(id BETWEEN 1 AND 2)"),
        ("NOT id IN (1, 2)", "id NOT IN (1, 2)"),
        ("NOT (kind LIKE 'a%')", "kind NOT LIKE 'a%'"),
        ("NOT (id BETWEEN 1 AND 2)", "id NOT BETWEEN 1 AND 2"),
        ("id IS NOT DISTINCT FROM 5", "id <=> 5"),
        ("NOT (id <=> 5)", "id IS DISTINCT FROM 5"),
        ("(id > 1) IS TRUE", "(id > 1) <=> TRUE"),
        ("NOT ((id > 1) <=> FALSE)", "(id > 1) IS NOT FALSE"),
        ("id % 2", "MOD(id, 2)"),
        ("id != 2", "id <> 2"),
        ("id == 2", "id = 2"),
        ("CAST(id AS DOUBLE)", "id::DOUBLE"),
        ("CASE id WHEN 1 THEN 2 ELSE 3 END", "CASE WHEN id = 1 THEN 2 ELSE 3 END"),
        ("IF(id = 1, 2, 3)", "CASE WHEN id = 1 THEN 2 ELSE 3 END"),
        ("- - id", "-(-id)"),
        ("+id", "id"),
        ("1 + 2 * 3 - 4", "(1 + (2 * 3)) - 4"),
        ("id = 1 OR id = 2 AND NOT id = 3", "(id = 1) OR ((id = 2) AND (NOT (id = 3)))"),
        ("kind || 'a' || 'b'", "(kind || 'a') || 'b'"),
        ("id DIV 2", "(id) DIV (2)"),
        ("id ≤ 2 ∧ id≥-2 ∨ ¬ id ∈ (3, 4)", "id <= 2 AND id >= -2 OR NOT id IN (3, 4)"),
        ("id ≠ 2 × id", "id <> 2 * id"),
    ],
)
def test_ways_of_writing_the_same(one: str, other: str) -> None:
    assert expression_of(one) == expression_of(other)


def test_like_with_escape() -> None:
    test = expression_of("kind LIKE 'a!%' ESCAPE '!'")
    assert test == functions.resolve("LIKE", (column(TICK, 1), Literal("a!%", STRING), Literal("!", STRING)))


def test_names_that_are_words_of_the_language() -> None:
    catalog, _ = define(
        "CREATE STREAM s (`select` INT, timestamp TIMESTAMP, date DATE, `a b` INT, range INT, end_ INT) "
        "FROM json OPTIONS (path 'x') TIMESTAMP BY timestamp",
        Catalog(),
    )
    text = "SELECT `select`, timestamp, date, `A B`, s.range AS `x y` FROM s WHERE timestamp > '2024-01-01'"
    (plan,) = define(text, catalog)[1]
    assert plan.schema.names == ("select", "timestamp", "date", "a b", "x y")
