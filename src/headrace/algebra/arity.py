"""What plan nodes of one and of two inputs have in common; `headrace.algebra.nodes` says what a node is.

Every node has a `schema`, the columns of its payloads; a `domain`, what its instants count; and says by
`is_chronon` whether all elements of its stream are valid for one instant (thesis, table 12.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from headrace.algebra.kinds import JoinKind, SetKind
from headrace.schema import Schema
from headrace.time import TimeDomain

if TYPE_CHECKING:
    from headrace.algebra.nodes import Plan  # The union of all nodes, these among them.


@dataclass(frozen=True)
class Unary:
    """A node with one input, like which it is where it does not say otherwise."""

    input: Plan

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema

    @cached_property
    def domain(self) -> TimeDomain:
        """What the input's instants count."""
        return self.input.domain

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: those of the input are."""
        return self.input.is_chronon


@dataclass(frozen=True)
class Binary(ABC):
    """A node with two inputs, whose instants count the same."""

    left: Plan
    right: Plan

    @property
    @abstractmethod
    def kept(self) -> JoinKind | SetKind:
        """Which rows of its inputs the node keeps."""

    @cached_property
    def domain(self) -> TimeDomain:
        """What the inputs' instants count."""
        return self.left.domain

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: by those that the node keeps."""
        return self.kept.is_brief(self.left.is_chronon, self.right.is_chronon)
