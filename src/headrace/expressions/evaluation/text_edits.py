"""Functions that make texts of texts, or look for places in them. Positions count characters, from 1."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import Int64Array
from headrace.expressions.evaluation.texts import map_distinct
from headrace.expressions.evaluation.values import (
    MOST_AT_ONCE,
    Datum,
    Kernel,
    KernelResult,
    check_size,
    failing,
    fine,
    numbers,
    rows_of,
    spread,
    validity,
)
from headrace.expressions.tree import Call, Literal
from headrace.kernels.values.edits import edit_rows
from headrace.limits import checked
from headrace.schema import BIGINT, STRING

TOO_LONG: Final = "a text of more than 1,000,000 characters"
_HEX: Final = re.compile("[0-9A-Fa-f]*")
FARTHEST: Final = 100_000
"""Of so many characters texts are compared by LEVENSHTEIN at most."""
_CELLS: Final = 10_000_000
"""So many pairs of letters are compared between two looks at whether that is still wanted."""
LONGEST: Final = 1_000_000
"""How many characters REPEAT, LPAD and RPAD make at most."""


def by_rows(function: Callable[..., object], call: Call, arguments: Sequence[Datum]) -> pa.Array:
    """A function of Python values applied to each row in which nothing is NULL.

    A function of one column and constants is applied once to each distinct value.
    """
    count = rows_of(arguments)
    columns = [place for place, part in enumerate(arguments) if not isinstance(part, pa.Scalar)]
    constants = [None if place in columns else part.as_py() for place, part in enumerate(arguments)]
    if any(constants[place] is None for place in range(len(constants)) if place not in columns):
        return pa.nulls(count, call.type)
    if len(columns) == 1:
        (place,) = columns
        before, after = constants[:place], constants[place + 1 :]
        return map_distinct(lambda text: function(*before, text, *after), arguments[place], call.type)
    rows = checked(zip(*(spread(part, count).to_pylist() for part in arguments), strict=True))
    return pa.array([None if None in row else function(*row) for row in rows], call.type)


def _python(function: Callable[..., object]) -> Kernel:
    return lambda call, arguments: fine(by_rows(function, call, arguments))


def _reverse(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    return fine(pc.utf8_reverse(arguments[0]))


def _left(text: str, count: int) -> str:
    return text[: max(count, 0)]


def _right(text: str, count: int) -> str:
    return text[max(len(text) - count, 0) :] if count > 0 else ""


def _position(part: str, text: str, start: int = 1) -> int:
    """Where a part is first found from a position on; 0 if it is not.

    An empty one is found at 1, as in Spark.
    """
    return text.find(part, start - 1 if part else 0) + 1 if start > 0 else 0


def _instr(text: str, part: str) -> int:
    return text.find(part) + 1


def _pad(text: str, length: int, filling: str) -> str:
    """What is missing to a length."""
    missing = max(length - len(text), 0)
    return (filling * (missing // len(filling) + 1))[:missing] if filling else ""


def _lpad(text: str, length: int, filling: str = " ") -> str:
    return (_pad(text, length, filling) + text)[: max(length, 0)]


def _rpad(text: str, length: int, filling: str = " ") -> str:
    return (text + _pad(text, length, filling))[: max(length, 0)]


def _bounded(function: Callable[..., object], size: Callable[..., Any]) -> Kernel:
    """A function whose results could be longer than any machine holds; such rows fail."""

    def kernel(call: Call, arguments: Sequence[Datum]) -> KernelResult:
        count = numbers(arguments[1])
        sizes = np.broadcast_to(size(arguments[0], count), rows_of(arguments))
        large = np.asarray(sizes > LONGEST) & validity(*arguments)
        check_size(int(np.clip(sizes, 0, LONGEST)[~large].sum()))
        kept = pa.array(np.minimum(np.broadcast_to(np.where(large, 0, count), rows_of(arguments)), LONGEST))
        count_column = pc.if_else(spread(arguments[1], len(kept)).is_valid(), kept, pa.scalar(None, BIGINT))
        values = by_rows(function, call, [arguments[0], count_column, *arguments[2:]])
        return failing(values, np.broadcast_to(large, len(values)), TOO_LONG)

    return kernel


def _repeated_size(texts: Datum, count: Any) -> Any:
    lengths = numbers(pc.utf8_length(texts).cast(BIGINT))
    return np.where(lengths > 0, np.minimum(count, LONGEST + 1), 0) * np.maximum(lengths, 1)


def _initcap(text: str) -> str:
    """Words are what blanks separate."""
    return " ".join(word[:1].title() + word[1:].lower() for word in text.split(" "))


def _translate(text: str, search: str, by: str) -> str:
    table: dict[int, int | None] = {}
    for place, letter in enumerate(search):
        table.setdefault(ord(letter), ord(by[place]) if place < len(by) else None)
    return text.translate(table)


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _chr(code: int) -> str:
    return chr(code % 256) if code >= 0 else ""


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or count == 0:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:count] if count > 0 else parts[count:])


def _trim_characters(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    strip = {"BTRIM": str.strip, "TRIM LEADING": str.lstrip, "TRIM TRAILING": str.rstrip}[call.function]
    return fine(by_rows(strip, call, arguments))


def _concat_ws(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """The texts that are not NULL, with the first one between them."""
    count = rows_of(arguments)
    separator, *texts = (spread(part, count) for part in arguments)
    joined = pa.nulls(count, STRING)
    for text in texts:
        # Arrow's own way of passing over NULLs drops the rows that have nothing else.
        both = pc.binary_join_element_wise(joined, text, separator)
        joined = pc.coalesce(both, joined, text)
    return fine(pc.if_else(separator.is_valid(), joined.fill_null(""), pa.scalar(None, STRING)))


def _regexp_replace(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    pattern, by = (_constant(call, place) for place in (1, 2))
    if pattern is None or by is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    texts, replacement = arguments[0], str(by)
    letters = len(texts) + (pc.sum(pc.binary_length(texts)).as_py() or 0)
    if letters * len(replacement) > MOST_AT_ONCE:
        found = pc.sum(pc.count_substring_regex(texts, str(pattern))).as_py() or 0
        check_size(letters + found * len(replacement.encode()))
    return fine(pc.replace_substring_regex(texts, str(pattern), _of_re2(replacement)))


def _of_re2(replacement: str) -> str:
    """A replacement in which `$1` is a group and a backslash quotes, as RE2 has it: with `\\1`."""
    return re.sub(
        r"\\(.)|\$(\d)|\\",
        lambda found: f"\\{found[2]}" if found[2] else (found[1] or "").replace("\\", r"\\"),
        replacement,
        flags=re.DOTALL,
    )


def _regexp_count(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    pattern = _constant(call, 1)
    if pattern is None:
        return fine(pa.nulls(rows_of(arguments), call.type))
    # Arrow's own count begins anew after each place that it finds, and so finds ^ there.
    marked = pc.replace_substring_regex(arguments[0], str(pattern), mark := _unused(arguments[0]))
    return fine(pc.count_substring(marked, mark).cast(BIGINT))


def _unused(texts: pa.Array) -> str:
    """A character that is in none of the texts."""
    candidates = (chr(code) for code in range(0xE000, 0xF900))
    return next(mark for mark in candidates if not pc.any(pc.match_substring(texts, mark)).as_py())


def _constant(call: Call, place: int) -> object:
    part = call.arguments[place]
    assert isinstance(part, Literal)
    return part.value


def _sha2(text: str, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if name is None else hashlib.new(name, text.encode()).hexdigest()


def _levenshtein(left: str, right: str) -> int:
    """The least number of letters to insert, delete or replace."""
    letters, others = _letters(left), _letters(right)
    row = np.arange(len(others) + 1, dtype=np.int64)
    step = max(1, _CELLS // (len(others) + 1))
    for begin in checked(range(0, len(letters), step)):
        edit_rows(letters, others, begin, min(begin + step, len(letters)), row)
    return int(row[-1])


def _letters(text: str) -> Int64Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)


def _distance(call: Call, arguments: Sequence[Datum]) -> KernelResult:
    """LEVENSHTEIN; rows with texts that are compared for too long fail."""
    count = rows_of(arguments)
    texts = [spread(part, count) for part in arguments]
    lengths = [numbers(pc.utf8_length(part).cast(BIGINT)) for part in texts]
    large = np.logical_or.reduce([length > FARTHEST for length in lengths]) & validity(*texts)
    values = by_rows(_levenshtein, call, [pc.if_else(pa.array(large), "", part) for part in texts])
    return failing(values, large, f"LEVENSHTEIN of a text of more than {FARTHEST:,} characters")


def _hex(value: int | str | bytes) -> str:
    """Of a number the digits of its 64 bits in two's complement."""
    if isinstance(value, int):
        return f"{value % 2**64:X}"
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def _unhex(text: str) -> bytes | None:
    """An odd digit in front is a byte of its own."""
    return bytes.fromhex(text.zfill(len(text) + len(text) % 2)) if _HEX.fullmatch(text) else None


