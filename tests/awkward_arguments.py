"""Arguments that functions may stumble over, and the functions with the types that they are tried with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP

MONEY = pa.decimal128(7, 2)
FINE = pa.decimal128(9, 6)
WIDE = pa.decimal256(60, 10)
WHOLE = pa.decimal256(76, 0)
"""DECIMALs that Spark does not have."""
EDGES: dict[pa.DataType, tuple[Any, ...]] = {
    BOOLEAN: (None, True, False),
    BIGINT: (None, -(2**63), -(2**63) + 1, -15, -1, 0, 1, 2, 7, 15, 2**53 + 1, 2**62, 2**63 - 1),
    DOUBLE: (
        None,
        math.nan,
        -math.nan,
        -math.inf,
        -1e22,
        -2.5,
        -0.5,
        -0.0,
        0.0,
        1e-5,
        1.005,
        2.675,
        1e7,
        2.0**63,
        math.inf,
    ),
    MONEY: tuple(
        Decimal(one) if one else None
        for one in ("", "-99999.99", "-2.50", "-0.01", "0.00", "1.55", "99999.99")
    ),
    FINE: tuple(
        Decimal(one) if one else None
        for one in ("", "-999.999999", "-0.000001", "0.000000", "2.500000", "3.000000", "999.999500")
    ),
    WIDE: tuple(
        Decimal(one + "0" * 9) if one else None
        for one in ("", f"-{'9' * 50}.9", "-2.5", "0.0", "3.0", "1.5", f"{10**38}.5")
    ),
    WHOLE: tuple(Decimal(one) if one else None for one in ("", f"-{'9' * 76}", "-2", "0", "7", str(10**75))),
    STRING: (
        None,
        "",
        "a",
        "ab",
        "aBa",
        " a ",
        "é",
        "ß",
        "b%",
        "a\nb",
        "1",
        "-2.5",
        "1e3",
        "2024-02-29",
        "nan",
    ),
    DATE: (
        None,
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(2023, 1, 1),
        date(2024, 2, 29),
        date(2024, 12, 31),
    ),
    TIMESTAMP: (
        None,
        datetime(1901, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, 45, 123_450, UTC),
    ),
}
SHORT = {dtype: edges[:1] + edges[1::2] for dtype, edges in EDGES.items()}
NUMBERS = (BIGINT, DOUBLE, MONEY, FINE, WIDE, WHOLE)

Signature = tuple[str, tuple[pa.DataType, ...]]


def signatures() -> Iterator[Signature]:
    for name in ("NEGATE", "ABS", "SIGN", "FLOOR", "CEIL", "ROUND", "TRUNC", "SQRT"):
        yield from ((name, (dtype,)) for dtype in NUMBERS)
    for name in ("+", "-", "*", "/", "%"):
        yield from ((name, (left, right)) for left in NUMBERS for right in NUMBERS)
    yield "DIV", (BIGINT, BIGINT)
    for name in ("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "GREATEST", "LEAST", "COALESCE"):
        yield from ((name, (dtype, dtype)) for dtype in EDGES)
    for name in ("IN", "BETWEEN"):
        yield from ((name, (dtype, dtype, dtype)) for dtype in EDGES)
    yield from (("NULLIF", (dtype, dtype)) for dtype in EDGES)
    yield from ((name, (dtype,)) for dtype in EDGES for name in ("IS NULL", "IS NOT NULL"))
    yield from ((name, (BOOLEAN, BOOLEAN)) for name in ("AND", "OR"))
    yield "NOT", (BOOLEAN,)
    yield "IF", (BOOLEAN, BIGINT, DOUBLE)
    yield from ((name, (STRING,)) for name in ("LENGTH", "UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM"))
    yield from ((name, (STRING, STRING)) for name in ("||", "CONCAT", "STARTSWITH", "ENDSWITH", "CONTAINS"))
    yield "REPLACE", (STRING, STRING, STRING)
    yield "SPLIT_PART", (STRING, STRING, BIGINT)
    yield "SUBSTRING", (STRING, BIGINT)
    yield "SUBSTRING", (STRING, BIGINT, BIGINT)
    yield from ((name, (dtype,)) for name in ("YEAR", "MONTH", "DAY", "HOUR") for dtype in (DATE, TIMESTAMP))
    yield from (
        (name, (TIMESTAMP,)) for name in ("MINUTE", "SECOND", "UNIX_MICROS", "UNIX_SECONDS", "UNIX_MILLIS")
    )
    for name in ("QUARTER", "WEEKOFYEAR", "WEEKDAY", "DAYOFWEEK", "DAYOFYEAR", "LAST_DAY"):
        yield from ((name, (dtype,)) for dtype in (DATE, TIMESTAMP))
    yield from ((name, (DATE, BIGINT)) for name in ("DATE_ADD", "DATE_SUB", "ADD_MONTHS"))
    yield "DATEDIFF", (DATE, DATE)
    yield "MAKE_DATE", (BIGINT, BIGINT, BIGINT)
    yield from ((name, (BIGINT,)) for name in ("TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS", "CHR"))
    yield from ((name, (STRING,)) for name in ("REVERSE", "INITCAP", "ASCII", "MD5", "SHA1", "CRC32"))
    yield from ((name, (STRING, BIGINT)) for name in ("LEFT", "RIGHT", "REPEAT", "LPAD", "SHA2"))
    yield from ((name, (STRING, BIGINT, STRING)) for name in ("LPAD", "RPAD"))
    yield from ((name, (STRING, STRING)) for name in ("INSTR", "BTRIM", "TRIM LEADING", "TRIM TRAILING"))
    yield "LEVENSHTEIN", (STRING, STRING)
    yield "LOCATE", (STRING, STRING, BIGINT)
    yield "SUBSTRING_INDEX", (STRING, STRING, BIGINT)
    yield "TRANSLATE", (STRING, STRING, STRING)
    yield from (("CONCAT_WS", (STRING,) * count) for count in (1, 2, 3))
    yield from (("HASH", (dtype,)) for dtype in EDGES)
    yield from (("HASH", (dtype, STRING)) for dtype in EDGES)
    yield "DECODE", (BIGINT, BIGINT, BIGINT)


def name_of(signature: Signature) -> str:
    return f"{signature[0]}({', '.join(map(str, signature[1]))})"
