"""Aggregates over the same groups share what travels to them, and answer as if each were alone."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import headrace
from headrace.algebra.nodes import Aggregate, Plan
from headrace.elements import to_rows
from headrace.history import canonical
from headrace.lowering.lower import lower
from headrace.optimizer import optimize
from headrace.runtime.intake.streams import BoundedStream
from how_many import examples
from property.strategies import BUCKETS
from support import TableSource, check_by_reference, run_plans

CALLS = (
    "COUNT(*)", "COUNT(x)", "SUM(x)", "AVG(x)", "MIN(x)", "MAX(x)", "MAX(v)", "STDDEV(d)", "SUM(d)", "AVG(d)",
    "COUNT(d)", "CORR(d, x)", "COUNT(DISTINCT x)", "SUM(DISTINCT d)", "COUNT(*) FILTER (WHERE x > 0)",
    "SUM(d) FILTER (WHERE v = 1)", "PERCENTILE(x, 0.5)", "SUM(1 / x)", "COUNT(1 / x)", "LAST(d ORDER BY x)",
)  # fmt: skip
KEYS = ("v", "name", "v, name", "MOD(v, 2)", "1 / v", "")
WINDOWS = (
    "[RANGE 3]", "[RANGE 4 SLIDE 2]", "[RANGE 2 SLIDE 2]", "[RANGE 8 SLIDE 4]", "[RANGE 3 SLIDE 3]",
    "[RANGE 1 SLIDE 2]",
)  # fmt: skip
NAMES = ("v", "x", "d", "name", "ts")
TYPES = (pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.int64())
numbers = st.sampled_from([None, 0.0, 1.5, -2.25, 1e300, float("nan"), float("inf")])
keys = st.sampled_from([None, 0, 1, 2])
rows = st.tuples(keys, st.sampled_from([None, -1, 0, 3]), numbers, st.sampled_from([None, "", "a"]))


@st.composite
def questions(draw: st.DrawFn) -> list[tuple[str, str, list[str]]]:
    """Windows, a key and aggregates of some queries by one key; most of them read the same columns."""
    key, found = draw(st.sampled_from(KEYS)), []
    for window in draw(st.lists(st.sampled_from(WINDOWS), min_size=2, max_size=4)):
        calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=3))
        found.append((window, key, [*draw(st.sampled_from((["COUNT(x)", "COUNT(d)"], []))), *calls]))
    return found


def table_of(payloads: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*(((*row, place // 2) for place, row in enumerate(payloads))), strict=True))
    return pa.table([pa.array(*part) for part in zip(columns, TYPES, strict=True)], names=list(NAMES))


def plans_of(asked: list[tuple[str, str, list[str]]], table: pa.Table) -> dict[str, Plan]:
    plans = {}
    with headrace.connect(runner="inline") as db:
        db.stream("s", table, timestamp="ts")
        for place, (window, key, calls) in enumerate(asked):
            listed = ", ".join([*([key] if key else []), *calls])
            text = f"SELECT {listed} FROM s {window}" + (f" GROUP BY {key}" if key else "")
            plans[f"q{place}"] = optimize(db.query(text).plan)
    return plans


def answers(plans: Mapping[str, Plan], table: pa.Table, buckets: int) -> dict[str, str]:
    readers = run_plans(plans, {"s": BoundedStream(TableSource(table), "ts")}, epoch_rows=3, buckets=buckets)
    return {name: repr(to_rows(canonical(reader.elements()))) for name, reader in readers.items()}


@examples(3, 24)
@given(st.lists(rows, min_size=1, max_size=12), questions(), BUCKETS)
def test_each_query_answers_as_it_does_alone(
    payloads: list[tuple[object, ...]], asked: list[tuple[str, str, list[str]]], buckets: int
) -> None:
    table = table_of(payloads)
    plans = plans_of(asked, table)
    together = answers(plans, table, buckets)
    for name, plan in plans.items():
        assert together[name] == answers({name: plan}, table, buckets)[name], name


@example(
    payloads=[(place % 3, place, place / 4, "a") for place in range(20)],
    asked=[(window, "v", ["COUNT(x)", "MAX(x)", "AVG(d)"]) for window in WINDOWS],
    buckets=2,
)
@example(
    payloads=[(place % 3, place, place / 4, "abc"[place % 2]) for place in range(20)],
    asked=[
        (window, "v", calls)
        for window in WINDOWS
        for calls in (["SUM(x)"], ["AVG(d)"], ["COUNT(name)", "MAX(x)", "AVG(d)"], ["COUNT(*)"])
    ],
    buckets=2,
)
@examples(3, 24)
@given(st.lists(rows, min_size=1, max_size=12), questions(), BUCKETS)
def test_each_query_answers_as_the_reference(
    payloads: list[tuple[object, ...]], asked: list[tuple[str, str, list[str]]], buckets: int
) -> None:
    table = table_of(payloads)
    safe = [(window, key, [call for call in calls if "/" not in call]) for window, key, calls in asked]
    check_by_reference(plans_of([part for part in safe if "/" not in part[1]], table), table, buckets)


TABLE = table_of([(1, 1, 1.0, "a")])


def channels(*calls: str) -> int:
    """How many exchanges there are for a query with each of the aggregates, by the same key."""
    return len(lower(plans_of([("[RANGE 4 SLIDE 2]", "v", [call]) for call in calls], TABLE)).channels)


def test_sums_and_the_extremes_of_one_column_travel_together() -> None:
    assert channels("COUNT(x)", "SUM(x)", "AVG(x)", "MAX(x)", "MIN(x)", "STDDEV(x)") == 1


@pytest.mark.parametrize("other", ["MAX(ABS(x))", "COUNT(DISTINCT x)", "PERCENTILE(x, 0.5)", "SUM(1 / x)"])
def test_what_would_make_more_rows_travel_or_fail_travels_alone(other: str) -> None:
    assert channels("COUNT(x)", "MAX(x)", other) == 2


def panes(*asked: tuple[str, str, str]) -> list[tuple[int, int]]:
    """How long panes are, and how many exchanges share each, for queries with a window, a key and a call."""
    graph = lower(plans_of([(window, key, [call]) for window, key, call in asked], TABLE))
    return [(part.length, len(part.members)) for part in graph.panes]


def test_windows_that_begin_and_end_with_panes_of_the_shortest_share_them() -> None:
    windows = [f"[RANGE {size}]" for size in ("4 SLIDE 4", "2 SLIDE 2", "12 SLIDE 2", "3 SLIDE 3", "6")]
    assert panes(*((window, "v", "SUM(x)") for window in windows)) == [(2, 3)]
    assert panes(*((window, "v", call) for window in windows for call in ("SUM(x)", "MAX(x)"))) == [(2, 3)]


def test_windows_share_panes_though_their_queries_read_other_columns() -> None:
    short, long = "[RANGE 2 SLIDE 2]", "[RANGE 4 SLIDE 4]"
    assert panes((short, "v", "COUNT(*)"), (long, "v", "SUM(x)")) == [(2, 2)]
    assert panes((short, "v", "SUM(x)"), (long, "v", "SUM(d)")) == []
    read = plans_of([(short, "v", ["SUM(x)"]), (long, "v", ["SUM(d)"]), (long, "v", ["CORR(d, x)"])], TABLE)
    (found,) = lower(read).panes
    assert len(found.members) == 3
    assert found.plan.input.schema.names == ("v", "x", "d")


@pytest.mark.parametrize(
    ("window", "key", "call"),
    [
        ("[RANGE 4 SLIDE 4]", "name", "SUM(x)"),
        ("[RANGE 4 SLIDE 4]", "v", "COUNT(DISTINCT x)"),
        ("[RANGE 2 SLIDE 4]", "v", "SUM(x)"),
    ],
)
def test_other_keys_or_values_and_windows_with_gaps_have_no_panes(window: str, key: str, call: str) -> None:
    assert panes(("[RANGE 2 SLIDE 2]", "v", "SUM(x)"), (window, key, call)) == []


def test_rows_that_fail_are_reported_for_the_queries_of_every_window() -> None:
    def letters(*asked: tuple[str, str]) -> list[tuple[str, str]]:
        with headrace.connect(runner="inline") as db:
            db.stream("s", table_of([(0, 1, 1.0, "a"), (1, 1, 1.0, "a")]), timestamp="ts")
            for window, call in asked:
                db.query(f"SELECT 1 / v AS k, {call} AS n FROM s {window} GROUP BY 1 / v", window)
            db.run()
            found = db.dead_letters()
            return sorted(zip(found["query"].to_pylist(), found["row"].to_pylist(), strict=True))

    one, other = ("[RANGE 4 SLIDE 4]", "SUM(x)"), ("[RANGE 2 SLIDE 2]", "SUM(x)")
    assert letters(one, other) == sorted(letters(one) + letters(other))
    other = ("[RANGE 2 SLIDE 2]", "COUNT(*)")
    assert letters(one, other) == sorted(letters(one) + letters(other))


def test_what_is_kept_does_not_depend_on_what_travels_together() -> None:
    asked = [("[RANGE 4 SLIDE 2]", "v", [call]) for call in ("COUNT(x)", "SUM(x)", "AVG(x)")]
    plans = plans_of(asked, TABLE)
    together = {node.identity for node in lower(plans).nodes if isinstance(node.plan, Aggregate)}
    alone = {
        node.identity
        for name, plan in plans.items()
        for node in lower({name: plan}).nodes
        if isinstance(node.plan, Aggregate)
    }
    assert together == alone
