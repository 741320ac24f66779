"""Functions of ARRAYs, STRUCTs and MAPs, in plain Python.

An ARRAY is a list or a tuple, a STRUCT a dict or a tuple of its fields' values, a MAP a list of pairs in the
order of their keys.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from headrace.expressions.tree import Call
from headrace.nested import arrow_value, is_nested
from headrace.reference.casts import RowError, cast
from headrace.reference.contents import equal_form, order
from headrace.schema import BIGINT, BINARY, BOOLEAN, DOUBLE, STRING
from headrace.value_texts import json_texts


def _from_json(call: Call, text: str) -> Any:
    """A text as a value of the call's type; of a STRUCT that cannot be read all fields are NULL."""
    if not text.strip(" \t\r\n"):
        return None
    decoder = json.JSONDecoder(parse_float=_Digits, parse_int=_Digits)
    try:
        value = decoder.raw_decode(text.lstrip(" \t\r\n"))[0]
    except ValueError:
        value = None
    dtype = call.type
    if pa.types.is_list(dtype) and pa.types.is_struct(dtype.value_type) and isinstance(value, dict):
        value = [value]
    found = _held(value, dtype)
    return _held({}, dtype) if found is None and pa.types.is_struct(dtype) else found


class _Digits(str):
    """A number of JSON as it is written."""


def _held(value: Any, dtype: pa.DataType) -> Any:
    """A JSON value as one of a type; None where it is none of it, or has such a one in an ARRAY or a MAP."""
    match value:
        case dict() if pa.types.is_struct(dtype):
            return tuple(_held(value.get(field.name), field.type) for field in dtype)
        case dict() if pa.types.is_map(dtype):
            pairs = [(name, part, _held(part, dtype.item_type)) for name, part in sorted(value.items())]
            lost = any(part is not None and held is None for _, part, held in pairs)
            return None if lost else [(name, held) for name, _, held in pairs]
        case list() if pa.types.is_list(dtype):
            parts = [(part, _held(part, dtype.value_type)) for part in value]
            lost = any(part is not None and held is None for part, held in parts)
            return None if lost else [held for _, held in parts]
        case bool() if dtype == BOOLEAN:
            return value
        case float() if dtype == DOUBLE:
            return value
    if is_nested(dtype):
        return None
    text = isinstance(value, str) and not isinstance(value, _Digits)
    if dtype == STRING and value is not None:
        return value if text else _rewritten(value)
    taken = {BIGINT: not text, DOUBLE: not text or value in _ODD, BOOLEAN: False, BINARY: text}
    if not isinstance(value, str) or not taken.get(dtype, text or pa.types.is_decimal(dtype)):
        return None
    if dtype == BINARY:
        return _decoded(value)
    try:
        return cast(_ODD.get(value, str(value)), STRING, dtype)
    except RowError:
        return None


_ODD: Final = {
    **{name: name for name in ("NaN", "Infinity", "+Infinity", "-Infinity")},
    "+INF": "Infinity",
    "-INF": "-Infinity",
}


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _rewritten(value: Any) -> str:
    """Compact JSON, with its numbers as they were."""
    if isinstance(value, _Digits):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(_rewritten, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_rewritten(name)}:{_rewritten(part)}" for name, part in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _same(left: Any, right: Any) -> bool:
    return (equal_form(left),) == (equal_form(right),)


def _field(call: Call, row: Any, name: str) -> Any:
    names = [field.name for field in call.arguments[0].type]
    return row[name] if isinstance(row, dict) else row[names.index(name)]


def _subscript(call: Call, values: Sequence[Any], wanted: Any) -> Any:
    if pa.types.is_map(call.arguments[0].type):
        return next((item for key, item in values if _same(key, wanted)), None)
    return _at(values, wanted)


def _at(values: Sequence[Any], place: int) -> Any:
    if not 0 <= place < len(values):
        raise RowError("the place is beyond the ARRAY")
    return values[place]


def _from_one(values: Sequence[Any], place: int) -> Any:
    if place == 0 or abs(place) > len(values):
        raise RowError("the place is beyond the ARRAY")
    return values[place - 1 if place > 0 else place]


def _tried(at: Callable[[Sequence[Any], int], Any]) -> Callable[[Sequence[Any], int], Any]:
    def found(values: Sequence[Any], place: int) -> Any:
        try:
            return at(values, place)
        except RowError:
            return None

    return found


def _contains(values: Sequence[Any], wanted: Any) -> bool | None:
    if any(value is not None and _same(value, wanted) for value in values):
        return True
    return None if None in values else False


def _position(values: Sequence[Any], wanted: Any) -> int:
    places = (
        place for place, value in enumerate(values, start=1) if value is not None and _same(value, wanted)
    )
    return next(places, 0)


