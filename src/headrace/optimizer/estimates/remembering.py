"""A query WITHIN MEMORY: joins remember a share of their rows, DISTINCT and EXCEPT are Bloom filters.

STREAM, section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from headrace.algebra.kinds import BloomKind, SetKind
from headrace.algebra.nodes import (
    BloomFilter,
    Distinct,
    Draw,
    EventSource,
    Filter,
    Istream,
    Join,
    LimitedJoin,
    OuterJoin,
    Plan,
    Project,
    Relation,
    RememberedRows,
    Rstream,
    Sample,
    SemiJoin,
    SetOperation,
    Source,
    TimeWindow,
    Union,
    WindowEvents,
    column,
    inputs_of,
    project,
    with_inputs,
)
from headrace.algebra.properties import is_stateful, sources_of, walk
from headrace.algebra.tunings.bloom import block_of, blocks_within
from headrace.algebra.tunings.loss import Loss
from headrace.errors import LanguageError
from headrace.expressions.tree import Expression, Literal, transform_columns
from headrace.optimizer.estimates.monotone import GROUPED, named
from headrace.optimizer.estimates.weighed_rows import beyond, projected
from headrace.schema import BIGINT, unique_names
from headrace.time import INFINITY, Duration

_HINT: Final = "leave out WITHIN MEMORY; what it limits are joins, DISTINCT and EXCEPT of windows of time"
_DISTINCT: Final = "leave out WITHIN MEMORY, or write [ISTREAM(] SELECT DISTINCT ... FROM s [RANGE ...]"
_APART: Final = "leave out WITHIN MEMORY, or give each of them a query and a limit of its own"
_EXCEPT: Final = (
    "leave out WITHIN MEMORY, or write SELECT ... FROM s [NOW] EXCEPT SELECT ... FROM r [RANGE ...]"
)
_AGGREGATES: Final = "leave out WITHIN MEMORY; LOSS TOLERANT estimates COUNT, SUM and AVG, with bounds"
_NOTHING: Final = "leave out WITHIN MEMORY"
_ONE_INSTANT: Final = "nothing of them is kept"
_BELOW: Final = (Source, Filter, Project, Union, Sample)
"""The nodes that may be below a window: rows of instants, each by itself."""


class _Rows(NamedTuple):
    """Rows of a join, or of an input of one.

    Attributes:
        plan: the rows, with draws and instants behind their own columns.
        numbers: whose these are, in order: of each two columns.
    """

    plan: Plan
    numbers: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of their own columns."""
        return len(self.plan.schema) - 2 * len(self.numbers)


def limited(plan: Plan, loss: Loss, of: str) -> Plan:
    """The plan of a query whose state is limited.

    Joins remember a share of their rows, all of them at first. DISTINCT and EXCEPT become Bloom filters,
    each with an equal part of the memory.

    Draws and instants travel with the rows through all joins, so that which pairs are found does not depend
    on the order of these.

    Args:
        plan: the query's, optimized, with its joins in the order in which they are to be.
        loss: what it says of its memory.
        of: a digest of the plan: queries of other plans have shares of their own.

    Raises:
        LanguageError: it is not of joins of windows of time alone, or of DISTINCT and EXCEPT of these.
    """
    streams = tuple(sorted({source.name for source in sources_of(plan)}))
    filters = sum(isinstance(node, Distinct | SetOperation) for node in walk(plan))
    if not filters and not _has_join(plan) and not any(map(_is_outer, walk(plan))):
        why = "it is joins, DISTINCT and EXCEPT that remember rows"
        raise _refused("a query without a join", why, loss)
    if filters and _has_join(plan) and any(isinstance(node, Union) for node in walk(plan)):
        raise _refused("DISTINCT beside a join", "nothing says how they share it", loss, _APART)
    return _Limiting(loss, streams, of, filters).answer(plan)


