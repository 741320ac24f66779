"""Which of some equal rows are in a sample: a hash of each decides, and of its number among them.

Of a stream of which a share is kept, the hash of the first of equal rows decides on all of them.

A sample takes each row apart (CQL, section 2.1). Equal rows of an instant cannot be told from each other, so
they are numbered from 0, and those are in the sample for which the hash of the row and its number, and of the
instant where rows are of one, is below the sampled part of 2^64. So the sample is a function of the content.

The hash is splitmix64's finaliser, folded column by column.

NULL is a word of its own. A number, BOOLEAN, DATE or TIMESTAMP is the word of its bits, a DECIMAL is two, or
four of more than 38 digits; a STRING is the word that its length and its UTF-8 bytes fold into, eight at a
time. An ARRAY is the word of a string: of its values' hashes, each of 8 bytes with the lowest first, where
the hash of a value is that of a row with nothing else in it. So an empty ARRAY is not NULL, nor an ARRAY with
a NULL in it an empty one. A STRUCT is the word of the hash of a row of its fields, a MAP an ARRAY of STRUCTs.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa

from headrace.algebra.nodes import (
    Draw,
    LargestWeight,
    LimitedJoin,
    RememberedRows,
    Sample,
    SemanticDrop,
    Shed,
    Weighing,
)
from headrace.nested import part_types
from headrace.reference.casts import EXACT
from headrace.reference.contents import Content, Payload
from headrace.schema import STRING
from headrace.steps import WHOLE, means_at, value_at
from headrace.time import INFINITY

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_NULL = 0x5851F42D4C957F2D
_SALT = 0x53414D504C45


def sampled(plan: Sample, row: Payload, count: int, instant: int) -> int:
    """The number of rows in the sample, of so many equal rows of an instant."""
    return sum(in_sample(plan, row, number, instant) for number in range(count))


def in_sample(plan: Sample, row: Payload, number: int, instant: int) -> bool:
    """Whether a row is in the sample that is the n-th, from 0, of those that are equal at an instant."""
    words = (instant, number) if plan.timed else (number,)
    return drawn(row, (field.type for field in plan.schema), *words) < int(plan.percent * 2**64 / 100)


def shares_kept(plan: Weighing, instant: int, below: Content) -> Content:
    """The content of a node of shares at an instant, of that of its input."""
    if isinstance(plan, LargestWeight):
        return Counter({(*row, largest_weight(plan, instant)): count for row, count in below.items()})
    if isinstance(plan, Draw):
        types = [field.type for field in plan.input.schema]
        draws = {row: _signed(drawn(row, types, instant, plan.number)) for row in below}
        return Counter({(*row, draws[row], instant): count for row, count in below.items()})
    if isinstance(plan, SemanticDrop):
        return Counter({row: count for row, count in below.items() if is_worth(plan, row, instant)})
    assert isinstance(plan, Shed)
    kept: Content = Counter()
    for row, count in below.items():
        draw, weight = draw_of(plan, row, instant), weight_of(plan, row, instant)
        share = value_at(WHOLE, plan.steps, instant)
        is_plain = weight == WHOLE / share
        is_kept = _is_in(draw, share) if is_plain else draw < int(2**64 / weight)
        if is_kept:
            kept[(*row, _signed(draw), weight)] = count
    return kept


def is_worth(plan: SemanticDrop, row: Payload, instant: int) -> bool:
    """Whether a row is kept by its value: by the line on which that lies, as the graph is drawn."""
    value, points = row[plan.place], plan.graph.points
    if value is None or value != value:
        return True
    assert isinstance(value, int | float | Decimal)
    least = Fraction(value_at(0, plan.steps, instant), WHOLE)
    if value <= points[0][0]:
        return Fraction(points[0][1]) >= least
    for (begin, low), (end, high) in pairwise(points):
        if value <= end:
            part = (Fraction(value) - Fraction(begin)) / (Fraction(end) - Fraction(begin))
            return Fraction(low) + part * (Fraction(high) - Fraction(low)) >= least
    return Fraction(points[-1][1]) >= least


def draw_of(plan: Shed, row: Payload, instant: int) -> int:
    """The hash that decides on a row: of its keys where there are such, else of all but its sizes."""
    types = [field.type for field in plan.input.schema]
    if plan.keys:
        return drawn(row[-plan.keys :], types[-plan.keys :])
    width = len(row) - len(plan.sizes)
    return drawn(row[:width], types[:width], instant, plan.number)


def weight_of(plan: Shed, row: Payload, instant: int) -> float:
    """The number of rows that a row stands for if it is kept."""
    share = value_at(WHOLE, plan.steps, instant)
    usual = means_at(plan.scales, instant)
    named = zip(plan.sizes, row[len(row) - len(plan.sizes) :], strict=True)
    sizes = [_size(value) / usual[name] for name, value in named if name in usual]
    if not sizes or share == WHOLE:
        return WHOLE / share
    size = sum(sizes) / len(sizes)
    return 1.0 if size >= 2 * WHOLE / share else 1 + 2 * (WHOLE - share) / share / (1 + size)


def _size(value: object) -> float:
    assert value is None or isinstance(value, float)
    return 0.0 if value is None else math.inf if math.isnan(value) else abs(value)


def is_found(plan: LimitedJoin, pair: Payload) -> bool:
    """Whether all rows of a pair but the newest are remembered up to that one."""
    newest = max((_number(pair[rows.instant]) for rows in plan.remembered), default=0)
    return all(_is_remembered(rows, pair, newest) for rows in plan.remembered)


def _is_remembered(rows: RememberedRows, pair: Payload, newest: int) -> bool:
    """Whether one row of a pair is remembered up to an instant; the newest row is, whatever its draw."""
    draw, since = _number(pair[rows.draw]) % 2**64, _number(pair[rows.instant])
    if since == newest:
        return True
    changes = [step.begin for step in rows.steps if since < step.begin <= newest]
    return all(_is_in(draw, value_at(WHOLE, rows.steps, when)) for when in (since, *changes))


def _is_in(draw: int, share: int) -> bool:
    """Whether a draw, from 0 on and below 2^64, is in a share (millionths)."""
    return draw < share * 2**64 // WHOLE


def _signed(draw: int) -> int:
    """A draw as a BIGINT has it."""
    return draw - 2**64 if draw >= 2**63 else draw


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def largest_weight(plan: LargestWeight, instant: int) -> float:
    """The largest weight that a row may have at an instant of the window that an instant shows."""
    slide, offset = plan.slide.length, plan.offset.length
    last = (instant + 1 - offset) // slide * slide + offset - 1
    first = -INFINITY if plan.size.length == INFINITY else last - plan.size.length + 1
    inside = [begin for begin in _begins(plan) if first <= begin <= last]
    return max(_largest(plan, when) for when in (first, *inside))


def _largest(plan: LargestWeight, instant: int) -> float:
    """That of a row of no size, if there is a size that is known."""
    share = value_at(WHOLE, plan.steps, instant)
    by_size = any(name in means_at(plan.scales, instant) for name in plan.sizes)
    return 1 + 2 * (WHOLE - share) / share if by_size else WHOLE / share


def _begins(plan: LargestWeight) -> list[int]:
    return [*(step.begin for step in plan.steps), *(scale.begin for scale in plan.scales)]


def weight_changes(plan: LargestWeight) -> Iterator[int]:
    """The instants at which the largest weight may change: a step comes into the window, or leaves it."""
    slide, offset = plan.slide.length, plan.offset.length
    for begin in _begins(plan):
        for shown in (begin, begin + plan.size.length - 1):
            yield min(-(-(shown + 1 - offset) // slide) * slide + offset - 1, INFINITY)


def drawn(row: Payload, types: Iterable[pa.DataType], *words: int) -> int:
    """The hash that decides on a row and some numbers: at least 0 and below 2^64."""
    folded = _hash(row, types)
    for word in (_SALT, *words):
        folded = _mix(folded ^ _mix(word + _GOLDEN & _MASK))
    return folded


def _hash(row: Payload, types: Iterable[pa.DataType]) -> int:
    folded = 0
    for value, dtype in zip(row, types, strict=True):
        for word in _words(value, dtype):
            folded = _mix(folded ^ _mix(word & _MASK))
    return folded


def _words(value: object, dtype: pa.DataType) -> Iterator[int]:
    """What a value folds into the hash: a word, two of them for a DECIMAL, or four."""
    count = dtype.bit_width // 64 if pa.types.is_decimal(dtype) else 1
    if value is None:
        yield from [_NULL] * count
    elif isinstance(value, str) and dtype == STRING:
        yield _text(value.encode())
    elif isinstance(value, bytes):
        yield _text(value)
    elif isinstance(value, tuple) and pa.types.is_struct(dtype):
        yield _hash(value, (field.type for field in dtype)) + _GOLDEN
    elif isinstance(value, tuple):
        kind = pa.struct(list(zip("kv", part_types(dtype), strict=True))) if pa.types.is_map(dtype) else None
        hashes = (_hash((part,), (kind or dtype.value_type,)) for part in value)
        yield _text(b"".join(part.to_bytes(8, "little") for part in hashes))
    elif isinstance(value, Decimal):
        unscaled = int(value.scaleb(dtype.scale, EXACT)) & (2**dtype.bit_width - 1)
        yield from ((unscaled >> place & _MASK) + _GOLDEN for place in range(0, dtype.bit_width, 64))
    else:
        yield _integer(value) + _GOLDEN


def _integer(value: object) -> int:
    match value:
        case float():
            # All NaNs are represented by one: a quiet one without a sign.
            bits = 0x7FF8000000000000 if value != value else struct.unpack("<q", struct.pack("<d", value))[0]
            return int(bits)
        case datetime():
            since = value - datetime(1970, 1, 1, tzinfo=UTC)
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        case date():
            return (value - date(1970, 1, 1)).days
        case int():
            return int(value)
    raise AssertionError(f"no hash of {value!r}")


def _text(data: bytes) -> int:
    word = len(data) + _GOLDEN
    for at in range(0, len(data), 8):
        word = _mix(word ^ _mix(int.from_bytes(data[at : at + 8], "big") + _GOLDEN & _MASK))
    return word


def _mix(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
