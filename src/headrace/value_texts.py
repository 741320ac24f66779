"""Values as texts, the same in every text format: ISO 8601 in UTC, plain decimals, shortest floats."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.nested import fields_of, is_sequence, lists, offsets_of
from headrace.schema import BIGINT, DATE, STRING, TIMESTAMP

_FIRST_ISO: Final = -62_135_596_800_000_000
"""0001-01-01; what lies before is written as a number of microseconds."""
_LAST_ISO: Final = 253_402_300_799_999_999
"""The last microsecond of 9999."""
_SECONDS_LENGTH: Final = len("2024-01-01T00:00:00")


def value_texts(column: pa.Array) -> pa.StringArray:
    """The values as texts; NULL stays NULL.

    TIMESTAMPs are written as `headrace.time.format_instant` writes them, DATEs in ISO 8601 or, beyond the
    years -32768 to 32767, as a number of days, a DOUBLE always with a point or an exponent, or as NaN,
    Infinity or -Infinity, a DECIMAL with all its digits and no exponent, a BINARY in base64, an ARRAY as in
    JSON, STRUCTs and MAPs as its objects.
    """
    dtype = column.type
    if pa.types.is_timestamp(dtype):
        return _timestamp_texts(column.cast(TIMESTAMP))
    if pa.types.is_date(dtype):
        return _date_texts(column)
    if pa.types.is_floating(dtype):
        return _double_texts(column)
    if is_sequence(dtype):
        return _sequence_texts(column)
    if pa.types.is_struct(dtype):
        return _struct_texts(column)
    if pa.types.is_binary(dtype):
        encoded = [None if value is None else b64encode(value).decode() for value in column.to_pylist()]
        return pa.array(encoded, STRING)
    if pa.types.is_decimal(dtype):
        scientific = pc.match_substring(column.cast(STRING), "E")
        return rewrite(
            column.cast(STRING), scientific, lambda places: [format(v, "f") for v in places], column
        )
    return column.cast(STRING)


def json_texts(column: pa.Array) -> pa.StringArray:
    """The values as JSON; NULL as `null`, and as strings what JSON has no number for."""
    texts = value_texts(column)
    dtype = column.type
    if pa.types.is_floating(dtype):
        texts = pc.if_else(pc.is_finite(column), texts, enclose(texts))
    elif is_text(dtype):
        unsafe = pc.match_substring_regex(texts, r'["\\\x00-\x1f]')
        texts = enclose(
            rewrite(texts, unsafe, lambda values: [json.dumps(v, ensure_ascii=False)[1:-1] for v in values])
        )
    elif pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or pa.types.is_binary(dtype):
        texts = enclose(texts)
    return texts.fill_null("null")


def _timestamp_texts(column: pa.Array) -> pa.StringArray:
    instants = column.view(BIGINT)
    far = pc.or_(pc.less(instants, _FIRST_ISO), pc.greater(instants, _LAST_ISO))
    near = pc.if_else(far, None, column).cast(pa.timestamp("us"))
    full = pc.replace_substring(near.cast(STRING), " ", "T")
    whole = pc.equal(pc.multiply(pc.divide(instants, 1_000_000), 1_000_000), instants)
    seconds = pc.utf8_slice_codeunits(full, 0, _SECONDS_LENGTH)
    texts = pc.binary_join_element_wise(pc.if_else(whole, seconds, full), "Z", "")
    return pc.coalesce(texts, instants.cast(STRING))


def _date_texts(column: pa.Array) -> pa.StringArray:
    texts = column.cast(STRING)
    far = pc.starts_with(texts, "<")
    return pc.if_else(far, column.cast(DATE).cast(pa.int32()).cast(STRING), texts)


def _double_texts(column: pa.Array) -> pa.StringArray:
    texts = column.cast(STRING)
    texts = pc.if_else(pc.match_substring_regex(texts, r"^-?[0-9]+$"), _append(texts, ".0"), texts)
    for value, text in ((np.inf, "Infinity"), (-np.inf, "-Infinity")):
        texts = pc.if_else(pc.equal(column, value), text, texts)
    return pc.if_else(pc.is_nan(column), "NaN", texts)


def _sequence_texts(column: pa.Array) -> pa.StringArray:
    """ARRAYs as those of JSON, MAPs as its objects."""
    is_map = pa.types.is_map(column.type)
    parts = _entry_texts(column.keys, column.items) if is_map else json_texts(column.values)
    inside = pc.binary_join(lists(offsets_of(column), parts, column), ",")
    opening, closing = "{}" if is_map else "[]"
    return pc.binary_join_element_wise(opening, inside, closing, "")


def _entry_texts(keys: pa.Array, items: pa.Array) -> pa.StringArray:
    """`"key":value` for each entry of MAPs."""
    names = json_texts(keys if is_text(keys.type) else value_texts(keys))
    return pc.binary_join_element_wise(names, json_texts(items), ":")


def _struct_texts(column: pa.StructArray) -> pa.StringArray:
    """STRUCTs as the objects of JSON."""
    fields = [
        pc.binary_join_element_wise(json.dumps(field.name, ensure_ascii=False) + ":", json_texts(part), "")
        for field, part in zip(column.type, fields_of(column), strict=True)
    ]
    texts = pc.binary_join_element_wise("{", pc.binary_join_element_wise(*fields, ","), "}", "")
    return pc.if_else(column.is_null(), None, texts)


def _append(texts: pa.StringArray, suffix: str) -> pa.StringArray:
    return pc.binary_join_element_wise(texts, suffix, "")


def enclose(texts: pa.StringArray) -> pa.StringArray:
    """The texts in double quotes."""
    return pc.binary_join_element_wise('"', texts, '"', "")


def rewrite(
    texts: pa.StringArray,
    where: pa.BooleanArray,
    change: Callable[[list[Any]], list[str]],
    values: pa.Array | None = None,
) -> pa.StringArray:
    """The texts, but for those few that have to be made one by one, from `values` or from themselves."""
    mask = where.fill_null(False)
    if not pc.any(mask).as_py():
        return texts
    chosen = (texts if values is None else values).filter(mask)
    return pc.replace_with_mask(texts, mask, pa.array(change(chosen.to_pylist()), STRING))


def is_text(dtype: pa.DataType) -> bool:
    """Whether it is a type of texts."""
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))
