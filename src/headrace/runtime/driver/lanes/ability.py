"""Whether a query may be behind others."""

from __future__ import annotations

from headrace.algebra.letters import stream_of_letters
from headrace.algebra.nodes import (
    BloomFilter,
    Draw,
    Early,
    LimitedJoin,
    Plan,
    Remember,
    SemanticDrop,
    Shed,
)
from headrace.algebra.properties import sources_of, walk
from headrace.lowering.lower import Holds
from headrace.runtime.driver.facts.published import PublishedRun

_LOSS = (Shed, SemanticDrop, LimitedJoin, Draw, BloomFilter)


def obstacle_in(plan: Plan, holds: Holds | None) -> str | None:
    """Why a query cannot be behind others; None where it can.

    Args:
        plan: the query's, optimized.
        holds: which of its operators wait for others; None if it does not ask for that.
    """
    if holds:
        return "some of its operators wait for others, by its HEARTBEATS"
    sources = [source.name for source in sources_of(plan)]
    if not sources:
        return "it reads no stream"
    for name in sources:
        if stream_of_letters(name) is not None:
            return f"{name} are not kept as input"
    if any(isinstance(part, _LOSS) for part in walk(plan)):
        return "it leaves out rows where there is too little time or memory, instead of being late"
    if any(map(_goes_by_arrival, walk(plan))):
        return "what it says, or remembers, goes by when rows come"
    return None


def _goes_by_arrival(part: Plan) -> bool:
    """Whether a part of a plan does with a row what follows from how many others come, or when."""
    match part:
        case Early(horizon=horizon):
            return horizon.dial is not None
        case Remember():
            return part.memory.dial is not None
        case _:
            return False


def may_be_behind(run: PublishedRun, query: str) -> str | None:
    """Why a query that is answered cannot be put behind others now; None where it can."""
    record = run.queries.answered[query]
    if query in run.queries.migrations:
        return "its plan is being exchanged"
    return obstacle_in(record.plan, record.holds)