def _distinct(values: Sequence[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(_same(value, other) for other in kept):
            kept.append(value)
    return kept


def _sorted(values: Sequence[Any], ascending: bool = True) -> list[Any]:
    return sorted(values, key=lambda value: order(equal_form(value)), reverse=not ascending)


def _extreme(values: Sequence[Any], place: int) -> Any:
    there = _sorted([value for value in values if value is not None])
    return there[place] if there else None


def _split(text: str, pattern: str) -> list[str]:
    parts, begin = [], 0
    for found in re.finditer(pattern, text):
        parts.append(text[begin : found.start()])
        begin = found.end()
    return [*parts, text[begin:]]


def _json_object(text: str, path: str) -> str | None:
    try:
        found, _ = json.JSONDecoder(parse_float=_Written, parse_int=_Written).raw_decode(
            text.lstrip(" \t\n\r")
        )
    except ValueError:
        return None
    for name, odd, place in re.findall(r"\.([^.\[]+)|\['([^']*)'\]|\[(\d+)\]", path):
        if not isinstance(found, list if place else dict):
            return None
        try:
            found = found[int(place)] if place else found[name or odd]
        except (KeyError, IndexError):
            return None
    if found is None or (isinstance(found, str) and not isinstance(found, _Written)):
        return found
    return _json(found)


class _Written(str):
    """The text of a number."""


def _json(value: Any) -> str:
    match value:
        case _Written():
            return str(value)
        case dict():
            entries = (f"{json.dumps(key, ensure_ascii=False)}:{_json(part)}" for key, part in value.items())
            return "{" + ",".join(entries) + "}"
        case list():
            return "[" + ",".join(map(_json, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _to_json(call: Call, value: Any) -> Any:
    dtype = call.arguments[0].type
    return json_texts(pa.array([arrow_value(value, dtype)], dtype))[0].as_py()


def _map(*parts: Any) -> list[tuple[Any, Any]]:
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    if any(key is None for key, _ in pairs):
        raise RowError("a key of a MAP is NULL")
    if len(_distinct(parts[::2])) < len(pairs):
        raise RowError("a key of a MAP is there twice")
    return sorted(pairs, key=lambda pair: order(equal_form(pair[0])))


def _sequence(start: int, stop: int, step: int | None = None) -> list[int]:
    if step is None:
        step = 1 if start <= stop else -1
    if start == stop:
        return [start]
    if step == 0 or (step > 0) != (start < stop):
        raise RowError("the step does not lead from the start to the end")
    return _numbers(start, stop, step)


def _series(start: int, stop: int, step: int = 1) -> list[int]:
    if step == 0:
        raise RowError("the step is 0")
    return _numbers(start, stop, step)


def _numbers(start: int, stop: int, step: int) -> list[int]:
    numbers = range(start, stop + (1 if step > 0 else -1), step)
    # len() refuses what has more than 2^63 values.
    if numbers and (numbers[-1] - start) // step >= 10_000:
        raise RowError("an ARRAY of more than 10,000 values")
    return list(numbers)


TYPED: Final[dict[str, Callable[..., Any]]] = {
    "GET_FIELD": _field,
    "[]": _subscript,
    "TO_JSON": _to_json,
    "FROM_JSON": _from_json,
}
"""The functions that look at the types of their arguments, none of which is NULL."""

NULL_TAKING: Final[dict[str, Callable[..., Any]]] = {
    "ARRAY": lambda *values: list(values),
    "NAMED_STRUCT": lambda *parts: parts[1::2],
    "MAP": _map,
}
"""The functions that take NULL as a value."""

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "ELEMENT_AT": _from_one,
    "TRY_ELEMENT_AT": _tried(_from_one),
    "GET": _tried(_at),
    "MAP_KEYS": lambda entries: [key for key, _ in entries],
    "MAP_VALUES": lambda entries: [value for _, value in entries],
    "MAP_CONTAINS_KEY": lambda entries, wanted: any(_same(key, wanted) for key, _ in entries),
    "SIZE": len,
    "ARRAY_JOIN": lambda values, separator: separator.join(value for value in values if value is not None),
    "ARRAY_CONTAINS": _contains,
    "ARRAY_POSITION": _position,
    "ARRAY_DISTINCT": _distinct,
    "SORT_ARRAY": _sorted,
    "ARRAY_MIN": lambda values: _extreme(values, 0),
    "ARRAY_MAX": lambda values: _extreme(values, -1),
    "SPLIT": _split,
    "SEQUENCE": _sequence,
    "GENERATE_SERIES": _series,
    "GET_JSON_OBJECT": _json_object,
}
"""The others; none of their arguments is NULL."""
