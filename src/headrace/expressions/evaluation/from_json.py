"""FROM_JSON: JSON texts as ARRAYs, STRUCTs and MAPs.

A field that its type cannot hold is NULL, and the others stay; an ARRAY or a MAP with such a value is
NULL itself.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.conversion import sorted_maps
from headrace.expressions.evaluation.casts import cast
from headrace.expressions.evaluation.values import Datum, Kernel, KernelResult, fine, rows_of, spread
from headrace.expressions.json_paths import NumberText, written
from headrace.expressions.tree import Call
from headrace.limits import checked
from headrace.nested import lists
from headrace.schema import BIGINT, BINARY, BOOLEAN, DOUBLE, STRING

is_decimal = pa.types.is_decimal

_WHOLE: Final = re.compile("-?[0-9]+")
_ODD_DOUBLES: Final = ("NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF")
_DECODER: Final = json.JSONDecoder(parse_float=NumberText, parse_int=NumberText)


def _from_json(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    texts = spread(arguments[0], rows_of(arguments)).dictionary_encode()
    values = [_root(text, call.type) for text in checked(texts.dictionary.to_pylist())]
    return fine(_column(values, call.type).take(texts.indices))


def _root(text: str, dtype: pa.DataType) -> Any:
    """What a text holds; of a STRUCT that cannot be read no field is known."""
    text = text.lstrip(" \t\r\n")
    if not text:
        return None
    try:
        # What follows the value is passed over, as in Spark.
        value, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        value = None
    if pa.types.is_struct(dtype):
        return value if isinstance(value, dict) else {}
    alone = pa.types.is_list(dtype) and pa.types.is_struct(dtype.value_type) and isinstance(value, dict)
    return [value] if alone else value


def _column(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """JSON values as a column; NULL where the type does not hold one."""
    if pa.types.is_struct(dtype):
        rows = [value if isinstance(value, dict) else None for value in values]
        parts = [
            _column([None if row is None else row.get(part.name) for row in rows], part.type)
            for part in dtype
        ]
        mask = pa.array([row is None for row in rows], BOOLEAN)
        return pa.StructArray.from_arrays(parts, fields=list(dtype), mask=mask)
    if pa.types.is_list(dtype):
        found = [value if isinstance(value, list) else None for value in values]
        parts, offsets, like = _parts(found, dtype.value_type)
        return lists(offsets, parts, like)
    if pa.types.is_map(dtype):
        pairs = [value if isinstance(value, dict) else None for value in values]
        names = pa.array([name for pair in pairs for name in pair or ()], STRING)
        parts, offsets, like = _parts([_items(pair) for pair in pairs], dtype.item_type)
        return sorted_maps(offsets, names, parts, like)
    if dtype == BINARY:
        return pa.array(list(map(_bytes, values)), BINARY)
    return cast(pa.array([_text(value, dtype) for value in values], STRING), dtype)[0]


def _items(pairs: dict[str, Any] | None) -> list[Any] | None:
    return None if pairs is None else list(pairs.values())


def _parts(
    rows: Sequence[list[Any] | None], dtype: pa.DataType
) -> tuple[pa.Array, npt.NDArray[np.int64], pa.Array]:
    """The values of all rows as a column, where those of each begin, and NULL where one of them was lost."""
    flat = [part for row in rows for part in row or ()]
    offsets = np.concatenate([[0], np.cumsum([len(row or ()) for row in rows], dtype=np.int64)])
    parts = _column(flat, dtype)
    known = parts.is_valid().to_pylist()
    lost = [part is not None and not known[place] for place, part in enumerate(flat)]
    before = np.concatenate([[0], np.cumsum(lost, dtype=np.int64)])
    whole = np.diff(before[offsets]) == 0
    fit = [True if row is not None and whole[place] else None for place, row in enumerate(rows)]
    return parts, offsets, pa.array(fit, BOOLEAN)


def _text(value: Any, dtype: pa.DataType) -> str | None:
    """What is cast to a type, or None where JSON has nothing of it."""
    if dtype == STRING:
        text = value if isinstance(value, str) or value is None else written(value)
        # Half of a surrogate pair has no place in UTF-8.
        return text and text.encode(errors="replace").decode()
    if isinstance(value, bool) or dtype == BOOLEAN:
        return str(value) if isinstance(value, bool) and dtype == BOOLEAN else None
    if isinstance(value, NumberText):
        fits = _WHOLE.fullmatch(value.text) if dtype == BIGINT else dtype == DOUBLE or is_decimal(dtype)
        return value.text if fits else None
    if isinstance(value, float):
        return str(value) if dtype == DOUBLE else None
    if not isinstance(value, str) or dtype == BIGINT:
        return None
    if dtype == DOUBLE:
        return value.replace("INF", "Infinity") if value in _ODD_DOUBLES else None
    return value


def _bytes(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


KERNELS: Final[dict[str, Kernel]] = {"FROM_JSON": _from_json}
"""The function."""
