"""The worked examples of the PIPES thesis, as the reference and the operators must answer them.

Where the thesis prints something that its own equations contradict, the equation holds (see the comments).

Table 11.5 lists the predicates that make PIPES' sweep area into that of each operator. It is not applicable:
here a sweep area has no predicates, since it is one structure of sorted runs with an index of their ends;
`tests/unit/operators/state/test_sweep_area.py` tests it.
"""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.algebra.kinds import SetKind
from headrace.algebra.nodes import (
    Aggregate,
    Coalesce,
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
    SetOperation,
    Source,
    Split,
    TimeWindow,
    Union,
    column,
)
from headrace.expressions.aggregates.aggregates import resolve_aggregate
from headrace.expressions.functions.functions import literal, make_case, resolve
from headrace.expressions.tree import AggregateCall, Expression
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from headrace.schema import STRING, Field, Schema
from headrace.time import INFINITY, Duration, TimeDomain
from worked.tables import LOGICAL, PHYSICAL, contents, emitted, logical, physical, same

ONE = Source("S1", Schema((Field("e", STRING),)), "t", TimeDomain.INTEGER)
TWO = Source("S2", Schema((Field("e", STRING),)), "t", TimeDomain.INTEGER)
THREE = Source("S3", Schema((Field("e", STRING),)), "t", TimeDomain.INTEGER)


def call(name: str, *arguments: Expression) -> Expression:
    return resolve(name, arguments)


def e(plan: Plan) -> Expression:
    return column(plan, 0)


def renamed(plan: Plan, **names: str) -> Plan:
    branches = tuple((call("=", e(plan), literal(old)), literal(new)) for old, new in names.items())
    return Project(plan, (("e", make_case(branches, e(plan))),))


# --- logical operators: tables 8.2 to 8.13 -----------------------------------------------------------------


def test_filter() -> None:
    plan = Filter(ONE, call("IN", e(ONE), literal("a"), literal("c")))
    assert contents(plan) == {1: "c", 2: "a a a", 3: "a a a", 4: "a a a c"}


def test_map() -> None:
    plan = renamed(ONE, b="x")
    assert contents(plan) == {1: "c", 2: "a a a", 3: "a a a x", 4: "a a a c x", 5: "x x", 6: "x x"}


def test_union() -> None:
    assert contents(Union((ONE, TWO))) == {
        1: "c",
        2: "a a a b b",
        3: "a a a b b b",
        4: "a a a a b b c c",
        5: "a a b b b",
        6: "a b b c c",
    }


def test_product() -> None:
    # The thesis prints (ab)^2 at 2 and (ab)(bb)^3 at 3, against its equation 8.4.
    plan = Join(ONE, TWO, (), None, ("x", "y"))
    assert {at: Counter(content.split()) for at, content in contents(plan).items()} == {
        2: Counter(ab=6),
        3: Counter(ab=6, bb=2),
        4: Counter(aa=3, ab=3, ac=3, ba=1, bb=1, bc=1, ca=1, cb=1, cc=1),
        5: Counter(ba=4, bb=2),
        6: Counter(ba=2, bc=4),
    }


def test_distinct() -> None:
    assert contents(Distinct(ONE)) == {1: "c", 2: "a", 3: "a b", 4: "a b c", 5: "b", 6: "b"}


def test_difference() -> None:
    plan = SetOperation(ONE, TWO, SetKind.EXCEPT_ALL)
    assert contents(plan) == {1: "c", 2: "a a a", 3: "a a a", 4: "a a", 5: "b", 6: "b b"}


DERIVED = {
    # Computed by hand from equations 8.11 to 8.14; the thesis has no tables of them.
    SetKind.INTERSECT_ALL: {3: "b", 4: "a b c", 5: "b"},
    SetKind.UNION_MAX: {1: "c", 2: "a a a b b", 3: "a a a b b", 4: "a a a b c", 5: "a a b b", 6: "a b b c c"},
    SetKind.EXCEPT_STRICT: {1: "c", 2: "a a a", 3: "a a a", 6: "b b"},
    SetKind.INTERSECT_STRICT: {3: "b", 4: "a a a b c", 5: "b b"},
    SetKind.UNION: {1: "c", 2: "a b", 3: "a b", 4: "a b c", 5: "a b", 6: "a b c"},
    SetKind.INTERSECT: {3: "b", 4: "a b c", 5: "b"},
    SetKind.EXCEPT: {1: "c", 2: "a", 3: "a", 6: "b"},
}


