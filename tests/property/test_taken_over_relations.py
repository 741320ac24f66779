"""Joins with relations that begin with what other joins keep of them, in queries that come and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.nodes import Filter, Join, Plan, TimeWindow, column
from headrace.expressions.tree import Call
from headrace.runtime.driver.settings import DEFAULT_EPOCH_BYTES
from headrace.runtime.store.segments import MemoryStore
from headrace.schema import BIGINT, BOOLEAN, STRING, unique_names
from headrace.time import Duration
from how_many import examples
from property.plan_strategies import Case, relations, streams
from property.strategies import BUCKETS
from property.test_plan_changes import Script, prolonged


@st.composite
def joins(draw: st.DrawFn) -> tuple[Case, tuple[Plan, ...]]:
    """A stream and a relation, and joins of them that differ in their windows, filters and sides."""
    types = (BIGINT, STRING)
    stream, relation = draw(streams("s", types=types, max_size=8)), draw(relations("r", types=types))
    found = []
    for size, filtered, turned in ((3, False, False), (5, True, False), (2, False, True)):
        plan: Plan = TimeWindow(stream.source, Duration(size))
        if filtered:
            plan = Filter(plan, Call("IS NOT NULL", (column(plan, 0),), BOOLEAN))
        left, right = (relation.leaf, plan) if turned else (plan, relation.leaf)
        same = [
            (one, other)
            for one in (column(left, place) for place in range(len(left.schema)))
            for other in (column(right, place) for place in range(len(right.schema)))
            if one.type == other.type
        ]
        names = tuple(unique_names([*left.schema.names, *right.schema.names]))
        found.append(Join(left, right, tuple(same[:1]), None, names))
    return Case(found[0], (stream,), (relation,)), tuple(found)


@examples(7, 20)
@given(st.data(), joins(), BUCKETS, st.sampled_from((2, 5)))
def test_joins_answer_alike_whoever_has_read_the_relation(
    data: st.DataObject, drawn: tuple[Case, tuple[Plan, ...]], buckets: int, rows: int
) -> None:
    case, several = drawn
    actions = ("go on", "go on", "add again", "add again", "drop")
    script = Script(data, prolonged(case, 3), MemoryStore(), buckets, (rows, DEFAULT_EPOCH_BYTES), actions)
    script.choices = several
    script.play()
    script.check()
