"""Which streams' heartbeats an operator waits for, so that intermediate results do not pile up.

Srivastava and Widom, PODS 2004, sections 7.2 to 7.4. An operator that yields more rows than it takes should
not run before what is above it can use them. Its heartbeat is the smallest of the streams of its label.

Runs do not hold rows back yet, and use operator-level heartbeats; decision 0027 says what it would bring.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)

Label = frozenset[str]
"""Names of streams."""


@dataclass(frozen=True)
class LabelledOperator(Generic[Name]):
    """An operator of a query plan.

    Attributes:
        inputs: the operators that it reads.
        streams: the streams that it reads itself.
        selectivity: how many rows it yields for each that it takes, as measured.
    """

    inputs: Sequence[Name] = ()
    streams: frozenset[str] = field(default_factory=frozenset)
    selectivity: float = 1.0


def own_labels(plan: Mapping[Name, LabelledOperator[Name]]) -> dict[Name, Label]:
    """Per operator the streams that it depends on: operator-level heartbeats, which hold nothing back (7.2).

    Args:
        plan: the operators by name. Several may read one.
    """
    found: dict[Name, Label] = {}
    for name in TopologicalSorter({name: one.inputs for name, one in plan.items()}).static_order():
        found[name] = plan[name].streams.union(*(found[child] for child in plan[name].inputs))
    return found


def common_labels(plan: Mapping[Name, LabelledOperator[Name]]) -> dict[Name, Label]:
    """All streams for every operator: one heartbeat for all (7.1; 5.2, as if all were one group)."""
    everything = frozenset[str]().union(*(one.streams for one in plan.values()))
    return dict.fromkeys(plan, everything)


def memory_aware_labels(plan: Mapping[Name, LabelledOperator[Name]]) -> dict[Name, Label]:
    """Per operator the streams whose heartbeats it waits for by the memory-aware strategy (figure 6).

    A memory-link leads from an operator that yields more rows than it takes up to the lowest operator at
    which the whole chain no longer does; outputs count as taking everything. All operators below a link use
    the heartbeat of its upper end. Where several operators read one, as in no tree, it waits for all that
    links ask for.

    Args:
        plan: the operators by name; outputs are those that nothing reads.
    """
    own = own_labels(plan)
    bottom_up = list(own)
    above: dict[Name, list[Name]] = {name: [] for name in plan}
    # How many rows the longest link through an operator yields for each that its lower end takes.
    rows: dict[Name, float] = {}
    for name in bottom_up:
        one = plan[name]
        rows[name] = max((1.0, *(rows[child] for child in one.inputs))) * one.selectivity
        for child in one.inputs:
            above[child].append(name)
    labels: dict[Name, Label] = {}
    for name in reversed(bottom_up):
        waits_for = (labels[parent] for parent in above[name]) if rows[name] > 1 else ()
        labels[name] = own[name].union(*waits_for)
    return labels
