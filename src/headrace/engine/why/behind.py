"""A query that is behind others: how much waits for it, and why it has not been taken yet."""

from __future__ import annotations

from typing import Final

from headrace.engine.shown.status import Status
from headrace.engine.why.finding import Finding
from headrace.language.names import quoted_name
from headrace.runtime.driver.facts.status import QueryStatus
from headrace.runtime.driver.lanes.status import LaneStatus, lane_of_query
from headrace.runtime.writing.texts import count
from headrace.time import TimeDomain, format_length

_MORE: Final = 2
"""So many times its weight is proposed."""


def behind_others(status: Status, query: QueryStatus) -> Finding | None:
    """The findings on a query for which rows wait that its streams have brought already.

    Args:
        status: of the run.
        query: one of it.

    Returns:
        None where it has taken all, and where it is in front.
    """
    lane = lane_of_query(status.lanes, query.name)
    if lane is None or not (lane.rows or not lane.weight):
        return None
    verb = "waits" if lane.rows == 1 else "wait"
    waiting = f"{count(lane.rows, 'row')} {verb} for it" if lane.rows else "no row waits for it"
    if lane.rows > 1 and lane.behind is not None:
        waiting += f", the oldest for {lane.behind:,.1f} s"
    elif lane.behind is not None:
        waiting += f", for {lane.behind:,.1f} s"
    reason, hint = _reason(status, query, lane)
    again = "" if status.running else "start the run again, and "
    return Finding(f"{query.name} is behind: {waiting}, since {reason}", f"{again}{hint}")


def _reason(status: Status, query: QueryStatus, lane: LaneStatus) -> tuple[str, str]:
    """Why a query is behind, and what would let it be less so."""
    name = quoted_name(query.name)
    if lane.by_itself:
        return _reason_of_latency(status, name)
    whose = "its weight" if lane.queries == (query.name,) else f"the weight of {' and '.join(lane.queries)}"
    if not lane.weight:
        return f"{whose} is 0", f"write ALTER QUERY {name} SET (WEIGHT 1)"
    others = sum(one.weight for one in status.lanes) - lane.weight
    more = f"write ALTER QUERY {name} SET (WEIGHT {_MORE * lane.weight:g}) for more of the time"
    return f"{whose} is {lane.weight:g}, and that of all others {others:g}", more


def _reason_of_latency(status: Status, name: str) -> tuple[str, str]:
    """Why a query is behind that nobody has given a weight."""
    more = f"write ALTER QUERY {name} SET (WEIGHT 2) for more of the time"
    front = next(one for one in status.lanes if not one.lane)
    if front.urgent is None or front.latency is None:
        return "it has yet to come back to those in front", f"it comes back when it has taken them; or {more}"
    bound = format_length(front.latency, TimeDomain.TIMESTAMP)
    later = f"ALTER QUERY {quoted_name(front.urgent)} SET (LATENCY DEFAULT)"
    return f"it would make {front.urgent} late, whose LATENCY is {bound}", f"{more}, or {later}"
