"""The values of a JSON line, one by one: with the text of numbers, and repeated keys kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
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


def spans_lines(text: str) -> bool:
    """Whether the object at the beginning of a text goes over several lines, as far as the text has it.

    A first line that is cut short goes over one alone: the next object is not what may follow in it.
    """
    try:
        end = _DECODER.raw_decode(text)[1]
    except json.JSONDecodeError as error:
        return "\n" in text[: error.pos] and text[error.pos : error.pos + 1] != "{"
    except (ValueError, RecursionError):
        return False
    return "\n" in text[:end]


def place_of(text: str, keys: Sequence[str]) -> tuple[int, int]:
    """Where a text of JSON has what is under some keys, from the outside in: its characters `[begin, end)`.

    Raises:
        ValueError: it is no JSON up to there, or there is no such key.
    """
    at = _after_blanks(text, 0)
    for key in keys:
        if text[at : at + 1] != "{":
            raise ValueError(f"{key} is not in an object")
        at = _value_of(text, at + 1, key)
    return at, _DECODER.raw_decode(text, at)[1]


def _value_of(text: str, at: int, wanted: str) -> int:
    """Where the value of a key begins, of the object after whose brace that place is."""
    at = _after_blanks(text, at)
    while text[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _after_blanks(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("a key has no value")
        at = _after_blanks(text, at + 1)
        if key == wanted:
            return at
        at = _after_blanks(text, _DECODER.raw_decode(text, at)[1])
        if text[at : at + 1] == ",":
            at = _after_blanks(text, at + 1)
    raise ValueError(f"there is no {wanted}")


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def pick(pairs: Object, keys: Sequence[str], missing: object = None) -> list[object]:
    """The values of those keys: of the very key, or of the only one that differs by case alone.

    Args:
        pairs: the object.
        keys: they.
        missing: what stands for one that is not there.

    Raises:
        ValueError: one of the keys is there twice, or only as several that differ from it by case.
    """
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found and key in keys:
            raise ValueError(f"the key {key} is there twice")
        found[key] = value
    return [found[key] if key in found else _other_case(found, key, missing) for key in keys]


def _other_case(found: dict[str, object], key: str, missing: object) -> object:
    similar = [known for known in found if len(known) == len(key) and known.lower() == key.lower()]
    if len(similar) > 1:
        raise ValueError(f"several keys are called {key} except for case")
    return found[similar[0]] if similar else missing


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
    match value:
        case Object():
            return "an object"
        case list():
            return "a list"
        case JsonNumber():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)[:100]


def written(value: object) -> str:
    """The JSON of a decoded value without blanks: its numbers as they were written, repeated keys kept."""
    match value:
        case JsonNumber():
            return str(value)
        case Object():
            pairs = (f"{json.dumps(key, ensure_ascii=False)}:{written(one)}" for key, one in value)
            return f"{{{','.join(pairs)}}}"
        case list():
            return f"[{','.join(map(written, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _text(value: object, dtype: pa.DataType) -> str | None:
    if (
        dtype == STRING
        and value is not None
        and (not isinstance(value, str) or isinstance(value, JsonNumber))
    ):
        return written(value)
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
