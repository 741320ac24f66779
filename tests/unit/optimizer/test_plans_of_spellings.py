"""However a window is spelled, its groups are made by one and the same aggregate."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headrace
from auctions import plan_of
from headrace.algebra.nodes import Aggregate, Istream, Plan, TimeWindow, WindowBounds, WindowEvents
from headrace.algebra.properties import is_insert_only, walk
from headrace.optimizer import optimize, rewrites
from headrace.optimizer.pushdown.pull_bounds_above_aggregate import pull_bounds_above_aggregate
from headrace.optimizer.rule import everywhere

NATIVE = "SELECT kind, COUNT(*) AS n FROM tick [RANGE 6 SLIDE 3] WHERE id > 1 GROUP BY kind"
HOP = "HOP(TABLE tick, DESCRIPTOR(at), 3, 6)"
SPELLINGS = [
    f"SELECT kind, window_start, window_end, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY 1, 2, 3",
    f"SELECT window_end AS e, kind, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY e, kind",
    f"SELECT kind, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY kind",
    f"SELECT kind, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY kind, window_start, window_end",
    f"SELECT kind, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY kind, window_end HAVING window_end > 9",
    f"SELECT kind, COUNT(*) AS n FROM {HOP} WHERE id > 1 AND window_end > 9 GROUP BY kind, window_end",
    "SELECT k, e, COUNT(*) AS n "
    f"FROM (SELECT window_end AS e, kind AS k, id FROM {HOP}) WHERE id > 1 GROUP BY k, e",
    f"SELECT kind, CAST(window_end AS STRING) AS e, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY kind, e",
    f"SELECT kind, n FROM (SELECT kind, window_start, COUNT(*) AS n FROM {HOP} WHERE id > 1 GROUP BY 1, 2)",
    "SELECT kind, window_end, COUNT(*) AS n FROM HOP((SELECT * FROM tick WHERE id > 1), 3, 6) GROUP BY 1, 2",
    "SELECT kind, window_start, COUNT(*) AS n FROM HOP(tick, 3, 6, 9) WHERE id > 1 GROUP BY 1, 2",
]


def aggregates(plan: Plan) -> list[Aggregate]:
    return [node for node in walk(plan) if isinstance(node, Aggregate)]


@pytest.mark.parametrize("text", SPELLINGS)
def test_all_spellings_have_one_aggregate(text: str) -> None:
    (ours,), (native,) = (aggregates(optimize(plan_of(each))) for each in (text, NATIVE))
    assert ours.keys == native.keys or {key for _, key in ours.keys} == {key for _, key in native.keys}
    assert (ours.input, ours.aggregates) == (native.input, native.aggregates)


def test_windows_alone_are_rows_of_a_count() -> None:
    plan = optimize(plan_of(f"SELECT window_start FROM {HOP} GROUP BY window_start, window_end"))
    (groups,) = aggregates(plan)
    assert (groups.keys, plan.schema.names) == ((), ("window_start",))


def test_an_offset_is_kept_and_windows_without_bounds_to_show_are_plain() -> None:
    plan = optimize(plan_of("SELECT kind, COUNT(*) AS n FROM TUMBLE(tick, 10, 7) GROUP BY kind, window_end"))
    assert not any(isinstance(node, WindowBounds) for node in walk(plan))
    (window,) = (node for node in walk(plan) if isinstance(node, TimeWindow))
    assert (window.size.length, window.slide.length, window.offset.length) == (10, 10, 7)


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        (f"SELECT kind, window_end, COUNT(*) AS n FROM {HOP} GROUP BY 1, 2", True),
        (f"SELECT kind, window_end, COUNT(*) AS n FROM {HOP} GROUP BY 1, 2 HAVING COUNT(*) > 2", True),
        (f"SELECT kind, COUNT(*) AS n FROM {HOP} GROUP BY kind, window_end", False),
        ("SELECT kind, window_end, COUNT(*) AS n FROM TUMBLE(tick, 5) GROUP BY 1, 2", False),
    ],
)
def test_groups_of_windows_that_overlap_wait_for_the_end_that_they_show(text: str, settled: bool) -> None:
    (groups,) = aggregates(optimize(plan_of(text)))
    assert groups.settled == settled


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT window_end, MAX(window_start) FROM {HOP} GROUP BY 1",
        f"SELECT window_end, COUNT(*) FILTER (WHERE at < window_start) FROM {HOP} GROUP BY 1",
        f"SELECT window_end - at AS rest, window_end, COUNT(*) FROM {HOP} GROUP BY 1, 2",
        f"SELECT window_end, COUNT(*) FROM {HOP} WHERE window_start > at GROUP BY 1",
        f"SELECT window_end, window_end / (window_end - 9) AS x, COUNT(*) FROM {HOP} GROUP BY 1, 2",
        "SELECT window_end, COUNT(*) FROM SESSION(tick, 5) GROUP BY 1",
    ],
)
def test_bounds_that_rows_are_compared_with_stay_below(text: str) -> None:
    plan = plan_of(text)
    assert everywhere(pull_bounds_above_aggregate).rewrite(plan) is plan
    assert not any(node.settled for node in aggregates(optimize(plan)))


def test_the_rule_is_named_where_rewrites_are_shown() -> None:
    assert "pull_bounds_above_aggregate" in {name for name, _ in rewrites(plan_of(SPELLINGS[0]))}


GROUPS = f"SELECT kind, window_end, COUNT(*) AS n FROM {HOP} GROUP BY 1, 2"


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        (GROUPS, 1),
        (f"{GROUPS} HAVING COUNT(*) > 2", 1),
        ("SELECT window_start AS s, COUNT(DISTINCT id) AS n FROM TUMBLE(tick, 10, 7) GROUP BY s", 1),
        (f"SELECT window_end, MAX(n) AS most FROM ({GROUPS}) GROUP BY 1", 1),
        (f"SELECT DISTINCT window_end FROM {HOP}", 1),
        (f"SELECT a.window_end, b.n FROM ({GROUPS}) a JOIN ({GROUPS}) b ON a.kind = b.kind", 2),
        (f"SELECT a.window_end, b.kind FROM ({GROUPS}) a, (SELECT kind FROM tick [RANGE 6 SLIDE 3]) b", 1),
    ],
)
def test_rows_with_the_bounds_of_their_window_are_events_at_its_end(text: str, windows: int) -> None:
    plan = optimize(plan_of(f"ISTREAM({text})"))
    assert sum(isinstance(node, WindowEvents) for node in walk(plan)) == windows
    assert plan.is_chronon
    assert not any(isinstance(node, Istream) for node in walk(plan))


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT kind, n FROM ({GROUPS})",
        f"SELECT window_end + 1 AS e, kind, n FROM ({GROUPS})",
        "SELECT kind, COUNT(*) AS n FROM tick [RANGE 6 SLIDE 3] GROUP BY kind",
        f"SELECT a.window_end, b.kind FROM ({GROUPS}) a, (SELECT kind FROM tick [RANGE 6 SLIDE 2]) b",
        f"SELECT a.window_end, b.kind FROM ({GROUPS}) a, (SELECT kind FROM tick [RANGE 6]) b",
        "SELECT window_end, COUNT(*) AS n FROM SESSION(tick, 5) GROUP BY 1",
    ],
)
def test_other_rows_are_compared_with_those_before(text: str) -> None:
    plan = optimize(plan_of(f"ISTREAM({text})"))
    assert any(isinstance(node, Istream) for node in walk(plan))
    assert not any(isinstance(node, WindowEvents) for node in walk(plan))


def test_what_is_said_at_ends_is_never_taken_back() -> None:
    """A group by the ends that are shown, of windows that overlap or not, is of rows that stay."""
    for windows in (HOP, "TUMBLE(tick, 5)"):
        plan = optimize(plan_of(f"ISTREAM(SELECT window_end, COUNT(*) AS n FROM {windows} GROUP BY 1)"))
        assert is_insert_only(plan)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT window_end AS e, COUNT(*) AS n FROM {hop} WHERE window_end > 6 GROUP BY window_end",
        "SELECT window_end AS e, COUNT(*) AS n FROM {hop} GROUP BY window_end HAVING window_end > 6",
        "SELECT e, COUNT(*) AS n FROM (SELECT window_end AS e FROM {hop} WHERE window_start > 0) GROUP BY e",
    ],
)
def test_a_condition_on_the_bounds_leaves_out_windows(text: str) -> None:
    """Rows at 1, 4 and 7 are in the windows that end at 3 and 6, 6 and 9, 9 and 12."""
    with headrace.connect(runner="inline") as db:
        db.stream("tick", pa.table({"at": [1, 4, 7]}), timestamp="at")
        query = db.query(text.format(hop=HOP))
        db.run()
        rows = query.history().to_pylist()
    assert sorted((row["e"], row["n"]) for row in rows) == [(9, 2), (12, 1)]