KERNELS: Final[dict[str, Kernel]] = {
    "HEX": _python(_hex),
    "UNHEX": _python(_unhex),
    "REVERSE": _reverse,
    "LEFT": _python(_left),
    "RIGHT": _python(_right),
    "LOCATE": _python(_position),
    "INSTR": _python(_instr),
    "LPAD": _bounded(_lpad, lambda texts, count: count),
    "RPAD": _bounded(_rpad, lambda texts, count: count),
    "REPEAT": _bounded(lambda text, count: text * max(count, 0), _repeated_size),
    "INITCAP": _python(_initcap),
    "TRANSLATE": _python(_translate),
    "ASCII": _python(_ascii),
    "CHR": _python(_chr),
    "SUBSTRING_INDEX": _python(_substring_index),
    "BTRIM": _trim_characters,
    "TRIM LEADING": _trim_characters,
    "TRIM TRAILING": _trim_characters,
    "CONCAT_WS": _concat_ws,
    "REGEXP_REPLACE": _regexp_replace,
    "REGEXP_COUNT": _regexp_count,
    "MD5": _python(lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
    "SHA1": _python(lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()),
    "SHA2": _python(_sha2),
    "CRC32": _python(lambda text: zlib.crc32(text.encode())),
    "LEVENSHTEIN": _distance,
}
"""The functions."""