@pytest.mark.parametrize("kind", DERIVED, ids=lambda kind: kind.value)
def test_derived_set_operations(kind: SetKind) -> None:
    assert contents(SetOperation(ONE, TWO, kind)) == DERIVED[kind]


@pytest.mark.parametrize("streams", [LOGICAL, PHYSICAL], ids=["logical", "physical"])
def test_the_equations_of_the_derived_set_operations(streams: dict[str, Stream]) -> None:
    def minus(left: Plan, right: Plan) -> Plan:
        return SetOperation(left, right, SetKind.EXCEPT_ALL)

    both = minus(ONE, minus(ONE, TWO))
    join = Join(ONE, Distinct(TWO), ((e(ONE), e(TWO)),), None, ("e", "f"))
    semi = Project(join, (("e", e(join)),))
    equal = {
        SetKind.INTERSECT_STRICT: semi,
        SetKind.INTERSECT_ALL: both,
        SetKind.UNION_MAX: Union((Union((minus(ONE, TWO), minus(TWO, ONE))), both)),
        SetKind.EXCEPT_STRICT: minus(ONE, semi),
        SetKind.UNION: Distinct(Union((ONE, TWO))),
        SetKind.INTERSECT: Distinct(both),
        SetKind.EXCEPT: Distinct(minus(ONE, semi)),
    }
    for kind, plan in equal.items():
        assert evaluate(SetOperation(ONE, TWO, kind), streams) == evaluate(plan, streams), kind


# Table 8.11 is printed as table 8.12; this is the stream of which tables 8.12 and 8.13 are the windows.
ROWS = logical(t1="c", t2="a", t3="b", t4="b", t5="a", t6="c")


def test_logical_row_windows() -> None:
    assert contents(RowWindow(THREE, 3), streams={"S3": ROWS}) == {
        1: "c", 2: "a c", 3: "a b c", 4: "a b b", 5: "a b b", 6: "a b c", 7: "a b c", 8: "a b c", 9: "a b c",
    }  # fmt: skip
    grouped = Project(THREE, (("g", call("IN", e(THREE), literal("a"), literal("c"))), ("e", e(THREE))))
    window = RowWindow(grouped, 1, keys=(column(grouped, 0),))
    latest = Project(window, (("e", column(window, 1)),))
    assert contents(latest, streams={"S3": ROWS}) == {
        1: "c", 2: "a", 3: "a b", 4: "a b", 5: "a b", 6: "b c", 7: "b c", 8: "b c", 9: "b c",
    }  # fmt: skip


def test_scalar_aggregation() -> None:
    # SUM over letters, table 8.9, as a sum over their places in the alphabet.
    places = [(call("=", e(ONE), literal(letter)), literal(place)) for place, letter in enumerate("abc", 1)]
    total = resolve_aggregate("SUM", make_case(tuple(places), None))
    plan = Aggregate(ONE, (), (("total", total), ("n", resolve_aggregate("COUNT", None))))
    assert contents(plan) == {1: "31", 2: "33", 3: "54", 4: "85", 5: "42", 6: "42"}


def test_grouping() -> None:
    # Table 8.8: the substreams of the groups 1 (a), 2 (b) and 3 (all others), by equations 8.7 and 8.8.
    branches = tuple(
        (call("=", e(ONE), literal(letter)), literal(group)) for letter, group in (("a", 1), ("b", 2))
    )
    group = make_case(branches, literal(3))
    substreams = {place: Filter(ONE, call("=", group, literal(place))) for place in (1, 2, 3)}
    assert {place: contents(plan) for place, plan in substreams.items()} == {
        1: {2: "a a a", 3: "a a a", 4: "a a a"},
        2: {3: "b", 4: "b", 5: "b b", 6: "b b"},
        3: {1: "c", 4: "c"},
    }
    # Equation 8.15: grouping with aggregation is the union of the substreams' aggregates.
    count = (("n", resolve_aggregate("COUNT", None)),)
    grouped = Aggregate(ONE, (("group", group),), count)
    assert contents(grouped) == {1: "31", 2: "13", 3: "13 21", 4: "13 21 31", 5: "22", 6: "22"}
    apart = Union(
        tuple(Aggregate(substream, (("group", group),), count) for substream in substreams.values())
    )
    assert contents(apart) == contents(grouped)


