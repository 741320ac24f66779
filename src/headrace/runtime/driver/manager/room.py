"""The state that queries would have that are not there yet, and whether there is room for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from headrace.algebra.nodes import Plan, Relation, Source
from headrace.byte_sizes import format_bytes
from headrace.errors import UserError
from headrace.limits import checked
from headrace.lowering.costs import calls_user, expectations, full_after, row_bytes
from headrace.lowering.lower import lower
from headrace.optimizer.cost.flow import FlowCounts, FlowSample
from headrace.runtime.driver.facts.seen_rows import SeenRun
from headrace.runtime.driver.manager.policy import USED, given_out

LOOKED_AT: Final = 5_000
"""So many rows of each stream are looked at for what a new query will keep."""


@dataclass(frozen=True)
class Room:
    """The state that is expected of queries that are not there yet, when their windows are full.

    Attributes:
        names: what they are called.
        least, now, most: how many bytes more there would be than without them, with the smallest windows,
            with the sizes in force, and with the largest.
        needed: how many bytes what is there needs with the smallest windows.
        limit: how many bytes there may be; any number if None.
        working: how many of them an epoch works with.
        guesses: what their operators are expected to keep for a row, by their shapes (bytes).
    """

    names: tuple[str, ...]
    least: float
    now: float
    most: float
    needed: float
    limit: int | None
    working: float = 0.0
    guesses: Mapping[str, float] = field(default_factory=dict)

    @property
    def lacks(self) -> bool:
        """Whether they would not fit even with the smallest windows."""
        return (
            self.limit is not None
            and self.least > 0
            and self.needed + self.least > given_out(self.limit, self.working)
        )

    def check(self) -> None:
        """Refuse the queries if there is no room for them.

        Raises:
            UserError: there is none, with the numbers.
        """
        if self.lacks:
            assert self.limit is not None
            raise UserError(
                f"{', '.join(self.names)} would need about {format_bytes(self.least)} of memory with the "
                f"smallest windows, and {self._taken}",
                hint=ways_on(self.needed + self.least, self.working),
            )

    @property
    def text(self) -> str:
        """The same for who asks before."""
        sizes = [format_bytes(max(0.0, size)) for size in (self.least, self.now, self.most)]
        if max(self.least, self.now, self.most) < 0:
            found = "less state is expected than there is"
        elif len({*sizes}) == 1:
            found = f"about {sizes[0]} of state are expected"
        else:
            # One that has windows within bounds is replaced: with the largest it may save the most.
            last = "at most" if self.most >= max(self.least, self.now) else "with the largest"
            found = "about {} of state are expected with the smallest windows, {} now, {} {}".format(
                *sizes, last
            )
        if self.limit is None:
            return found
        end = ": it would be refused" if self.lacks else ""
        return f"{found}; {self._taken}{end}"

    @property
    def _taken(self) -> str:
        assert self.limit is not None
        limit, part = format_bytes(self.limit), format_bytes(given_out(self.limit, self.working))
        needed = format_bytes(self.needed)
        return f"{needed} are needed already: of memory_limit, {limit}, only {part} are for state"


def ways_on(least: float, working: float = 0.0) -> str:
    """The ways on for somebody who lacks memory: a limit that would do, in whole kilobytes.

    Args:
        least: the state that there has to be room for (bytes).
        working: how much an epoch works with (bytes).
    """
    enough = -(-(least / USED + working) // 1000)
    more = f"write SET memory_limit = '{enough:.0f} kB', or more"
    return f"{more}; or drop queries, or let windows have a smaller MIN"


def columns_of(plans: Sequence[Plan]) -> dict[str, dict[str, pa.DataType]]:
    """Per stream or relation that some plans read the columns, with their types."""
    wanted: dict[str, dict[str, pa.DataType]] = {}
    for plan in plans:
        for node in lower({"": plan}).nodes:
            if isinstance(node.plan, Source | Relation):
                wanted.setdefault(node.plan.name, {}).update(node.plan.schema.types)
    return wanted


def expected_bytes(plans: Sequence[Plan], seen: SeenRun, sizes: Mapping[str, int]) -> dict[str, float]:
    """The bytes that the operators of some plans are expected to keep with their largest windows, by shape.

    Args:
        plans: the plans.
        seen: what a run has seen of the streams that they read.
        sizes: how many rows relations have.

    Returns:
        Nothing of a plan that reads something of which nothing was seen, or calls a function of the user's.
    """
    found: dict[str, float] = {}
    density = seen.density if math.isfinite(seen.density) else 1.0
    for plan in checked(plans):
        graph = lower({"": plan})
        known: dict[str, FlowSample | FlowCounts] = {name: one.found for name, one in seen.streams.items()}
        read = [node.plan for node in graph.nodes if isinstance(node.plan, Source | Relation)]
        known |= {
            one.name: FlowCounts(0.0) for one in read if isinstance(one, Relation) and one.name in sizes
        }
        if calls_user(plan) or any(one.name not in known for one in read):
            continue
        spans = [seen.streams[one.name].elapsed for one in read if one.name in seen.streams]
        elapsed = max([*spans, full_after(node.plan for node in graph.nodes)])
        for node, expected in zip(graph.nodes, expectations(graph, known, sizes, elapsed), strict=True):
            if expected.state and math.isfinite(expected.state):
                found[node.shape] = density * row_bytes(graph, node) * expected.state
    return found
