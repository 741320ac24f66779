"""The values of a JSON line, one by one: with the text of numbers, and repeated keys kept."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from typing import Final

import pyarrow as pa

from headrace.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, Field, sql_type

READ_AS_TEXT: Final = (DATE, TIMESTAMP)
"""The types whose values are strings of JSON."""

_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
"""Strings that are a DOUBLE, as results and dead letters write what JSON has no number for."""


class JsonNumber(str):
    """The text of a JSON number, unlike that of a string."""

    __slots__ = ()


class Object(tuple[tuple[str, object], ...]):
    """The keys and values of a JSON object, unlike a list's values."""

    __slots__ = ()


def _number(text: str) -> JsonNumber:
    if math.isinf(float(text)):
        raise ValueError("a number is too large")
    return JsonNumber(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Object, parse_int=_number, parse_float=_number, parse_constant=JsonNumber
)


def decode(line: str) -> Object:
    """The object that a line consists of.

    Raises:
        ValueError: it is not such a line, or it holds half a surrogate pair.
    """
    value, end = _DECODER.raw_decode(line)
    if end != len(line) or not isinstance(value, Object):
        raise ValueError("there is more on the line")
    if "\\u" in line:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def pick(pairs: Object, keys: Collection[str]) -> list[object]:
    """The values of those keys; a missing one is None.

    Raises:
        ValueError: one of the keys is there twice.
    """
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found and key in keys:
            raise ValueError(f"the key {key} is there twice")
        found[key] = value
    return [found.get(key) for key in keys]


def texts_of(values: list[object], field: Field) -> tuple[pa.Array, dict[int, str]]:
    """The values as texts that `parse_texts` understands, and which have the wrong kind (NULL there)."""
    texts: list[str | None] = []
    wrong: dict[int, str] = {}
    for row, value in enumerate(values):
        text = _text(value, field.type)
        if text is None and value is not None:
            wrong[row] = f"{field.name} is not a valid {sql_type(field.type)}: {shown(value)}"
        texts.append(text)
    return pa.array(texts, STRING), wrong


def shown(value: object) -> str:
    """A value in a message."""
    """A value in a message."""
    match value:
        case Object():
            return "an object"
        case list():
            return "a list"
        case JsonNumber():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)[:100]


def _text(value: object, dtype: pa.DataType) -> str | None:
    match value:
        case bool():
            return str(value).lower() if dtype == BOOLEAN else None
        case JsonNumber():
            return str(value) if dtype in (BIGINT, DOUBLE) or pa.types.is_decimal(dtype) else None
        case str():
            is_text = dtype in (STRING, BINARY, *READ_AS_TEXT) or pa.types.is_decimal(dtype)
            return value if is_text or (dtype == DOUBLE and value in _NOT_FINITE) else None
        case _:
            return None
