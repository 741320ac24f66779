"""Windows of several lengths over one input: rows are added up once, in panes.

Where an aggregation's input is added up before it travels, it is added up by group and window. For windows of
5, 10 and 60 seconds that is done three times with every row. A pane is a piece of time within which all of
these windows begin and end together, here 5 seconds: rows are added up by group and pane, and what is left,
which is little, by group and window (Li et al., No Pane, No Gain, SIGMOD Record 34(1), 2005).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.algebra.nodes import Aggregate, TimeWindow
from headrace.lowering.exchanges import union_of
from headrace.lowering.graph import Exchange, Node, Panes
from headrace.time import INFINITY

Channel = tuple[int, Exchange]


def panes_of(nodes: Sequence[Node]) -> tuple[Panes, ...]:
    """The windows of level 0 whose rows can be added up together."""
    edges = (edge for node in nodes for edge in node.inputs)
    channels = dict.fromkeys((edge.producer, edge.exchange) for edge in edges if edge.exchange is not None)
    windows = {
        (number, exchange): plan
        for number, exchange in channels
        if (plan := _window(nodes[number])) is not None and isinstance(exchange.reduced_for, Aggregate)
    }
    found: list[Panes] = []
    # The shortest windows come first, since theirs are the panes.
    for channel in sorted(windows, key=lambda channel: _length(windows[channel])):
        if not any(_add(found, place, channel, windows, nodes) for place in range(len(found))):
            number, exchange = channel
            assert isinstance(exchange.reduced_for, Aggregate)
            rooted = replace(exchange.reduced_for, input=windows[channel].input)
            below = nodes[number].inputs[0].producer
            found.append(Panes(below, _length(windows[channel]), rooted, (channel,)))
    return tuple(panes for panes in found if len(panes.members) > 1)


def _window(node: Node) -> TimeWindow | None:
    """A window of level 0 that takes all rows of some panes together, and every row at least once."""
    match node.plan:
        case TimeWindow(size=size, slide=slide) as window if not node.level:
            covers = slide.length <= size.length < INFINITY
            return window if covers and _length(window) > 1 else None
        case _:
            return None


def _length(window: TimeWindow) -> int:
    """The longest panes for a window."""
    return math.gcd(window.size.length, window.slide.length, window.offset.length)


def _add(
    found: list[Panes],
    place: int,
    channel: Channel,
    windows: Mapping[Channel, TimeWindow],
    nodes: Sequence[Node],
) -> bool:
    """Add a window to those that have panes already, if the panes are good for it, too."""
    panes, (number, exchange) = found[place], channel
    assert isinstance(exchange.reduced_for, Aggregate)
    same = panes.node == nodes[number].inputs[0].producer
    if not same or exchange.keys != panes.members[0][1].keys or _length(windows[channel]) % panes.length:
        return False
    union = union_of(panes.plan, replace(exchange.reduced_for, input=panes.plan.input))
    if union is None:
        return False
    found[place] = replace(panes, plan=union, members=(*panes.members, channel))
    return True
