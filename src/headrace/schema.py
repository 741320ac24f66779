"""Column types and schemas.

Columns have the types below, held as Arrow types; there is one integer (BIGINT) and one floating type
(DOUBLE), so that kernels need few signatures. Narrower types of an input are widened when it is read.
ARRAYs, STRUCTs and MAPs of these types are held as Arrow's lists, structs and maps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
BINARY: Final = pa.binary()
UNKNOWN: Final = pa.null()
"""The type of a bare NULL."""
INTERVAL: Final = pa.duration("us")
"""The type of lengths of time within an expression; no column has it."""
MONTHS: Final = pa.month_day_nano_interval()
"""The type of numbers of months within an expression; no column has it."""

DIGITS: Final = 38
"""A DECIMAL of so many digits has 16 bytes, and is one of Spark's; a longer one has 32."""
MOST_DIGITS: Final = 76
"""The most digits of a DECIMAL."""

_SINGLE: Final = {
    BOOLEAN: "BOOLEAN",
    BIGINT: "BIGINT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    BINARY: "BINARY",
    UNKNOWN: "VOID",
}


def quote(name: str) -> str:
    """A name as an identifier, in backticks where it has to be."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name.replace('`', '``')}`"


def decimal(precision: int, scale: int) -> pa.DataType:
    """DECIMAL(precision, scale): in 16 bytes where they hold so many digits, else in 32.

    Args:
        precision: the digits in all, from 1 to `MOST_DIGITS`.
        scale: those of them after the point.
    """
    return (pa.decimal128 if precision <= DIGITS else pa.decimal256)(precision, scale)


def most_digits(dtype: pa.DataType) -> int:
    """The most digits that what is computed from a DECIMAL has: Spark's 38 if it has no more itself."""
    return MOST_DIGITS if pa.types.is_decimal256(dtype) else DIGITS


def sql_type(dtype: pa.DataType) -> str:
    """The SQL name of a column type, such as `DECIMAL(10, 2)` or `ARRAY<STRUCT<a: BIGINT>>`."""
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if pa.types.is_list(dtype):
        return f"ARRAY<{sql_type(dtype.value_type)}>"
    if pa.types.is_map(dtype):
        return f"MAP<{sql_type(dtype.key_type)}, {sql_type(dtype.item_type)}>"
    if pa.types.is_struct(dtype):
        return f"STRUCT<{', '.join(f'{quote(part.name)}: {sql_type(part.type)}' for part in dtype)}>"
    return (_SINGLE | {INTERVAL: "INTERVAL", MONTHS: "INTERVAL"}).get(dtype, str(dtype))


def type_named(text: str) -> pa.DataType:
    """The column type that `sql_type` gives a name.

    Raises:
        ValueError: there is none.
    """
    for dtype, name in _SINGLE.items():
        if name == text:
            return dtype
    if found := re.fullmatch(r"DECIMAL\((\d+), (\d+)\)", text):
        return decimal(int(found[1]), int(found[2]))
    nested = re.fullmatch("(ARRAY|MAP|STRUCT)<(.*)>", text, re.DOTALL)
    match nested and (nested[1], _type_parts(nested[2])):
        case ("ARRAY", [values]):
            return pa.list_(type_named(values))
        case ("MAP", [keys, values]):
            return pa.map_(type_named(keys), type_named(values))
        case ("STRUCT", [*parts]):
            return pa.struct([_field_named(part) for part in parts])
        case _:
            raise ValueError(f"there is no type {text}")


def _type_parts(text: str) -> list[str]:
    """The parts between the commas that are not in brackets or quotes."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == "`"
        depth += 0 if quoted else (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _field_named(text: str) -> pa.Field:
    """A field of a STRUCT from `name: TYPE`."""
    found = re.fullmatch(r"(?:`((?:[^`]|``)+)`|([^:`]+)): (.*)", text, re.DOTALL)
    if found is None:
        raise ValueError(f"there is no field {text}")
    name = found[2] if found[1] is None else found[1].replace("``", "`")
    return pa.field(name, type_named(found[3]))


def widen(dtype: pa.DataType) -> pa.DataType | None:
    """The column type that holds every value of an input's Arrow type, or None where there is none."""
    types = pa.types
    if types.is_dictionary(dtype):
        return widen(dtype.value_type)
    if types.is_nested(dtype):
        return _widen_nested(dtype)
    if types.is_signed_integer(dtype) or dtype in (pa.uint8(), pa.uint16(), pa.uint32()):
        return BIGINT
    if dtype == pa.uint64():
        return pa.decimal128(20, 0)
    if types.is_floating(dtype):
        return DOUBLE
    if types.is_string(dtype) or types.is_large_string(dtype):
        return STRING
    if types.is_timestamp(dtype):
        return TIMESTAMP
    if types.is_date(dtype):
        return DATE
    if types.is_decimal(dtype):
        return decimal(dtype.precision, dtype.scale)
    if types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype):
        return BINARY
    return dtype if dtype in (BOOLEAN, UNKNOWN) else _OTHERS.get(dtype)


_OTHERS: Final = {pa.uuid(): STRING, pa.string_view(): STRING, pa.binary_view(): BINARY}
"""Column types of single types of Arrow."""


def _widen_nested(dtype: pa.DataType) -> pa.DataType | None:
    """ARRAYs, STRUCTs and MAPs of widened types; None where a part has no column type."""
    types = pa.types
    if types.is_map(dtype):
        key, value = widen(dtype.key_type), widen(dtype.item_type)
        fits = key is not None and value is not None and not types.is_map(key)
        return pa.map_(key, value) if fits else None
    if types.is_struct(dtype):
        parts = [(part.name, widen(part.type)) for part in dtype]
        names = {name.lower() for name, _ in parts}
        fits = 0 < len(parts) == len(names) and all(part is not None for _, part in parts)
        return pa.struct([pa.field(name, part) for name, part in parts]) if fits else None
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        values = widen(dtype.value_type)
        return None if values is None else pa.list_(values)
    return None


def check_compared(dtype: pa.DataType) -> None:
    """Refuse a type whose values conditions do not compare.

    Raises:
        PlanError: it is a type of MAPs, or of ARRAYs or STRUCTs that hold some.
    """
    if pa.types.is_map(dtype):
        raise PlanError("MAPs are not compared", hint="compare MAP_KEYS(x) and MAP_VALUES(x)")
    if pa.types.is_nested(dtype):
        for place in range(dtype.num_fields):
            check_compared(dtype.field(place).type)


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

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns, by name, in order."""
        return {field.name: field.type for field in self.fields}

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


def places_named(name: str, names: Sequence[str]) -> list[int]:
    """The places of a name: of the very name, or of all that differ from it by case alone.

    Args:
        name: the name that is wanted.
        names: those that there are.
    """
    exact = [place for place, known in enumerate(names) if known == name]
    return exact or [place for place, known in enumerate(names) if known.lower() == name.lower()]


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
