"""Hypothesis strategies for plans over generated streams, valid by construction.

Answers of the reference and of the operators must agree to the last bit, sums of DOUBLEs included. Window
sizes are small, so that intervals collide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import lcm
from typing import Any, cast

import pyarrow as pa
from hypothesis import strategies as st

from headrace.algebra.bounds import lasts_at_most
from headrace.algebra.frames import Frame, RangeFrame, RowsFrame
from headrace.algebra.kinds import Filling, JoinKind, Ranking, SetKind
from headrace.algebra.nodes import (
    Aggregate,
    BoundedRowWindow,
    Coalesce,
    Distinct,
    Dstream,
    Filter,
    GapFill,
    Granularity,
    Istream,
    Join,
    Lifetime,
    OuterJoin,
    Over,
    Plan,
    Project,
    Relation,
    RowWindow,
    Rstream,
    Sample,
    SemiJoin,
    SessionWindow,
    SetOperation,
    Source,
    Split,
    TimeWindow,
    TopK,
    Union,
    WindowBounds,
    WindowEvents,
    column,
    inputs_of,
    with_inputs,
)
from headrace.algebra.predicates import conjunction
from headrace.algebra.properties import timestamp_columns
from headrace.elements import from_rows
from headrace.expressions.aggregates.aggregates import Modifiers, resolve_aggregate
from headrace.expressions.functions.functions import literal, make_cast
from headrace.expressions.tree import AggregateCall, Column, Expression, SortKey, transform_columns
from headrace.heartbeats.timing import Timing
from headrace.language.binding.granules import granules_of
from headrace.language.binding.selection.empty_row import with_empty_row
from headrace.optimizer import optimize
from headrace.optimizer.joins.join_graph import JoinOrder, inputs_named, mapped
from headrace.optimizer.joins.order_joins import order_joins
from headrace.reference.contents import Element, Payload, Stream
from headrace.runtime.intake.streams import BoundedRelation, BoundedStream
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, UNKNOWN, Field, Schema, unique_names
from headrace.time import ALWAYS, INFINITY, Duration, TimeDomain
from property.expression_strategies import expressions
from property.strategies import MONEY, PLAIN_TYPES, chronon_histories, few_payloads, schemas, values
from support import TableSource

KINDS = (BIGINT, STRING, BOOLEAN, DOUBLE)
"""The types of subexpressions; no TIMESTAMPs, whose microseconds would make sums overflow."""


@dataclass(frozen=True)
class GeneratedStream:
    """A stream of chronons that is timed by its column `ts`.

    Attributes:
        source: the plan's leaf, which may read only some of the columns.
        schema: all columns, `ts` among them.
        elements: in order of arrival.
        disorder: by how much `ts` may be behind the largest one before it.
    """

    source: Source
    schema: Schema
    elements: tuple[Element, ...]
    disorder: int

    @property
    def name(self) -> str:
        return self.source.name

    def table(self) -> pa.Table:
        """The rows as they arrive."""
        return pa.Table.from_batches([from_rows(self.schema, self.elements).payload])

    def stream(self) -> Stream:
        """The same for the reference."""
        return Stream(self.schema.names, self.elements)


@dataclass(frozen=True)
class GeneratedRelation:
    """A constant relation, a temporal one with the periods in its columns `begin` and `end`, or instants.

    Attributes:
        leaf: the plan's leaf, which may read only some of the columns.
        schema: all columns.
        rows: those of all columns; some of a temporal relation may have no period.
    """

    leaf: Relation
    schema: Schema
    rows: tuple[Payload, ...]

    @property
    def name(self) -> str:
        return self.leaf.name

    def table(self) -> pa.Table:
        """The rows."""
        elements = [(row, 0, 1, 1) for row in self.rows]
        return pa.Table.from_batches([from_rows(self.schema, elements).payload])

    def stream(self) -> Stream:
        """The same for the reference."""
        if self.leaf.valid is None:
            return Stream(self.schema.names, [(row, ALWAYS, INFINITY, 1) for row in self.rows])
        if self.leaf.is_chronon:
            instants = ((row, cast(int | None, row[-2])) for row in self.rows)
            return Stream(self.schema.names, [(row, at, at + 1, 1) for row, at in instants if at is not None])
        periods = ((row, *cast(tuple[int | None, int | None], row[-2:])) for row in self.rows)
        bounded = (
            (row, ALWAYS if begin is None else begin, INFINITY if end is None else end)
            for row, begin, end in periods
        )
        elements = [(row, begin, end, 1) for row, begin, end in bounded if begin < end]
        return Stream(self.schema.names, elements)


@dataclass(frozen=True)
class Case:
    """A plan with its streams and relations."""

    plan: Plan
    streams: tuple[GeneratedStream, ...]
    relations: tuple[GeneratedRelation, ...] = ()

    def reference_streams(self) -> dict[str, Stream]:
        """The streams and relations by name, for `headrace.reference.operators.evaluate`."""
        streams = {stream.name: stream.stream() for stream in self.streams}
        return streams | {relation.name: relation.stream() for relation in self.relations}

    @property
    def leaves(self) -> list[Source | Relation]:
        """What plans read."""
        return [*(stream.source for stream in self.streams), *(known.leaf for known in self.relations)]

    def inputs(self) -> dict[str, BoundedStream | BoundedRelation]:
        """The streams and relations by name, for a run."""
        streams: dict[str, BoundedStream | BoundedRelation] = {
            stream.name: BoundedStream(TableSource(stream.table()), "ts", Timing(stream.disorder))
            for stream in self.streams
        }
        return streams | {
            known.name: BoundedRelation(TableSource(known.table()), known.leaf.valid)
            for known in self.relations
        }


@st.composite
def streams(
    draw: st.DrawFn,
    name: str,
    *,
    types: Sequence[pa.DataType] = PLAIN_TYPES,
    max_size: int = 12,
    max_disorder: int = 3,
    odd_doubles: bool = True,
) -> GeneratedStream:
    """Streams of a few chronons."""
    data = draw(schemas(types, max_columns=3))
    schema = Schema((*data, Field("ts", BIGINT)))
    disorder = draw(st.integers(0, max_disorder))
    history = draw(chronon_histories(data, disorder=disorder, max_size=max_size, odd_doubles=odd_doubles))
    elements = tuple(((*row, ts), ts, te, w) for row, ts, te, w in history)
    read = draw(st.just(data) | st.just(data) | st.permutations(range(len(schema))).map(_some(schema)))
    return GeneratedStream(Source(name, read, "ts", TimeDomain.INTEGER), schema, elements, disorder)


@st.composite
def relations(
    draw: st.DrawFn,
    name: str,
    *,
    types: Sequence[pa.DataType] = PLAIN_TYPES,
    max_size: int = 6,
    odd_doubles: bool = True,
) -> GeneratedRelation:
    """Relations of a few rows."""
    data = draw(schemas(types, max_columns=3))
    row = draw(few_payloads(data, odd_doubles))
    if draw(st.booleans()):
        rows = draw(st.lists(row, max_size=max_size))
        return GeneratedRelation(Relation(name, data, TimeDomain.INTEGER), data, tuple(rows))
    schema = Schema((*data, Field("begin", BIGINT), Field("end", BIGINT)))
    bound = st.none() | st.integers(0, 12)
    found = draw(st.lists(st.tuples(row, bound, bound), max_size=max_size))
    read = draw(st.just(data) | st.permutations(range(len(schema))).map(_some(schema)))
    leaf = Relation(name, read, TimeDomain.INTEGER, ("begin", draw(st.sampled_from(("end", "end", None)))))
    return GeneratedRelation(leaf, schema, tuple((*values, *period) for values, *period in found))


def _some(schema: Schema) -> Callable[[Sequence[int]], Schema]:
    return lambda order: schema.select(tuple(order[: max(1, len(order) - 1)]))


@st.composite
def cases(
    draw: st.DrawFn,
    /,
    *,
    depth: int = 3,
    root: str | None = None,
    max_streams: int = 3,
    max_relations: int = 0,
    **options: Any,
) -> Case:
    """Plans over one to three streams and some relations; the other options are those of `streams`."""
    count = draw(st.integers(1, max_streams))
    made = tuple(draw(streams(f"s{number}", **options)) for number in range(count))
    few = draw(st.integers(0, max_relations))
    known = tuple(draw(relations(f"r{number}")) for number in range(few))
    leaves: list[Source | Relation] = [*(stream.source for stream in made), *(one.leaf for one in known)]
    return Case(draw(plans(leaves, depth=depth, root=root)), made, known)


def as_it_is(plan: Plan) -> Plan:
    """The plan."""
    return plan


def coalesced(plan: Plan) -> Plan:
    """The plan with a Coalesce below every node that does not read chronons."""
    inputs = tuple(map(coalesced, inputs_of(plan)))
    return with_inputs(plan, tuple(below if below.is_chronon else Coalesce(below) for below in inputs))


def commuted(plan: Plan) -> Plan:
    """The plan with the sides of its inner joins exchanged, and joins upon joins in another order."""
    return order_joins(_turned(plan), lambda graph: _backwards(graph.order))


def _turned(plan: Plan) -> Plan:
    plan = with_inputs(plan, tuple(map(_turned, inputs_of(plan))))
    if not isinstance(plan, Join):
        return plan
    left, right = len(plan.left.schema), len(plan.right.schema)
    places = [place + right if place < left else place - left for place in range(left + right)]
    residual = None if plan.residual is None else mapped(plan.residual, places)
    names = plan.schema.names
    turned = Join(
        plan.right,
        plan.left,
        tuple((theirs, ours) for ours, theirs in plan.equalities),
        residual,
        (*names[left:], *names[:left]),
    )
    return Project(turned, tuple((name, column(turned, places[at])) for at, name in enumerate(names)))


def _backwards(order: JoinOrder) -> JoinOrder:
    """An order in which each input but the last is joined with all that follow: `(2, (1, 0))`."""
    found: JoinOrder
    found, *others = inputs_named(order)
    for number in others:
        found = number, found
    return found


FORMS = st.sampled_from((as_it_is, optimize, coalesced, commuted))
"""What makes of a plan another that answers the same."""


ROOTS = (
    "window",
    "aggregate",
    "join",
    "union",
    "relation_to_stream",
    "distinct",
    "top_k",
    "set_operation",
    "semi_join",
    "outer_join",
    "window_groups",
    "project",
    "filter",
)
"""The operators that a plan may be asked to have at its root."""


@st.composite
def plans(
    draw: st.DrawFn,
    sources: Sequence[Plan],
    *,
    depth: int = 3,
    root: str | None = None,
    windows: bool = True,
) -> Plan:
    """Plans over the sources.

    Args:
        draw: Hypothesis' source of choices.
        sources: the leaves; if their elements are no chronons, `windows` must be off.
        depth: how many operators stand above each other at most, not counting projections before a union.
        root: the operator at the root, one of ROOTS, or None for any.
        windows: whether the plan has windows.
    """
    return _Builder(draw, tuple(sources), windows).build(depth, root=root)


def _columns(plan: Plan, *types: pa.DataType) -> list[Column]:
    """The columns of a plan that have one of these types, or all."""
    made = (column(plan, place) for place in range(len(plan.schema)))
    return [one for one in made if not types or one.type in types]


@dataclass(frozen=True)
class _Builder:
    draw: st.DrawFn
    sources: tuple[Plan, ...]
    windows: bool

    def build(self, depth: int, *, root: str | None = None) -> Plan:
        if depth == 0:
            return self.draw(st.sampled_from(self.sources))
        makers: dict[str, Callable[[int], Plan]] = {
            "window": self._window,
            "aggregate": self._aggregate,
            "join": self._join,
            "union": self._union,
            "relation_to_stream": self._relation_to_stream,
            "distinct": self._distinct,
            "top_k": self._top_k,
            "set_operation": self._set_operation,
            "semi_join": self._semi_join,
            "outer_join": self._outer_join,
            "window_groups": self._window_groups,
            "project": self._project,
            "filter": self._filter,
        }
        return makers[root or self.draw(st.sampled_from(self._weighted()))](depth - 1)

    def _weighted(self) -> list[str]:
        """Hypothesis prefers what comes first, and filters leave little to look at."""
        often = ["window"] * 4 if self.windows else []
        return [*often, *["aggregate"] * 3, *["join", "union", "relation_to_stream"] * 2, *ROOTS[5:]]

    def _below(self, depth: int) -> Plan:
        """An input; not always as deep as it might be."""
        return self.build(self.draw(st.sampled_from((depth, max(0, depth - 1)))))

    def _relation(self, depth: int) -> Plan:
        """An input whose contents overlap, more often than not."""
        if depth and self.windows and self.draw(st.integers(0, 2)) < 2:
            return self._window(depth - 1)
        return self._below(depth)

    def _expression(self, schema: Schema, kind: pa.DataType, depth: int = 1) -> Expression:
        return self.draw(expressions(schema, kind, depth=depth, kinds=KINDS))

    def _filter(self, depth: int) -> Plan:
        below = self._below(depth)
        if self.draw(st.integers(0, 3)) == 0:
            return Sample(below, Decimal(self.draw(st.sampled_from((50, 80, 100)))), timed=below.is_chronon)
        return Filter(below, self._expression(below.schema, BOOLEAN, 2))

    def _project(self, depth: int) -> Plan:
        below = self._below(depth)
        items = [self._item(below) for _ in range(self.draw(st.integers(1, 3)))]
        names = [f"p{place}" for place in range(len(items))]
        return Project(below, tuple(zip(names, items, strict=True)))

    def _item(self, below: Plan) -> Expression:
        if self.draw(st.booleans()):
            return self.draw(st.sampled_from(_columns(below)))
        return self._expression(below.schema, self.draw(st.sampled_from(KINDS)))

    def _chronons(self, depth: int) -> Plan:
        below = self._below(depth)
        if below.is_chronon:
            return below
        brief = lasts_at_most(below, 12) and self.draw(st.booleans())
        return Split(below) if brief else Istream(below)

    def _window(self, depth: int) -> Plan:
        below = self._chronons(depth)
        if self.draw(st.integers(0, 2)) == 0:
            kinds = (self._rows, self._hop, self._session, self._over, self._lifetime, self._series)
            return self.draw(st.sampled_from(kinds))(below)
        size = self._multiple(below, 3, 2, 5, 1, 4, 6, INFINITY)
        slide = self.draw(st.sampled_from((1, 2, 1, 3, 4)))
        # Without SLIDE a window slides by one instant, whatever is below it.
        smallest = self._smallest(below, size)
        every = Duration(slide if slide == 1 else slide * _granule(below))
        window = TimeWindow(below, size, every, smallest=smallest)
        granule = self.draw(st.sampled_from((1, 1, 1, 2, 5)))
        if granule == 1:
            return window
        finest = granule * _granule(below)
        bounded = isinstance(below, Source) and slide == 1 and not self.draw(st.integers(0, 2))
        coarsest = Duration(finest * self.draw(st.sampled_from((2, 3)))) if bounded else None
        return Granularity(window, Duration(finest), coarsest)

    def _smallest(self, below: Plan, size: Duration) -> Duration | None:
        """A smallest size, where the language has one: over rows of a stream as they come."""
        if not isinstance(below, Source) or not 1 < size.length < INFINITY or self.draw(st.integers(0, 3)):
            return None
        return Duration(self.draw(st.integers(1, size.length - 1)))

    def _multiple(self, below: Plan, *counts: int) -> Duration:
        """A length of so many granules of what a window is over: the language refuses any other."""
        count = self.draw(st.sampled_from(counts))
        return Duration(count if count == INFINITY else count * _granule(below))

    def _lifetime(self, below: Plan) -> Plan:
        if isinstance(below, Split):
            # The language has no text for it: rows that last have no instant to count from.
            below = Istream(below.input)
        fixed = st.builds(literal, st.sampled_from((2, 5, 1, INFINITY)))
        duration = self.draw(fixed) if self.draw(st.booleans()) else self._expression(below.schema, BIGINT)
        granule, shift = (self.draw(st.sampled_from(some)) for some in ((1, 2, 3), (0, 1, -1, 4)))
        return Lifetime(below, duration, Duration(granule), shift)

    def _rows(self, below: Plan) -> Plan:
        rows, every = (self.draw(st.sampled_from((2, 1, 3))) for _ in range(2))
        keys = self._partition(below)
        if isinstance(below, Source) and rows > 1 and every == 1 and self.draw(st.booleans()):
            return BoundedRowWindow(below, rows, keys=keys, smallest=self.draw(st.integers(1, rows - 1)))
        return RowWindow(below, rows, every, keys)

    def _partition(self, below: Plan) -> tuple[Column, ...]:
        some = st.lists(st.sampled_from(_columns(below)), max_size=2)
        return tuple(self.draw(some)) if _columns(below) else ()

    def _over(self, below: Plan) -> Plan:
        """ROW_NUMBER, or aggregates over some frames."""
        keys = self._partition(below)
        number: tuple[AggregateCall, Frame] = resolve_aggregate("COUNT", None), RowsFrame(None, 0)
        if self.draw(st.integers(0, 2)) == 0:
            calls = [number]
        else:
            some, frames = _columns(below), [self._frame() for _ in range(self.draw(st.integers(1, 2)))]
            names = [self.draw(st.sampled_from(("MAX", "COUNT", "MIN"))) for _ in range(3) if some]
            made = [resolve_aggregate(name, self.draw(st.sampled_from(some))) for name in names]
            calls = [(call, self.draw(st.sampled_from(frames))) for call in made] or [number]
        calls = list(dict.fromkeys(calls))
        taken = below.schema.names
        added = unique_names([*taken, *("over" for _ in calls)])[len(taken) :]
        return Over(below, keys, tuple((name, *call) for name, call in zip(added, calls, strict=True)))

    def _frame(self) -> Frame:
        if self.draw(st.booleans()):
            return RangeFrame(Duration(self.draw(st.sampled_from((3, 1, 2, 5, INFINITY)))))
        first = self.draw(st.sampled_from((2, 1, 3, 0, None)))
        return RowsFrame(first, self.draw(st.integers(0, 2 if first is None else first)))

    def _hop(self, below: Plan) -> Plan:
        size, slide = (self._multiple(below, 3, 2, 5, 1, 4) for _ in range(2))
        offset = self._multiple(below, 0, 0, 1, 7)
        lengths = size, slide, Duration((size.length + offset.length) % slide.length)
        kind = self.draw(st.sampled_from((WindowBounds, WindowEvents)))
        return kind(TimeWindow(below, *lengths), *lengths)

    def _window_groups(self, depth: int) -> Plan:
        """Groups by the bounds of windows and by other columns, with conditions on either."""
        if not self.windows:
            return self._aggregate(depth)
        windows = self._hop(self._chronons(depth))
        below, bounds = windows, _columns(windows)[-2:]
        if self.draw(st.integers(0, 2)) == 0:
            below = Filter(below, self._about(bounds))
        if self.draw(st.booleans()):
            listed = [*_columns(windows)[:-2], *bounds[::-1]]
            below = Project(below, tuple((f"w{place}", one) for place, one in enumerate(listed)))
            bounds = _columns(below)[-2:]
        others = _columns(below)[:-2]
        keys = [*self.draw(st.lists(st.sampled_from(bounds), min_size=1, max_size=2))]
        keys += self.draw(st.lists(st.sampled_from(others), max_size=2)) if others else []
        taken = Project(below, tuple((one.name, one) for one in others)) if others else below
        calls = [self._call(taken) for _ in range(self.draw(st.integers(0, 2)))]
        groups = Aggregate(
            below,
            tuple((f"k{place}", key) for place, key in enumerate(self.draw(st.permutations(keys)))),
            tuple((f"a{place}", call) for place, call in enumerate(calls)),
        )
        return Filter(groups, self._about(_columns(groups))) if self.draw(st.booleans()) else groups

    def _about(self, columns: Sequence[Column]) -> Expression:
        schema = Schema(tuple(Field(f"c{one.index}", one.type) for one in columns))
        condition = self._expression(schema, BOOLEAN, 2)
        return transform_columns(condition, lambda one: columns[one.index])

    def _session(self, below: Plan) -> Plan:
        gap = self._multiple(below, 3, 2, 5, 1)
        longest = self.draw(st.sampled_from((None, 1, 2, 3)))
        most = None if longest is None else replace(gap, length=longest * gap.length)
        return SessionWindow(below, gap, self._partition(below), most)

    def _series(self, below: Plan) -> Plan:
        """Series with a column for their time; those on lines have DOUBLEs besides their keys."""
        step = self._multiple(below, 2, 1, 3)
        longest = replace(step, length=step.length * self.draw(st.integers(1, 4)))
        filling = self.draw(st.sampled_from(Filling))
        known = sorted(timestamp_columns(below))
        if not known:
            return below
        time = self.draw(st.sampled_from(known))
        others = [one for one in _columns(below) if one.index != time]
        keys = tuple(one for one in others if one.type != DOUBLE) if filling is Filling.LINEAR else ()
        if filling is not Filling.LINEAR and others:
            keys = tuple(self.draw(st.lists(st.sampled_from(others), max_size=2, unique=True)))
        return GapFill(below, step, longest, filling, keys, time)

    def _union(self, depth: int) -> Plan:
        return Union(self._alike(depth))

    def _set_operation(self, depth: int) -> Plan:
        return SetOperation(*self._alike(depth), self.draw(st.sampled_from(SetKind)))

    def _alike(self, depth: int) -> tuple[Plan, Plan]:
        """Two inputs with columns of the same types."""
        first = self._relation(depth)
        second = first if self.draw(st.integers(0, 4)) == 0 else self._like(first, depth)
        return first, second

    def _like(self, model: Plan, depth: int) -> Plan:
        """A plan with columns of the same types."""
        below = self._relation(depth)
        items = []
        for field in model.schema:
            constant = self.draw(values(field.type, pools=None, odd_doubles=False)) if _known(field) else None
            made = make_cast(literal(constant), field.type)
            items.append(self.draw(st.sampled_from([*_columns(below, field.type), made])))
        return Project(below, tuple(zip(model.schema.names, items, strict=True)))

    def _join(self, depth: int) -> Plan:
        return self._pairs(depth)

    def _semi_join(self, depth: int) -> Plan:
        join = self._pairs(depth)
        return SemiJoin(join.left, join.right, join.equalities, join.residual, self.draw(st.booleans()))

    def _outer_join(self, depth: int) -> Plan:
        join = self._pairs(depth)
        kind = self.draw(st.sampled_from((JoinKind.LEFT, JoinKind.FULL, JoinKind.RIGHT)))
        return OuterJoin(join.left, join.right, join.equalities, join.residual, join.names, kind)

    def _pairs(self, depth: int) -> Join:
        """A join with any conditions."""
        left, right = self._relation(depth), self._relation(depth)
        pairs = [
            (one, other) for one in _columns(left) for other in _columns(right) if one.type == other.type
        ]
        chosen = self.draw(st.lists(st.sampled_from(pairs), max_size=2)) if pairs else []
        names = tuple(unique_names([*left.schema.names, *right.schema.names]))
        join = Join(left, right, tuple(chosen), None, names)
        conditions = [
            self._expression(schema, BOOLEAN, 2)
            for schema in (join.left.schema, join.schema)
            if self.draw(st.integers(0, 2)) == 0
        ]
        return replace(join, residual=conjunction(conditions))

    def _distinct(self, depth: int) -> Plan:
        return Distinct(self._relation(depth))

    def _top_k(self, depth: int) -> Plan:
        """The first rows by any columns, or places."""
        below = self._relation(depth)
        if not _columns(below):
            below = Project(below, (("o", literal(1)),))
        keys = tuple(
            SortKey(one, self.draw(st.booleans()), self.draw(st.booleans()))
            for one in self.draw(st.lists(st.sampled_from(_columns(below)), max_size=2))
        )
        limit = self.draw(st.sampled_from((2, 1, 3, 0, None)))
        offset = self.draw(st.sampled_from((0, 0, 1, 2)))
        number = unique_names([*below.schema.names, "place"])[-1] if self.draw(st.booleans()) else None
        ranking = self.draw(st.sampled_from(Ranking)) if keys else Ranking.ROW_NUMBER
        return TopK(below, self._partition(below), keys, limit, offset, number, ranking)

    def _relation_to_stream(self, depth: int) -> Plan:
        operators: tuple[Callable[[Plan], Plan], ...] = (Istream, Dstream, Rstream)
        return self.draw(st.sampled_from(operators))(self._relation(depth))

    def _aggregate(self, depth: int) -> Plan:
        below = self._relation(depth)
        keys = [self._item(below) for _ in range(self.draw(st.sampled_from((0, 0, 1, 1, 1, 2))))]
        calls = [self._call(below) for _ in range(self.draw(st.integers(1, 3)))]
        plan = Aggregate(
            below,
            tuple((f"k{place}", key) for place, key in enumerate(keys)),
            tuple((f"a{place}", call) for place, call in enumerate(calls)),
        )
        return with_empty_row(plan) if not keys and self.draw(st.booleans()) else plan

    def _call(self, below: Plan) -> AggregateCall:
        name = self.draw(st.sampled_from(_CALLS))
        if name == "*":
            return resolve_aggregate("COUNT", None)
        condition = self._expression(below.schema, BOOLEAN) if self.draw(st.integers(0, 3)) == 0 else None
        modifiers = Modifiers(distinct=self.draw(st.integers(0, 3)) == 0, condition=condition)
        if name in ("COUNT", "MIN", "MAX"):
            return resolve_aggregate(name, self._item(below), modifiers=modifiers)
        if name == "ARRAY_AGG":
            arguments: list[Expression] = [*_columns(below), literal("a")]
            argument = self.draw(st.sampled_from(arguments))
            return resolve_aggregate(name, argument, modifiers=modifiers)
        if name in ("FIRST", "LAST"):
            keys = tuple(
                SortKey(self._item(below), self.draw(st.booleans()), self.draw(st.booleans()))
                for _ in range(2)
            )
            return resolve_aggregate(
                name, self._item(below), modifiers=Modifiers(order=keys, condition=condition)
            )
        numbers = _columns(below, BIGINT, MONEY, DOUBLE)
        if numbers and self.draw(st.integers(0, 3)) < 3:
            return resolve_aggregate(name, self.draw(st.sampled_from(numbers)), modifiers=modifiers)
        argument = self._expression(_without_doubles(below.schema), BIGINT)
        return resolve_aggregate(name, argument, modifiers=modifiers)


_CALLS = (
    *("SUM", "*", "VARIANCE", "AVG", "MIN", "STDDEV", "COUNT"),
    *("MAX", "SUM", "FIRST", "LAST", "ARRAY_AGG"),
)


def _granule(plan: Plan) -> int:
    """The length of the granules at which the content of a plan is exact (instants)."""
    return lcm(*(granule.length for granule in granules_of(plan)))


def _known(field: Field) -> bool:
    return field.type in (*KINDS, MONEY)


def _without_doubles(schema: Schema) -> Schema:
    return Schema(tuple(Field(one.name, UNKNOWN if one.type == DOUBLE else one.type) for one in schema))
