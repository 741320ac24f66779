"""Rows with the numbers of the predicates that select them, found by an index of the predicates.

A predicate is cut into the parts that AND connects. Those that compare an expression with constants become
ranges: the constants that are compared with one expression are sorted, and a value is the place it has among
them, so that a comparison is one of integers whatever the type. The other parts are asked for the rows that
the ranges leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headrace.algebra.by_object import ByObject
from headrace.algebra.nodes import Match
from headrace.algebra.predicates import conjunction, conjuncts
from headrace.elements import Batch, BoolArray, Int64Array, concat, record_batch, take_rows
from headrace.expressions.evaluation.evaluate import evaluate, predicate_mask
from headrace.expressions.tree import Call, Expression, Literal
from headrace.kernels.rows.ranges import Candidates, Ranges, candidates_of
from headrace.schema import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP

_NUMBERS: Final = (BIGINT, DOUBLE, DATE, TIMESTAMP)
"""Types whose values NumPy sorts as comparisons do."""

_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison that is meant where the constant comes first."""

_NONE: Final = -1
"""The value of a NULL, which is in no range, and of what no range leaves out."""


@dataclass(frozen=True)
class ComparedPart:
    """A part of a predicate that compares an expression with constants.

    Attributes:
        of: the expression.
        low, high: the least and the largest value for which it is true, and whether that itself is one.
        other: the value for which it is not true, of `<>`.
    """

    of: Expression
    low: tuple[object, bool] | None = None
    high: tuple[object, bool] | None = None
    other: object = None

    @property
    def constants(self) -> list[object]:
        """The constants."""
        bounds = (end[0] for end in (self.low, self.high) if end is not None)
        return [*bounds, *(() if self.other is None else (self.other,))]


_ANY_ROW: Final = ComparedPart(Literal(0, BIGINT), low=(0, True))


def asked(part: Expression) -> ComparedPart | None:
    """What a part of a predicate compares with constants; None if it is something else.

    Args:
        part: a BOOLEAN expression.
    """
    match part:
        case Call(function="BETWEEN", arguments=(of, Literal() as low, Literal() as high)):
            found = _compared(">=", of, low), _compared("<=", of, high)
            return None if None in found else ComparedPart(of, (low.value, True), (high.value, True))
        case Call(function=operator, arguments=(Literal() as constant, of)) if operator in _TURNED:
            return _compared(_TURNED[operator], of, constant)
        case Call(function=operator, arguments=(of, Literal() as constant)) if operator in _TURNED:
            return _compared(operator, of, constant)
    return None


def _compared(operator: str, of: Expression, constant: Literal) -> ComparedPart | None:
    value = constant.value
    if value is None or isinstance(of, Literal) or not _is_sorted(of) or constant.type != of.type:
        return None
    match operator:
        case "=":
            return ComparedPart(of, (value, True), (value, True))
        case "<" | "<=":
            return ComparedPart(of, high=(value, operator == "<="))
        case ">" | ">=":
            return ComparedPart(of, low=(value, operator == ">="))
        case _:
            return ComparedPart(of, other=value)


def _is_sorted(of: Expression) -> bool:
    """Whether values of an expression's type can be sorted here as comparisons do."""
    return of.type in (*_NUMBERS, STRING) or bool(pa.types.is_decimal(of.type))


@dataclass(frozen=True)
class _Parts:
    """A predicate as the index knows it.

    Attributes:
        ways: for each way to be true the comparisons that all have to hold.
        rest: what has to be true besides, whichever way it is; None if nothing.
    """

    ways: tuple[tuple[ComparedPart, ...], ...]
    rest: Expression | None


_MOST_WAYS: Final = 64
"""A predicate with more alternatives than these is asked as a whole, so that the index stays small."""


def is_indexed(part: Expression) -> bool:
    """Whether the index finds the rows for which a part of a predicate is true.

    Args:
        part: a BOOLEAN expression.
    """
    return bool(_ways(part))


