"""From the types of a file to the column types of a stream, without loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.conversion import sorted_maps, uuid_texts
from headrace.elements import BoolArray
from headrace.errors import PlanError, SourceError, warn
from headrace.nested import fields_of, is_nested, lists, offsets_of, part_types
from headrace.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    MOST_DIGITS,
    TIMESTAMP,
    UNKNOWN,
    Field,
    Schema,
    decimal,
    places_named,
    sql_type,
    widen,
)
from headrace.suggestions import did_you_mean

_BIGINT_DIGITS: Final = 19
_MICROSECONDS: Final = {"day": 86_400_000_000, "s": 1_000_000, "ms": 1_000}


def readable_schema(available: pa.Schema, label: str) -> Schema:
    """The columns of a file whose types a stream can have, widened.

    The others, such as durations, are left out with a warning.

    Raises:
        SourceError: two columns have the same name except for case.
    """
    widened = [(field.name, widen(field.type)) for field in available]
    try:
        schema = Schema(tuple(Field(name, dtype) for name, dtype in widened if dtype is not None))
    except PlanError as error:
        raise SourceError(
            f"{label}: {error.message}", hint="declare the columns that are to be read"
        ) from None
    warn_left_out(label, {field.name: str(field.type) for field in available if widen(field.type) is None})
    return schema


def warn_left_out(label: str, columns: Mapping[str, str]) -> None:
    """Warn of the columns of an input that its stream does not have.

    Args:
        label: the input.
        columns: what each of them holds, by name; may be empty.
    """
    if columns:
        listed = ", ".join(f"{name} ({holds})" for name, holds in columns.items())
        warn(
            f"{label}: left out, since a stream has no columns of these types: {listed}; "
            "write what you need of them into columns of their own"
        )


def check_columns(available: pa.Schema, wanted: Schema, label: str) -> None:
    """Check that a file has every wanted column with a type that can be read as the wanted one.

    Raises:
        SourceError: a column is missing or its type does not fit.
    """
    for field in wanted:
        found = available.field(find_column(available.names, field.name, label)).type
        if not converts(found, field.type):
            widened = widen(found)
            known = sql_type(widened) if widened is not None else f"of type {found}, which is not supported"
            raise SourceError(
                f"{label}: column {field.name} is {known}, not {sql_type(field.type)}",
                hint="declare the column with the type it has, and CAST it in the query"
                if widened is not None
                else "leave the column out",
            )


class Lacking:
    """The columns that files lack, and that are NULL for their rows.

    Args:
        schema: the columns.
        missing: one of `MISSING`.
        is_declared: whether the columns are declared; if not, the first file may lack what later ones have.
    """

    def __init__(self, schema: Schema, missing: str, is_declared: bool) -> None:
        self._schema = schema
        self._missing = missing
        self._is_strict = is_declared and missing == "error"
        self._found: dict[str, str] = {}

    def of(self, names: Sequence[str], label: str) -> tuple[str, ...]:
        """What a file lacks.

        Args:
            names: its columns.
            label: its name to show.

        Raises:
            SourceError: it is the first one and the columns are declared, or it has none of them.
        """
        lacking = tuple(field.name for field in self._schema if not places_named(field.name, names))
        has_none = len(lacking) == len(self._schema) and self._missing != "null"
        if lacking and (self._is_strict or has_none):
            find_column(list(names), lacking[0], label)
        self._is_strict = False
        if lacking:
            self._found[label] = ", ".join(lacking)
        return lacking

    def tell(self) -> None:
        """Warn once of the files that lack some, unless the option `missing` says that they may."""
        if self._found and self._missing == "error":
            label, names = next(iter(self._found.items()))
            others = len(self._found) - 1
            more = f", and {others} other files lack some" if others else ""
            warn(f"{label} has no column {names}{more}: NULL there; the option missing 'some' is for that")


def find_column(names: list[str], name: str, label: str) -> int:
    """The place of a column: of the very name, or of the only one that differs by case alone.

    Raises:
        SourceError: there is none, or there are several.
    """
    similar = places_named(name, names)
    if len(similar) == 1:
        return similar[0]
    if similar:
        except_case = "" if names[similar[0]] == name else " except for case"
        hint = "give each its own name; of CSV, declare names with the options header 'false' and skip '1'"
        raise SourceError(f"{label}: several columns are called {name}{except_case}", hint=hint)
    hint = did_you_mean(name, names) or f"its columns are {', '.join(names)}"
    raise SourceError(f"{label}: there is no column {name}", hint=hint)


def converts(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of a file's type is a value of the column type."""
    widened = widen(found)
    if widened is None:
        return False
    if widened in (wanted, UNKNOWN):
        return True
    if is_nested(wanted):
        return _parts_convert(found, wanted)
    if pa.types.is_decimal(wanted):
        digits = wanted.precision - wanted.scale
        if pa.types.is_decimal(widened):
            return bool(widened.scale <= wanted.scale and widened.precision - widened.scale <= digits)
        return bool(widened == BIGINT and digits >= _BIGINT_DIGITS)
    return (widened, wanted) in ((DATE, TIMESTAMP), (BIGINT, DOUBLE))


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The column type that the values of two can be read as, or None where there is none.

    Args:
        one, other: column types.
    """
    if one == other:
        return one
    if is_nested(one) or is_nested(other):
        return _wider_parts(one, other)
    if converts(one, other) or converts(other, one):
        return other if converts(one, other) else one
    sizes = [_digits(dtype) for dtype in (one, other)]
    if None in sizes:
        return None
    whole, scale = (max(part) for part in zip(*filter(None, sizes), strict=True))
    return decimal(whole + scale, scale) if whole + scale <= MOST_DIGITS else None


def _digits(dtype: pa.DataType) -> tuple[int, int] | None:
    """How many digits an exact number has before and after the point; None for other types."""
    if dtype == BIGINT:
        return _BIGINT_DIGITS, 0
    return (dtype.precision - dtype.scale, dtype.scale) if pa.types.is_decimal(dtype) else None


def _wider_parts(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """As `wider`, for ARRAYs, MAPs, and STRUCTs of the same fields."""
    if UNKNOWN in (one, other):
        return other if one == UNKNOWN else one
    if one.id != other.id or one.num_fields != other.num_fields:
        return None
    if pa.types.is_struct(one):
        if [part.name for part in one] != [part.name for part in other]:
            return None
        found = [wider(part.type, beside.type) for part, beside in zip(one, other, strict=True)]
        known = zip((part.name for part in one), found, strict=True)
        return None if None in found else pa.struct([pa.field(name, dtype) for name, dtype in known])
    parts = [wider(*pair) for pair in zip(part_types(one), part_types(other), strict=True)]
    if None in parts:
        return None
    return pa.map_(*parts) if pa.types.is_map(one) else pa.list_(*parts)


def widened_by(schema: Schema, more: Schema) -> Schema:
    """The columns of a further file added to those of earlier ones, each with a type that holds both.

    A column that no type holds keeps its own.
    """
    columns = list(schema)
    for field in more:
        place = schema.find(field.name)
        if place is None:
            columns.append(field)
        else:
            known = columns[place]
            columns[place] = Field(known.name, wider(known.type, field.type) or known.type)
    return Schema(tuple(columns))


def _parts_convert(found: pa.DataType, wanted: pa.DataType) -> bool:
    """As `converts`, for ARRAYs, MAPs, and STRUCTs that have the fields of the wanted one."""
    if pa.types.is_struct(wanted):
        return bool(pa.types.is_struct(found)) and all(
            (place := field_named(found, field.name)) is not None
            and converts(found.field(place).type, field.type)
            for field in wanted
        )
    if pa.types.is_map(wanted) != pa.types.is_map(found) or pa.types.is_struct(found):
        return False
    return all(map(converts, part_types(as_list(found)), part_types(wanted)))


def field_named(found: pa.StructType, name: str) -> int | None:
    """The place of a STRUCT's field: of the very name, or of the only one that differs by case alone."""
    similar = places_named(name, [field.name for field in found])
    return similar[0] if len(similar) == 1 else None


