"""The processor time that operators need, by the rates of their streams: Aurora's static analysis.

Aurora (*Monitoring Streams*, VLDB 2002, 6.1 and 7.1; technical report CS-02-01) follows the rates of the
streams through boxes with costs and selectivities, and adds up what each box needs: that is `min_cap`, which
the capacity C has to reach, and which is to be below C times the headroom H if there is to be room for more.
There a box yields no more than one processor can. Here it may be spread over all of them, so that only the
sum is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from headrace.elements import Float64Array
from headrace.lowering.graph import Graph

HEADROOM: Final = 0.8
"""So much of a capacity is given to what is there: the rest is for bursts, and for queries that come."""


@dataclass(frozen=True)
class Box:
    """An operator as its needs depend on what comes to it.

    Attributes:
        inputs: the places of the boxes that it reads, each before its own; none of a source.
        cost: the processor time for a row that comes to it (seconds).
        selectivity: rows that it yields for a row that comes to it.
    """

    inputs: tuple[int, ...]
    cost: float
    selectivity: float


class Headroom(Enum):
    """The verdict on what operators need, by what there is."""

    ENOUGH = "enough"
    """There is room for them, and for more."""
    LITTLE = "little"
    """There is room for them; bursts and queries that come will have to wait."""
    NONE = "none"
    """They fall behind for as long as rows come as they do."""


def rates_in(boxes: Sequence[Box], rates: Float64Array) -> Float64Array:
    """float64[n]: how many rows come to each box.

    Args:
        boxes: all of them, each behind those that it reads.
        rates: float64[n], how many come to each from outside, per second or in all.
    """
    # Numbers of Python: there may be ten thousands of boxes with an input or two each.
    found, given = rates.tolist(), [0.0] * len(boxes)
    for place, box in enumerate(boxes):
        found[place] += sum(given[one] for one in box.inputs)
        given[place] = found[place] * box.selectivity
    return np.array(found, dtype=np.float64)


def needs(boxes: Sequence[Box], rates: Float64Array) -> Float64Array:
    """float64[n]: the processor time that each box needs, in seconds for each second, or in all.

    Their sum is Aurora's `min_cap`.

    Args:
        boxes, rates: as of `rates_in`.
    """
    return np.array([box.cost for box in boxes]) * rates_in(boxes, rates)


def room(needed: float, capacity: float, headroom: float = HEADROOM) -> Headroom:
    """Whether a capacity does for what is needed, and whether some is left.

    Args:
        needed: the processor time that is needed (seconds for each second).
        capacity: the processor time that there is.
        headroom: the part of it that may be used all the time.
    """
    if capacity < needed:
        return Headroom.NONE
    return Headroom.LITTLE if capacity * headroom < needed else Headroom.ENOUGH


def above(boxes: Sequence[Box], begun: Sequence[int]) -> Iterator[int]:
    """The places of the boxes that read some others, directly or not, without these."""
    known = set(begun)
    for place, box in enumerate(boxes):
        if not known.isdisjoint(box.inputs):
            known.add(place)
            if place not in begun:
                yield place


def from_streams(graph: Graph, rates: Mapping[str, float]) -> Float64Array:
    """float64[n]: the rows that come to each operator from outside."""
    return np.array([0.0 if node.reads is None else rates.get(node.reads, 0.0) for node in graph.nodes])
