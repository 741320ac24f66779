"""Which operators wait for others, and what that makes of their state."""

from __future__ import annotations

from headrace.algebra.nodes import Join, Plan, Relation, Source, TimeWindow, Union, column
from headrace.language.statements.statements import Heartbeats
from headrace.lowering.graph import Graph, Merge
from headrace.lowering.holds import holds_of
from headrace.lowering.lower import Holds, lower
from headrace.schema import BIGINT, Field, Schema
from headrace.time import BEGINNING, INFINITY, Duration, TimeDomain

SCHEMA = Schema((Field("v", BIGINT),))


def source(name: str, slide: int = 1) -> Plan:
    return TimeWindow(Source(name, SCHEMA, "t", TimeDomain.INTEGER), Duration(20), Duration(slide))


def joined(left: Plan, right: Plan) -> Join:
    names = tuple(f"v{place}" for place in range(len(left.schema) + len(right.schema)))
    return Join(left, right, ((column(left, 0), column(right, 0)),), None, names)


A, B, C, D = map(source, "abcd")
LOWER = joined(A, B)
UPPER = joined(LOWER, C)


def common(plan: Plan) -> Holds:
    return holds_of(lower({"q": plan}), Heartbeats.COMMON, lambda _: 1.0)


def waiting(plan: Plan, holds: Holds) -> dict[Plan, tuple[Plan, ...]]:
    graph = lower({"q": plan}, holds={"q": holds})
    return {
        node.plan: tuple(graph.nodes[other].plan for other in node.waits_for)
        for node in graph.nodes
        if node.waits_for
    }


def memory(graph: Graph, **selectivities: float) -> Holds:
    """The memory-aware choice where joins of two, three and four streams yield so many rows."""

    def selectivity(number: int) -> float:
        reads = "".join(sorted(graph.streams_of([number])))
        return selectivities.get(reads, 1.0)

    return holds_of(graph, Heartbeats.MEMORY, selectivity)


def test_a_join_below_waits_for_the_stream_that_is_joined_above_it() -> None:
    assert waiting(UPPER, common(UPPER)) == {LOWER: (C,)}
    assert common(LOWER) == {}
    assert holds_of(lower({"q": UPPER}), Heartbeats.OPERATOR, lambda _: 9.0) == {}


def test_it_waits_by_memory_only_if_it_multiplies_rows() -> None:
    top = joined(UPPER, D)
    graph = lower({"q": top})
    assert memory(graph, ab=0.9) == {}
    assert waiting(top, memory(graph, ab=3)) == {LOWER: (C, D), UPPER: (D,)}
    assert waiting(top, memory(graph, ab=3, abc=0.2)) == {LOWER: (C,)}
    assert waiting(top, memory(graph, abc=3)) == {UPPER: (D,)}


def test_what_reads_the_same_streams_or_a_relation_is_not_waited_for() -> None:
    relation = Relation("r", SCHEMA, TimeDomain.INTEGER)
    assert common(joined(LOWER, relation)) == {}
    assert common(joined(LOWER, source("a", 4))) == {}


def test_both_sides_may_wait_for_each_other() -> None:
    top = joined(LOWER, joined(C, D))
    assert waiting(top, common(top)) == {LOWER: (joined(C, D),), joined(C, D): (LOWER,)}
    graph = lower({"q": top}, holds={"q": common(top)})
    streams = {"a": 50, "b": 40, "c": 30, "d": 20}
    assert graph.heartbeats(streams, {})[-1] == 20
    limits = dict(zip((node.plan for node in graph.nodes), graph.limits(streams, {}), strict=True))
    assert {plan: limit for plan, limit in limits.items() if limit < INFINITY} == {
        LOWER: 20,
        joined(C, D): 40,
    }


def test_the_answer_is_final_when_it_would_be_without() -> None:
    """A window that slides is ahead of its stream: what waits for it is let go as early as it can be."""
    late = source("c", 100)
    plan = joined(LOWER, late)
    graph = lower({"q": plan}, holds={"q": common(plan)})
    streams = {"a": 250, "b": 250, "c": 150}
    assert graph.heartbeats(streams, {})[-1] == graph.free_heartbeats(streams, {})[-1] == 199
    assert min(graph.limits(streams, {})) == 199
    assert graph.heartbeats({**streams, "c": BEGINNING}, {})[-1] == BEGINNING
    assert graph.heartbeats(dict.fromkeys(streams, INFINITY), {})[-1] == INFINITY


def test_state_is_shared_by_queries_that_wait_alike() -> None:
    holds = common(UPPER)
    graph = lower({"free": UPPER, "one": UPPER, "other": UPPER}, holds={"one": holds, "other": dict(holds)})
    joins = [node for node in graph.nodes if isinstance(node.plan, Join)]
    assert [len(node.waits_for) for node in joins] == [0, 0, 1, 0]
    assert len({node.identity for node in joins}) == 4
    assert len({node.shape for node in joins}) == 2
    alone = lower({"free": UPPER})
    assert {node.identity for node in alone.nodes} <= {node.identity for node in graph.nodes}
    assert [output for _, output in graph.outputs] == [7, 9, 9]


def test_what_is_waited_for_is_that_of_the_same_start() -> None:
    top = joined(LOWER, joined(C, D))
    holds = {"old": common(top), "new": common(top)}
    graph = lower({"old": top, "new": top}, {"new": 7}, holds=holds)
    for node in graph.nodes:
        assert all(graph.nodes[other].start == node.start for other in node.waits_for)
    plan = Union((joined(UPPER, D), joined(UPPER, D)))
    assert waiting(plan, common(plan)) == {LOWER: (C, D), UPPER: (D,)}


def test_what_waits_does_not_go_on_as_what_does_not() -> None:
    """Merges are of operators that do not wait; those beside them go by merges all the same."""
    top = joined(LOWER, joined(C, D))
    graph = lower({"q": top})
    shapes = {node.plan: node.shape for node in graph.nodes}
    merges = [Merge(shapes[plan], 7, 1) for plan in (LOWER, joined(C, D), top)]
    holds = {shapes[LOWER]: (shapes[joined(C, D)],)}
    both = lower({"free": top, "held": top}, {"free": 7, "held": 7}, merges=merges, holds={"held": holds})
    joins = [node for node in both.nodes if isinstance(node.plan, Join)]
    assert [(node.start, bool(node.held), len(node.waits_for)) for node in joins] == [
        (1, False, 0),
        (1, False, 0),
        (1, False, 0),
        (7, True, 1),
        (7, True, 0),
    ]
    assert both.nodes[joins[3].waits_for[0]] is joins[1]
