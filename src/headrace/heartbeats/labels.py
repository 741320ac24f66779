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

OperatorName = TypeVar("OperatorName", bound=Hashable)

Label = frozenset[str]
"""Names of streams."""

Waits = dict[OperatorName, frozenset[OperatorName]]
"""Per operator those whose heartbeats it waits for besides its inputs."""


@dataclass(frozen=True)
class LabelledOperator(Generic[OperatorName]):
    """An operator of a query plan.

    Attributes:
        inputs: the operators that it reads.
        streams: the streams that it reads, if it reads no operator.
        selectivity: how many rows it yields for each that it takes, as measured.
    """

    inputs: Sequence[OperatorName] = ()
    streams: frozenset[str] = field(default_factory=frozenset)
    selectivity: float = 1.0


LabelledPlan = Mapping[OperatorName, LabelledOperator[OperatorName]]
"""The operators of a plan by name; outputs are those that nothing reads. Several may read one."""


def common_waits(plan: LabelledPlan[OperatorName]) -> Waits[OperatorName]:
    """One heartbeat for all operators (7.1; 5.2, as if all streams were one group)."""
    return _waits(plan, lambda _: True)


def memory_aware_waits(plan: LabelledPlan[OperatorName]) -> Waits[OperatorName]:
    """The memory-aware strategy (figure 6).

    A memory-link leads from an operator that yields more rows than it takes up to the lowest operator at
    which the whole chain no longer does; outputs count as taking everything. All operators below a link use
    the heartbeat of its upper end.
    """
    # How many rows the longest link through an operator yields for each that its lower end takes.
    rows: dict[OperatorName, float] = {}
    for name in _bottom_up(plan):
        one = plan[name]
        rows[name] = max((1.0, *(rows[child] for child in one.inputs))) * one.selectivity
    return _waits(plan, lambda name: rows[name] > 1)


def labels(plan: LabelledPlan[OperatorName], waits: Waits[OperatorName]) -> dict[OperatorName, Label]:
    """Per operator the streams of its own inputs and of those that it waits for.

    Where it waits for none, that is operator-level heartbeats (7.2).
    """
    own: dict[OperatorName, Label] = {}
    for name in _bottom_up(plan):
        own[name] = plan[name].streams.union(*(own[child] for child in plan[name].inputs))
    return {name: own[name].union(*(own[other] for other in waits[name])) for name in plan}


def _waits(
    plan: LabelledPlan[OperatorName], is_linked: Callable[[OperatorName], bool]
) -> Waits[OperatorName]:
    """What operators wait for of which some have to wait as long as what reads them."""
    bottom_up = _bottom_up(plan)
    above: dict[OperatorName, set[OperatorName]] = {name: set() for name in plan}
    for name in bottom_up:
        for child in plan[name].inputs:
            above[child].add(name)
    found: Waits[OperatorName] = {}
    for name in reversed(bottom_up):
        found[name] = frozenset()
        if len(above[name]) == 1 and is_linked(name):
            (parent,) = above[name]
            found[name] = (frozenset(plan[parent].inputs) | found[parent]) - {name}
    return found


def _bottom_up(plan: LabelledPlan[OperatorName]) -> list[OperatorName]:
    return list(TopologicalSorter({name: one.inputs for name, one in plan.items()}).static_order())
