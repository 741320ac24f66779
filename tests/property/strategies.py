"""Hypothesis strategies for what flows: values, schemas, histories, and their cuts into epochs.

Values come from small pools, so that payloads tie, and instants from a short stretch of time, so that they
collide. `expression_strategies` and `plan_strategies` build on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headrace.elements import Batch, from_rows
from headrace.reference.contents import Element, Payload
from headrace.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    Field,
    Schema,
)
from headrace.time import BEGINNING, INFINITY

MONEY = pa.decimal128(7, 2)
"""The DECIMAL of generated schemas."""

GREAT = pa.decimal256(50, 3)
"""A DECIMAL that Spark does not have."""

ALL_TYPES = (BIGINT, STRING, DOUBLE, BOOLEAN, MONEY, DATE, TIMESTAMP, GREAT, UNKNOWN)
PLAIN_TYPES = (BIGINT, STRING, BIGINT, STRING, BOOLEAN, DOUBLE, UNKNOWN)
"""Mostly BIGINT and STRING, which leave no doubt about equality."""

BUCKETS = st.sampled_from((1, 2, 3, 8))
"""How many buckets a run is spread over."""

_INTEGERS = st.sampled_from((1, 2, 5, -3, 0, 4, -1))
_STRINGS = st.sampled_from(("", "a", "b", "ab", "é", "B", " a", "12"))
_EXACT_DOUBLES = st.sampled_from((1.5, -0.25, 2.0, 0.0, -2.0, 0.75))
_ODD_DOUBLES = st.sampled_from((math.nan, math.inf, -math.inf, -0.0, -math.nan))
_MOMENTS = st.datetimes(datetime(1901, 1, 1), datetime(2099, 12, 31), timezones=st.just(UTC))
_FEW_MOMENTS = st.sampled_from(
    (datetime(2024, 2, 29, 23, 59, 59, 999_999, UTC), datetime(1969, 12, 31, tzinfo=UTC))
)

BATTERY: dict[pa.DataType, st.SearchStrategy[Any]] = {
    BIGINT: _INTEGERS
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from((2**63 - 1, -(2**63), 2**53 + 1, 10, 15, -15)),
    DOUBLE: _EXACT_DOUBLES
    | _ODD_DOUBLES
    | st.floats(-1e9, 1e9)
    | st.sampled_from((1.005, 2.675, -0.5, 2.5, 1e7, 1e-3, 9.99e-4, 2.0**63, 1e22)),
    STRING: _STRINGS
    | st.text("ab%_é 0", max_size=5)
    | st.sampled_from(("1.5", "-7", " 42 ", "1e3", "nan", "inf", "true", "No", "2024-02-03", "2024-2-30"))
    | st.sampled_from(("2024-02-03 04:05:06.789+01:30", "9223372036854775808", "ß", "ab\nc", "-.5")),
    BOOLEAN: st.booleans(),
    MONEY: st.decimals("-99999.99", "99999.99", places=2),
    GREAT: st.sampled_from(
        [Decimal(one) for one in (f"{10**46}.125", f"-{'9' * 47}.999", "0.000", "-2.500")]
    ),
    DATE: st.dates(date(1901, 1, 1), date(2099, 12, 31)),
    TIMESTAMP: _MOMENTS | _FEW_MOMENTS,
}
"""Values that are likely to break an expression."""

POOLS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    BIGINT: _INTEGERS,
    DOUBLE: _EXACT_DOUBLES,
    STRING: _STRINGS,
    BOOLEAN: st.booleans(),
    MONEY: st.sampled_from((Decimal("0.00"), Decimal("0.01"), Decimal("-2.50"), Decimal("10.00"))),
    GREAT: st.sampled_from((Decimal("0.000"), Decimal("1.500"), Decimal(f"-{10**45}.001"))),
    DATE: st.sampled_from((date(2024, 2, 29), date(2024, 3, 1), date(1969, 12, 31))),
    TIMESTAMP: _FEW_MOMENTS,
    BINARY: st.sampled_from((b"", b"\x00", b"\xff\x00", b"ab")),
}
"""Few values, for ties; sums of the DOUBLEs are exact. Hypothesis prefers the first ones: they are not 0."""


def values(
    dtype: pa.DataType, *, nulls: bool = True, odd_doubles: bool = True, pools: Any = None
) -> st.SearchStrategy[Any]:
    """Values of a column type, NULL and odd DOUBLEs (NaN, infinities, -0) now and then."""
    if pa.types.is_null(dtype):
        return st.none()
    if pa.types.is_list(dtype):
        parts = values(dtype.value_type, odd_doubles=odd_doubles, pools=pools)
        arrays = st.lists(parts, max_size=3)
        return st.one_of(*[arrays] * 5, st.none()) if nulls else arrays
    if pa.types.is_struct(dtype):
        names = [field.name for field in dtype]
        fields = [values(field.type, odd_doubles=odd_doubles, pools=pools) for field in dtype]
        structs = st.tuples(*fields).map(lambda drawn: dict(zip(names, drawn, strict=True)))
        return st.one_of(*[structs] * 5, st.none()) if nulls else structs
    if pa.types.is_map(dtype):
        keys = values(dtype.key_type, nulls=False, odd_doubles=False, pools=pools)
        items = values(dtype.item_type, odd_doubles=odd_doubles, pools=pools)
        entries = st.dictionaries(keys, items, max_size=3).map(lambda entries: sorted(entries.items()))
        return st.one_of(*[entries] * 5, st.none()) if nulls else entries
    drawn = (POOLS if pools is None else pools)[dtype]
    if dtype == DOUBLE and odd_doubles:
        drawn = drawn | drawn | drawn | _ODD_DOUBLES
    return st.one_of(*[drawn] * 5, st.none()) if nulls else drawn


def nested_types(depth: int = 2, *, is_declared: bool = False) -> st.SearchStrategy[pa.DataType]:
    """Types of ARRAYs, STRUCTs and MAPs, at most so deep, and those of single values.

    Args:
        depth: how deep.
        is_declared: whether they are those of a text, in which nobody can write the type of an untyped NULL.
    """
    singles = (*ALL_TYPES, BINARY)
    single = st.sampled_from([one for one in singles if one != UNKNOWN or not is_declared])
    if depth == 0:
        return single
    part = nested_types(depth - 1, is_declared=is_declared)
    arrays = part.map(pa.list_)
    structs = st.lists(part, min_size=1, max_size=2).map(
        lambda kinds: pa.struct([pa.field(f"f{place}", kind) for place, kind in enumerate(kinds)])
    )
    maps = st.tuples(st.sampled_from((STRING, BIGINT)), part).map(lambda pair: pa.map_(*pair))
    return st.one_of(arrays, structs, maps, single)


def schemas(
    types: Sequence[pa.DataType] = ALL_TYPES, min_columns: int = 1, max_columns: int = 3
) -> st.SearchStrategy[Schema]:
    """Schemas with columns c0, c1 ..."""
    drawn = st.lists(st.sampled_from(tuple(types)), min_size=min_columns, max_size=max_columns)
    return drawn.map(
        lambda types: Schema(tuple(Field(f"c{place}", kind) for place, kind in enumerate(types)))
    )


def payloads(schema: Schema, *, odd_doubles: bool = True, pools: Any = None) -> st.SearchStrategy[Payload]:
    """Rows of a schema."""
    return st.tuples(*(values(field.type, odd_doubles=odd_doubles, pools=pools) for field in schema))


@st.composite
def few_payloads(draw: st.DrawFn, schema: Schema, odd_doubles: bool) -> st.SearchStrategy[Payload]:
    """Rows of a schema that are often the same."""
    some = payloads(schema, odd_doubles=odd_doubles)
    return st.sampled_from(draw(st.lists(some, min_size=1, max_size=4)))


# --- histories ---------------------------------------------------------------------------------------------


@st.composite
def chronon_histories(
    draw: st.DrawFn,
    schema: Schema,
    *,
    disorder: int = 0,
    max_size: int = 12,
    horizon: int = 12,
    odd_doubles: bool = True,
) -> list[Element]:
    """Elements `[t, t+1)` in an order of arrival that is disordered by no more than the bound."""
    row = st.tuples(draw(few_payloads(schema, odd_doubles)), st.integers(0, horizon))
    elements = [(payload, ts, ts + 1, 1) for payload, ts in draw(st.lists(row, max_size=max_size))]
    return draw(disordered(elements, disorder))


@st.composite
def signed_histories(
    draw: st.DrawFn,
    schema: Schema,
    *,
    disorder: int = 0,
    max_size: int = 12,
    horizon: int = 12,
    odd_doubles: bool = True,
) -> list[Element]:
    """Elements with ties, open ends and retractions; the content is never below zero once all is there.

    With a disorder, a retraction may arrive before what it retracts.
    """
    ends = st.integers(1, horizon) | st.just(INFINITY)
    some = draw(few_payloads(schema, odd_doubles))
    row = st.tuples(some, st.integers(0, horizon), ends, st.sampled_from((1, 1, 2)))
    elements: list[Element] = []
    for payload, ts, length, w in draw(st.lists(row, max_size=max_size)):
        te = INFINITY if length == INFINITY else ts + length
        elements.append((payload, ts, te, w))
        if draw(st.booleans()):
            start = draw(st.integers(ts, min(te - 1, ts + horizon)))
            end = draw(st.just(te) | st.integers(start + 1, min(te, start + horizon)))
            elements.append((payload, start, end, -draw(st.integers(1, w))))
    return draw(disordered(elements, disorder))


@st.composite
def disordered(draw: st.DrawFn, elements: Sequence[Element], disorder: int) -> list[Element]:
    """The elements in an order in which none is behind a larger `ts` by more than the bound."""
    delays = [draw(st.integers(0, disorder)) if disorder else 0 for _ in elements]
    places = sorted(range(len(elements)), key=lambda place: elements[place][1] + delays[place])
    return [elements[place] for place in places]


# --- epochs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Epoch:
    """What an epoch brings.

    Attributes:
        batches: new elements per stream, in order of arrival.
        heartbeats: per stream, an instant before which nothing will start any more.
    """

    batches: Mapping[str, Batch]
    heartbeats: Mapping[str, int]


@st.composite
def epochs(
    draw: st.DrawFn, streams: Mapping[str, tuple[Schema, Sequence[Element]]], max_epochs: int = 4
) -> list[Epoch]:
    """The streams cut into epochs at random; after the last one all heartbeats are INFINITY."""
    count = draw(st.integers(1, max_epochs))
    cuts = {
        name: [0, *sorted(draw(_cuts(len(elements), count - 1))), len(elements)]
        for name, (_, elements) in streams.items()
    }
    result = []
    heartbeats = dict.fromkeys(streams, BEGINNING)
    for number in range(count):
        batches = {}
        for name, (schema, elements) in streams.items():
            start, end = cuts[name][number : number + 2]
            batches[name] = from_rows(schema, elements[start:end])
            safe = min((ts for _, ts, _, _ in elements[end:]), default=INFINITY)
            # A promise may be weaker than it could be, until the streams have ended.
            behind = draw(st.sampled_from((0, 0, 1, 3))) if number < count - 1 else 0
            held = safe - behind if safe < INFINITY or not behind else heartbeats[name]
            heartbeats[name] = max(heartbeats[name], held)
        result.append(Epoch(batches, dict(heartbeats)))
    return result


def _cuts(size: int, count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, size), min_size=count, max_size=count)