def _ways(part: Expression) -> tuple[tuple[ComparedPart, ...], ...]:
    """The ways in which a part is true, one of which has to hold; none where the index cannot say.

    `e IN (1, 2)` is `e = 1` or `e = 2`. An OR needs comparisons on both of its sides: a row that the
    other side selects would be found by none of them.
    """
    match part:
        case Call(function="OR", arguments=arguments):
            sides = [_ways(argument) for argument in arguments]
            found = tuple(way for side in sides for way in side) if all(sides) else ()
        case Call(function="IN", arguments=(of, *constants)):
            equal = [_compared("=", of, one) if isinstance(one, Literal) else None for one in constants]
            known = [one for one in equal if one is not None]
            found = tuple((one,) for one in known) if len(known) == len(constants) else ()
        case Call(function="AND"):
            compared = [asked(one) for one in conjuncts(part)]
            held = tuple(one for one in compared if one is not None)
            found = (held,) if len(held) == len(compared) else ()
        case _:
            one = asked(part)
            found = () if one is None else ((one,),)
    return found if len(found) <= _MOST_WAYS else ()


def _parts(predicate: Expression) -> _Parts:
    """Cut a predicate; of its alternatives the first counts, and others are asked for the rows found."""
    always: list[ComparedPart] = []
    ways: tuple[tuple[ComparedPart, ...], ...] = ()
    rest: list[Expression] = []
    for part in conjuncts(predicate):
        found = _ways(part)
        if len(found) == 1:
            always += found[0]
        elif found and not ways:
            ways = found
        else:
            rest.append(part)
    listed = tuple((*always, *way) for way in ways or ((),))
    return _Parts(tuple(way or (_ANY_ROW,) for way in listed), conjunction(rest))


_parts_of: Final = ByObject(_parts, 20_000)