def as_list(found: pa.DataType) -> pa.DataType:
    """The type of lists with offsets of 32 bits for other types of lists; other types unchanged."""
    is_other = pa.types.is_large_list(found) or pa.types.is_fixed_size_list(found)
    return pa.list_(found.value_type) if is_other else found


def _convert_parts(column: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
    """As `convert`, part by part; what is too large anywhere in a row is so of the row."""
    column = column.cast(as_list(column.type))
    if pa.types.is_struct(wanted):
        return _convert_fields(column, wanted)
    offsets = offsets_of(column)
    if pa.types.is_list(wanted):
        part, wrong = convert(column.values, wanted.value_type)
        return lists(offsets, part, column), _rows_with(wrong, offsets, column)
    keys, wrong_keys = convert(column.keys, wanted.key_type)
    items, wrong_items = convert(column.items, wanted.item_type)
    wrong = _either(wrong_keys, wrong_items)
    return sorted_maps(offsets, keys, items, column), _rows_with(wrong, offsets, column)


def _convert_fields(column: pa.StructArray, wanted: pa.StructType) -> tuple[pa.Array, BoolArray | None]:
    """As `_convert_parts`, for STRUCTs that have the fields of the wanted one."""
    found, parts, wrong = fields_of(column), [], None
    for field in wanted:
        place = field_named(column.type, field.name)
        assert place is not None, f"{column.type} has no field {field.name}"
        values, bad = convert(found[place], field.type)
        parts.append(values)
        wrong = _either(wrong, bad)
    names = [field.name for field in wanted]
    return pa.StructArray.from_arrays(parts, names=names, mask=column.is_null()), wrong


def _either(one: BoolArray | None, other: BoolArray | None) -> BoolArray | None:
    """Where one of two masks is true; None is a mask that is true nowhere."""
    return one | other if one is not None and other is not None else one if other is None else other


def _rows_with(wrong: BoolArray | None, offsets: npt.NDArray[np.int32], column: pa.Array) -> BoolArray | None:
    """The ARRAYs or MAPs that are not NULL and hold a value that is wrong; None if nowhere."""
    if wrong is None:
        return None
    counts = np.concatenate([[0], np.cumsum(wrong)])
    rows: BoolArray = (counts[offsets[1:]] > counts[offsets[:-1]]) & np.asarray(column.is_valid())
    return rows if rows.any() else None


def convert(column: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, BoolArray | None]:
    """A file's column as the column type, for types for which `converts` is true.

    Timestamps of other units and zones become microseconds in UTC; one without a zone is taken as UTC, and
    nanoseconds are rounded down.

    Returns:
        The values, and where one is not of the column type (NULL there), or None if nowhere: a timestamp that
        is too large for microseconds, or a whole number of which no DOUBLE has all digits.
    """
    if is_nested(wanted) and not pa.types.is_null(column.type):
        return _convert_parts(column, wanted)
    if column.type == wanted:
        return column, None
    if pa.types.is_dictionary(column.type):
        return convert(column.dictionary_decode(), wanted)
    if isinstance(column.type, pa.UuidType):
        return uuid_texts(column), None
    if pa.types.is_timestamp(column.type):
        return _instants(raw_counts(column), column.type.unit)
    if pa.types.is_date(column.type) and wanted == TIMESTAMP:
        return _instants(raw_counts(column.cast(DATE)), "day")
    if wanted == DOUBLE and pa.types.is_integer(column.type):
        return _doubles(column.cast(BIGINT))
    return column.cast(wanted), None


def raw_counts(column: pa.Array) -> pa.Array:
    """What a column of timestamps or dates counts, in its own unit, as BIGINT."""
    return column.view(pa.int32()).cast(BIGINT) if column.type == DATE else column.view(BIGINT)


def _doubles(numbers: pa.Array) -> tuple[pa.Array, BoolArray | None]:
    """Whole numbers as DOUBLEs, and which of them are between two."""
    exact = np.asarray(numbers.fill_null(0))
    nearest = exact.astype(np.float64)
    is_large = nearest >= 2.0**63
    bad: BoolArray = is_large | (np.where(is_large, 0.0, nearest).astype(np.int64) != exact)
    return pa.array(nearest, mask=bad | np.asarray(numbers.is_null())), bad if bad.any() else None


def _instants(counts: pa.Array, unit: str) -> tuple[pa.Array, BoolArray | None]:
    if unit == "us":
        return counts.view(TIMESTAMP), None
    if unit == "ns":
        towards_zero = pc.divide(counts, 1_000)
        too_large = pc.greater(pc.multiply(towards_zero, 1_000), counts)
        return pc.subtract(towards_zero, too_large.cast(BIGINT)).view(TIMESTAMP), None
    limit = (2**63 - 1) // _MICROSECONDS[unit]
    bad: BoolArray = np.asarray(pc.or_(pc.greater(counts, limit), pc.less(counts, -limit)).fill_null(False))
    if bad.any():
        counts = pc.if_else(pa.array(bad), None, counts)
    return pc.multiply(counts, _MICROSECONDS[unit]).view(TIMESTAMP), bad if bad.any() else None
