"""The logical plan: frozen nodes of a closed union, each of which refuses a malformed tree.

A node denotes a stream, that is, a multiset of payloads at every instant (its content). The docstrings give
each node's definition on contents: `M(t)` is the input's content at instant t.

Every node has a `schema`, the columns of its payloads; a `domain`, what its instants count; and says by
`is_chronon` whether all elements of its stream are valid for one instant (thesis, table 12.1).

A recursive type is one definition, so all nodes are in this module, however long it is.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import ClassVar, Final, assert_never

import pyarrow as pa

from headrace.algebra.arrival import Unit
from headrace.algebra.by_object import REMEMBERED, ByObject
from headrace.algebra.checks import require_boolean, require_columns, require_same_types
from headrace.algebra.failure import can_fail
from headrace.algebra.frames import MAX_ROWS, Frame
from headrace.algebra.horizon import Horizon
from headrace.algebra.kinds import BloomKind, Filling, JoinKind, Ranking, SetKind
from headrace.algebra.memory import Memory
from headrace.errors import PlanError
from headrace.expressions.aggregates.functions import function_of
from headrace.expressions.aggregates.within import is_sampled
from headrace.expressions.coercion import is_numeric
from headrace.expressions.tree import (
    AggregateCall,
    Column,
    Expression,
    Literal,
    SortKey,
    expressions_of,
    walk,
)
from headrace.nested import is_sequence, part_types
from headrace.schema import BIGINT, DOUBLE, TIMESTAMP, Field, Schema, sql_type, unique_names
from headrace.steps import WHOLE, Scale, StepFunction
from headrace.time import BEGINNING, INFINITY, MAX_INSTANT, Duration, TimeDomain
from headrace.value_graph import ValueGraph

EVERY_INSTANT: Final = Duration(1)
"""The slide of a window that moves at every instant."""

NO_OFFSET: Final = Duration(0)
"""The offset of windows that end at multiples of their slide."""


_GRANULES: Final = 250
"""So many granules are at most in the size of a Bloom filter's window."""


# What nodes of one and of two inputs have in common.


@dataclass(frozen=True)
class Unary:
    """A node with one input, whose properties it inherits by default."""

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


# The source, and the operators of the relational algebra, applied at every instant.


@dataclass(frozen=True)
class Source:
    """A stream that comes from outside; its elements are chronons `[t, t+1)`.

    Attributes:
        name: the stream's name in the catalog.
        schema: the columns that are read (a part of the stream's columns, or all).
        timestamp: the name of the column the stream is timed by; it need not be among those read.
        domain: what the stream's instants count.
    """

    name: str
    schema: Schema
    timestamp: str
    domain: TimeDomain

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: they are."""
        return True


@dataclass(frozen=True)
class EventSource(Source):
    """A stream from outside whose rows are valid for as long as they say, or take others back.

    Attributes:
        lasting: whether rows are valid from their timestamp on until their end, instead of for that instant.
        ends: the column that ends them, the end being exclusive, or None where none of them ends.
        signed: whether some rows take others back.
    """

    lasting: bool
    ends: str | None
    signed: bool

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: where rows have no lifetimes."""
        return not self.lasting