class _Attribute:
    """The constants that one expression is compared with.

    Args:
        of: the expression.
        constants: some of its type, none of them NULL.
    """

    def __init__(self, of: Expression, constants: Iterable[object]) -> None:
        self.of = of
        values = _sortable(pa.array(list(dict.fromkeys(constants)), of.type))
        self._sorted = np.unique(values)

    def places(self, values: pa.Array) -> Int64Array:
        """int64[n]: an odd number for each constant, and even ones for what is between; `_NONE` for NULL."""
        if self._sorted.dtype == object:
            coded = values.dictionary_encode()
            found = np.append(self._of(_sortable(coded.dictionary)), _NONE)
            places: Int64Array = found[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
            return places
        found = self._of(_sortable(values.fill_null(0) if values.null_count else values))
        if values.null_count:
            found[values.is_null().to_numpy(zero_copy_only=False)] = _NONE
        return found

    @property
    def largest(self) -> int:
        """The largest number."""
        return 2 * len(self._sorted)

    def _of(self, values: np.ndarray[Any, Any]) -> Int64Array:
        below = np.searchsorted(self._sorted, values)
        met = self._sorted[np.minimum(below, len(self._sorted) - 1)]
        equal = np.asarray(met == values, dtype=np.bool_)
        if values.dtype == np.float64:
            # NaN equals itself, and is larger than all others, as NumPy sorts it.
            equal |= np.isnan(met) & np.isnan(values)
        return np.asarray(2 * below + equal, dtype=np.int64)


def _sortable(values: pa.Array) -> np.ndarray[Any, Any]:
    """Values that are not NULL as numbers, or as texts and decimals that Python compares."""
    if values.type == TIMESTAMP:
        values = values.cast(pa.int64())
    elif values.type == DATE:
        values = values.cast(pa.int32())
    elif values.type not in _NUMBERS:
        found = np.empty(len(values), dtype=object)
        found[:] = values.to_pylist()
        return found
    return np.asarray(values.to_numpy(zero_copy_only=False))


class PredicateIndex:
    """The predicates of a `Match`, so that those of a row are found without asking each of them.

    Args:
        predicates: the fewer rows the parts leave that `asked` knows, the better.
    """

    def __init__(self, predicates: Sequence[Expression]) -> None:
        known = list(map(_parts_of, predicates))
        ranges = [way for parts in known for way in parts.ways]
        count = [len(parts.ways) for parts in known]
        self._owner = np.repeat(np.arange(len(known), dtype=np.int64), count)
        self._rests = {number: parts.rest for number, parts in enumerate(known) if parts.rest is not None}
        constants: dict[Expression, list[object]] = {}
        for one in (one for listed in ranges for one in listed):
            constants.setdefault(one.of, []).extend(one.constants)
        self._attributes = [_Attribute(of, listed) for of, listed in constants.items()]
        self._ranges = self._made(ranges, {of: number for number, of in enumerate(constants)})

    def _made(self, asked_by: Sequence[Sequence[ComparedPart]], columns: dict[Expression, int]) -> Ranges:
        listed = [one for ranges in asked_by for one in ranges]
        column = np.array([columns[one.of] for one in listed], dtype=np.int64)
        largest = np.array([attribute.largest for attribute in self._attributes], dtype=np.int64)
        low, high, other = np.zeros(len(listed), np.int64), largest[column], np.full(len(listed), _NONE)
        for number, attribute in enumerate(self._attributes):
            of_column = np.flatnonzero(column == number).tolist()
            self._set(attribute, [(place, listed[place].low) for place in of_column], low, 1)
            self._set(attribute, [(place, listed[place].high) for place in of_column], high, -1)
            others = [(place, (listed[place].other, True)) for place in of_column]
            self._set(attribute, [(place, end) for place, end in others if end[0] is not None], other, 0)
        count = np.array([len(ranges) for ranges in asked_by], dtype=np.int64)
        return Ranges(np.cumsum(count) - count, count, column, low, high, other)

    @staticmethod
    def _set(
        attribute: _Attribute,
        ends: Sequence[tuple[int, tuple[object, bool] | None]],
        found: Int64Array,
        inward: int,
    ) -> None:
        """Put the numbers of constants at their places, one further inward where they do not belong."""
        given = [(place, end) for place, end in ends if end is not None]
        numbers = attribute.places(pa.array([end[0] for _, end in given], attribute.of.type))
        open_ends = np.array([not end[1] for _, end in given], dtype=np.int64)
        found[[place for place, _ in given]] = numbers + inward * open_ends

    def candidates(self, rows: pa.RecordBatch) -> Candidates:
        """The rows that predicates may be true of."""
        values = [attribute.places(evaluate(attribute.of, rows).values) for attribute in self._attributes]
        return candidates_of(np.array(values, dtype=np.int64), self._ranges)

    def match(self, rows: pa.RecordBatch, candidates: Candidates) -> tuple[Int64Array, Int64Array]:
        """The predicates that are true of some rows: int64[m] predicates, ascending, and int64[m] rows."""
        ways, places = candidates.pairs()
        predicates = self._owner[ways]
        if len(self._owner) > self._owner[-1] + 1:
            # A row that is selected in two ways counts once.
            both = np.unique(predicates * len(rows) + places)
            predicates, places = both // len(rows), both % len(rows)
        kept = self._kept(rows, predicates, places)
        return predicates[kept], places[kept]

    def _kept(self, rows: pa.RecordBatch, predicates: Int64Array, places: Int64Array) -> BoolArray:
        """Which candidates the other parts of their predicates are true of."""
        kept: BoolArray = np.ones(len(places), dtype=np.bool_)
        if not self._rests or not len(places):
            return kept
        starts = np.flatnonzero(np.diff(predicates, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True):
            rest = self._rests.get(int(predicates[start]))
            if rest is not None:
                kept[start:end] = predicate_mask(evaluate(rest, take_rows(rows, places[start:end])))
        return kept


_MOST: Final = 4_000_000
"""So many pairs of a predicate and a row are looked at together, unless one row has more."""


def _index(predicates: tuple[tuple[int, Expression], ...]) -> tuple[PredicateIndex, Int64Array]:
    """The index, and the number of each predicate in what is selected."""
    numbers = np.array([number for number, _ in predicates], dtype=np.int64)
    return PredicateIndex([predicate for _, predicate in predicates]), numbers


_index_of: Final = ByObject(_index, 8)


def matched(node: Match, batch: Batch) -> Batch:
    """The elements that a `Match` makes of some of its input.

    Args:
        node: the plan node.
        batch: elements of its input.
    """
    return concat(node.schema, list(matched_parts(node, batch)))


def matched_parts(node: Match, batch: Batch) -> Iterator[Batch]:
    """What `matched` makes, in parts that fit in memory also where most queries select most rows.

    Args:
        node: the plan node.
        batch: elements of its input.
    """
    index, numbers = _index_of(node.predicates)
    candidates = index.candidates(batch.payload)
    if candidates.count > _MOST and len(batch) > 1:
        half = len(batch) // 2
        yield from matched_parts(node, batch.slice(0, half))
        yield from matched_parts(node, batch.slice(half, len(batch) - half))
        return
    predicates, places = index.match(batch.payload, candidates)
    found = batch.take(places)
    columns = [*found.payload.columns, pa.array(numbers[predicates])]
    yield found.with_payload(record_batch(columns, node.schema, len(found)))
