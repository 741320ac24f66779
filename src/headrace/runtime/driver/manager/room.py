"""The state and time that queries would need that are not there yet, and whether there is room for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa

from headrace.algebra.nodes import Plan, Relation, Source
from headrace.errors import UserError
from headrace.limits import checked
from headrace.lowering.costs import calls_user, expectations, full_after, row_bytes, selectivities
from headrace.lowering.lower import lower
from headrace.optimizer.cost.flow import FlowCounts, FlowSample
from headrace.runtime.driver.facts.seen_rows import SeenRun
from headrace.runtime.driver.manager.policy import given_out
from headrace.runtime.driver.manager.resources import Resource

LOOKED_AT: Final = 5_000
"""So many rows of each stream are looked at for what a new query will keep."""


@dataclass(frozen=True)
class Share:
    """The part of one resource that is expected of queries that are not there yet.

    Attributes:
        resource: which.
        least, now, most: how much more would be needed than without them, with the smallest windows, with the
            sizes in force, and with the largest.
        needed: how much what is there needs with the smallest windows.
        limit: how much there may be; any amount if None.
        working: how much of it an epoch works with.
        cores: on how many cores the run works, where that is known.
    """

    resource: Resource
    least: float
    now: float
    most: float
    needed: float
    limit: float | None
    working: float = 0.0
    cores: int | None = None

    @property
    def lacks(self) -> bool:
        """Whether they would not fit even with the smallest windows."""
        return (
            self.limit is not None
            and self.least > 0
            and self.needed + self.least > given_out(self.limit, self.working)
        )

    @property
    def ways_on(self) -> str:
        """The ways on where they do not fit."""
        return self.resource.ways_on(self.needed + self.least, self.working, self.cores)

    @property
    def text(self) -> str:
        """The same for who asks before."""
        what = "state" if self.resource is Resource.MEMORY else "processor time"
        amounts = [self.resource.text(max(0.0, amount)) for amount in (self.least, self.now, self.most)]
        if max(self.least, self.now, self.most) < 0:
            found = f"less {what} is expected than there is"
        elif len({*amounts}) == 1:
            found = f"about {amounts[0]} of {what} are expected"
        else:
            # One that has windows within bounds is replaced: with the largest it may save the most.
            last = "at most" if self.most >= max(self.least, self.now) else "with the largest"
            least, now, most = amounts
            found = (
                f"about {least} of {what} are expected with the smallest windows, {now} now, {most} {last}"
            )
        if self.limit is None:
            return found
        end = ": it would be refused" if self.lacks else ""
        return f"{found}; {self.taken}{end}"

    @property
    def taken(self) -> str:
        """The limit, and the part of it that is taken."""
        assert self.limit is not None
        limit, part, needed = map(
            self.resource.text, (self.limit, given_out(self.limit, self.working), self.needed)
        )
        use = "are for state" if self.resource is Resource.MEMORY else "are given out"
        return f"{needed} are needed already: of {self.resource.value}, {limit}, only {part} {use}"


@dataclass(frozen=True)
class Room:
    """The state, and the processor time, that is expected of queries that are not there yet.

    Attributes:
        names: what they are called.
        shares: what is expected of each resource, when their windows are full; of processor time only where
            it is limited.
        guesses: what their operators are expected to keep for a row, by their shapes (bytes).
    """

    names: tuple[str, ...]
    shares: tuple[Share, ...]
    guesses: Mapping[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse the queries if there is no room for them.

        Raises:
            UserError: there is none, with the numbers.
        """
        for share in self.shares:
            if share.lacks:
                what = " of memory" if share.resource is Resource.MEMORY else ""
                raise UserError(
                    f"{', '.join(self.names)} would need about {share.resource.text(share.least)}{what} with "
                    f"the smallest windows, and {share.taken}",
                    hint=share.ways_on,
                )

    @property
    def text(self) -> str:
        """The expectation, for who asks before."""
        return "\n".join(share.text for share in self.shares)


def columns_of(plans: Sequence[Plan]) -> dict[str, dict[str, pa.DataType]]:
    """Per stream or relation that some plans read the columns, with their types."""
    wanted: dict[str, dict[str, pa.DataType]] = {}
    for plan in plans:
        for node in lower({"": plan}).nodes:
            if isinstance(node.plan, Source | Relation):
                wanted.setdefault(node.plan.name, {}).update(node.plan.schema.types)
    return wanted


class ExpectedOperator(NamedTuple):
    """An operator that is not there yet, as it is expected with its largest windows.

    Attributes:
        size: the bytes that it keeps.
        rows: the rows that it keeps.
        selectivity: how many rows it yields for each that it takes.
    """

    size: float
    rows: float
    selectivity: float


def expected_operators(
    plans: Sequence[Plan], seen: SeenRun, sizes: Mapping[str, int]
) -> dict[str, ExpectedOperator]:
    """The operators of some plans as they are expected with their largest windows, by shape.

    Args:
        plans: the plans.
        seen: what a run has seen of the streams that they read.
        sizes: how many rows relations have.

    Returns:
        Nothing of a plan that reads something of which nothing was seen, or calls a function of the user's.
    """
    found: dict[str, ExpectedOperator] = {}
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
        expected = expectations(graph, known, sizes, elapsed)
        yields = selectivities(graph, expected)
        for node, one in zip(graph.nodes, expected, strict=True):
            each = yields.get(node.number, 1.0)
            if node.inputs and math.isfinite(one.state) and math.isfinite(each):
                size = density * row_bytes(graph, node) * one.state
                found[node.shape] = ExpectedOperator(size, one.state, each)
    return found
