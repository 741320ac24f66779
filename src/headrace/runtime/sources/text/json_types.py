"""The types of the values of JSON lines, from some of them."""

from __future__ import annotations

import pyarrow as pa

from headrace.runtime.sources.rows.values import infer_type
from headrace.runtime.sources.text.json_values import READ_AS_TEXT, JsonNumber, Object
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING


def infer_json_type(values: list[object]) -> pa.DataType | None:
    """The type of the first values; None for lists and objects that are empty."""
    match values[0] if values else "":
        case bool():
            return BOOLEAN
        case JsonNumber():
            numbers = pa.array([str(value) for value in values if isinstance(value, JsonNumber)], STRING)
            dtype = infer_type(numbers)
            return dtype if dtype == BIGINT or pa.types.is_decimal(dtype) else DOUBLE
        case str():
            texts = pa.array([value for value in values if isinstance(value, str)], STRING)
            dtype = infer_type(texts)
            return dtype if dtype in READ_AS_TEXT else STRING
        case Object():
            return _infer_struct([value for value in values if isinstance(value, Object)])
        case list():
            parts = [one for value in values if type(value) is list for one in value if one is not None]
            part = infer_json_type(parts) if parts else None
            return None if part is None else pa.list_(part)
        case _:
            return None


def _infer_struct(objects: list[Object]) -> pa.DataType | None:
    """The STRUCT of all keys of objects, but for those whose values are empty lists or objects."""
    found: dict[str, list[object]] = {}
    for row in objects:
        for key, value in row:
            found.setdefault(key, []).extend([] if value is None else [value])
    typed = [(key, infer_json_type(values)) for key, values in found.items()]
    fields = [(key, dtype) for key, dtype in typed if dtype is not None]
    distinct = len({key.lower() for key, _ in fields}) == len(fields)
    return pa.struct(fields) if fields and distinct else None
