"""Rows that are typed as JSON, as the values that their stream's columns have."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from headrace.errors import UserError
from headrace.runtime.sources.rows.values import parse_texts
from headrace.schema import DATE, DOUBLE, STRING, TIMESTAMP, Field, Schema, sql_type


def rows_of_json(text: str, schema: Schema) -> list[dict[str, Any]]:
    """The rows of a JSON text: an object is a row, a list has one per object.

    Args:
        text: JSON; TIMESTAMPs and DATEs are texts as in files of JSON lines, so may be DECIMALs.
        schema: the stream's columns.

    Raises:
        UserError: it is not JSON, or a text is not a value of its column.
    """
    try:
        given = json.loads(text)
    except ValueError as error:
        hint = 'write \\push stream {"column": value}'
        raise UserError(f"the row is not JSON: {error}", hint=hint) from None
    rows = given if isinstance(given, list) else [given]
    for row in rows:
        if not isinstance(row, dict):
            raise UserError(f"{json.dumps(row)} is not a row", hint='write {"column": value}')
    fields = {field.name.lower(): field for field in schema}
    return [{name: _value(value, fields.get(name.lower())) for name, value in row.items()} for row in rows]


def _value(value: object, field: Field | None) -> object:
    if field is None or not isinstance(value, str) or not _is_written(field.type):
        return value
    parsed, bad = parse_texts(pa.array([value], STRING), field.type)
    if bad[0]:
        raise UserError(f"{field.name} is not a valid {sql_type(field.type)}: {json.dumps(value)}")
    return parsed[0].as_py()


def _is_written(dtype: pa.DataType) -> bool:
    """Whether values of a type are written as texts."""
    return dtype in (DATE, DOUBLE, TIMESTAMP) or bool(pa.types.is_decimal(dtype))
