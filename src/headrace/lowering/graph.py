"""The query graph: physical nodes, the exchanges between them, and the levels they are cut into.

All queries share one graph; equal subplans are one node. Level 0 reads the sources and runs what needs no
state; each further level begins where the partitioning key changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from headrace.algebra.arrival import NO_PAST, NO_PASTS, Dial, Pasts
from headrace.algebra.horizon import Horizon
from headrace.algebra.memory import Memory
from headrace.algebra.nodes import (
    Aggregate,
    Early,
    RefreshedRelation,
    Remember,
    Source,
)
from headrace.algebra.properties import output_heartbeat
from headrace.algebra.tunings.tunings import Tunings, tuned
from headrace.elements import Int64Array
from headrace.expressions.tree import Literal
from headrace.lowering.known_heartbeats import HeartbeatInputs, KnownHeartbeats
from headrace.lowering.node import Exchange, Node
from headrace.time import INFINITY


@dataclass(frozen=True)
class Merge:
    """State that has become equal to that of an older operator, which goes on for both.

    Attributes:
        shape: the `Node.shape` of the operator.
        start: since when it has seen its input.
        into: since when the older one has.
    """

    shape: str
    start: int
    into: int


@dataclass(frozen=True)
class Group:
    """What one of many queries of a shape gets of what a node yields for all of them.

    Attributes:
        node: the node's number.
        constant: the query gets the elements that have it in their last column, without that column.
    """

    node: int
    constant: Literal


@dataclass(frozen=True)
class Panes:
    """Windows over one input whose rows are added up once for all of them.

    Time is cut into panes so short that each window takes the rows of a pane together. What is added up by
    group and pane is put into the windows instead of the rows.

    Attributes:
        node: the windows' input, or one that has more columns of the same stream.
        length: of a pane (instants); panes start at its multiples.
        plan: an aggregate over that input with all sums that are needed.
        members: the exchanges after the windows, each with the number of its window's node.
        parts: for each of these the aggregate over that input for which it brings the sums.
        columns: for each of these where the columns of its window's input are in that input.
    """

    node: int
    length: int
    plan: Aggregate
    members: tuple[tuple[int, Exchange], ...]
    parts: tuple[Aggregate, ...]
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Graph:
    """All queries as one graph.

    Attributes:
        nodes: in topological order; node i has number i.
        outputs: per query its name and the number of the node, or of the group, that is its result.
        groups: the parts of results that are queries' own; their numbers follow those of the nodes.
        panes: the windows whose input is added up together before it travels.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, int], ...]
    groups: tuple[Group, ...] = ()
    panes: tuple[Panes, ...] = ()

    def __getstate__(self) -> dict[str, object]:
        """What is given; what follows is worked out again, also where another thread is at it."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def node_of(self, output: int) -> int:
        """The number of the node that yields an output."""
        return output if output < len(self.nodes) else self.groups[output - len(self.nodes)].node

    def tuned(self, tunings: Tunings) -> Graph:
        """The graph with the sizes that windows within bounds have come to have; itself without any."""
        if not tunings:
            return self

        def sized(node: Node) -> Node:
            plan = tuned(node.plan, tunings)
            return node if plan is node.plan else replace(node, plan=plan)

        return replace(self, nodes=tuple(map(sized, self.nodes)))

    @cached_property
    def answers(self) -> tuple[tuple[str, int], ...]:
        """Per query its name and the number of the node that yields its result."""
        nodes = [*range(len(self.nodes)), *(group.node for group in self.groups)]
        return tuple((name, nodes[output]) for name, output in self.outputs)

    @cached_property
    def answering(self) -> dict[str, int]:
        """The same by name."""
        return dict(self.answers)

    @cached_property
    def names_of(self) -> dict[int, tuple[str, ...]]:
        """Per output the queries that it answers."""
        found: dict[int, list[str]] = {}
        for name, output in self.outputs:
            found.setdefault(output, []).append(name)
        return {output: tuple(names) for output, names in found.items()}

    @cached_property
    def levels(self) -> int:
        """How many levels follow level 0."""
        return max((node.level for node in self.nodes), default=0)

    @cached_property
    def by_level(self) -> tuple[tuple[Node, ...], ...]:
        """The nodes of every level from 0 on, each in topological order."""
        return tuple(
            tuple(node for node in self.nodes if node.level == level) for level in range(self.levels + 1)
        )

    @cached_property
    def output_numbers(self) -> Int64Array:
        """int64[queries]: the numbers of the outputs alone."""
        return np.array([output for _, output in self.outputs], dtype=np.int64)

    @cached_property
    def whole_results(self) -> frozenset[int]:
        """The nodes that are the results of queries."""
        return frozenset(output for _, output in self.outputs if output < len(self.nodes))

    @cached_property
    def result_nodes(self) -> frozenset[int]:
        """The nodes that are results of queries, or have groups that are."""
        return self.whole_results | self.groups_of.keys()

    @cached_property
    def groups_of(self) -> dict[int, dict[int, Literal]]:
        """For each node whose result has groups, the constant of each of them by the group's number."""
        found: dict[int, dict[int, Literal]] = {}
        for number, group in enumerate(self.groups, len(self.nodes)):
            found.setdefault(group.node, {})[number] = group.constant
        return found

    @cached_property
    def channels(self) -> tuple[tuple[int, Exchange], ...]:
        """The distinct exchanges: producer and exchange; their place here is the channel's number."""
        edges = (edge for node in self.nodes for edge in node.inputs)
        return tuple(dict.fromkeys((edge.producer, edge.exchange) for edge in edges if edge.exchange))

    @cached_property
    def channel_numbers(self) -> dict[tuple[int, Exchange], int]:
        """The number of each channel."""
        return {channel: number for number, channel in enumerate(self.channels)}

    @cached_property
    def inbound(self) -> tuple[tuple[int | None, ...], ...]:
        """For each input of each node the number of the channel that it comes on; None in one level."""
        numbers = self.channel_numbers
        return tuple(
            tuple(
                None if (way := edge.exchange) is None else numbers[edge.producer, way]
                for edge in node.inputs
            )
            for node in self.nodes
        )

    @cached_property
    def outbound(self) -> dict[int, tuple[int, ...]]:
        """The numbers of the channels that begin at a node, for those where some do."""
        found: dict[int, list[int]] = {}
        for number, (producer, _) in enumerate(self.channels):
            found.setdefault(producer, []).append(number)
        return {producer: tuple(numbers) for producer, numbers in found.items()}

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each channel the numbers of the nodes that read it."""
        found: dict[tuple[int, Exchange], list[int]] = {channel: [] for channel in self.channels}
        for node in self.nodes:
            for edge in node.inputs:
                if edge.exchange is not None and node.number not in found[edge.producer, edge.exchange]:
                    found[edge.producer, edge.exchange].append(node.number)
        return tuple(map(tuple, found.values()))

    @cached_property
    def last_levels(self) -> tuple[int, ...]:
        """For each channel the last level in which a node reads it."""
        return tuple(max(self.nodes[number].level for number in numbers) for numbers in self.readers)

    @cached_property
    def prefix(self) -> tuple[Node, ...]:
        """The nodes of level 0 whose elements somebody needs, in topological order."""
        paned = {member for part in self.panes for member in part.members}
        uses = {
            edge.producer
            for node in self.nodes
            for edge in node.inputs
            if (edge.producer, edge.exchange) not in paned
        }
        uses |= {part.node for part in self.panes} | self.result_nodes
        return tuple(node for node in self.by_level[0] if node.number in uses)

    def prefix_of(self, name: str) -> tuple[Node, ...]:
        """Those that see elements of an input, by its name."""
        if name not in self._prefixes:
            reading = {node.number for node in self.prefix if node.reads == name}
            seen = reading.union(*map(self.above, reading))
            self._prefixes[name] = tuple(node for node in self.prefix if node.number in seen)
        return self._prefixes[name]

    @cached_property
    def _prefixes(self) -> dict[str, tuple[Node, ...]]:
        return {}

    def heartbeats(
        self, inputs: Mapping[str, int], newest: Mapping[str, int], pasts: Pasts = NO_PASTS
    ) -> tuple[int, ...]:
        """The heartbeat of every node's output (instants).

        Args:
            inputs: those of streams and relations.
            newest: per stream the largest timestamp that came, BEGINNING before the first (instants).
            pasts: what the streams of `dials` had brought before.
        """
        if self._waits:
            return self._heartbeats(inputs, newest, pasts, self.limits(inputs, newest, pasts))
        return self._known((inputs, newest, pasts), self._known_heartbeats)

    def free_heartbeats(
        self, inputs: Mapping[str, int], newest: Mapping[str, int], pasts: Pasts = NO_PASTS
    ) -> tuple[int, ...]:
        """What they would be if no node waited for others than its inputs; those of results are the same."""
        return self._heartbeats(inputs, newest, pasts, (INFINITY,) * len(self.nodes))

    def limits(
        self, inputs: Mapping[str, int], newest: Mapping[str, int], pasts: Pasts = NO_PASTS
    ) -> tuple[int, ...]:
        """Per node the instant below which it takes elements; INFINITY where it takes all.

        A node waits for nodes that are read beside it on its only way to a result. The result's heartbeat is
        not beyond theirs, so it is the same with these limits as without.

        Args:
            inputs, newest, pasts: as of `heartbeats`.
        """
        if not self._waits:
            return self.endless
        free = self.free_heartbeats(inputs, newest, pasts)
        return tuple(min((free[other] for other in node.waits_for), default=INFINITY) for node in self.nodes)

    def _heartbeats(
        self, inputs: Mapping[str, int], newest: Mapping[str, int], pasts: Pasts, limits: Sequence[int]
    ) -> tuple[int, ...]:
        result = [0] * len(self.nodes)
        for node in self.nodes:
            result[node.number] = self.heartbeat_of(node, result, inputs, newest, pasts, limits)
        return tuple(result)

    def heartbeat_of(
        self,
        node: Node,
        below: Sequence[int],
        inputs: Mapping[str, int],
        newest: Mapping[str, int],
        pasts: Pasts,
        limits: Sequence[int],
    ) -> int:
        """The heartbeat of a node's output (instant).

        Args:
            node: the node.
            below: those of the nodes before it.
            inputs, newest, pasts: as of `heartbeats`.
            limits: as `limits` has them.
        """
        reads = self.reading[node.number]
        if reads is not None:
            return inputs[reads]
        if isinstance(node.plan, Remember):
            memory = node.plan.memory
            past = pasts.get(memory.stream, NO_PAST)
            return memory.reached(below[node.inputs[0].producer], newest[memory.stream], past)
        limit = limits[node.number]
        return output_heartbeat(node.plan, tuple(min(below[edge.producer], limit) for edge in node.inputs))

    @cached_property
    def reading(self) -> tuple[str | None, ...]:
        """For each node what it reads, if it has no inputs."""
        return tuple(node.reads for node in self.nodes)

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node the numbers of those that read it, each once, in order."""
        found: list[dict[int, None]] = [{} for _ in self.nodes]
        for node in self.nodes:
            for edge in node.inputs:
                found[edge.producer][node.number] = None
        return tuple(map(tuple, found))

    @cached_property
    def above_here(self) -> tuple[tuple[int, ...], ...]:
        """The same without those that read it through an exchange, which are of later levels."""
        found: list[dict[int, None]] = [{} for _ in self.nodes]
        for node in self.nodes:
            for edge in node.inputs:
                if edge.exchange is None:
                    found[edge.producer][node.number] = None
        return tuple(map(tuple, found))

    def depending_on(self, name: str) -> tuple[int, ...]:
        """The nodes whose heartbeats depend on what is known of an input, in order."""
        if name not in self._depending:
            first = {
                node.number
                for node in self.nodes
                if self.reading[node.number] == name
                or (isinstance(node.plan, Remember) and node.plan.memory.stream == name)
            }
            self._depending[name] = tuple(sorted(first.union(*map(self.above, first))))
        return self._depending[name]

    @cached_property
    def _depending(self) -> dict[str, tuple[int, ...]]:
        return {}

    @cached_property
    def _waits(self) -> bool:
        return any(node.waits_for for node in self.nodes)

    @cached_property
    def endless(self) -> tuple[int, ...]:
        """The limits of nodes that take all elements."""
        return (INFINITY,) * len(self.nodes)

    @cached_property
    def _known_heartbeats(self) -> KnownHeartbeats:
        return KnownHeartbeats()

    def reaches(
        self, inputs: Mapping[str, int], newest: Mapping[str, int], pasts: Pasts = NO_PASTS
    ) -> dict[Horizon, tuple[int, ...]]:
        """Per horizon up to where every node speaks (instants).

        Args:
            inputs: the heartbeats of streams and relations.
            newest: per stream the largest timestamp that came, BEGINNING before the first (instants).
            pasts: what the streams of `dials` had brought before.
        """
        read = self.refreshed
        found = {}
        for horizon in self.horizons:
            reached = horizon.of(inputs, newest, read, pasts)
            if self._waits:
                found[horizon] = self.heartbeats(reached, newest, pasts)
            else:
                known = self._known_reaches.setdefault(horizon, KnownHeartbeats())
                found[horizon] = self._known((reached, newest, pasts), known)
        return found

    def _known(self, given: HeartbeatInputs, known: KnownHeartbeats) -> tuple[int, ...]:
        """The heartbeats where no node waits for others than its inputs: most are those of before."""

        def heartbeat(number: int, below: Sequence[int]) -> int:
            return self.heartbeat_of(self.nodes[number], below, *given, self.endless)

        return known.of(given, len(self.nodes), heartbeat, self.depending_on)

    @cached_property
    def _known_reaches(self) -> dict[Horizon, KnownHeartbeats]:
        return {}

    @cached_property
    def refreshed(self) -> dict[str, str]:
        """The inputs that are readings of relations that are refreshed, with the names of these."""
        leaves = ((node.reads, node.plan) for node in self.nodes)
        return {
            reads: plan.name
            for reads, plan in leaves
            if reads is not None and isinstance(plan, RefreshedRelation)
        }

    @cached_property
    def horizons(self) -> tuple[Horizon, ...]:
        """The different horizons up to which nodes speak."""
        plans = (node.plan for node in self.nodes)
        return tuple(dict.fromkeys(plan.horizon for plan in plans if isinstance(plan, Early)))

    @cached_property
    def dials(self) -> dict[str, tuple[Dial, ...]]:
        """Per stream how far back some horizon or memory looks at what it had brought; without others."""
        found: dict[str, dict[Dial, None]] = {}
        for memory in self.memories:
            if memory.dial is not None:
                found.setdefault(memory.stream, {})[memory.dial] = None
        for horizon in self.horizons:
            if (dial := horizon.dial) is not None:
                for name in horizon.streams:
                    found.setdefault(name, {})[dial] = None
        return {name: tuple(dials) for name, dials in found.items()}

    @cached_property
    def memories(self) -> dict[Memory, tuple[str, ...]]:
        """How long streams are remembered for some queries, with the names of these queries."""
        found: dict[Memory, dict[str, None]] = {}
        for node in self.nodes:
            if isinstance(node.plan, Remember):
                found.setdefault(node.plan.memory, {}).update(dict.fromkeys(self.users[node.number]))
        return {memory: tuple(names) for memory, names in found.items()}

    def streams_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The streams that some nodes depend on."""
        below = frozenset[int]().union(*map(self.below, numbers))
        plans = (self.nodes[number].plan for number in sorted(below))
        return tuple(dict.fromkeys(plan.name for plan in plans if isinstance(plan, Source)))

    def above(self, node: int) -> frozenset[int]:
        """All nodes that depend on a node."""
        if node not in self._above:
            found = {node}
            for other in self.nodes[node + 1 :]:
                if any(edge.producer in found for edge in other.inputs):
                    found.add(other.number)
            self._above[node] = frozenset(found - {node})
        return self._above[node]

    @cached_property
    def _above(self) -> dict[int, frozenset[int]]:
        return {}

    def below(self, node: int) -> frozenset[int]:
        """A node and all that it depends on."""
        found, left = {node}, [node]
        while left:
            inputs = {edge.producer for edge in self.nodes[left.pop()].inputs} - found
            found |= inputs
            left += inputs
        return frozenset(found)

    @cached_property
    def users(self) -> tuple[tuple[str, ...], ...]:
        """For each node the names of the queries whose results depend on it."""
        found: list[dict[int, None]] = [{} for _ in self.nodes]
        for place, (_, output) in enumerate(self.outputs):
            found[self.node_of(output)][place] = None
        for node in reversed(self.nodes):
            for edge in node.inputs:
                found[edge.producer] |= found[node.number]
        return tuple(tuple(self.outputs[place][0] for place in sorted(part)) for part in found)


def needed_merges(merges: Iterable[Merge], starts: Iterable[int]) -> tuple[Merge, ...]:
    """Those merges that operators of queries of some starts go by."""
    known = set(starts)
    found = []
    for merge in sorted(merges, key=lambda merge: -merge.start):
        if merge.start in known:
            known.add(merge.into)
            found.append(merge)
    return tuple(found)
