"""Plan nodes, other than windows, that change when rows are valid.

`headrace.algebra.nodes` says what a node is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.arity import Unary
from headrace.errors import PlanError
from headrace.time import INFINITY, Duration


@dataclass(frozen=True)
class Granularity(Unary):
    """At t, `M(k*g)` for the granule g and the largest such instant up to t (thesis, chapter 20)."""

    granule: Duration

    def __post_init__(self) -> None:
        if not 1 <= self.granule.length < INFINITY:
            raise PlanError("GRANULARITY takes a length of at least 1")

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: granules of one change nothing."""
        return self.granule.length == 1 and self.input.is_chronon


@dataclass(frozen=True)
class Split(Unary):
    """`M(t)` itself, in elements of one instant each, so that a window can stand over it (thesis, 11.7.1)."""

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: they are."""
        return True


@dataclass(frozen=True)
class Coalesce(Unary):
    """`M(t)` itself, in fewer elements: none ends where its row goes on (thesis, 11.7.2, for all lengths)."""

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: a row that goes on is one element."""
        return False


@dataclass(frozen=True)
class Istream(Unary):
    """At t, what `M(t)` has more than `M(t-1)`: the insertions, as chronons (CQL)."""

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: they are."""
        return True


@dataclass(frozen=True)
class Dstream(Unary):
    """At t, what `M(t-1)` has more than `M(t)`: the deletions, as chronons (CQL)."""

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: they are."""
        return True


@dataclass(frozen=True)
class Rstream(Unary):
    """`M(t)` itself: only the `stream` view of a result tells it from its input."""