def test_an_empty_content_has_no_aggregate() -> None:
    plan = Aggregate(Filter(ONE, literal(False)), (), (("n", resolve_aggregate("COUNT", None)),))
    assert contents(plan) == {}


def test_time_window() -> None:
    assert contents(TimeWindow(ONE, Duration(2))) == {
        1: "c",
        2: "a a a c",
        3: "a a a a a a b",
        4: "a a a a a a b b c",
        5: "a a a b b b c",
        6: "b b b b",
        7: "b b",
    }


# --- physical operators: tables 11.2 to 11.11, 17.1, 17.3 and 17.4 -----------------------------------------


def test_filter_of_elements() -> None:
    same(Filter(ONE, call("=", e(ONE), literal("a"))), "a[5,11) a[9,10)")


def test_map_of_elements() -> None:
    same(renamed(ONE, a="x", b="y"), "c[1,8) x[5,11) d[6,14) x[9,10) y[12,17)")


def test_union_of_elements() -> None:
    same(
        Union((ONE, TWO)),
        "c[1,8) b[1,7) d[3,9) a[4,5) a[5,11) d[6,14) b[7,15) a[9,10) e[10,18) b[12,17)",
    )


def test_join_of_elements() -> None:
    join = Join(ONE, TWO, ((e(ONE), e(TWO)),), None, ("x", "y"))
    same(Project(join, (("e", e(join)),)), "d[6,9) b[12,15)")


def test_join_by_residual() -> None:
    names = Join(ONE, TWO, (), None, ("x", "y"))
    join = Join(ONE, TWO, (), call("=", column(names, 0), column(names, 1)), ("x", "y"))
    same(Project(join, (("e", e(join)),)), "d[6,9) b[12,15)")


def test_distinct_of_elements() -> None:
    same(Distinct(ONE), "c[1,8) a[5,11) d[6,14) b[12,17)")


def test_distinct_remembers_what_a_longer_element_covers() -> None:
    # With the replacement that algorithm 7 prints, x[6,9) would come out again.
    same(Distinct(ONE), "x[1,12)", {"S1": physical("x[1,10) x[5,12) x[6,9)")})


def test_difference_of_elements() -> None:
    plan = SetOperation(ONE, TWO, SetKind.EXCEPT_ALL)
    same(plan, "c[1,8) a[5,11) d[9,14) a[9,10) b[15,17)")


def test_grouping_with_count() -> None:
    plan = Aggregate(ONE, (("e", e(ONE)),), (("n", resolve_aggregate("COUNT", None)),))
    same(plan, "c1[1,8) a1[5,9) d1[6,14) a2[9,10) a1[10,11) b1[12,17)")


def test_scalar_aggregation_of_elements() -> None:
    # Table 11.9 lists which elements are summed; their number and their extremes tell that as well.
    calls: list[AggregateCall] = [
        resolve_aggregate("MIN", e(ONE)),
        resolve_aggregate("MAX", e(ONE)),
        resolve_aggregate("COUNT", None),
    ]
    plan = Aggregate(ONE, (), tuple((f"c{place}", made) for place, made in enumerate(calls)))
    same(
        plan,
        "cc1[1,5) ac2[5,6) ad3[6,8) ad2[8,9) ad3[9,10) ad2[10,11) dd1[11,12) bd2[12,14) bb1[14,17)",
    )


def test_time_window_of_chronons() -> None:
    same(TimeWindow(THREE, Duration(50)), "b[1,51) a[3,53) c[4,54) a[7,57) b[10,60)")


def test_unbounded_window() -> None:
    same(TimeWindow(THREE, Duration(INFINITY)), "b[1,oo) a[3,oo) c[4,oo) a[7,oo) b[10,oo)")


def test_sliding_window() -> None:
    plan = TimeWindow(THREE, Duration(50), Duration(10))
    same(plan, "b[9,59) a[9,59) c[9,59) a[9,59) b[19,69)")


def test_a_window_that_slides_further_than_it_reaches_misses_elements() -> None:
    # At 4 and 9 it holds the two instants up to there: 3 and 4, 8 and 9.
    plan = TimeWindow(THREE, Duration(2), Duration(5))
    same(plan, "a[4,9) c[4,9)")


