"""What queries share in the graph: plans of the same start, and whatever has no state."""

from __future__ import annotations

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Aggregate, Filter, OuterJoin, Plan, Source
from headrace.expressions.tree import AggregateCall, Call, Column, Literal
from headrace.lowering.lower import identity, lower
from headrace.schema import BIGINT, BOOLEAN, Field, Schema
from headrace.time import TimeDomain

SCHEMA = Schema((Field("v", BIGINT),))
SOURCE = Source("s", SCHEMA, "t", TimeDomain.INTEGER)
SOME = Filter(SOURCE, Call(">", (Column(0, "v", BIGINT), Literal(1, BIGINT)), BOOLEAN))
COUNT = Aggregate(SOME, (), (("n", AggregateCall("COUNT", None, BIGINT)),))
MANY = Filter(COUNT, Call(">", (Column(0, "n", BIGINT), Literal(1, BIGINT)), BOOLEAN))


def test_equal_plans_of_one_start_are_one_node() -> None:
    graph = lower({"a": MANY, "b": MANY, "c": COUNT}, {"a": 3, "b": 3, "c": 3})
    assert [node.plan for node in graph.nodes] == [SOURCE, SOME, COUNT, MANY]
    assert graph.outputs == (("a", 3), ("b", 3), ("c", 2))


def test_state_and_what_stands_on_it_is_not_shared_between_starts() -> None:
    graph = lower({"a": MANY, "b": MANY, "c": SOME}, {"b": 7, "c": 9})
    assert [node.plan for node in graph.nodes] == [SOURCE, SOME, COUNT, MANY, COUNT, MANY]
    assert graph.outputs == (("a", 3), ("b", 5), ("c", 1))
    counts = [node.identity for node in graph.nodes if node.plan == COUNT]
    assert counts == [identity(COUNT), identity(COUNT, 7)]
    assert len(set(counts)) == 2
    assert len(graph.channels) == 1, "what travels to both is sent once"


def test_a_chain_of_outer_joins_takes_so_many_nodes_for_each_link() -> None:
    def chain(links: int) -> Plan:
        plan: Plan = SOURCE
        for link in range(links):
            key = (Column(link, "v", BIGINT), Column(0, "v", BIGINT))
            names = tuple(f"v{place}" for place in range(link + 2))
            plan = OuterJoin(plan, SOME, (key,), None, names, JoinKind.LEFT)
        return plan

    sizes = [len(lower({"a": chain(links)}).nodes) for links in (1, 2, 30)]
    assert sizes[2] - sizes[1] == 28 * (sizes[1] - sizes[0])
    assert lower({"a": chain(30)}).nodes[-1].identity != lower({"a": chain(29)}).nodes[-1].identity
