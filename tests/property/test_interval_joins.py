"""Interval joins have the pairs whose timestamps are close, each at the instant of its later row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auctions import plan_of
from headrace.algebra.bounds import has_unbounded_state
from headrace.algebra.nodes import Istream, TimeWindow
from headrace.algebra.properties import walk
from headrace.optimizer import optimize
from headrace.reference.contents import Stream
from headrace.reference.operators import evaluate
from worked.tables import assert_equal_contents, equivalent

_COLUMNS = ("id", "at")
_STREAMS = "".join(
    f"CREATE STREAM {name} (id BIGINT, at BIGINT) FROM csv OPTIONS (path '{name}') TIMESTAMP BY at;"
    for name in ("one", "other")
)
_KINDS = {"JOIN": (-3, 3), "LEFT JOIN": (0, 3)}
rows = st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.integers(0, 12)), max_size=7)


def _texts(low: int, high: int) -> list[str]:
    """That a.at - b.at is between two numbers, as people write it."""
    return [
        f"a.at BETWEEN b.at + {low} AND b.at + {high}",
        f"b.at >= a.at - {high} AND a.at >= b.at + {low}",
        f"a.at - b.at < {high + 1} AND {low - 1} < a.at - b.at",
        f"b.at - a.at BETWEEN -({high}) AND -({low})",
    ]


def _pairs(left: list[Any], right: list[Any], low: int, high: int, *, outer: bool) -> list[Any]:
    """By definition: every pair, at the instant of its later row; and rows of the left side without one."""
    found = []
    for one, at in left:
        partners = [
            (other, then)
            for other, then in right
            if one is not None and one == other and low <= at - then <= high
        ]
        found += [((one, at, then), max(at, then), max(at, then) + 1, 1) for _, then in partners]
        if outer and not partners:
            found.append(((one, at, None), at, at + 1, 1))
    return found


@settings(max_examples=40, deadline=None)
@given(rows, rows, st.data())
def test_pairs_are_close_in_time(left: list[Any], right: list[Any], data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["JOIN", "LEFT JOIN", ","]))
    low = data.draw(st.integers(*_KINDS.get(kind, (-3, 3))))
    high = data.draw(st.integers(low, 5))
    condition = f"a.id = b.id AND {data.draw(st.sampled_from(_texts(low, high)))}"
    joined = f"one a, other b WHERE {condition}" if kind == "," else f"one a {kind} other b ON {condition}"
    plan = plan_of(f"{_STREAMS} SELECT a.id, a.at, b.at AS later FROM {joined}")
    streams = {
        name: Stream(_COLUMNS, [(row, row[1], row[1] + 1, 1) for row in given_rows])
        for name, given_rows in (("one", left), ("other", right))
    }
    wanted = _pairs(left, right, low, high, outer=kind == "LEFT JOIN")
    defined = [(row, ts, te, 1) for row, ts, te in evaluate(plan, streams)]
    assert_equal_contents(defined, wanted, "the definition of the plan")
    equivalent(plan, optimize(plan), streams, cuts=data.draw(st.integers(1, 3)))
    assert not has_unbounded_state(optimize(plan))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.id FROM tick a, tick b WHERE a.id = b.id AND a.at >= b.at",
        "SELECT a.id FROM tick a [RANGE 9], tick b WHERE a.id = b.id AND a.at BETWEEN b.at - 1 AND b.at",
        "SELECT a.id FROM tick a, tick b WHERE a.at BETWEEN b.id - 1 AND b.id + 1",
        "SELECT a.id FROM tick a, tick b WHERE a.at BETWEEN 2 * b.at - 1 AND b.at",
        "SELECT a.id FROM tick a, tick b WHERE a.at BETWEEN b.at - a.id AND b.at",
        "SELECT a.id FROM tick a, tick b WHERE a.at = b.at OR a.at BETWEEN b.at - 1 AND b.at",
    ],
)
def test_other_conditions_are_left_alone(text: str) -> None:
    windows = [node for node in walk(plan_of(text)) if isinstance(node, TimeWindow | Istream)]
    assert len(windows) == text.count("[RANGE")


@settings(max_examples=20, deadline=None)
@given(rows, rows, st.sampled_from(["LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"]), st.integers(-3, 3))
def test_rows_without_partners_mean_the_same_as_by_sqls_reading(
    left: list[Any], right: list[Any], kind: str, low: int
) -> None:
    condition = f"a.id = b.id AND a.at - b.at BETWEEN {low} AND {low + 2}"
    text = f"SELECT a.at FROM one a {kind} JOIN other b ON {condition}"
    streams = {
        name: Stream(_COLUMNS, [(row, row[1], row[1] + 1, 1) for row in given_rows])
        for name, given_rows in (("one", left), ("other", right))
    }
    ours, theirs = (
        evaluate(plan_of(f"{_STREAMS} SET dialect = '{dialect}'; {text}"), streams)
        for dialect in ("pipes", "sql")
    )
    assert ours == theirs


def test_groups_of_pairs_are_of_each_instant() -> None:
    """By PIPES' reading, under which the pairs are no stream of which all rows so far count."""
    pairs = "tick a JOIN tick b ON a.id = b.id AND a.at BETWEEN b.at - 2 AND b.at + 5"
    for text in (f"SELECT COUNT(*) FROM {pairs}", f"SELECT DISTINCT a.id FROM {pairs}"):
        assert plan_of(text).is_chronon
        assert not has_unbounded_state(plan_of(text))


def test_a_chain_is_counted_from_the_latest_row() -> None:
    text = """SELECT a.id FROM tick a JOIN tick b ON a.id = b.id AND b.at BETWEEN a.at AND a.at + 5
        JOIN tick c ON c.id = b.id AND c.at BETWEEN b.at AND b.at + 5"""
    windows = [node.size.length for node in walk(plan_of(text)) if isinstance(node, TimeWindow)]
    assert windows == [6, 6]
