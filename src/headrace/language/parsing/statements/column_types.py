"""The type of a column in CREATE, such as `DECIMAL(10, 2)` or `ARRAY<STRUCT<a: BIGINT, b: STRING>>`."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from headrace.errors import LanguageError
from headrace.language.parsing.tokens.cursor import Cursor
from headrace.language.syntax import Name
from headrace.language.types import DECIMALS, TYPES, column_type

_STRUCTS: Final = ("STRUCT", "ROW")
"""ROW is Flink's word."""
_EXAMPLES: Final = {"ARRAY": "ARRAY<BIGINT>", "MAP": "MAP<STRING, BIGINT>"}


def parse_type(cursor: Cursor, column: Name) -> pa.DataType:
    """Read the type of a column or a field.

    Raises:
        LanguageError: there is none, or it is malformed.
    """
    position = cursor.position
    cursor.offer(*TYPES, *DECIMALS, "ARRAY", "MAP", *_STRUCTS)
    word = cursor.word().removesuffix(" PRECISION")
    if not word.isidentifier() and column.text.upper() in (*TYPES, *DECIMALS):
        hint = f"write name {column.text}"
        raise LanguageError(f"a name is missing before {column.text}", position=column.position, hint=hint)
    if not word.isidentifier():
        raise cursor.error(
            f"the type of {column.text} is missing, before {cursor.shown()}", f"write {column.text} BIGINT"
        )
    following = cursor.word(1)
    if word not in TYPES and column.text.upper() in TYPES and following in (",", ")"):
        raise cursor.error(f"there is no type {word}", f"the name comes first: {word.lower()} {column.text}")
    cursor.index += 1
    if word in ("ARRAY", "MAP", *_STRUCTS):
        found = _nested(cursor, word, column)
    else:
        found = column_type(word, _sizes(cursor, word), position)
    while cursor.accept("[", "]"):
        found = pa.list_(found)
    return found


def _nested(cursor: Cursor, word: str, column: Name) -> pa.DataType:
    """What is in the angle brackets, or the parentheses of Flink's ROW."""
    closing = ")" if word == "ROW" and cursor.at("(") else ">"
    opening = "(" if closing == ")" else "<"
    example = {"ARRAY": "ARRAY<BIGINT>", "MAP": "MAP<STRING, BIGINT>"}.get(
        word, "STRUCT<a: BIGINT, b: STRING>"
    )
    if not cursor.accept(opening):
        raise cursor.error(f"what {word} holds is missing, before {cursor.shown()}", f"write {example}")
    if word in _STRUCTS:
        found = pa.struct(_fields(cursor))
    elif word == "ARRAY":
        found = pa.list_(parse_type(cursor, column))
    else:
        key = parse_type(cursor, column)
        if pa.types.is_map(key):
            raise cursor.error("a MAP is not a key", "use a STRUCT or an ARRAY")
        cursor.expect(",", "between the types of the keys and of the values")
        found = pa.map_(key, parse_type(cursor, column))
    cursor.expect(closing, f"after {word}{opening}")
    return found


def _fields(cursor: Cursor) -> list[pa.Field]:
    fields: list[pa.Field] = []
    while not fields or cursor.accept(","):
        name = cursor.name("a field's name")
        if any(name.text.lower() == field.name.lower() for field in fields):
            message = f"the field {name.text} is defined twice"
            raise LanguageError(message, position=name.position, hint="give one of them another name")
        cursor.accept(":")
        fields.append(pa.field(name.text, parse_type(cursor, name)))
    return fields


def _sizes(cursor: Cursor, word: str) -> tuple[int, ...]:
    sizes: list[int] = []
    if cursor.accept("("):
        sizes.append(_size(cursor))
        while cursor.accept(","):
            sizes.append(_size(cursor))
        cursor.expect(")", f"after {word}(")
    return tuple(sizes)


def _size(cursor: Cursor) -> int:
    word = cursor.word()
    if not word.isdecimal() or len(word) > 9:
        raise cursor.error(f"a number is missing, before {cursor.shown()}")
    cursor.index += 1
    return int(word)
