"""The physical nodes of the query graph, and the exchanges between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.algebra.nodes import Aggregate, Distinct, Plan, Relation, Source, TopK
from headrace.expressions.tree import Expression


class Spread(Enum):
    """How an exchange spreads elements over the buckets."""

    KEY = "key"
    """By the hash of the exchange's keys; without keys all go to one bucket."""
    ROW = "row"
    """By the hash of the whole payload."""
    COPY = "copy"
    """To every bucket."""


@dataclass(frozen=True)
class Exchange:
    """A change of partitioning.

    Attributes:
        spread: how elements find their bucket.
        keys: expressions over the producer's columns, for `Spread.KEY`.
        reduced_for: the node for which the producer reduces its elements before it sends them, or None: an
            aggregation, whose accumulated form travels, added up; a TopK, without the rows that it can
            never show; or a DISTINCT, without rows that are there before.
    """

    spread: Spread
    keys: tuple[Expression, ...] = ()
    reduced_for: Aggregate | TopK | Distinct | None = None


@dataclass(frozen=True)
class Edge:
    """What a node reads: who produces it, and the exchange in between, if there is one."""

    producer: int
    exchange: Exchange | None = None


def reading_of(relation: str, start: int) -> str:
    """The name of what is read of a relation for the queries of one start.

    Each of them sees all of the relation, so that it is read once per start. No stream or relation can have
    such a name, except that of a relation itself.
    """
    return relation if start == 1 else f"{relation} since {start}"


Partitioning = frozenset[tuple[int, ...]]
"""Alternative lists of columns by whose hash a stream is spread; the empty list is one bucket for all."""


@dataclass(frozen=True)
class Node:
    """A physical node.

    Attributes:
        number: its place in the graph; inputs have smaller numbers.
        plan: the logical node it carries out.
        inputs: one edge per input of the plan node; one per input of the union for an aggregation that reads
            these one by one.
        level: the stage it runs in; 0 is the stage that reads the sources.
        identity: digest of the plan and of its query's start, which names its state.
        start: the epoch from which on it has seen its input, 1 where it has not to remember any.
        shape: digest of the plan alone.
        waits_for: the nodes, besides its inputs, beyond whose heartbeats it takes nothing.
        held: digest of what it and those below it wait for; empty for nothing. It is part of the identity.
        spread_by: lists of columns by each of whose hashes its output is spread, after level 0; none where
            elements may be in any bucket.
    """

    number: int
    plan: Plan
    inputs: tuple[Edge, ...]
    level: int
    identity: str
    start: int = 1
    shape: str = ""
    waits_for: tuple[int, ...] = ()
    held: str = ""
    spread_by: Partitioning = frozenset()

    @property
    def reads(self) -> str | None:
        """What a node without inputs reads: the name of a stream, or of a reading of a relation."""
        match self.plan:
            case Relation(name=name):
                return reading_of(name, self.start)
            case Source(name=name):
                return name
            case _:
                return None

    @property
    def reduced_for(self) -> Aggregate | TopK | Distinct | None:
        """The plan if elements are reduced for it before an exchange, so that they come in another form."""
        exchanges = (edge.exchange.reduced_for for edge in self.inputs if edge.exchange is not None)
        return next(exchanges, None)
