"""The names of column types."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError, Position
from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, MOST_DIGITS, STRING, TIMESTAMP, decimal
from headrace.suggestions import did_you_mean

TYPES: Final[dict[str, pa.DataType]] = {
    "BOOLEAN": BOOLEAN,
    "BOOL": BOOLEAN,
    "TINYINT": BIGINT,
    "SMALLINT": BIGINT,
    "INT": BIGINT,
    "INTEGER": BIGINT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "REAL": DOUBLE,
    "FLOAT": DOUBLE,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "TEXT": STRING,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "BYTES": BINARY,
}
"""Column types by name; narrower numbers are widened to BIGINT and DOUBLE."""

DECIMALS: Final = ("DECIMAL", "NUMERIC", "DEC")
"""The names of the exact decimal type, which takes a precision and a scale."""

SIZED: Final = ("VARCHAR", "CHAR")
"""Types whose length may be written; it is not checked."""


_FOREIGN: Final = {
    **dict.fromkeys(("INT2", "INT4", "INT8", "INT16", "INT32", "INT64", "MEDIUMINT", "HUGEINT"), "BIGINT"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32", "UINT64", "UNSIGNED", "SERIAL", "BYTE", "SHORT"), "BIGINT"),
    **dict.fromkeys(("FLOAT4", "FLOAT8", "FLOAT32", "FLOAT64"), "DOUBLE"),
    **dict.fromkeys(
        ("DATETIME", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMP_TZ", "DATETIME64"), "TIMESTAMP"
    ),
    **dict.fromkeys(
        ("STR", "OBJECT", "NVARCHAR", "VARCHAR2", "CLOB", "UUID", "JSON", "JSONB", "TIME"), "STRING"
    ),
    **dict.fromkeys(("BLOB", "BYTEA", "RAW"), "BINARY"),
    **dict.fromkeys(("LIST",), "ARRAY<BIGINT>"),
    **dict.fromkeys(("NUMBER", "BIGNUMERIC", "MONEY"), "DECIMAL(38, 2)"),
}
"""Types of other systems, and what holds their values here."""


def type_hint(name: str) -> str:
    """What to write instead of an unknown type."""
    upper = name.upper()
    if upper in _FOREIGN:
        return f"write {_FOREIGN[upper]}"
    listed = f"the types are {', '.join(TYPES)}, DECIMAL(precision, scale), ARRAY, STRUCT and MAP"
    return did_you_mean(upper, (*TYPES, "DECIMAL"), cutoff=0.75) or listed


def column_type(name: str, sizes: tuple[int, ...], position: Position) -> pa.DataType:
    """The type of that name.

    Args:
        name: the name, in any case.
        sizes: the numbers in parentheses after it.
        position: where it is, for errors.

    Raises:
        LanguageError: there is no such type, or the numbers do not fit it.
    """
    upper = name.upper()
    if upper in DECIMALS:
        return _decimal(sizes, position)
    found = TYPES.get(upper)
    if found is None:
        raise LanguageError(f"there is no type {name}", position=position, hint=type_hint(name))
    if sizes and not (upper in SIZED and len(sizes) == 1):
        raise LanguageError(f"{upper} takes no size", position=position, hint=f"write {upper} alone")
    return found


def _decimal(sizes: tuple[int, ...], position: Position) -> pa.DataType:
    precision, scale = (*sizes, *((10, 0)[len(sizes) :]))[:2]
    if len(sizes) > 2 or not 1 <= precision <= MOST_DIGITS or not 0 <= scale <= precision:
        raise LanguageError(
            f"DECIMAL({', '.join(map(str, sizes))}) is not a valid type",
            position=position,
            hint=f"write DECIMAL(precision, scale) with at most {MOST_DIGITS} digits",
        )
    return decimal(precision, scale)
