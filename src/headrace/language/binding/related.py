"""Joins of streams: how long the rows of each side are remembered, and what is an event of the join.

Two streams meet with all their rows so far. Where a condition on their timestamps says how far apart partners
are at most, a row is remembered for that long alone, and what follows from it is known for good:

Before: `FROM a JOIN b ON a.k = b.k AND a.at BETWEEN b.at - 5 AND b.at + 2`
After: `FROM ISTREAM(SELECT * FROM a WINDOW(RANGE 6) JOIN b WINDOW(RANGE 3) ON a.k = b.k AND ...)`

A pair is an event at the instant of its later row. A row that no partner can come for any more is an event
at the last instant at which one could have come; so outer, semi and anti joins within an interval are
streams, too. Without an interval a row without a partner is there until one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headrace.algebra.kinds import JoinKind
from headrace.algebra.nodes import Istream, Plan, Project, Union, column
from headrace.algebra.properties import is_constant
from headrace.algebra.streams import is_stream, moved_later, of_instants, remembered, so_far
from headrace.expressions.tree import Call, Expression, Literal, columns_of
from headrace.language.binding.ages import Age, ages_of, instant_columns, plain_equality
from headrace.language.binding.distances import Distance, hull
from headrace.schema import Schema

Joined = Callable[[JoinKind, Plan, Plan, bool], Plan]
"""The plan of a join of some kind of two sides; swapped if the right side of the text is the first one."""


@dataclass(frozen=True)
class Apart:
    """The distance of the instants of partners.

    Attributes:
        before: by how much the left row may be earlier at most (instants), None for any length of time.
        after: by how much it may be later.
    """

    before: int | None
    after: int | None


def apart_of(left: Plan, right: Plan, conditions: Iterable[Expression]) -> Apart:
    """The distance in time of the partners of two streams by conditions on the pairs.

    Args:
        left, right: the sides.
        conditions: on their columns, the right ones after the left ones; all of them hold for partners.
    """
    width, ours, theirs = len(left.schema), ages_of(left), ages_of(right)
    bounds: list[Distance] = []
    for given in conditions:
        part = _equal_if_known(given)
        for one in sorted(columns_of(part)):
            for other in sorted(columns_of(part)):
                if one in ours and other - width in theirs and one < width <= other:
                    if part is not given and (ours[one].nullable or theirs[other - width].nullable):
                        continue
                    said = hull(part, ({one}, {other}))
                    bounds.append(_of_instants(said, ours[one], theirs[other - width]))
    least = max((low for low, _ in bounds if low is not None), default=None)
    most = min((high for _, high in bounds if high is not None), default=None)
    return Apart(None if least is None else max(0, -least), None if most is None else max(0, most))


def _equal_if_known(part: Expression) -> Expression:
    """A condition, with a plain equality in the place of one to which NULLs are equal."""
    match part:
        case Call(function="=", arguments=(one, other)):
            sides = plain_equality(one, other)
            return part if sides == (one, other) else replace(part, arguments=sides)
        case _:
            return part


def _of_instants(said: Distance, ours: Age, theirs: Age) -> Distance:
    """The distance of the rows of a pair, given that of a column of each."""
    low, high = said
    return (
        None if low is None or theirs.most is None else low + ours.least - theirs.most,
        None if high is None or ours.most is None else high + ours.most - theirs.least,
    )


def related(
    kind: JoinKind, left: Plan, right: Plan, conditions: Sequence[Expression], joined: Joined
) -> Plan:
    """The join of two tables: of streams with all their rows so far, of contents as they are.

    Args:
        kind: which rows it keeps.
        left, right: the sides.
        conditions: what is known of the pairs that match.
        joined: makes a join of the sides under their windows.
    """
    ours, theirs = is_stream(left), is_stream(right)
    if ours and theirs:
        return _of_streams(kind, left, right, apart_of(left, right, conditions), joined)
    if (ours and kind not in _KEEP_RIGHT and is_constant(right)) or (
        theirs and kind in (JoinKind.INNER, JoinKind.RIGHT) and is_constant(left)
    ):
        # Each row of the stream is joined with what never changes.
        return joined(kind, left, right, False)
    if ours and kind in (JoinKind.INNER, JoinKind.RIGHT):
        left = of_instants(remembered(left, _age_of_partners(left, right, conditions, is_left=True)))
    if theirs and kind not in _KEEP_RIGHT:
        right = of_instants(remembered(right, _age_of_partners(left, right, conditions, is_left=False)))
    return joined(kind, so_far(left), so_far(right), False)


_KEEP_RIGHT: Final = (JoinKind.RIGHT, JoinKind.FULL)
"""The joins that keep right rows without a partner."""


def _age_of_partners(
    left: Plan, right: Plan, conditions: Iterable[Expression], *, is_left: bool
) -> int | None:
    """The greatest age of rows of a stream for which a content has partners (instants); None for any age."""
    width, ours, theirs = len(left.schema), ages_of(left), ages_of(right)
    oldest: list[int] = []
    for part in conditions:
        for one in sorted(columns_of(part) & ours.keys()):
            for other in sorted(columns_of(part) & {width + place for place in theirs}):
                low, high = hull(part, ({one}, {other}))
                event, held = ours[one], theirs[other - width]
                # How much later the column of the content is than that of the event at most.
                later = high
                if is_left:
                    later = None if low is None else -low
                else:
                    event, held = held, event
                if later is not None and held.most is not None:
                    oldest.append(held.most + later - event.least)
    return max(0, min(oldest)) if oldest else None


def _of_streams(kind: JoinKind, left: Plan, right: Plan, apart: Apart, joined: Joined) -> Plan:
    before, after = apart.before, apart.after
    if kind is JoinKind.INNER:
        if before == 0 or after == 0:
            return joined(kind, remembered(left, before), remembered(right, after), False)
        if instant_columns(left) is None or instant_columns(right) is None:
            # Where one pair leaves and an equal one comes, nothing seems to come.
            before = after = None
        return Istream(joined(kind, remembered(left, before), remembered(right, after), False))
    waits = {JoinKind.RIGHT: (after,), JoinKind.FULL: (before, after)}.get(kind, (before,))
    if waits == (0,):
        sides = (remembered(left, before), remembered(right, after))
        return joined(kind, *sides, False)
    if (before, after) == (0, 0):
        return joined(kind, left, right, False)
    if None in waits or (kind is JoinKind.SEMI and instant_columns(left) is None):
        return joined(kind, so_far(left), so_far(right), False)
    if kind is JoinKind.SEMI:
        assert before is not None
        return Istream(joined(kind, remembered(left, before), remembered(right, _both(apart)), False))
    if kind is JoinKind.ANTI:
        return _alone(left, right, apart, joined)
    pairs = _of_streams(JoinKind.INNER, left, right, apart, joined)
    parts, width = [pairs], len(left.schema)
    if kind in (JoinKind.LEFT, JoinKind.FULL):
        parts.append(_padded(pairs.schema, _alone(left, right, apart, joined), range(width)))
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        mirrored = _alone(right, left, Apart(after, before), _swapped(joined))
        parts.append(_padded(pairs.schema, mirrored, range(width, len(pairs.schema))))
    return Union(tuple(parts))


def _both(apart: Apart) -> int | None:
    return None if apart.before is None or apart.after is None else apart.before + apart.after


def _alone(left: Plan, right: Plan, apart: Apart, joined: Joined) -> Plan:
    """The left rows without a partner, when none can come any more."""
    assert apart.before is not None
    return joined(JoinKind.ANTI, moved_later(left, apart.before), remembered(right, _both(apart)), False)


def _swapped(joined: Joined) -> Joined:
    return lambda kind, left, right, swapped: joined(kind, left, right, not swapped)


def _padded(schema: Schema, rows: Plan, places: range) -> Plan:
    """Rows of one side as pairs without the other."""
    items = (
        column(rows, place - places.start) if place in places else Literal(None, field.type)
        for place, field in enumerate(schema)
    )
    return Project(rows, tuple(zip(schema.names, items, strict=True)))