@dataclass(frozen=True)
class Relation:
    """A table that comes from outside, and is read whole before any row of a stream.

    Constant: every row is in the content of every instant. Temporal: of the instants of its period. Rows that
    have a beginning alone are changes, which are valid for that instant.

    Attributes:
        name: the relation's name in the catalog.
        schema: the columns that are read (a part of the relation's columns, or all).
        domain: what instants count; a constant relation has that of the streams it meets.
        valid: the columns that begin and end the period of a row, the end being exclusive, or None for a
            constant relation; they need not be among those read. NULL means without a bound. No column for
            the end means that a row is valid for the instant that it begins with, which then is not NULL.
    """

    name: str
    schema: Schema
    domain: TimeDomain
    valid: tuple[str, str | None] | None = None

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: if none has an end of its own."""
        return self.valid is not None and self.valid[1] is None

    @property
    def period_columns(self) -> tuple[str, ...]:
        """The columns that say when rows are valid."""
        return () if self.valid is None else tuple(name for name in self.valid if name is not None)

    @property
    def is_constant(self) -> bool:
        """Whether every row is in the content of every instant."""
        return self.valid is None


@dataclass(frozen=True)
class RefreshedRelation(Relation):
    """A relation that is read again while queries run: at any instant it is what was read last before it.

    Its rows begin at the instant of the refresh that brought them, and are taken back at that of the one that
    no longer did; those that were read first have always been there.
    """

    @property
    def is_constant(self) -> bool:
        """It is not: a later refresh may change it."""
        return False


@dataclass(frozen=True)
class Filter(Unary):
    """`M(t)` without the payloads for which the predicate is not true."""

    predicate: Expression

    def __post_init__(self) -> None:
        require_boolean(self.predicate, "a filter's predicate")
        require_columns(self.predicate, len(self.input.schema))


@dataclass(frozen=True)
class Project(Unary):
    """`M(t)` with every payload mapped; multiplicities of equal results add up (PIPES' map)."""

    items: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        for _, expression in self.items:
            require_columns(expression, len(self.input.schema))
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """One column per item."""
        return Schema(tuple(Field(name, expression.type) for name, expression in self.items))


@dataclass(frozen=True)
class Unnest(Unary):
    """Every payload of `M(t)` once for each value of an ARRAY, or entry of a MAP, that is computed of it.

    Attributes:
        values: the ARRAY or MAP.
        kept: the places of the payload's columns that are kept.
        names: of the columns that come after those of the payload: the value, or the fields of a STRUCT if
            there are several names; the key and the value of an entry.
        ordinality: the name of a last column with the place of the value, from 1; None for no such column.
        outer: whether a payload without values is kept, with NULLs in these columns.
    """

    values: Expression
    kept: tuple[int, ...]
    names: tuple[str, ...]
    ordinality: str | None = None
    outer: bool = False

    def __post_init__(self) -> None:
        require_columns(self.values, len(self.input.schema))
        if not is_sequence(self.values.type):
            raise PlanError(
                f"UNNEST takes an ARRAY or a MAP, not {sql_type(self.values.type)}",
                hint="SPLIT(text, ',') makes an ARRAY of a text",
            )
        if len(self.names) != len(self.types):
            of = f"UNNEST of {sql_type(self.values.type)}"
            raise PlanError(f"{of} gives {len(self.types)} columns, not {len(self.names)}")
        _ = self.schema

    @cached_property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns that are added, but for the place."""
        found = tuple(part_types(self.values.type))
        if len(found) == 1 and len(self.names) > 1 and pa.types.is_struct(found[0]):
            return tuple(part_types(found[0]))
        return found

    @cached_property
    def schema(self) -> Schema:
        """The columns that are kept, and those that are added."""
        added = [Field(name, dtype) for name, dtype in zip(self.names, self.types, strict=True)]
        if self.ordinality is not None:
            added.append(Field(self.ordinality, BIGINT))
        return Schema((*self.input.schema.select(self.kept), *added))


@dataclass(frozen=True)
class Sample(Unary):
    """Of `M(t)` about `percent` of a hundred, each row apart (CQL's SAMPLE, section 2.1).

    Of a payload that is there n times it has those numbers below n whose hash, with the payload, is among the
    first `percent` of a hundred, as `headrace.reference.sampling` defines it: the same for ever. So it is a
    function of the content, and a retraction takes back what the row that it retracts has added.

    Attributes:
        percent: how many rows of a hundred, above 0 and up to 100.
        timed: whether the instant is hashed too, so that equal rows of different instants are sampled apart.
            The rows are chronons then; those that last would come and go.
    """

    percent: Decimal
    timed: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise PlanError("SAMPLE takes a percentage above 0 and up to 100")
        if self.timed and not self.input.is_chronon:
            raise PlanError("rows that are sampled by their instant are of one")


@dataclass(frozen=True)
class Weighing(Unary):
    """A node that knows which share of some streams' rows is kept at each instant.

    The share is a step function p of application time, and a row that is kept weighs 1 / p.

    Attributes:
        streams: the streams of which rows are left out together, in order.
        loss: what its query says that may be lost; with the streams it says whose share this is.
        steps: the shares after the first, which is all, with the instants from which on (millionths). They
            are data of the operator and no part of its identity.
    """

    streams: tuple[str, ...]
    loss: str
    steps: StepFunction = ()

    least: ClassVar[int] = 1
    """The smallest value of a step (millionths)."""

    def __post_init__(self) -> None:
        if any(not self.least <= step.value <= WHOLE for step in self.steps):
            raise PlanError(f"a share is from {self.least} to {WHOLE} millionths")


@dataclass(frozen=True)
class Shed(Weighing):
    """Of `M(t)` the share that is kept at t, chosen by hash, each row with what it stands for.

    A payload is kept at t, as often as it is there, where the hash of the payload, of t and of a number
    (`headrace.reference.sampling`) is below p(t) of 2^64: of a smaller share a subset. Two columns more say
    what a kept row stands for: `draw`, the hash, by which rows of an instant that were kept for each other's
    sake are told from others; and `weight`, 1 / p(t).

    Equal rows of an instant are kept together, so that each row is decided on alone and none is waited for.

    *By size.* Where it is known how large rows usually are, large ones are kept more often. The size s of a
    row is the mean of |x| / m over its sizes x, m being what each is usually. With p for the share, a row
    weighs 1 + 2 (1 - p) / p / (1 + s), and 1 from s = 2 / p on; it is kept where its hash is below one of
    that of 2^64. So where s is 1 on average no more than a share is kept, but for what is kept for certain,
    and a sum is made of parts of which none is large (a defensive mixture: Hesterberg, Technometrics 1995).

    *By key.* With keys the hash is of these alone, without the instant and the number. So all rows of a key
    are kept together, also of several streams, and a join of what is kept is what is kept of the join.

    Attributes:
        number: which of the streams it is of, from 0, so that equal rows of two streams are drawn apart.
        sizes: the names of the sizes, DOUBLEs in the last columns of the input, which the hash leaves out.
        keys: so many of the last columns of the input are keys; there are no sizes then.
        scales: how large rows usually are, with the instants from which on. They are data, as the steps are.
    """

    number: int = 0
    sizes: tuple[str, ...] = ()
    keys: int = 0
    scales: tuple[Scale, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_chronon(self.input, "shedding")
        if self.keys and self.sizes:
            raise PlanError("rows are kept by size or by key")
        if any(self.input.schema.fields[place].type != DOUBLE for place in self.size_places):
            raise PlanError("a size is a DOUBLE")

    @property
    def size_places(self) -> range:
        """The places of the sizes among the columns."""
        width = len(self.input.schema)
        return range(width - len(self.sizes), width)

    @property
    def drawn_places(self) -> range:
        """The places of the columns of which the hash is."""
        width = len(self.input.schema)
        return range(width - self.keys, width) if self.keys else range(width - len(self.sizes))

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the draw and the weight."""
        names = unique_names([*self.input.schema.names, "draw", "weight"])
        types = (*(field.type for field in self.input.schema), BIGINT, DOUBLE)
        return Schema(tuple(map(Field, names, types)))


@dataclass(frozen=True)
class Draw(Weighing):
    """Every payload of `M(t)`, with what says for how long a join remembers it.

    Two columns more are `draw`, a hash of the payload, of t and of a number as of `Shed`, and `instant`,
    which is t. The share is that of the rows that joins above remember (`LimitedJoin`): all are kept here.

    Attributes:
        number: which of the rows of the joins above they are, from 0.
        of: a digest of the query's plan, which has shares of its own.
    """

    number: int = 0
    of: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_chronon(self.input, "drawing")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the draw and the instant."""
        names = unique_names([*self.input.schema.names, "draw", "instant"])
        types = (*(field.type for field in self.input.schema), BIGINT, BIGINT)
        return Schema(tuple(map(Field, names, types)))


@dataclass(frozen=True)
class SemanticDrop(Weighing):
    """Of `M(t)` the payloads whose value in a column is worth enough at t.

    A payload is there as often as in `M(t)` if the utility of its value by the graph is at least u(t), or if
    it has no value there, NULL or NaN (Aurora's semantic drop; Tatbul and others, VLDB 2003, section 4). A
    kept row counts once, with no weight for those dropped. The steps are those of u; before the first one u
    is 0, and all are kept.

    Attributes:
        place: the column of the input.
        graph: what its values are worth.
    """

    place: int = field(kw_only=True)
    graph: ValueGraph = field(kw_only=True)
    least: ClassVar[int] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_chronon(self.input, "leaving out rows by their values")
        if not is_numeric(self.input.schema.fields[self.place].type):
            raise PlanError("a value is a number")

    @cached_property
    def schema(self) -> Schema:
        """The input's schema."""
        return self.input.schema


@dataclass(frozen=True)
class Union:
    """The sum of the inputs' contents (UNION ALL)."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise PlanError("a union needs two inputs")
        require_same_types("a union", [below.schema for below in self.inputs])

    @cached_property
    def schema(self) -> Schema:
        """The first input's schema."""
        return self.inputs[0].schema

    @cached_property
    def domain(self) -> TimeDomain:
        """What the inputs' instants count."""
        return self.inputs[0].domain

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: those of all inputs are."""
        return all(below.is_chronon for below in self.inputs)


@dataclass(frozen=True)
class SetOperation(Binary):
    """Every payload of `L(t)` or `R(t)` as often as the kind makes of its multiplicities in both.

    Payloads are compared by grouping equality: NULL equals NULL. UNION ALL is `Union`.
    """

    kind: SetKind

    def __post_init__(self) -> None:
        require_same_types(self.kind.value, (self.left.schema, self.right.schema))

    @cached_property
    def schema(self) -> Schema:
        """The left input's schema."""
        return self.left.schema

    @property
    def kept(self) -> SetKind:
        """Which rows of its inputs the node keeps: its kind."""
        return self.kind


@dataclass(frozen=True)
class Aggregate(Unary):
    """One row per group of `M(t)`: the keys, then the aggregates. No rows, no group, and so no result.

    Grouping takes NULL as equal to NULL, NaN to NaN and -0 to 0. Without keys this is PIPES' scalar
    aggregation: an empty content has no result row.

    Attributes:
        keys: names and expressions that make the groups.
        aggregates: names and what is computed of each group.
        settled: whether the operator speaks of instants below its heartbeat only, so that it takes nothing
            back, and of all its groups whenever the heartbeat moves. The content is the same.
    """

    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    settled: bool = False

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        for _, key in self.keys:
            require_columns(key, width)
        for _, call in self.aggregates:
            for part in expressions_of(call):
                require_columns(part, width)
            if call.condition is not None:
                require_boolean(call.condition, "the condition of FILTER")
            if call.within is not None:
                raise PlanError("exact aggregates have no bounds")
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """The keys, then the aggregates."""
        keys = [Field(name, key.type) for name, key in self.keys]
        return Schema((*keys, *(Field(name, call.type) for name, call in self.aggregates)))


@dataclass(frozen=True)
class Distinct(Unary):
    """Every payload of `M(t)` once."""


@dataclass(frozen=True)
class BloomFilter(Unary):
    """DISTINCT or EXCEPT as a Bloom filter tells them (STREAM, section 5.3): false negatives alone.

    The input are chronons. Of each value the filter has some cells, which the value's hash says, and of each
    cell until when a value that has it is there: the largest end of the rows that have entered. So a value is
    *live* up to the smallest of its cells' ends, and that is no earlier than the largest end of its own rows.
    Ends are multiples of a *granule*, a part of the size.

    DISTINCT: a row of instant u is there from u, or from where its value is no longer live by the rows before
    u, if that is later, up to the last multiple of the granule in `(u, u + size]`. NEW, what ISTREAM makes of
    that, and EXCEPT: a row is there at its own instant u unless its value is live at it; ends are rounded up.
    By the rows before u for NEW, and for EXCEPT by the right input's up to u. Each value is there once.

    All cells of a value are in one block, so that blocks may be spread over buckets (blocked Bloom filters:
    Putze, Sanders and Singler, WEA 2007).

    Attributes:
        size: for how long a row's value is there.
        kind: of what the filter tells. For EXCEPT the last column of the input says of each row whether it is
            of the right input, by 1 or 0; the result has it no more.
        blocks: how many blocks the filter has.
        loss: what the query says of its memory.
    """

    size: Duration
    kind: BloomKind
    blocks: int
    loss: str

    def __post_init__(self) -> None:
        _require_chronon(self.input, "a Bloom filter")
        if self.blocks < 1 or self.size.length < 1:
            raise PlanError("a Bloom filter has a block, and rows last")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, but for that which says whose a row is."""
        fields = self.input.schema.fields
        return Schema(fields[:-1]) if self.kind is BloomKind.EXCEPT else self.input.schema

    @property
    def granule(self) -> int:
        """Ends are multiples of it (instants): so few are in the size that they fit into a byte."""
        return 1 if self.size.length == INFINITY else -(-self.size.length // _GRANULES)

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: all but those of DISTINCT."""
        return self.kind is not BloomKind.DISTINCT


# Joins.


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
class RememberedRows:
    """Rows that are remembered of one input of some joins, as a share of them.

    Attributes:
        number: which of the rows of these joins they are.
        draw, instant: the columns of a pair that have the draw of the row, and its instant.
        steps: the shares after the first, which is all, with the instants from which on (millionths). They
            are data of the operator and no part of its identity.
    """

    number: int
    draw: int
    instant: int
    steps: StepFunction = ()


@dataclass(frozen=True)
class LimitedJoin(Join):
    """The pairs of `Join` that are found where not all rows are remembered (STREAM, section 5.3).

    A pair has rows of several instants. It is found if each of them is remembered up to the newest: if from
    its own instant up to that one its draw is below p of 2^64, where p is the share of such rows that is
    remembered, a step function of application time. So the newest row is always taken, whatever its draw, and
    when p falls rows are forgotten that were remembered before. In which order rows are joined is all the
    same.

    Attributes:
        streams: the streams of the query, in order.
        loss: what the query says of its memory.
        remembered: the shares, of the rows of the left and of the right input.
        of: a digest of the query's plan; with the streams, `loss` and a number it says whose share each is.
    """

    streams: tuple[str, ...]
    loss: str
    remembered: tuple[RememberedRows, ...]
    of: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        width = len(self.schema)
        for rows in self.remembered:
            if not {rows.draw, rows.instant} <= set(range(width)):
                raise PlanError("a draw and an instant are columns of the pair")
            if any(not 1 <= step.value <= WHOLE for step in rows.steps):
                raise PlanError("a share is above 0 and up to 1")

    def of_side(self, port: int) -> tuple[RememberedRows, ...]:
        """The shares of the rows of one input, with the columns of that.

        Args:
            port: 0 for the left input, 1 for the right one.
        """
        width = len(self.left.schema)
        back = width if port else 0
        return tuple(
            replace(rows, draw=rows.draw - back, instant=rows.instant - back)
            for rows in self.remembered
            if (rows.draw >= width) == bool(port)
        )


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


# The first rows of each snapshot.


@dataclass(frozen=True)
class TopK(Unary):
    """The rows of `M(t)` that have some places in their group: from `offset + 1` to `offset + limit`.

    At every instant the rows of a group are ordered by the sort keys, and rows that are equal in these column
    by column, NULL first and NaN last. By ROW_NUMBER a row of multiplicity n has n places; by RANK and
    DENSE_RANK rows that are equal in the sort keys share one, so that there may be more than `limit` rows.
    Groups are those of `Aggregate`; without keys there is one.

    Attributes:
        keys: the columns that make the groups.
        order: columns to sort by, the most significant first.
        limit: how many places of a group are left, or None for all.
        offset: how many places come before them.
        number: the name of a column more, with each row's place, from 1; or None.
        ranking: how places are counted.
    """

    keys: tuple[Column, ...]
    order: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0
    number: str | None = None
    ranking: Ranking = Ranking.ROW_NUMBER

    def __post_init__(self) -> None:
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            raise PlanError("LIMIT and OFFSET are not below 0")
        if self.ranking is not Ranking.ROW_NUMBER and not self.order:
            raise PlanError(f"{self.ranking.value} needs something to sort by")
        for key in (*self.keys, *(key.expression for key in self.order)):
            if not isinstance(key, Column):
                raise PlanError("rows are put in order by columns")
            require_columns(key, len(self.input.schema))
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the place, if it is asked for."""
        added = () if self.number is None else (Field(self.number, BIGINT),)
        return Schema((*self.input.schema, *added))


# Windows, over streams of chronons: elements that are valid for one instant each.


@dataclass(frozen=True)
class TimeWindow(Unary):
    """At t, the sum of `M(u)` for the `size` instants u up to t; with a slide, up to the last slide.

    With slide a > 1 and offset o the content at t is that of the instants `[k*a + o - size, k*a + o - 1]` for
    `k = floor((t + 1 - o) / a)` (thesis, equation 17.1, where o is 0). Size INFINITY is the unbounded window.

    Within bounds the size is a step function w of application time (thesis, section 21.2.1): at t, the sum of
    `M(u)` for the instants u with `u <= t < u + w(u)`, so that each row stays as long as the size says at its
    own instant. With a slide, the same at the last instant `k*a + o - 1` up to t.

    Attributes:
        size: its length; within bounds the largest, which it has before the first step.
        slide: how far apart the instants are at which it moves.
        offset: an instant at which it moves, plus 1.
        smallest: the smallest size that it may have; None where it has one size for ever.
        steps: the sizes that it has later, with the instants from which on (instants). They are data of the
            operator and no part of its identity.
    """

    size: Duration
    slide: Duration = EVERY_INSTANT
    offset: Duration = NO_OFFSET
    smallest: Duration | None = None
    steps: StepFunction = ()

    def __post_init__(self) -> None:
        self._require_bounds()
        if self.size.length < 1 or self.slide.length < 1:
            raise PlanError("a window's RANGE and SLIDE must be at least 1", hint="write NOW for one instant")
        if self.slide.length == INFINITY:
            raise PlanError("a window cannot slide by UNBOUNDED")
        _require_offset(self.slide, self.offset)
        _require_chronon(self.input, "a time window")

    def _require_bounds(self) -> None:
        if self.smallest is None:
            if self.steps:
                raise PlanError("a window without bounds has one size")
            return
        if self.smallest.length < 1 or self.size.length == INFINITY:
            raise PlanError("a window's size is at least 1, and its largest has an end")
        if self.smallest.length > self.size.length:
            raise PlanError(f"a window's smallest size {self.smallest} is above its largest, {self.size}")
        if any(not self.smallest.length <= step.value <= self.size.length for step in self.steps):
            raise PlanError(f"a window's size is from {self.smallest} to {self.size}")

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: in a now-window."""
        return self.size.length == 1 and self.slide.length == 1


@dataclass(frozen=True)
class Lifetime(Unary):
    """At t, the rows x of every `M(u)` whose lifetime has t in it (CEDR's AlterLifetime).

    The lifetime of x in `M(u)` begins at `s = floor(u / granule) * granule + shift`, but not before the first
    instant that a source may give, and ends at `s + duration(x)`; it never ends where the duration is
    INFINITY. A row whose duration is NULL or less than 1 has none.

    Attributes:
        duration: how long a row is valid (a BIGINT of instants).
        granule: to whose multiples the starts are rounded down.
        shift: how much later than that rows begin, or earlier if it is negative (instants).
    """

    duration: Expression
    granule: Duration = EVERY_INSTANT
    shift: int = 0

    def __post_init__(self) -> None:
        require_columns(self.duration, len(self.input.schema))
        if self.duration.type != BIGINT:
            raise PlanError(
                f"the duration of a LIFETIME is a {sql_type(self.duration.type)}",
                hint="give a whole number, such as CAST(days AS BIGINT)",
            )
        if not (1 <= self.granule.length <= MAX_INSTANT and abs(self.shift) <= MAX_INSTANT):
            raise PlanError("the start of a LIFETIME is rounded to a length of at least 1, or moved too far")
        if not self.input.is_chronon:
            raise PlanError(
                "LIFETIME is over rows that are valid for longer than one instant, so that they have no "
                "instant to count from",
                hint="put it on the source stream in FROM, or wrap the subquery in ISTREAM(...)",
            )

    @property
    def fixed(self) -> int | None:
        """The duration that all rows have (instants; 0 for none), or None where it depends on the row."""
        match self.duration:
            case Literal(value=int(length)):
                return max(length, 0)
            case Literal():
                return 0
            case _:
                return None

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: if the duration is one instant."""
        return self.fixed == 1


@dataclass(frozen=True)
class WindowBounds(Unary):
    """`M(t)`, every row with the start and the end of the window that t shows as two columns more.

    It is the window of a `TimeWindow` of the same size, slide and offset, so that the two columns have the
    same values in all rows of an instant. Over such a window this is SQL's HOP, which with `size = slide` is
    TUMBLE: a row is valid from its window's last instant on for one slide.
    """

    size: Duration
    slide: Duration
    offset: Duration = NO_OFFSET

    def __post_init__(self) -> None:
        if self.size.length < 1 or self.slide.length < 1:
            raise PlanError("a window's size and slide must be at least 1", hint="write longer ones")
        if INFINITY in (self.size.length, self.slide.length):
            raise PlanError("a window with a start and an end cannot be UNBOUNDED")
        _require_offset(self.slide, self.offset)

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`, of the timestamp's type."""
        return _with_bounds(self.input)

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: also where a window ends at every instant."""
        return self.slide.length == 1 or self.input.is_chronon


@dataclass(frozen=True)
class WindowEvents(WindowBounds):
    """`WindowBounds` at the last instant of each window; between these instants there is nothing.

    So it is the ISTREAM of a `WindowBounds` whose input changes where windows end and nowhere else: rows of
    different windows differ in their bounds, so that all are new when their window ends. It needs no memory
    of the rows that were there before.
    """

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: yes, the last of their window."""
        return True


@dataclass(frozen=True)
class LargestWeight(Weighing):
    """`M(t)`, every row with the largest weight that a kept row of t's window may have, as one column more.

    It is the window of a `TimeWindow` of the same size, slide and offset over rows that are `Shed`, and the
    weight is 1 / p for the smallest share p at an instant of it: 1 where none is left out. Of windows that
    nothing leaves size is INFINITY.

    Its input says nothing of instants that lie ahead of its heartbeat, since those may get another share.

    Attributes:
        size, slide, offset: as of the window.
        sizes, scales: as of `Shed`: with a size whose scale is known a row may weigh 1 + 2 (1 - p) / p.
    """

    size: Duration = EVERY_INSTANT
    slide: Duration = EVERY_INSTANT
    offset: Duration = NO_OFFSET
    sizes: tuple[str, ...] = ()
    scales: tuple[Scale, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_offset(self.slide, self.offset)

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the largest weight."""
        names = unique_names([*self.input.schema.names, "largest_weight"])
        types = (*(field.type for field in self.input.schema), DOUBLE)
        return Schema(tuple(map(Field, names, types)))


@dataclass(frozen=True)
class RowWindow(Unary):
    """At t, the last `rows` rows up to t of each partition; with a slide, up to its last full one.

    The rows of a partition are numbered from 1 in the order of their instants; rows of one instant are
    ordered column by column, NULL first and NaN last, and a row of multiplicity n has n numbers. With N rows
    up to t and slide m the content is that of the numbers `[k*m - rows + 1, k*m]` for `k = floor(N / m)`
    (thesis, equation 8.18 and section 17.1.2, which leave ties out). Partitions are the groups that the keys
    make, as in `Aggregate`; without keys there is one.
    """

    rows: int
    slide: int = 1
    keys: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        if not (1 <= self.rows <= MAX_ROWS and 1 <= self.slide <= MAX_ROWS):
            raise PlanError(f"a window's ROWS and SLIDE must be between 1 and {MAX_ROWS}")
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        _require_chronon(self.input, "a row window")

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: a row stays until others come."""
        return False

    def over(self, below: Plan, places: Mapping[int, int]) -> RowWindow:
        """The same window over an input that has its columns at other places.

        Args:
            below: the input.
            places: the new places of the columns that the window reads.
        """
        keys = tuple(replace(key, index=places[key.index]) for key in self.keys)
        return replace(self, input=below, keys=keys)


@dataclass(frozen=True)
class BoundedRowWindow(RowWindow):
    """At t, the last rows up to t of each partition, as many as the size says, which is within bounds.

    The size is a step function s of application time (thesis, section 21.2.1). Row number j, of instant v,
    pushes out of its partition all rows whose numbers are at most `j - s(v)`: at t the rows with the numbers
    i are there for which `i > j - s(v)` holds for each j from i to the last one up to t. So a window is
    shorter at once when the next row comes, and grows row by row: what has left does not come back.

    `rows` is the largest size, which it has before the first step.

    Attributes:
        smallest: the smallest size that it may have.
        steps: the sizes that it has later, with the instants from which on (rows). They are data of the
            operator and no part of its identity.
    """

    smallest: int = field(kw_only=True)
    steps: StepFunction = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.slide != 1:
            raise PlanError("a window of rows within bounds moves by single rows")
        if not 1 <= self.smallest < self.rows:
            raise PlanError(f"a window's smallest size {self.smallest} is not from 1 to below {self.rows}")
        if any(not self.smallest <= step.value <= self.rows for step in self.steps):
            raise PlanError(f"a window's size is from {self.smallest} to {self.rows} rows")


@dataclass(frozen=True)
class LiveRow(RowWindow):
    """At t, the last row up to t of each partition, where that row is live: a row window and a filter.

    A partition whose last row is not live needs no state, since its rows push nothing out any more. That is
    what the deletions of a relation leave that is given by changes.

    Attributes:
        live: the column, of the input, that says whether a row is shown when it is the last one.
    """

    live: Column = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.rows, self.slide) != (1, 1):
            raise PlanError("only a window of the last row can leave out rows that are not live")
        require_boolean(self.live, "whether a row is live")
        require_columns(self.live, len(self.input.schema))

    def over(self, below: Plan, places: Mapping[int, int]) -> RowWindow:
        """The same window over an input that has its columns at other places."""
        live = replace(self.live, index=places[self.live.index])
        return LiveRow(below, keys=super().over(below, places).keys, rows=1, live=live)


@dataclass(frozen=True)
class RelationIndex(LiveRow):
    """The rows of a relation that is given by endless changes, as the relation itself keeps them.

    At t, of each partition the largest of the rows that have come up to t, in the order of their columns, if
    it is live. The first column is the instant from which on the change holds. Of changes in time the largest
    is the last one; one that comes late comes after its own instant, and hides nothing that is newer than it.

    It has all columns of the changes, whichever are read above it, and no filter passes it. So all queries
    that read the relation have one such node, and one that is added later is given what the node holds.

    Attributes:
        remembered: for so long after a row that is not live it is known that it was there (instants), so that
            older ones of its partition that come late do not count. None comes later than that.
    """

    remembered: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class SessionWindow(Unary):
    """Every row with the start and the end of its session as two columns more.

    A session is an interval `[start, end)` from its first row's instant to `gap` after its last row's, or to
    `longest` after its first row's where that is sooner. In the order of time, a row of the key that lies in
    the session so far belongs to it, and the next one begins another session. A row is valid from its
    session's last instant on for `gap`, that is, for as long as no two sessions of a key can meet.

    Attributes:
        gap: so long after a last row a session ends.
        keys: the columns by which sessions are told apart.
        longest: so long is a session at most, `gap` or more; None for any length.
    """

    gap: Duration
    keys: tuple[Column, ...] = ()
    longest: Duration | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.gap.length < INFINITY:
            raise PlanError("a session's gap must be at least 1, and not UNBOUNDED")
        if self.longest is not None and self.longest.length < self.gap.length:
            raise PlanError("a session's longest length must be at least its gap")
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        _require_chronon(self.input, "a session window")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then `window_start` and `window_end`, of the timestamp's type."""
        return _with_bounds(self.input)

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: with the shortest gap."""
        return self.gap.length == 1


@dataclass(frozen=True)
class Over(Unary):
    """Every row with aggregates, each over those rows of its partition that its frame says.

    The frame of a row of instant t holds rows up to t only: of the last instants, or of the last places in
    the order of instant and payload. Over no rows a count is 0, an ARRAY empty and any other aggregate NULL.
    Partitions are the groups of `Aggregate`; without keys there is one.

    Attributes:
        keys: the columns that make the partitions.
        aggregates: the names of the columns that are added, what they hold, and over which rows.
    """

    keys: tuple[Column, ...]
    aggregates: tuple[tuple[str, AggregateCall, Frame], ...]

    def __post_init__(self) -> None:
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        for _, call, _ in self.aggregates:
            for part in expressions_of(call):
                require_columns(part, len(self.input.schema))
                if can_fail(part):
                    raise PlanError("an aggregate with OVER reads what may fail")
        _require_chronon(self.input, "OVER")

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the aggregates."""
        added = (Field(name, call.type) for name, call, _ in self.aggregates)
        return Schema((*self.input.schema, *added))


@dataclass(frozen=True)
class GapFill(Unary):
    """Series at the multiples of a step: one row for each of them, also where a series has none.

    The rows of a series that are of one step `(g - step, g]` count at its end g. The last of them, in the
    order of instant and payload, is the row of the series at g, a multiple of the step. At other multiples g
    let f be the last one before g at which it has a row. If `g <= f + longest` it has

    - LAST: the row of f;
    - NULL: the keys of that row, and NULL in all other columns;
    - LINEAR: where it has a row again at a multiple h after g, and `h <= f + longest`, the keys, and in each
      other column the value at g on the line from that of f to that of h; NULL where one of them is NULL.

    The rows are chronons, and the time column has g in all of them. So a series begins with its first row,
    and goes on for as long as no gap is longer than `longest`; it begins anew with the next row then. LINEAR
    looks ahead, by `longest - step` at most, and so much does it stay behind (Aurora's Resample, whose window
    is `2 * longest` long).

    Attributes:
        step: how far apart the instants are.
        longest: how far apart two rows of a series may be for the gap to be filled: a multiple of the step.
        filling: what the series has in gaps.
        keys: the columns by which series are told apart.
        time: the place of the column that holds the rows' instants, or nearly: that gets g.
    """

    step: Duration
    longest: Duration
    filling: Filling
    keys: tuple[Column, ...]
    time: int

    most: ClassVar[int] = 1_000_000
    """So many multiples of the step are in a gap at most."""

    def __post_init__(self) -> None:
        for key in self.keys:
            require_columns(key, len(self.input.schema))
        _require_chronon(self.input, "filling gaps")
        if not 1 <= self.step.length <= self.longest.length <= MAX_INSTANT // 2:
            raise PlanError("gaps are filled at steps of at least 1, and are no shorter than one")
        if self.longest.length % self.step.length or self.longest.length // self.step.length > self.most:
            raise PlanError(f"the longest gap is a multiple of the step, {self.most:,} of them at most")
        if self.input.schema[self.time].type != instant_type(self):
            raise PlanError("the time of a series is an instant")
        if self.time in {key.index for key in self.keys}:
            raise PlanError("series are not told apart by their time")
        others = (self.input.schema[place].type for place in self.filled)
        if self.filling is Filling.LINEAR and any(other != DOUBLE for other in others):
            raise PlanError("values on a line are DOUBLEs")

    @property
    def filled(self) -> tuple[int, ...]:
        """The places of the columns that get other values in gaps."""
        fixed = {self.time, *(key.index for key in self.keys)}
        return tuple(place for place in range(len(self.input.schema)) if place not in fixed)

    @property
    def ahead(self) -> int:
        """The length by which it looks ahead (instants)."""
        return self.longest.length - self.step.length if self.filling is Filling.LINEAR else 0

    def over(self, below: Plan, places: Mapping[int, int]) -> GapFill:
        """The same over an input that has its columns at other places.

        Args:
            below: the input.
            places: the new places of the columns that are left.
        """
        keys = tuple(replace(key, index=places[key.index]) for key in self.keys)
        return replace(self, input=below, keys=keys, time=places[self.time])


# What changes when rows are valid, other than windows.


@dataclass(frozen=True)
class Granularity(Unary):
    """At t, `M(k*g)` for the granule g and the largest such instant up to t (thesis, chapter 20).

    Within bounds the granule is a step function g of application time (thesis, section 21.2.2), and the
    input a time window that moves at each instant, or a stream of chronons. A row of instant u that is in it
    up to v is there from the first multiple of g(u) that is not below u up to the first one that is not below
    v. A granule begins at a multiple of the one before it, unless it is a multiple of that one.

    All granules divide the coarsest one, so that the content is `M(t)` where t is a multiple of that; and
    where t is a multiple of the granules of all rows that are in the window.

    Attributes:
        granule: its length; within bounds the finest, which it has before the first step.
        coarsest: the coarsest that it may have, a multiple; None where it has one for ever.
        steps: the granules that it has later, with the instants from which on (instants). They are data of
            the operator and no part of its identity.
    """

    granule: Duration
    coarsest: Duration | None = None
    steps: StepFunction = ()

    def __post_init__(self) -> None:
        if not 1 <= self.granule.length < INFINITY:
            raise PlanError("GRANULARITY takes a length of at least 1")
        if self.coarsest is None:
            if self.steps:
                raise PlanError("a granularity without bounds has one granule")
            return
        if self.coarsest.length <= self.granule.length or self.coarsest.length % self.granule.length:
            raise PlanError(f"the coarsest granule {self.coarsest} is no multiple of {self.granule}")
        before = self.granule.length
        for begin, granule in self.steps:
            if granule % self.granule.length or self.coarsest.length % granule:
                raise PlanError(f"a granule is a multiple of {self.granule} that divides {self.coarsest}")
            if granule % before and begin % before:
                raise PlanError(f"a granule begins at {begin}, which is no multiple of {before}")
            before = granule

    @property
    def longest(self) -> Duration:
        """The coarsest granule that it may have, at whose multiples the content is exact in any case."""
        return self.granule if self.coarsest is None else self.coarsest

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: granules of one change nothing."""
        return self.longest.length == 1 and self.input.is_chronon


@dataclass(frozen=True)
class Split(Unary):
    """`M(t)` itself, in elements of one instant each, so that it can have a window (thesis, 11.7.1)."""

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
class Finalize(Unary):
    """The payloads of `M(t)` that are in it more often than they are taken back, so much more often.

    What takes back a row that is not there takes back nothing, until it is. So the contents of a stream with
    corrections are never below zero, in whatever order they come and whatever is missing of them (CEDR,
    *Consistency Sensitive Streaming Operators*, section 4.6).
    """


@dataclass(frozen=True)
class Clip(Unary):
    """`M(t)` for the instants t of `[begin, end)`; no rows at any other.

    A part of a plan takes over from another at an instant by it (`headrace.optimizer.migration`).
    """

    begin: int = BEGINNING
    end: int = INFINITY

    def __post_init__(self) -> None:
        if self.begin >= self.end:
            raise PlanError("a stream is clipped to an interval that has an instant")


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
    """`M(t)` itself: only the `stream` view of a result distinguishes it from its input."""


@dataclass(frozen=True)
class Early(Unary):
    """`M(t)` itself, which is said before it is final, and corrected.

    Where the input's operator would wait for its heartbeat it answers up to a horizon beyond that
    (`headrace.operators.early`). It is above each of these, and at the top of the plans of queries that do
    not wait (`headrace.lowering.early`).
    """

    horizon: Horizon

    @property
    def corrects(self) -> bool:
        """Whether the input's operator waits; others pass on at once what they know."""
        return isinstance(self.input, Stateful) and not isinstance(self.input, Join)


@dataclass(frozen=True)
class Remember(Unary):
    """A source as a query sees it that does without the rows that come late by more than so much.

    The input without the rows that are older than the newest one before them by more than `length`, though
    they are in time for their stream. That follows from the order in which they come, not from the content.
    It is put above the sources of a query's plan when that has been optimized (`headrace.lowering.memory`),
    whatever their streams allow by then: that may change, and what names the state does not.

    Attributes:
        length, unit, floor: how much older a row may be, and at least; see `Memory`.
    """

    length: int
    unit: Unit = Unit.TIME
    floor: int = BEGINNING

    @property
    def memory(self) -> Memory:
        """For how long which stream is remembered."""
        assert isinstance(self.input, Source)
        return Memory(self.input.name, self.length, self.unit, self.floor)


@dataclass(frozen=True)
class Match(Unary):
    """The rows that each of many predicates selects, with the predicate's number.

    At t, for each predicate the rows of M(t) for which it is true, with its number as a last column. Lowering
    makes such nodes of queries that select rows of one input (`headrace.lowering.selections`): one operator
    finds the predicates of a row, however many there are.

    Attributes:
        predicates: numbers, each with a predicate over the input's columns that cannot fail.
        number: the name of the last column.
    """

    predicates: tuple[tuple[int, Expression], ...]
    number: str

    def __post_init__(self) -> None:
        width = len(self.input.schema)
        for _, predicate in self.predicates:
            if _matched_columns(predicate) > width:
                require_columns(predicate, width)
        _ = self.schema

    @cached_property
    def schema(self) -> Schema:
        """The input's columns, then the predicate's number."""
        return Schema((*self.input.schema, Field(self.number, BIGINT)))

    @cached_property
    def written_out(self) -> Plan:
        """The same with a filter for each predicate."""
        columns = tuple(
            (field.name, column(self.input, place)) for place, field in enumerate(self.input.schema)
        )
        parts = tuple(
            Project(Filter(self.input, predicate), (*columns, (self.number, Literal(number, BIGINT))))
            for number, predicate in self.predicates
        )
        return parts[0] if len(parts) == 1 else Union(parts)


def _columns_to_match(predicate: Expression) -> int:
    """How many columns a predicate that is matched asks of its input."""
    require_boolean(predicate, "a predicate that is matched")
    if can_fail(predicate):
        raise PlanError("a predicate that is matched cannot fail for a row")
    columns = [part for part in walk(predicate) if isinstance(part, Column)]
    width = max((part.index for part in columns), default=-1) + 1
    require_columns(predicate, width)
    return width


_matched_columns: Final = ByObject(_columns_to_match, REMEMBERED)


@dataclass(frozen=True)
class NestedAggregate(Unary):
    """The groups of several time windows that end together, each with the number of its window.

    At t, for each window the groups that an `Aggregate` makes of its content, with a last column: 0 for the
    longest window, which is the input, and 1, 2, ... for the shorter ones. Only sharing makes such nodes
    (`headrace.lowering.sharing`): they keep what the longest window has, once for all.

    Attributes:
        shorter: the sizes of the other windows, which have the slide and the offset of the input; each is
            shorter by a multiple of the slide.
        keys: names and expressions that make the groups.
        aggregates: names and what is computed of each group.
        number: the name of the last column.
    """

    shorter: tuple[Duration, ...]
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]
    number: str

    def __post_init__(self) -> None:
        window = self.window
        if window.size.length == INFINITY:
            raise PlanError("no window is nested in one that is UNBOUNDED")
        for size in self.shorter:
            less = window.size.length - size.length
            if less < 1 or less % window.slide.length or size.length < max(2, window.slide.length):
                raise PlanError(
                    "nested windows are shorter by multiples of the slide, and no shorter than that"
                )
        for _, call in self.aggregates:
            if call.distinct or not function_of(call).kept.is_sum:
                raise PlanError("aggregates of nested windows are sums")
        _ = self.schema

    @property
    def window(self) -> TimeWindow:
        """The longest window."""
        if not isinstance(self.input, TimeWindow):
            raise PlanError("what is nested are time windows")
        return self.input

    @cached_property
    def schema(self) -> Schema:
        """The keys, then the aggregates, then the window's number."""
        return Schema((*self.widest.schema, Field(self.number, BIGINT)))

    @cached_property
    def widest(self) -> Aggregate:
        """The groups of the longest window."""
        return Aggregate(self.input, self.keys, self.aggregates)

    @cached_property
    def written_out(self) -> Plan:
        """The same with an operator for each window."""
        parts: list[Plan] = []
        for number, size in enumerate((self.window.size, *self.shorter)):
            groups = replace(self.widest, input=replace(self.window, size=size))
            columns = tuple((field.name, column(groups, place)) for place, field in enumerate(groups.schema))
            parts.append(Project(groups, (*columns, (self.number, Literal(number, BIGINT)))))
        return Union(tuple(parts))

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: a group's row goes on while nothing changes."""
        return False


@dataclass(frozen=True)
class SessionAggregate(Unary):
    """The groups of a `SessionWindow`, each within one session.

    At t, the groups that an `Aggregate` makes of the sessions' rows. Only the optimizer makes such nodes
    (`aggregate_sessions`): they keep what the rows of a session add up to, in the place of its rows.

    Attributes:
        gap, by, longest: the sessions; `by` is among the keys.
        condition: a predicate over the input's columns for the rows that are aggregated, or None for all. The
            others prolong their session, too.
        keys: names and expressions that make the groups, over the columns of the sessions.
        aggregates: names and what is computed of each group: sums, and values at an end of an order.
    """

    gap: Duration
    by: tuple[Column, ...]
    longest: Duration | None
    condition: Expression | None
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    def __post_init__(self) -> None:
        parts = [part for _, call in self.aggregates for part in expressions_of(call)]
        parts += [] if self.condition is None else [self.condition]
        parts += [key for place, (_, key) in enumerate(self.keys) if place not in self.bounds]
        for part in parts:
            require_columns(part, len(self.input.schema))
        if not {key.index for key in self.by} <= {
            key.index for _, key in self.keys if isinstance(key, Column)
        }:
            raise PlanError("the groups of sessions are within one session each")
        if any(call.distinct and function_of(call).kept.is_sum for _, call in self.aggregates):
            raise PlanError("no distinct values are aggregated within sessions")
        _ = self.schema

    @cached_property
    def bounds(self) -> dict[int, int]:
        """The keys that are a bound of the session, by place: 0 for its start and 1 for its end."""
        width = len(self.input.schema)
        found = ((place, key) for place, (_, key) in enumerate(self.keys))
        return {
            place: key.index - width for place, key in found if isinstance(key, Column) and key.index >= width
        }

    @cached_property
    def schema(self) -> Schema:
        """The keys, then the aggregates."""
        return self.written_out.schema

    @cached_property
    def written_out(self) -> Aggregate:
        """The same with an operator for the sessions and one for the groups."""
        rows: Plan = SessionWindow(self.input, self.gap, self.by, self.longest)
        if self.condition is not None:
            rows = Filter(rows, self.condition)
        return Aggregate(rows, self.keys, self.aggregates)

    @cached_property
    def is_chronon(self) -> bool:
        """Whether all elements are valid for one instant: those of the sessions are."""
        return self.written_out.is_chronon


@dataclass(frozen=True)
class ApproximateAggregate(Unary):
    """One row per group of `M(t)`, with aggregates that are so many percent off at most.

    Distinct counts and percentiles are those of a *sample* of the group: its values with the smallest hashes
    (`headrace.reference.summaries`). Where it has fewer values than the sample may have, they are exact.

    Counts and sums are of *blocks*. All elements of the input last equally long. Time is cut into laps of
    that length, from 0 on, so that a window has rows of two laps at most. Within a lap, the amount so far
    (rows, or what they sum up to) is cut into blocks of 1, 2, 4 ..., and of those that are kept of a window
    none is larger than its error allows. Where the window begins inside a block, its amount is between that
    with the whole block and that without.
    It is a function of the content of the last two windows (`headrace.reference.summaries`): the
    deterministic wave of Gibbons and Tirthapura (SPAA 2002), begun anew with every lap.

    Attributes:
        size: how long every element of the input lasts.
        keys: names and expressions that make the groups.
        aggregates: names and what is computed of each group: COUNT, SUM and AVG with a bound, or distinct
            counts and percentiles with one.
    """

    size: Duration
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    def __post_init__(self) -> None:
        if any(call.within is None for _, call in self.aggregates):
            raise PlanError("approximate aggregates have bounds")
        if len({is_sampled(call) for _, call in self.aggregates}) > 1:
            raise PlanError("approximate aggregates are all of samples or all of blocks")
        if not 1 <= self.size.length < INFINITY and not (self.size.length == INFINITY and self.is_sampled):
            raise PlanError("approximate aggregates are of windows that rows leave")
        _ = self.schema

    @cached_property
    def is_sampled(self) -> bool:
        """Whether the aggregates are of samples of the groups, and not of blocks of amounts."""
        return any(is_sampled(call) for _, call in self.aggregates)

    @cached_property
    def exact(self) -> Aggregate:
        """The exact aggregates."""
        calls = ((name, replace(call, within=None)) for name, call in self.aggregates)
        return Aggregate(self.input, self.keys, tuple(calls))

    @cached_property
    def schema(self) -> Schema:
        """The keys, then the aggregates."""
        return self.exact.schema


AnyAggregate = Aggregate | ApproximateAggregate
"""The groups of the rows of an instant, exact or not."""


# The union of all nodes.

Stateless = (
    Filter
    | Match
    | Project
    | TimeWindow
    | Lifetime
    | WindowBounds
    | Unnest
    | Granularity
    | Split
    | Clip
    | Union
    | Rstream
    | Early
    | Remember
    | Shed
    | Draw
    | SemanticDrop
    | LargestWeight
)
"""Nodes whose operators handle each element alone and keep nothing."""

Stateful = (
    RowWindow
    | SessionWindow
    | Over
    | GapFill
    | SetOperation
    | Join
    | Aggregate
    | NestedAggregate
    | SessionAggregate
    | ApproximateAggregate
    | TopK
    | Distinct
    | BloomFilter
    | Coalesce
    | Finalize
    | Sample
    | Istream
    | Dstream
)
"""Nodes whose operators keep state."""

Leaf = Source | EventSource | Relation
"""Nodes without inputs: what comes from outside."""

Plan = Leaf | Stateless | Stateful | OuterJoin | SemiJoin
"""Every node; outer joins and semi-joins become other nodes before there are operators."""


def inputs_of(plan: Plan) -> tuple[Plan, ...]:
    """The direct inputs, left to right."""
    match plan:
        case Unary():
            return (plan.input,)
        case Source() | Relation():
            return ()
        case Union():
            return plan.inputs
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return (plan.left, plan.right)
        case _:
            assert_never(plan)


def with_inputs(plan: Plan, inputs: tuple[Plan, ...]) -> Plan:
    """The same node over other inputs; the same object where nothing changed."""
    if all(map(operator.is_, inputs, inputs_of(plan))):
        return plan
    match plan:
        case Source() | Relation():
            return plan
        case Union():
            return replace(plan, inputs=inputs)
        case Join() | OuterJoin() | SemiJoin() | SetOperation():
            return replace(plan, left=inputs[0], right=inputs[1])
        case _:
            return replace(plan, input=inputs[0])


def column(plan: Plan, index: int) -> Column:
    """A reference to a column of the plan's result."""
    return Column(index, plan.schema[index].name, plan.schema[index].type)


def project(plan: Plan, items: tuple[tuple[str, Expression], ...]) -> Plan:
    """A Project, unless it would change nothing."""
    same = [type(part) is Column and part.index == index for index, (_, part) in enumerate(items)]
    if all(same) and tuple(name for name, _ in items) == plan.schema.names:
        return plan
    return Project(plan, items)


def pair_schema(join: AnyJoin) -> Schema:
    """The columns of a pair, which the residual predicate reads: the left ones, then the right ones."""
    if not isinstance(join, SemiJoin):
        return join.schema
    names = unique_names([*join.left.schema.names, *join.right.schema.names])
    types = (field.type for field in (*join.left.schema, *join.right.schema))
    return Schema(tuple(map(Field, names, types)))


def instant_type(plan: Plan) -> pa.DataType:
    """The type of a column that holds instants of the plan: TIMESTAMP, or BIGINT for integer timestamps."""
    return TIMESTAMP if plan.domain is TimeDomain.TIMESTAMP else BIGINT


def _with_bounds(plan: Plan) -> Schema:
    names = unique_names([*plan.schema.names, "window_start", "window_end"])
    types = [*(field.type for field in plan.schema), *[instant_type(plan)] * 2]
    return Schema(tuple(map(Field, names, types)))


def _require_offset(slide: Duration, offset: Duration) -> None:
    if not 0 <= offset.length < slide.length:
        raise PlanError("the offset of a window is not below 0, and shorter than its slide")


def _require_chronon(plan: Plan, what: str) -> None:
    if not plan.is_chronon:
        raise PlanError(
            f"{what} is over elements that are valid for longer than one instant",
            hint="put the window on the source stream in FROM, or wrap the subquery in ISTREAM(...)",
        )
