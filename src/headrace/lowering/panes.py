"""Windows of several lengths over one input: rows are added up once, in panes.

Where an aggregation's input is added up before it travels, it is added up by group and window. For windows of
5, 10 and 60 seconds that is done three times with every row. A pane is a piece of time within which all of
these windows begin and end together, here 5 seconds: rows are added up by group and pane, and what is left,
which is little, by group and window (Li et al., No Pane, No Gain, SIGMOD Record 34(1), 2005).

Queries read the columns that they need, so that one stream is several nodes. Windows over those are added up
together as well, where one of the nodes has the columns of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.algebra.nodes import Aggregate, Plan, Project, Source, TimeWindow, column
from headrace.expressions.tree import Column, Expression, transform_call, transform_columns
from headrace.lowering.exchanges import union_of
from headrace.lowering.graph import Panes
from headrace.lowering.node import Exchange, Node
from headrace.schema import Schema
from headrace.time import INFINITY

ExchangeUse = tuple[int, Exchange]


def panes_of(nodes: Sequence[Node]) -> tuple[Panes, ...]:
    """The windows of level 0 whose rows can be added up together."""
    edges = (edge for node in nodes for edge in node.inputs)
    channels = dict.fromkeys((edge.producer, edge.exchange) for edge in edges if edge.exchange is not None)
    windows = {
        (number, exchange): plan
        for number, exchange in channels
        if (plan := _window(nodes[number])) is not None and isinstance(exchange.reduced_for, Aggregate)
    }
    widest = _widest(nodes)
    found: list[Panes] = []
    # The shortest windows come first, since theirs are the panes.
    for channel in sorted(windows, key=lambda channel: _length(windows[channel])):
        panes = _panes(channel, windows[channel], nodes, widest)
        for place, other in enumerate(found):
            if (both := _together(other, panes)) is not None:
                found[place] = both
                break
        else:
            found.append(panes)
    return tuple(panes for panes in found if len(panes.members) > 1)


def _window(node: Node) -> TimeWindow | None:
    """A window of level 0 that takes all rows of some panes together, and every row at least once."""
    match node.plan:
        # Within bounds rows of one pane may end at different slides.
        case TimeWindow(size=size, slide=slide, smallest=None) as window if not node.level:
            covers = slide.length <= size.length < INFINITY
            return window if covers and _length(window) > 1 else None
        case _:
            return None


def _length(window: TimeWindow) -> int:
    """The longest panes for a window."""
    return math.gcd(window.size.length, window.slide.length, window.offset.length)


@dataclass(frozen=True)
class _Reading:
    """Columns of a stream as a node has them.

    Attributes:
        node: the number of the node that reads them, and maybe others, of the stream.
        places: where each column is among those that this node reads.
    """

    node: int
    places: tuple[int, ...]


def _widest(nodes: Sequence[Node]) -> dict[int, _Reading]:
    """The nodes of which each only has columns of a stream, as readings of the node that reads the most."""
    known = {node.number: found for node in nodes if (found := _read(node, nodes)) is not None}
    sources: dict[Source, list[Node]] = {}
    for node in nodes:
        if isinstance(node.plan, Source):
            sources.setdefault(replace(node.plan, schema=Schema(())), []).append(node)
    return {number: _in_widest(reading, nodes, sources) for number, reading in known.items()}


def _read(node: Node, nodes: Sequence[Node]) -> _Reading | None:
    """What a node has that is a source, or picks columns of one."""
    match node.plan:
        case Source(schema=schema):
            return _Reading(node.number, tuple(range(len(schema))))
        case Project(items=items):
            below = _read(nodes[node.inputs[0].producer], nodes)
            picked = [item.index for _, item in items if isinstance(item, Column)]
            if below is None or len(picked) < len(items):
                return None
            return _Reading(below.node, tuple(below.places[one] for one in picked))
        case _:
            return None


def _in_widest(reading: _Reading, nodes: Sequence[Node], sources: Mapping[Source, list[Node]]) -> _Reading:
    """The same columns, as another node has them that reads the most of those that have all of these."""
    source = nodes[reading.node].plan
    assert isinstance(source, Source)
    wanted = [source.schema[place] for place in reading.places]
    able = [
        node for node in sources[replace(source, schema=Schema(()))] if set(wanted) <= set(node.plan.schema)
    ]
    widest = max(able, key=lambda node: (len(node.plan.schema), -node.number))
    columns = list(widest.plan.schema)
    return _Reading(widest.number, tuple(map(columns.index, wanted)))


def _panes(
    channel: ExchangeUse, window: TimeWindow, nodes: Sequence[Node], widest: Mapping[int, _Reading]
) -> Panes:
    """The panes of one window, over the widest node that has its input."""
    number, exchange = channel
    assert isinstance(exchange.reduced_for, Aggregate)
    below = nodes[number].inputs[0].producer
    reading = widest.get(below, _Reading(below, tuple(range(len(window.schema)))))
    plan = _moved(exchange.reduced_for, nodes[reading.node].plan, reading.places)
    return Panes(reading.node, _length(window), plan, (channel,), (plan,), (reading.places,))


def _moved(plan: Aggregate, below: Plan, places: Sequence[int]) -> Aggregate:
    """An aggregate over a plan that has the columns of its input at some places."""

    def moved(part: Expression) -> Expression:
        return transform_columns(part, lambda one: column(below, places[one.index]))

    keys = tuple((name, moved(key)) for name, key in plan.keys)
    calls = tuple((name, transform_call(call, moved)) for name, call in plan.aggregates)
    return replace(plan, input=below, keys=keys, aggregates=calls)


def _together(panes: Panes, other: Panes) -> Panes | None:
    """Panes with those of another window, which is no shorter, if they are good for it, too."""
    mine, theirs = (tuple(key for _, key in one.plan.keys) for one in (panes, other))
    if panes.node != other.node or mine != theirs or other.length % panes.length:
        return None
    union = union_of(panes.plan, other.plan)
    if union is None:
        return None
    return replace(
        panes,
        plan=union,
        members=panes.members + other.members,
        parts=panes.parts + other.parts,
        columns=panes.columns + other.columns,
    )