@dataclass
class _Limiting:
    """Puts limited joins in the place of others.

    Attributes:
        loss: what the query says of its memory.
        streams: its streams, in order.
        of: a digest of its plan.
        filters: how many Bloom filters it has.
        numbers: those of the rows that are still to come.
    """

    loss: Loss
    streams: tuple[str, ...]
    of: str
    filters: int
    numbers: Iterator[int] = field(default_factory=count)

    def answer(self, plan: Plan) -> Plan:
        """The answer, made of the joins' pairs or of what Bloom filters tell."""
        match plan:
            case Istream(input=Distinct(input=below)):
                return self._distinct(below, BloomKind.NEW)
            case Distinct(input=below):
                return self._distinct(below, BloomKind.DISTINCT)
            case SetOperation(kind=SetKind.EXCEPT):
                return self._except(plan)
            case Join():
                found = self.rows(plan)
                names = found.plan.schema.names[: found.width]
                return project(
                    found.plan, tuple((name, column(found.plan, place)) for place, name in enumerate(names))
                )
            case Filter() | Project() | Union() | Rstream() if _has_join(plan) or _has_filter(plan):
                return with_inputs(plan, tuple(map(self.answer, inputs_of(plan))))
            case Istream() if _has_join(plan) and not _has_filter(plan):
                return with_inputs(plan, tuple(map(self.answer, inputs_of(plan))))
            case _:
                keeping = next((node for node in walk(plan) if is_stateful(node) or _is_outer(node)), None)
                if keeping is None:
                    return plan
                raise self._refused_node(keeping)

    def _distinct(self, plan: Plan, kind: BloomKind) -> Plan:
        if _has_join(plan):
            why = "a pair that is missed would be missing of all rows that are equal to it"
            raise _refused("DISTINCT of a join", why, self.loss)
        rows = _of_instants(plan)
        if rows is None:
            if plan.is_chronon:
                raise _refused("DISTINCT of the rows of each instant", _ONE_INSTANT, self.loss, _NOTHING)
            why = "what it limits are rows of streams, in a window of time that moves at every instant"
            raise _refused("DISTINCT of other rows", why, self.loss, _DISTINCT)
        below, size = rows
        self._check_below(below)
        # What is there just before a row has come up to as long as the window before that.
        span = Duration(size.length + 1) if kind is BloomKind.NEW and size.length < INFINITY else size
        return self._filter(below, span, kind, "DISTINCT")

    def _except(self, plan: SetOperation) -> Plan:
        right = _of_instants(plan.right)
        if right is None or not plan.left.is_chronon or _has_join(plan):
            if plan.is_chronon and plan.right.is_chronon:
                raise _refused("EXCEPT of the rows of each instant", _ONE_INSTANT, self.loss, _NOTHING)
            why = "it keeps the rows of both sides"
            raise _refused(named(plan), why, self.loss, _EXCEPT)
        sides = []
        for side, below in enumerate((plan.left, right[0])):
            self._check_below(below)
            sides.append(_marked(below, plan.schema.names, side))
        return self._filter(Union(tuple(sides)), right[1], BloomKind.EXCEPT, "EXCEPT")

    def _filter(self, plan: Plan, size: Duration, kind: BloomKind, what: str) -> Plan:
        blocks = blocks_within((self.loss.memory or 0) // self.filters)
        found = BloomFilter(plan, size, kind, blocks, self.loss.text)
        try:
            block_of(found)
        except LanguageError as error:
            raise _refused(f"{what} of such values", error.message, self.loss) from error
        return found

    def _check_below(self, plan: Plan) -> None:
        """See that a plan is of rows of instants of streams."""
        for node in walk(plan):
            if isinstance(node, EventSource) or not isinstance(node, _BELOW):
                raise self._refused_node(node)

    def rows(self, plan: Plan) -> _Rows:
        """The rows of a join, or of one of its inputs, with draws and instants."""
        match plan:
            case Join():
                return self._joined(plan)
            case _ if not sources_of(plan):
                self._check_constant(plan)
                return _Rows(plan, ())
            case _ if any(isinstance(node, Istream | WindowEvents) for node in walk(plan)):
                why = "its rows are known when the window is over, and are not remembered one by one"
                raise _refused("a join with windows that are read at their ends", why, self.loss)
            case _ if plan.is_chronon and not _has_join(plan):
                return self._drawn(plan)
            case TimeWindow():
                below = self._drawn(plan.input)
                return below._replace(plan=with_inputs(plan, (below.plan,)))
            case Filter():
                below = self.rows(plan.input)
                return below._replace(plan=with_inputs(plan, (below.plan,)))
            case Project():
                below = self.rows(plan.input)
                return below._replace(plan=projected(plan, below.plan, 2 * len(below.numbers)))
            case _:
                raise self._refused_node(plan)

    def _joined(self, plan: Join) -> _Rows:
        left, right = self.rows(plan.left), self.rows(plan.right)
        numbers, wide = (*left.numbers, *right.numbers), len(left.plan.schema)
        own = [*range(left.width), *range(wide, wide + right.width)]
        last = wide + len(right.plan.schema)
        beside = [*range(left.width, wide), *range(wide + right.width, last)]
        names = [*left.plan.schema.names, *right.plan.schema.names]
        for place, name in zip(own, plan.names, strict=True):
            names[place] = name
        residual = plan.residual
        if residual is not None:
            residual = transform_columns(residual, lambda part: beyond(part, left.width, wide - left.width))
        pair = (left.plan, right.plan, plan.equalities, residual, tuple(unique_names(names)))
        remembered = tuple(
            RememberedRows(number, *beside[2 * place : 2 * place + 2]) for place, number in enumerate(numbers)
        )
        said = self.streams, self.loss.text, remembered, self.of
        joined = LimitedJoin(*pair, *said) if numbers else Join(*pair)
        items = tuple((joined.schema[place].name, column(joined, place)) for place in (*own, *beside))
        return _Rows(project(joined, items), numbers)

    def _drawn(self, plan: Plan) -> _Rows:
        """Rows of instants, each with its draw and its instant."""
        self._check_below(plan)
        number = next(self.numbers)
        return _Rows(Draw(plan, self.streams, self.loss.text, number=number, of=self.of), (number,))

    def _check_constant(self, plan: Plan) -> None:
        for node in walk(plan):
            if isinstance(node, Relation) and not node.is_constant:
                raise _refused(f"a join with {node.name}", "its rows come and go", self.loss)

    def _refused_node(self, plan: Plan) -> LanguageError:
        name = type(plan).__name__
        if name in GROUPED:
            why = "an aggregate of the pairs that are found is not the answer, and nothing tells how far off"
            return _refused("aggregates", why, self.loss, _AGGREGATES)
        why = "it keeps other rows than those of joins"
        if _is_outer(plan):
            why = "a row that is forgotten would change more of the answer than its own pairs"
        return _refused(named(plan), why, self.loss)


def _of_instants(plan: Plan) -> tuple[Plan, Duration] | None:
    """The rows of instants that a window of time shows, and its size; None where it is no such window."""
    match plan:
        case TimeWindow(size=size, slide=slide, smallest=None) if slide.length == 1:
            return (plan.input, size) if plan.input.is_chronon else None
        case Filter() | Project():
            below = _of_instants(plan.input)
            return None if below is None else (with_inputs(plan, (below[0],)), below[1])
        case _:
            return None


def _marked(plan: Plan, names: tuple[str, ...], side: int) -> Plan:
    """The rows of an input of EXCEPT with whose they are in a last column."""
    parts: list[Expression] = [column(plan, place) for place in range(len(plan.schema))]
    if isinstance(plan, Project):
        parts = [part for _, part in plan.items]
        plan = plan.input
    parts.append(Literal(side, BIGINT))
    return Project(plan, tuple(zip(unique_names([*names, "side"]), parts, strict=True)))


def _is_outer(plan: Plan) -> bool:
    return isinstance(plan, OuterJoin | SemiJoin)


def _has_join(plan: Plan) -> bool:
    return any(isinstance(node, Join) for node in walk(plan))


def _has_filter(plan: Plan) -> bool:
    return any(isinstance(node, Distinct | SetOperation) for node in walk(plan))


def _refused(what: str, why: str, loss: Loss, hint: str = _HINT) -> LanguageError:
    return LanguageError(f"the memory of {what} is not limited: {why}", position=loss.position, hint=hint)