def test_row_window() -> None:
    same(RowWindow(THREE, 1), "b[1,3) a[3,4) c[4,7) a[7,10) b[10,oo)")


def test_partitioned_row_window() -> None:
    # Table 11.13 names its input S1, but shows S3.
    plan = RowWindow(THREE, 1, keys=(column(THREE, 0),))
    same(plan, "b[1,10) a[3,7) c[4,oo) a[7,oo) b[10,oo)")


def test_sliding_row_window() -> None:
    same(RowWindow(THREE, 2, 2), "b[3,7) a[3,7) c[7,oo) a[7,oo)")


def test_a_row_window_that_slides_further_than_it_reaches_misses_rows() -> None:
    same(RowWindow(THREE, 1, 2), "a[3,7) a[7,oo)")


def test_a_row_window_orders_the_rows_of_one_instant_by_payload() -> None:
    streams = {"S3": Stream(("e",), [((e,), 1, 2, 1) for e in ("c", None, "a", "b", "a")])}
    same(RowWindow(THREE, 2), "b[1,oo) c[1,oo)", streams)
    same(RowWindow(THREE, 3, 3), "None[1,oo) a[1,oo) a[1,oo)", streams)


def test_split() -> None:
    # Table 11.14: what is emitted are the chronons, here all of them; the content stays what it is.
    pieces = [
        (letter, at)
        for letter, start, end in (("c", 1, 8), ("a", 5, 11), ("d", 6, 14), ("a", 9, 10), ("b", 12, 17))
        for at in range(start, end)
    ]
    printed = "c1 c2 c3 c4 c5 a5 c6 a6 d6"
    assert sorted(f"{letter}{at}" for letter, at in pieces if at <= 6) == sorted(printed.split())
    for cuts in (1, 2):
        found = sorted(emitted(Split(ONE), PHYSICAL, cuts))
        assert found == sorted(((letter,), at, at + 1, 1) for letter, at in pieces)
    same(Split(ONE), "c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)")
    streams = {"S1": physical("c[1,4) a[3,5)")}
    same(TimeWindow(Split(ONE), Duration(2)), "c[1,3) c[2,4) c[3,5) a[3,5) a[4,6)", streams)
    same(RowWindow(Split(ONE), 1), "c[1,2) c[2,3) c[3,4) a[4,oo)", streams)


def test_coalesce() -> None:
    # Table 11.15.
    same(Coalesce(TWO), "b[1,15) d[3,9) a[4,5) e[10,18)")


def test_granularity() -> None:
    # Algorithm 24: d[6,14) and b[12,17) start on a multiple of 6, c[1,8) and a[5,11) reach one.
    same(Granularity(ONE, Duration(6)), "c[6,12) a[6,12) d[6,18) b[12,18)")
    same(Granularity(TWO, Duration(4)), "b[4,8) d[4,12) a[4,8) b[8,16) e[12,20)")


def test_granularity_of_two() -> None:
    # Table 20.1 has the content at the granules alone; that of an instant between them is its granule's.
    assert contents(Granularity(ONE, Duration(2))) == {
        2: "a a a", 3: "a a a", 4: "a a a b c", 5: "a a a b c", 6: "b b", 7: "b b",
    }  # fmt: skip
    # Table 20.2, where a[9,10) has gone.
    same(Granularity(ONE, Duration(2)), "c[2,8) a[6,12) d[6,14) b[12,18)")


def test_istream() -> None:
    same(Istream(TWO), "b[1,2) d[3,4) a[4,5) e[10,11)")


def test_dstream() -> None:
    # Table 17.4 reports deletions at the last instant of validity; CQL and Headrace one later.
    same(Dstream(TWO), "a[5,6) d[9,10) b[15,16) e[18,19)")


def test_istream_and_dstream_count_multiplicities() -> None:
    streams = {"S1": physical("a[1,9) a[3,5) a[3,7)")}
    same(Istream(ONE), "a[1,2) a[3,4) a[3,4)", streams)
    same(Dstream(ONE), "a[5,6) a[7,8) a[9,10)", streams)


def test_rstream_is_the_identity() -> None:
    same(Rstream(ONE), "c[1,8) a[5,11) d[6,14) a[9,10) b[12,17)")
