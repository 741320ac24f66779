"""Interval joins: two streams whose rows meet where their timestamps are close, as Flink has them.

Before: `FROM a JOIN b ON a.k = b.k AND a.at BETWEEN b.at - 5 AND b.at + 2`
After: `FROM ISTREAM(SELECT * FROM a WINDOW(RANGE 6) JOIN b WINDOW(RANGE 3) ON a.k = b.k AND ...)`

A row of b is needed for as long as rows of a can follow that are close to it, and the other way round; so the
windows bound what has to be remembered. Each pair is there at the instant of its later row. Where one side's
rows never come first, that side has no window, and the pairs need no ISTREAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Plan, TimeWindow
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import timestamp_columns, walk
from headrace.errors import LanguageError, Position
from headrace.expressions.tree import Expression
from headrace.language.binding.distances import distances
from headrace.language.binding.scalars.context import Context
from headrace.language.binding.scalars.scalars import bind_scalar
from headrace.language.binding.scope import BoundTable, Scope
from headrace.language.dialect import Nested
from headrace.language.syntax import Scalar
from headrace.time import Duration, TimeDomain


@dataclass(frozen=True)
class Near:
    """The sides of an interval join, with their windows.

    Attributes:
        left, right: the sides.
        both: whether both have one, so that a pair holds for longer than an instant.
    """

    left: BoundTable
    right: BoundTable
    both: bool


def near_sides(
    kind: JoinKind,
    left: BoundTable,
    right: BoundTable,
    pairs: Scope,
    nodes: Sequence[Scalar],
    position: Position,
) -> Near | None:
    """The sides of a join with the windows that its conditions on their timestamps ask for.

    Args:
        kind: which rows the join keeps.
        left, right: what it joins.
        pairs: the columns of both.
        nodes: conditions that all pairs meet; those that cannot be bound here are passed over.
        position: where the join is.

    Returns:
        None if the sides are not streams without windows, or the conditions do not say both how much earlier
        and how much later one may be than the other; it is then joined as it is.

    Raises:
        LanguageError: rows without a partner are asked for, and the partner may come later.
    """
    width = len(left.plan.schema)
    times = timestamp_columns(left.plan), {width + place for place in timestamp_columns(right.plan)}
    if not all(times) or _has_window(left.plan) or _has_window(right.plan):
        return None
    parts = (part for node in nodes for part in conditions_on(node, pairs))
    bounds = [bound for part in parts for bound in distances(part, times)]
    least = max((low for low, _ in bounds if low is not None), default=None)
    most = min((high for _, high in bounds if high is not None), default=None)
    if least is None or most is None or (least, most) == (0, 0) or least > most:
        return None
    before, after = max(0, -least), max(0, most)
    _check_kind(kind, before, after, position)
    return Near(_remembered(left, before), _remembered(right, after), bool(before and after))


def _has_window(plan: Plan) -> bool:
    """Whether a window of one instant is written, so that its rows meet no others."""
    return any(isinstance(node, TimeWindow) and node.is_chronon for node in walk(plan))


def conditions_on(node: Scalar, pairs: Scope) -> Sequence[Expression]:
    """The conjuncts of a condition, as far as it is one on the pairs."""
    if node.find(Nested):
        return ()
    with suppress(LanguageError):
        return conjuncts(bind_scalar(node, Context(pairs, "ON")))
    return ()


def _check_kind(kind: JoinKind, before: int, after: int, position: Position) -> None:
    """Refuse to keep rows without a partner where that may come after them."""
    waits = {
        JoinKind.LEFT: before, JoinKind.SEMI: before, JoinKind.ANTI: before, JoinKind.RIGHT: after,
        JoinKind.FULL: before or after, JoinKind.INNER: 0,
    }  # fmt: skip
    if waits[kind]:
        raise LanguageError(
            f"{kind.value} JOIN within an interval of time, where the partner of a row may come after it",
            position=position,
            hint="let the interval end with the row's own timestamp, or write WINDOW(RANGE ...) after both "
            "sides for an answer that changes when the partner comes",
        )


def _remembered(side: BoundTable, length: int) -> BoundTable:
    """A side whose rows are valid for so many instants after their own."""
    if not length:
        return side
    unit = "MICROSECOND" if side.plan.domain is TimeDomain.TIMESTAMP else None
    window: Plan = TimeWindow(side.plan, Duration(length + 1, unit))
    return replace(side, plan=window)
