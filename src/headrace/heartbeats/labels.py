"""Whose heartbeats an operator waits for, so that intermediate results do not pile up.

Srivastava and Widom, PODS 2004, sections 7.1 to 7.4. An operator that yields more rows than it takes should
not run before what is above it can use them.

The paper gives each operator a label: streams whose smallest heartbeat is the operator's. Here an operator
waits for other operators, those that are read beside it on its way up; a label is the streams of these and
its own. That is the same where heartbeats pass operators unchanged; where windows that slide move them on,
an operator does not wait longer than what is above it has to.

The paper's plans are trees. What several operators read does not wait for any of them: what one cannot use
yet, another may.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)

Label = frozenset[str]
"""Names of streams."""

Waits = dict[Name, frozenset[Name]]
"""Per operator those whose heartbeats it waits for besides its inputs."""


@dataclass(frozen=True)
class LabelledOperator(Generic[Name]):
    """An operator of a query plan.

    Attributes:
        inputs: the operators that it reads.
        streams: the streams that it reads, if it reads no operator.
        selectivity: how many rows it yields for each that it takes, as measured.
    """

    inputs: Sequence[Name] = ()
    streams: frozenset[str] = field(default_factory=frozenset)
    selectivity: float = 1.0


Plan = Mapping[Name, LabelledOperator[Name]]
"""The operators of a plan by name; outputs are those that nothing reads. Several may read one."""


def common_waits(plan: Plan[Name]) -> Waits[Name]:
    """One heartbeat for all operators (7.1; 5.2, as if all streams were one group)."""
    return _waits(plan, lambda _: True)


def memory_aware_waits(plan: Plan[Name]) -> Waits[Name]:
    """The memory-aware strategy (figure 6).

    A memory-link leads from an operator that yields more rows than it takes up to the lowest operator at
    which the whole chain no longer does; outputs count as taking everything. All operators below a link use
    the heartbeat of its upper end.
    """
    # How many rows the longest link through an operator yields for each that its lower end takes.
    rows: dict[Name, float] = {}
    for name in _bottom_up(plan):
        one = plan[name]
        rows[name] = max((1.0, *(rows[child] for child in one.inputs))) * one.selectivity
    return _waits(plan, lambda name: rows[name] > 1)


def labels(plan: Plan[Name], waits: Waits[Name]) -> dict[Name, Label]:
    """Per operator the streams of its own inputs and of those that it waits for.

    Where it waits for none, that is operator-level heartbeats (7.2).
    """
    own: dict[Name, Label] = {}
    for name in _bottom_up(plan):
        own[name] = plan[name].streams.union(*(own[child] for child in plan[name].inputs))
    return {name: own[name].union(*(own[other] for other in waits[name])) for name in plan}


def _waits(plan: Plan[Name], is_linked: Callable[[Name], bool]) -> Waits[Name]:
    """What operators wait for of which some have to wait as long as what reads them."""
    bottom_up = _bottom_up(plan)
    above: dict[Name, set[Name]] = {name: set() for name in plan}
    for name in bottom_up:
        for child in plan[name].inputs:
            above[child].add(name)
    found: Waits[Name] = {}
    for name in reversed(bottom_up):
        found[name] = frozenset()
        if len(above[name]) == 1 and is_linked(name):
            (parent,) = above[name]
            found[name] = (frozenset(plan[parent].inputs) | found[parent]) - {name}
    return found


def _bottom_up(plan: Plan[Name]) -> list[Name]:
    return list(TopologicalSorter({name: one.inputs for name, one in plan.items()}).static_order())
