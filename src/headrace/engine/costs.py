"""EXPLAIN COST: the physical plan of a query with what its operators are expected to yield and to keep."""

from __future__ import annotations

import math
from typing import Final

from headrace.algebra.nodes import Plan, Relation
from headrace.engine.definitions import RESULT, Definitions
from headrace.engine.samples import sampled
from headrace.errors import Position
from headrace.lowering.costs import expectations
from headrace.lowering.explain import explain_graph
from headrace.lowering.lower import lower
from headrace.optimizer.cost.expected import Expectation
from headrace.runtime.writing.texts import count
from headrace.time import MICROSECONDS, TimeDomain

SAMPLE_ROWS: Final = 100_000
"""About so many rows of each stream are looked at."""


def costs(defined: Definitions, plan: Plan, position: Position) -> str:
    """How a query is expected to run: its operators, each with its rate and the rows that it keeps.

    Args:
        defined: the streams and relations.
        plan: the query's, optimized.
        position: where it is asked for.

    Raises:
        LanguageError: the query reads a stream that never ends, or is timed by arrival.
        SourceError: an input is missing or damaged.
    """
    graph = lower({RESULT: plan})
    look = sampled(defined, [node.plan for node in graph.nodes], SAMPLE_ROWS, position)
    found = expectations(graph, look.samples, look.sizes, look.elapsed)
    notes = {node.number: _note(node.plan, found[node.number]) for node in graph.nodes}
    kept = sum(part.state for part in found)
    return f"{explain_graph(graph, RESULT, notes)}\nkeeps about {_rows(kept)} in all"


def _note(plan: Plan, found: Expectation) -> str:
    """What is expected of an operator, on one line."""
    flow = found.flow
    if isinstance(plan, Relation) and not plan.is_chronon:
        return _rows(flow.live)
    if plan.domain is TimeDomain.TIMESTAMP:
        second = MICROSECONDS["SECOND"]
        rate, lifetime = f"{_number(flow.rate * second)} rows/s", f"{_number(flow.lifetime / second)} s"
    else:
        rate, lifetime = f"{_number(flow.rate)} rows per instant", _number(flow.lifetime)
    parts = [rate] if flow.lifetime <= 1 else [rate, f"each for {lifetime}"]
    return ", ".join(parts) + (f"; keeps {_rows(found.state)}" if found.state else "")


def _rows(number: float) -> str:
    return "rows without bound" if math.isinf(number) else count(round(number), "row")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
