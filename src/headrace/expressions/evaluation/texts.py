"""Functions of STRINGs over columns. Positions and lengths count characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.expressions.evaluation.values import (
    MOST_AT_ONCE,
    Datum,
    Kernel,
    KernelResult,
    check_size,
    fine,
    is_constant,
    rows_of,
    spread,
)
from headrace.expressions.tree import Call, Literal
from headrace.history import payload_codes
from headrace.limits import checked
from headrace.schema import BIGINT, STRING

ConstantArguments = tuple[Any, ...]


def map_distinct(function: Callable[[str], object], texts: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A function of Python strings applied once to each distinct text; for what Arrow has no kernel for."""
    encoded = texts.dictionary_encode()
    results = pa.array([function(text) for text in checked(encoded.dictionary.to_pylist())], dtype)
    return results.take(encoded.indices)


def _length(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(pc.utf8_length(arguments[0]).cast(BIGINT))


def _upper(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(_change_case(arguments[0], pc.ascii_upper, str.upper))


def _lower(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(_change_case(arguments[0], pc.ascii_lower, str.lower))


def _change_case(texts: pa.Array, ascii_kernel: Callable[..., Datum], full: Callable[[str], str]) -> pa.Array:
    """Arrow maps letter to letter; beyond ASCII that is not what Unicode says (ß is SS in capitals)."""
    plain = pc.string_is_ascii(texts)
    if pc.all(plain).as_py() is not False:
        return ascii_kernel(texts)
    return pc.if_else(plain, ascii_kernel(texts), map_distinct(full, texts, texts.type))


def _trimming(function: Callable[..., Datum]) -> Kernel:
    return lambda call, arguments: fine(function(arguments[0], " "))


def _concat(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(pc.binary_join_element_wise(*arguments, pa.scalar("", STRING).cast(call.type)))


def _like(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    pattern, escape = (part.value if isinstance(part, Literal) else None for part in _like_constants(call))
    if pattern is None or escape is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    return fine(pc.match_substring_regex(arguments[0], _regex(str(pattern), str(escape))))


def _like_constants(call: Call) -> tuple[Any, Any]:
    constants = call.arguments[1:]
    return constants if len(constants) == 2 else (constants[0], Literal("\\", call.arguments[0].type))


def _regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as a regular expression for the whole text, line breaks included."""
    tokens = re.findall(rf"{re.escape(escape)}(.)|(.)", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    parts = (_quote(escaped) if escaped else wild.get(plain) or _quote(plain) for escaped, plain in tokens)
    return r"(?s)\A" + "".join(parts) + r"\z"


def _quote(character: str) -> str:
    return f"\\{character}" if character in r"\.+*?()|[]{}^$-/" else character


def by_constants(
    function: Callable[[pa.Array, ConstantArguments], pa.Array],
    call: Call,
    texts: Datum,
    parameters: Sequence[Datum],
) -> KernelResult:
    """A function whose parameters Arrow wants to be constants, called once for each different set of them."""
    if all(map(is_constant, parameters)):
        constants = tuple(parameter.as_py() for parameter in parameters)
        return fine(pa.nulls(len(texts), call.type) if None in constants else function(texts, constants))
    count = rows_of((texts, *parameters))
    texts = spread(texts, count)
    names = [str(place) for place in range(len(parameters))]
    sets = pa.RecordBatch.from_arrays([spread(part, count) for part in parameters], names=names)
    codes = payload_codes(sets)
    order = np.argsort(codes, kind="stable")
    parts = [pa.nulls(0, call.type)]
    for same in checked(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if count else ()):
        constants = tuple(sets.take(same[:1]).to_pylist()[0].values())
        chosen = texts.take(same)
        parts.append(pa.nulls(len(same), call.type) if None in constants else function(chosen, constants))
    back = np.empty(count, dtype=np.int64)
    back[order] = np.arange(count)
    return fine(pa.concat_arrays(parts).take(back))


def _substring(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return by_constants(_slice, call, arguments[0], arguments[1:])


def _slice(texts: pa.Array, constants: ConstantArguments) -> pa.Array:
    """From position p, counted from 1, or from the end if p < 0; p = 0 is taken for 1."""
    position, *lengths = constants
    start = position - 1 if position > 0 else position
    if not lengths:
        return pc.utf8_slice_codeunits(texts, _place(start))
    if lengths[0] <= 0:
        return pc.if_else(pc.is_null(texts), pa.scalar(None, texts.type), "")
    stop = start + lengths[0]
    # From before the end to after it: there is no place to stop at.
    return pc.utf8_slice_codeunits(texts, _place(start), None if start < 0 <= stop else _place(stop))


def _place(place: int) -> int:
    """No text has more than 2**31 characters, and Arrow's arithmetic on places must not overflow."""
    return max(-(2**32), min(place, 2**32))


def _replace(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return by_constants(_replace_constant, call, arguments[0], arguments[1:])


def _replace_constant(texts: pa.Array, constants: ConstantArguments) -> pa.Array:
    search, replacement = constants
    letters = pc.sum(pc.binary_length(texts)).as_py() or 0
    if search and letters * len(replacement) > MOST_AT_ONCE:
        found = pc.sum(pc.count_substring(texts, search)).as_py() or 0
        check_size(letters + found * len(replacement.encode()))
    # Arrow never comes back from a search for nothing.
    return pc.replace_substring(texts, search, replacement) if search else texts


def _testing(function: Callable[[pa.Array, str], pa.Array]) -> Kernel:
    return lambda call, arguments: by_constants(
        lambda texts, constants: function(texts, constants[0]), call, arguments[0], arguments[1:]
    )


KERNELS: Final[dict[str, Kernel]] = {
    "LENGTH": _length,
    "UPPER": _upper,
    "LOWER": _lower,
    "TRIM": _trimming(pc.utf8_trim),
    "LTRIM": _trimming(pc.utf8_ltrim),
    "RTRIM": _trimming(pc.utf8_rtrim),
    "CONCAT": _concat,
    "||": _concat,
    "LIKE": _like,
    "SUBSTRING": _substring,
    "REPLACE": _replace,
    "STARTSWITH": _testing(pc.starts_with),
    "ENDSWITH": _testing(pc.ends_with),
    "CONTAINS": _testing(pc.match_substring),
}
"""The functions of STRINGs."""
