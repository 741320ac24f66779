"""Column types and schemas.

Columns have the types below, held as Arrow types; there is one integer (BIGINT) and one floating type
(DOUBLE), so that kernels need few signatures. Narrower types of an input are widened when it is read.
Results may also be ARRAYs of these types, held as Arrow lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headrace.errors import PlanError

BOOLEAN: Final = pa.bool_()
BIGINT: Final = pa.int64()
DOUBLE: Final = pa.float64()
STRING: Final = pa.string()
DATE: Final = pa.date32()
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
UNKNOWN: Final = pa.null()
"""The type of a bare NULL."""
INTERVAL: Final = pa.duration("us")
"""The type of lengths of time within an expression; no column has it."""
MONTHS: Final = pa.month_day_nano_interval()
"""The type of numbers of months within an expression; no column has it."""


def sql_type(dtype: pa.DataType) -> str:
    """The SQL name of a column type, such as `DECIMAL(10, 2)`."""
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if pa.types.is_list(dtype):
        return f"ARRAY<{sql_type(dtype.value_type)}>"
    names = {BOOLEAN: "BOOLEAN", BIGINT: "BIGINT", DOUBLE: "DOUBLE", STRING: "STRING", DATE: "DATE"}
    names |= {TIMESTAMP: "TIMESTAMP", UNKNOWN: "VOID", INTERVAL: "INTERVAL", MONTHS: "INTERVAL"}
    return names.get(dtype, str(dtype))


def type_named(text: str) -> pa.DataType:
    """The column type that `sql_type` gives a name.

    Raises:
        ValueError: there is none.
    """
    for dtype in (BOOLEAN, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP, UNKNOWN):
        if sql_type(dtype) == text:
            return dtype
    if array := re.fullmatch("ARRAY<(.*)>", text):
        return pa.list_(type_named(array[1]))
    if decimal := re.fullmatch(r"DECIMAL\((\d+), (\d+)\)", text):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    raise ValueError(f"there is no type {text}")


def widen(dtype: pa.DataType) -> pa.DataType | None:
    """The column type that holds every value of an input's Arrow type, or None where there is none."""
    types = pa.types
    if types.is_dictionary(dtype):
        return widen(dtype.value_type)
    if types.is_signed_integer(dtype) or dtype in (pa.uint8(), pa.uint16(), pa.uint32()):
        return BIGINT
    if dtype == pa.uint64():
        return pa.decimal128(20, 0)
    if types.is_floating(dtype):
        return DOUBLE
    if types.is_string(dtype) or types.is_large_string(dtype) or dtype == pa.string_view():
        return STRING
    if types.is_timestamp(dtype):
        return TIMESTAMP
    if types.is_date(dtype):
        return DATE
    if types.is_decimal(dtype) and dtype.precision <= 38:
        return pa.decimal128(dtype.precision, dtype.scale)
    return dtype if dtype in (BOOLEAN, UNKNOWN) else None


def check_column(dtype: pa.DataType) -> None:
    """Refuse a type that no column has.

    Raises:
        PlanError: it is that of INTERVALs.
    """
    if dtype in (INTERVAL, MONTHS):
        raise PlanError(
            "an INTERVAL cannot be a column",
            hint="TIMESTAMPDIFF(SECOND, start, end) counts the seconds between two TIMESTAMPs",
        )


@dataclass(frozen=True)
class Field:
    """A named, typed column; every column may hold NULL.

    Raises:
        PlanError: it has the type of INTERVALs.
    """

    name: str
    type: pa.DataType

    def __post_init__(self) -> None:
        check_column(self.type)

    def __str__(self) -> str:
        return f"{self.name} {sql_type(self.type)}"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream's payload, in order. Names are unique, whatever their case.

    Raises:
        PlanError: two columns have the same name.
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for field in self.fields:
            if field.name.lower() in seen:
                raise PlanError(f"column {field.name} is defined twice", hint="give one of them an alias")
            seen.add(field.name.lower())

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __getitem__(self, index: int) -> Field:
        return self.fields[index]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.fields)) + ")"

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(field.name for field in self.fields)

    def find(self, name: str) -> int | None:
        """The index of the column of that name, whatever its case, or None."""
        for index, field in enumerate(self.fields):
            if field.name.lower() == name.lower():
                return index
        return None

    def select(self, indices: tuple[int, ...]) -> Schema:
        """The schema of those columns, in that order."""
        return Schema(tuple(self.fields[index] for index in indices))

    def arrow(self) -> pa.Schema:
        """The same as an Arrow schema."""
        return pa.schema([pa.field(field.name, field.type) for field in self.fields])


def unique_names(names: list[str]) -> list[str]:
    """The names with `_2`, `_3` ... appended to repeats, so that they can be in one schema."""
    taken: set[str] = set()
    last: dict[str, int] = {}
    result = []
    for name in names:
        # What was taken for an equal name before is taken still.
        candidate, number = name, last.get(name.lower(), 1)
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        last[name.lower()] = number
        taken.add(candidate.lower())
        result.append(candidate)
    return result
