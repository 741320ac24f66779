"""Joins upon joins as one thing."""

from __future__ import annotations

from headrace.algebra.nodes import Filter, Join, Project, Source
from headrace.expressions.functions.functions import literal
from headrace.optimizer.joins.join_graph import join_graph
from headrace.schema import BIGINT, Field, Schema
from headrace.time import TimeDomain


def test_a_condition_of_constants_beside_an_input_without_columns() -> None:
    """As prune_columns leaves it where nothing of an input is read."""
    source = Source("s", Schema((Field("x", BIGINT),)), "t", TimeDomain.INTEGER)
    never = literal(False)
    graph = join_graph(Join(Project(source, ()), source, (), never, ("x",)))
    assert graph.conditions == ()
    assert graph.inputs == (Filter(Project(source, ()), never), source)
