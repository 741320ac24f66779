"""What can be exchanged for what, from which instant on, and what is refused."""

from __future__ import annotations

import re
from itertools import product

import pytest

from auctions import plan_of
from headrace.algebra.bounds import settles_within
from headrace.algebra.explain import explain
from headrace.algebra.nodes import Clip, Distinct, Plan, Source, TimeWindow
from headrace.algebra.properties import output_heartbeat
from headrace.elements import from_rows, to_rows
from headrace.errors import PlanError
from headrace.operators.stateless import apply
from headrace.optimizer import optimize
from headrace.optimizer.migration import Migration, ends_by, takeover
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain

SOURCE = Source("s", Schema((Field("x", BIGINT),)), "t", TimeDomain.INTEGER)
WINDOW = TimeWindow(SOURCE, Duration(100))


def clip(plan: Clip, *elements: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """What the operator makes of elements (x, ts, te, w)."""
    batch = from_rows(plan.schema, [((x,), ts, te, w) for x, ts, te, w in elements])

    def fail(batch: object, failed: object, reason: str) -> None:
        raise AssertionError(reason)

    return [(row[0], ts, te, w) for row, ts, te, w in to_rows(apply(plan, batch, fail))]  # type: ignore[misc]


def test_an_element_is_cut_where_the_new_plan_takes_over() -> None:
    """The thesis' fork (algorithm 26), at an instant after 138."""
    old, new = Clip(WINDOW, end=139), Clip(WINDOW, 139)
    assert clip(old, (7, 50, 150, 1), (8, 20, 121, 1), (9, 140, 240, 1)) == [(7, 50, 139, 1), (8, 20, 121, 1)]
    assert clip(new, (7, 50, 150, 1), (8, 20, 121, 1), (9, 140, 240, -1)) == [
        (7, 139, 150, 1),
        (9, 140, 240, -1),
    ]


def test_the_heartbeat_is_the_largest_that_holds() -> None:
    """Of elements that start at a heartbeat or later none starts below the clip's, and one starts at it."""
    for begin, end, heartbeat in product((BEGINNING, 0, 3), (4, 6, INFINITY), range(-2, 8)):
        plan = Clip(WINDOW, begin, end)
        starts = [ts for _, ts, _, _ in clip(plan, *((0, ts, ts + 1 + 100, 1) for ts in range(heartbeat, 9)))]
        assert output_heartbeat(plan, (heartbeat,)) == min(starts, default=INFINITY)


def test_an_unbounded_window_that_is_clipped_changes_at_some_time() -> None:
    assert settles_within(Clip(WINDOW, 3, 9)) == settles_within(WINDOW)
    assert settles_within(Clip(TimeWindow(SOURCE, Duration(INFINITY)), 3, 9)) == INFINITY


def test_a_clip_has_an_instant() -> None:
    with pytest.raises(PlanError, match="an interval that has an instant"):
        Clip(WINDOW, 3, 3)


def test_the_clips_are_explained() -> None:
    text = "SELECT DISTINCT kind FROM tick [RANGE 3] WHERE id > 1"
    migration = Migration(plan_of(text), optimize(plan_of(text)), 7)
    assert explain(migration.plan).splitlines() == [
        "Union of 2  [corrected]",
        "  Distinct  [corrected]",
        "    Project kind",
        "      Filter id > 1",
        "        Clip BELOW 7",
        "          TimeWindow RANGE 3",
        "            Source tick (id, kind, price, at) by at  [chronon]",
        "  Distinct  [corrected]",
        "    Clip FROM 7",
        "      TimeWindow RANGE 3",
        "        Project kind  [chronon]",
        "          Filter id > 1  [chronon]",
        "            Source tick (id, kind) by at  [chronon]",
    ]


@pytest.mark.parametrize(
    ("entry", "end"),
    [
        (SOURCE, 1_001),
        (WINDOW, 1_100),
        # The slides are at 1009 and 1109.
        (TimeWindow(SOURCE, Duration(100), Duration(10)), 1_109),
        (TimeWindow(SOURCE, Duration(INFINITY)), INFINITY),
    ],
)
def test_the_end_of_what_has_entered(entry: Plan, end: int) -> None:
    assert ends_by(entry, {"s": 1_000}) == end
    assert ends_by(entry, {"s": BEGINNING}) == BEGINNING


def test_the_new_plan_takes_over_at_the_largest_end_of_all_inputs() -> None:
    plan = plan_of("SELECT a.id FROM tick [RANGE 30] a JOIN tick [RANGE 20] b ON a.id = b.id")
    assert takeover(plan, {"tick": 1_000}) == 1_030


def test_what_is_above_the_box_is_shared() -> None:
    plan = plan_of("ISTREAM(SELECT DISTINCT kind FROM tick [RANGE 3] WHERE id > 1)")
    migration = Migration(plan, optimize(plan), 7)
    old, new = migration.boxes
    assert isinstance(old, Distinct)
    assert isinstance(new, Distinct)
    assert explain(migration.plan).startswith("Istream  [chronon]\n  Union of 2")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("SELECT * FROM tick [RANGE 3]", "SELECT * FROM tick [RANGE 3]", "nothing above its windows"),
        (
            "SELECT DISTINCT id FROM ISTREAM(SELECT DISTINCT id FROM tick [RANGE 3]) [RANGE 5]",
            "SELECT DISTINCT id FROM ISTREAM(SELECT id FROM tick [RANGE 3] GROUP BY id) [RANGE 5]",
            "differ below TimeWindow",
        ),
    ],
)
def test_plans_that_cannot_be_exchanged(old: str, new: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        _ = Migration(plan_of(old), plan_of(new), 7).plan


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT DISTINCT kind FROM tick [UNBOUNDED]", "rows of an unbounded window have no end"),
        ("SELECT DISTINCT kind FROM tick [ROWS 3]", "rows of a window of rows have no end"),
    ],
)
def test_rows_that_have_no_end(text: str, what: str) -> None:
    with pytest.raises(PlanError, match=re.escape(what)):
        takeover(plan_of(text), {"tick": 5})
