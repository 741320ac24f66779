"""Interval joins by the papers' readings: joins of streams that mean rows that are close in time (Flink).

By PIPES' reading two streams meet at each instant alone. A join whose conditions say both how much earlier
and how much later the timestamp of one may be than that of the other would find next to nothing so, and is
read as one of all rows so far; see `headrace.language.binding.related`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from headrace.algebra.nodes import Plan, TimeWindow
from headrace.algebra.predicates import conjuncts
from headrace.algebra.properties import timestamp_columns, walk
from headrace.algebra.streams import is_stream
from headrace.errors import LanguageError
from headrace.expressions.tree import Expression
from headrace.language.binding.distances import distances
from headrace.language.binding.scalars.context import Context
from headrace.language.binding.scalars.scalars import bind_scalar
from headrace.language.binding.scope import Scope
from headrace.language.dialect import Nested
from headrace.language.syntax import Scalar


def are_close(left: Plan, right: Plan, pairs: Scope, nodes: Sequence[Scalar]) -> bool:
    """Whether conditions on the timestamps of two streams bound their distance on both sides.

    Args:
        left, right: the sides, streams without windows or not.
        pairs: the columns of both.
        nodes: conditions that all pairs meet; those that cannot be bound here are passed over.

    Returns:
        Also False where the timestamps are equal, so that the rows of an instant are meant.
    """
    width = len(left.schema)
    times = timestamp_columns(left), {width + place for place in timestamp_columns(right)}
    if not all(times) or _has_window(left) or _has_window(right):
        return False
    parts = (part for node in nodes for part in conditions_on(node, pairs))
    bounds = [bound for part in parts for bound in distances(part, times)]
    least = max((low for low, _ in bounds if low is not None), default=None)
    most = min((high for _, high in bounds if high is not None), default=None)
    return least is not None and most is not None and (least, most) != (0, 0) and least <= most


def _has_window(plan: Plan) -> bool:
    """Whether a window of one instant is written, and not only what a stream is under by this reading."""
    return any(
        isinstance(node, TimeWindow) and node.is_chronon and not is_stream(node.input) for node in walk(plan)
    )


def conditions_on(node: Scalar, pairs: Scope) -> Sequence[Expression]:
    """The conjuncts of a condition, as far as it is one on the pairs."""
    if node.find(Nested):
        return ()
    with suppress(LanguageError):
        return conjuncts(bind_scalar(node, Context(pairs, "ON")))
    return ()
