"""The joins among the plan nodes; `headrace.algebra.nodes` says what a node is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headrace.algebra.arity import Binary
from headrace.algebra.checks import require_boolean, require_columns
from headrace.algebra.kinds import JoinKind
from headrace.errors import PlanError
from headrace.expressions.tree import Expression
from headrace.schema import Field, Schema, sql_type, unique_names


@dataclass(frozen=True)
class _Matching(Binary):
    """Two inputs and which of their rows match.

    Attributes:
        equalities: pairs of an expression over the left and one of the same type over the right input; as
            in SQL, NULL equals nothing.
        residual: a predicate over the left columns, then the right ones, or None. Rows for which it or a key
            fails do not match.
    """

    equalities: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None

    def __post_init__(self) -> None:
        for left, right in self.equalities:
            require_columns(left, len(self.left.schema))
            require_columns(right, len(self.right.schema))
            if left.type != right.type:
                raise PlanError(f"a join of {sql_type(left.type)} with {sql_type(right.type)}")
        if self.residual is not None:
            require_boolean(self.residual, "a join's predicate")
            require_columns(self.residual, len(self.left.schema) + len(self.right.schema))


@dataclass(frozen=True)
class _Pairing(_Matching):
    """A join whose result has the left columns, then the right ones, under the given names."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.names) != len(self.left.schema) + len(self.right.schema):
            raise PlanError("a join names every column of both inputs")

    @cached_property
    def schema(self) -> Schema:
        """The left columns, then the right ones, under the join's names."""
        fields = (*self.left.schema, *self.right.schema)
        named = zip(self.names, fields, strict=True)
        return Schema(tuple(Field(name, field.type) for name, field in named))


@dataclass(frozen=True)
class Join(_Pairing):
    """All pairs of `L(t)` and `R(t)` that satisfy the equalities and the residual predicate."""

    @property
    def kept(self) -> JoinKind:
        """Which rows of its inputs the node keeps: pairs."""
        return JoinKind.INNER


@dataclass(frozen=True)
class OuterJoin(_Pairing):
    """The pairs of `Join`, and each row without a match beside NULLs.

    Attributes:
        kind: whose rows are kept without a match: LEFT, RIGHT or FULL (both).
    """

    kind: JoinKind

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL):
            raise PlanError(f"an outer join cannot be {self.kind.value}")

    @property
    def kept(self) -> JoinKind:
        """Which rows of its inputs the node keeps: by its kind."""
        return self.kind


@dataclass(frozen=True)
class SemiJoin(_Matching):
    """`L(t)` without the payloads that match nothing in `R(t)`; or, if `anti`, without those that do.

    A payload is kept with its multiplicity, however many it matches. (The thesis' equation 8.11 multiplies by
    the number of different matches; its anti-join, 8.16, is the same as this one.)
    """

    anti: bool = False

    @property
    def kept(self) -> JoinKind:
        """Which rows of its inputs the node keeps: left ones."""
        return JoinKind.ANTI if self.anti else JoinKind.SEMI

    @property
    def schema(self) -> Schema:
        """The left input's schema."""
        return self.left.schema


AnyJoin = Join | OuterJoin | SemiJoin


def pair_schema(join: AnyJoin) -> Schema:
    """The columns of a pair, which the residual predicate reads: the left ones, then the right ones."""
    if not isinstance(join, SemiJoin):
        return join.schema
    names = unique_names([*join.left.schema.names, *join.right.schema.names])
    types = (field.type for field in (*join.left.schema, *join.right.schema))
    return Schema(tuple(map(Field, names, types)))
