"""How calls with ARRAYs, STRUCTs and MAPs are typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import LanguageError
from headrace.expressions.coercion import common_type_of, is_numeric, make_cast
from headrace.expressions.functions.pattern_rules import check_regex
from headrace.expressions.functions.typing_rules import of_types, strings, whole
from headrace.expressions.json_paths import steps_of
from headrace.expressions.tree import Arguments, Call, Expression, Literal
from headrace.nested import is_nested, is_sequence, part_types
from headrace.schema import BIGINT, BOOLEAN, DOUBLE, STRING, UNKNOWN, check_compared, quote, sql_type, widen
from headrace.suggestions import did_you_mean


def get_field(name: str, arguments: Arguments) -> Expression:
    """GET_FIELD(struct, 'name'), which is what `struct.name` means; the field may be in any case."""
    row, field = arguments
    if not pa.types.is_struct(row.type):
        raise LanguageError(
            f"a {sql_type(row.type)} has no fields", hint="only a STRUCT has; x['key'] is the value of a MAP"
        )
    if not (isinstance(field, Literal) and isinstance(field.value, str)):
        raise LanguageError(f"the field of {name} must be a string constant")
    names = [part.name for part in row.type]
    place = next((place for place, known in enumerate(names) if known.lower() == field.value.lower()), None)
    if place is None:
        hint = did_you_mean(field.value, names) or f"its fields are {', '.join(map(quote, names))}"
        raise LanguageError(f"there is no field {field.value} in {sql_type(row.type)}", hint=hint)
    return Call("GET_FIELD", (row, Literal(names[place], STRING)), row.type[place].type)


def subscript(name: str, arguments: Arguments) -> Expression:
    """`array[i]`, from 0, and `map[key]`."""
    values, index = arguments
    if pa.types.is_map(values.type):
        return Call(name, (values, make_cast(index, values.type.key_type)), values.type.item_type)
    return Call(name, (array(name, values), whole("a subscript", index)), values.type.value_type)


def element_at(name: str, arguments: Arguments) -> Expression:
    """ELEMENT_AT(array, i), from 1 or, with i < 0, from the end; ELEMENT_AT(map, key)."""
    values, index = arguments
    if pa.types.is_map(values.type):
        return subscript("[]", arguments)
    return Call(name, (array(name, values), whole(name, index)), values.type.value_type)


def get(name: str, arguments: Arguments) -> Expression:
    """GET(array, i): as `array[i]`, but NULL beyond the ARRAY."""
    values, index = arguments
    return Call(name, (array(name, values), whole(name, index)), array(name, values).type.value_type)


def make_array(name: str, arguments: Arguments) -> Expression:
    """ARRAY(x, ...): the values, cast to their common type."""
    dtype = common_type_of(arguments)
    return Call(name, tuple(make_cast(part, dtype) for part in arguments), pa.list_(dtype))


def named_struct(name: str, arguments: Arguments) -> Expression:
    """NAMED_STRUCT('name', value, ...)."""
    names, values = arguments[::2], arguments[1::2]
    if len(names) != len(values):
        raise LanguageError(
            f"{name} takes a name before each value", hint="write NAMED_STRUCT('a', 1, 'b', 2)"
        )
    words = [part.value for part in names if isinstance(part, Literal) and isinstance(part.value, str)]
    if len(words) != len(names):
        raise LanguageError(f"the names of {name} must be string constants")
    if len({word.lower() for word in words}) != len(words):
        raise LanguageError(f"{name} has two fields of one name", hint="names differ by more than their case")
    # An INTERVAL has no type in common with anything, itself included.
    fields = [pa.field(word, common_type_of((part,))) for word, part in zip(words, values, strict=True)]
    return Call(name, arguments, pa.struct(fields))


def make_map(name: str, arguments: Arguments) -> Expression:
    """MAP(key, value, ...): keys and values cast to their common types."""
    keys, values = arguments[::2], arguments[1::2]
    if len(keys) != len(values):
        raise LanguageError(f"{name} takes a key before each value", hint="write MAP('a', 1, 'b', 2)")
    key, value = common_type_of(keys), common_type_of(values)
    if pa.types.is_map(key):
        raise LanguageError("a MAP is not a key", hint="use a STRUCT or an ARRAY")
    if key == UNKNOWN:
        raise LanguageError(f"a key of a {name} is not NULL", hint="write a value: MAP('a', 1)")
    pairs = zip(keys, values, strict=True)
    parts = tuple(part for one, other in pairs for part in (make_cast(one, key), make_cast(other, value)))
    return Call(name, parts, pa.map_(key, value))


def size(name: str, arguments: Arguments) -> Expression:
    """SIZE(x): the number of values of an ARRAY, or of entries of a MAP."""
    if not is_sequence(arguments[0].type):
        array(name, arguments[0])
    return Call(name, arguments, BIGINT)


def array_join(name: str, arguments: Arguments) -> Expression:
    """ARRAY_JOIN(array, separator): its values as one text."""
    values, separator = array(name, arguments[0]), arguments[1]
    if values.type.value_type != STRING:
        raise LanguageError(
            f"{name} takes an ARRAY of STRINGs, not {sql_type(values.type)}",
            hint="CAST the values before ARRAY_AGG",
        )
    if not (isinstance(separator, Literal) and isinstance(separator.value, str)):
        raise LanguageError(f"the separator of {name} must be a string constant")
    return Call(name, (values, separator), STRING)


def searching(result: pa.DataType) -> Callable[[str, Arguments], Expression]:
    """A function of an ARRAY and a value that may be in it, or of a MAP and a key."""

    def rule(name: str, arguments: Arguments) -> Expression:
        values, wanted = arguments
        if name == "MAP_CONTAINS_KEY":
            return Call(name, (map_(name, values), make_cast(wanted, values.type.key_type)), result)
        kind = array(name, values).type.value_type
        check_compared(kind)
        common = common_type_of((Literal(None, kind), wanted))
        if common != kind:
            raise LanguageError(
                f"{name} looks for a {sql_type(wanted.type)} among values of {sql_type(kind)}",
                hint=f"CAST it AS {sql_type(kind)}",
            )
        return Call(name, (values, make_cast(wanted, kind)), result)

    return rule


def same_array(name: str, arguments: Arguments) -> Expression:
    """A function of an ARRAY that gives one of the same type."""
    values = array(name, arguments[0])
    return Call(name, (values, *of_types(name, arguments[1:], (BOOLEAN,), "TRUE or FALSE")), values.type)


def extreme(name: str, arguments: Arguments) -> Expression:
    """ARRAY_MIN and ARRAY_MAX."""
    values = array(name, arguments[0])
    check_compared(values.type.value_type)
    return Call(name, (values,), values.type.value_type)


def of_shapes(name: str, arguments: Arguments) -> Expression:
    """SHAPE_DISTANCE(values, pattern) and DISCORD(values, n), of ARRAYs of numbers."""
    numbers = [array(name, part) for part in arguments[: 1 if name == "DISCORD" else 2]]
    for part in numbers:
        if not is_numeric(part.type.value_type):
            raise LanguageError(
                f"{name} takes an ARRAY of numbers, not {sql_type(part.type)}",
                hint=f"write {name}(ARRAY_AGG(x ORDER BY ts), ...) for a number x",
            )
    return Call(name, (*numbers, *(whole(name, part) for part in arguments[len(numbers) :])), DOUBLE)


def map_part(name: str, arguments: Arguments) -> Expression:
    """MAP_KEYS and MAP_VALUES, in the order of the keys."""
    entries = map_(name, arguments[0])
    part = entries.type.key_type if name == "MAP_KEYS" else entries.type.item_type
    return Call(name, (entries,), pa.list_(part))


def sequence(name: str, arguments: Arguments) -> Expression:
    """SEQUENCE(start, end [, step]), and GENERATE_SERIES, which has no value where the step leads away."""
    return Call(name, tuple(whole(name, part) for part in arguments), pa.list_(BIGINT))


def split(name: str, arguments: Arguments) -> Expression:
    """SPLIT(text, pattern): the parts between what a regular expression finds."""
    text, pattern = strings(name, arguments)
    regex = check_regex(name, pattern)
    if regex is not None and pc.match_substring_regex(pa.scalar("", STRING), regex).as_py():
        hint = "write what is between the parts"
        raise LanguageError(f"the pattern of {name} finds the empty text", hint=hint)
    return Call(name, (text, pattern), pa.list_(STRING))


def json_object(name: str, arguments: Arguments) -> Expression:
    """GET_JSON_OBJECT(text, '$.a[0]'): what is there in a JSON text, as a text."""
    text, path = strings(name, arguments)
    if not (isinstance(path, Literal) and isinstance(path.value, str)):
        raise LanguageError(f"the path of {name} must be a string constant")
    steps_of(path.value)
    return Call(name, (text, path), STRING)


def from_json(name: str, arguments: Arguments) -> Expression:
    """FROM_JSON(text, type): the type is given as NULL of it."""
    (text,) = strings(name, arguments[:1])
    dtype = arguments[1].type
    hint = "write FROM_JSON(text, 'a BIGINT, b ARRAY<STRING>')"
    if not (isinstance(arguments[1], Literal) and is_nested(dtype)):
        raise LanguageError(f"{name} takes a type as a string constant", hint=hint)
    if widen(dtype) != dtype:
        raise LanguageError(f"there is no type {sql_type(dtype)}", hint="each field needs a name of its own")
    if any(pa.types.is_map(part) and part.key_type != STRING for part in _within(dtype)):
        raise LanguageError("the keys of a MAP in JSON are STRINGs", hint="write MAP<STRING, ...>")
    return Call(name, (text,), dtype)


def _within(dtype: pa.DataType) -> Iterator[pa.DataType]:
    """A type, and those that it is made of."""
    yield dtype
    for part in part_types(dtype) if is_nested(dtype) else ():
        yield from _within(part)


def to_json(name: str, arguments: Arguments) -> Expression:
    """TO_JSON(x): an ARRAY, a STRUCT or a MAP as a JSON text."""
    if not is_nested(arguments[0].type):
        raise LanguageError(
            f"{name} takes an ARRAY, a STRUCT or a MAP, not {sql_type(arguments[0].type)}",
            hint="STRUCT(a, b) makes one of columns",
        )
    return Call(name, arguments, STRING)


def array(name: str, argument: Expression) -> Expression:
    """The argument if it is an ARRAY.

    Raises:
        LanguageError: it is not.
    """
    if not pa.types.is_list(argument.type):
        what = "a subscript" if name == "[]" else name
        raise LanguageError(
            f"{what} takes an ARRAY, not {sql_type(argument.type)}", hint="ARRAY(...) and ARRAY_AGG make one"
        )
    return argument


def map_(name: str, argument: Expression) -> Expression:
    """The argument if it is a MAP.

    Raises:
        LanguageError: it is not.
    """
    if not pa.types.is_map(argument.type):
        raise LanguageError(
            f"{name} takes a MAP, not {sql_type(argument.type)}", hint="MAP('a', 1) makes one"
        )
    return argument
