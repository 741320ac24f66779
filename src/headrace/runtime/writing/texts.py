"""Columns as texts, the same in every text format: ISO 8601 in UTC, plain decimals, shortest floats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len, set_cell_size

from headrace.nested import is_nested
from headrace.schema import STRING
from headrace.value_texts import enclose, is_text, json_texts, rewrite, value_texts

_UNPRINTABLE: Final = "\x00-\x1f\x7f-\x9f\u2028\u2029"
"""Line ends and what else may upset a terminal."""
_KEPT_LENGTH: Final = 10_000
"""So many characters of a text, and values of an array, are kept where a row is set apart."""
_ROWS_AT_ONCE: Final = 32_768
_BYTES_AT_ONCE: Final = 2**26


def count(number: int, noun: str) -> str:
    """`1 row`, `2 rows`, `12,345 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def row_texts(rows: pa.RecordBatch) -> Iterator[str]:
    """Each row as a JSON object, with the values as `json_texts` writes them, long ones shortened."""
    keys = [json.dumps(name, ensure_ascii=False) + ": " for name in rows.schema.names]
    if not keys:
        yield from ["{}"] * rows.num_rows
        return
    for piece in pieces(rows):
        fields = [
            pc.binary_join_element_wise(key, _brief(column), "")
            for key, column in zip(keys, piece.columns, strict=True)
        ]
        inside = pc.binary_join_element_wise(*fields, ", ")
        yield from pc.binary_join_element_wise("{", inside, "}", "").to_pylist()


def pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in pieces whose texts fit into one column, which holds two gigabytes."""
    if rows.num_rows > 1 and (rows.num_rows > _ROWS_AT_ONCE or rows.nbytes > _BYTES_AT_ONCE):
        middle = rows.num_rows // 2
        yield from pieces(rows.slice(0, middle))
        yield from pieces(rows.slice(middle))
    elif rows.num_rows:
        yield rows


def _brief(column: pa.Array) -> pa.StringArray:
    """The values as JSON; of a long text the beginning, of a long array how many values it has."""
    if not pa.types.is_list(column.type):
        return json_texts(_begun(column)) if not is_nested(column.type) else _long_json(column)
    lengths = pc.list_value_length(column)
    is_long = pc.greater(lengths, _KEPT_LENGTH).fill_null(False)
    kept = pc.if_else(is_long, pa.scalar(None, column.type), column)
    offsets = np.cumsum([0, *pc.list_value_length(kept).fill_null(0).to_pylist()])
    arrays = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), _begun(kept.flatten()), mask=kept.is_null()
    )
    counts = pc.binary_join_element_wise('"an array of ', lengths.cast(STRING), ' values"', "")
    return pc.if_else(is_long, counts, json_texts(arrays))


def _long_json(column: pa.Array) -> pa.StringArray:
    """STRUCTs and MAPs as JSON; of a long one the beginning, as a text."""
    texts = json_texts(column)
    is_long = pc.greater(pc.utf8_length(texts), _KEPT_LENGTH)
    return pc.if_else(is_long, json_texts(_begun(texts)), texts)


def _begun(column: pa.Array) -> pa.Array:
    """Of long texts the beginning, and a note of how many characters there were; other values unchanged."""
    if not is_text(column.type):
        return column
    lengths = pc.utf8_length(column)
    is_long = pc.greater(lengths, _KEPT_LENGTH).fill_null(False)
    if not pc.any(is_long).as_py():
        return column
    beginnings = pc.utf8_slice_codeunits(column, 0, _KEPT_LENGTH)
    noted = pc.binary_join_element_wise(beginnings, "... (", lengths.cast(STRING), " characters in all)", "")
    return pc.if_else(is_long, noted, column)


def csv_texts(column: pa.Array) -> pa.StringArray:
    """The values as CSV fields, quoted where they must be; NULL is empty, and no text or bytes are `""`."""
    texts = value_texts(column)
    if is_text(column.type) or is_nested(column.type) or pa.types.is_binary(column.type):
        unsafe = pc.match_substring_regex(texts, r'[",\r\n]|^$|^\s|\s$')
        texts = pc.if_else(unsafe, enclose(pc.replace_substring(texts, '"', '""')), texts)
    return texts.fill_null("")


def shown_texts(column: pa.Array) -> pa.StringArray:
    """The values for people, each on one line; NULL as `NULL`."""
    texts = value_texts(column)
    if is_text(column.type) or is_nested(column.type):
        unsafe = pc.match_substring_regex(texts, f"[{_UNPRINTABLE}]")
        texts = rewrite(texts, unsafe, lambda values: [_printable(value) for value in values])
    return texts.fill_null("NULL")


def width_of(texts: pa.StringArray) -> int:
    """How many columns of a terminal the widest of the texts takes."""
    wide = _not_ascii(texts)
    narrow = pc.max(pc.utf8_length(texts.filter(pc.invert(wide)))).as_py() or 0
    return int(max([narrow, *(cell_len(text) for text in texts.filter(wide).to_pylist())]))


def shortened(texts: pa.StringArray, width: int) -> pa.StringArray:
    """The texts, with those that are wider than a width cut there, the last place of which is then `…`."""
    lengths = pc.utf8_length(texts)
    # Beyond ASCII a character takes up to two columns.
    maybe = pc.and_(_not_ascii(texts), pc.greater(lengths, width // 2))
    suspects = pc.or_(pc.greater(lengths, width), maybe)

    def cut(values: list[str]) -> list[str]:
        return [
            value if cell_len(value) <= width else set_cell_size(value, width - 1) + "…" for value in values
        ]

    return rewrite(texts, suspects, cut)


def pad(texts: pa.StringArray, width: int, *, left: bool) -> pa.StringArray:
    """The texts filled up with blanks to a width, at the left or at the right."""
    padded = (pc.utf8_lpad if left else pc.utf8_rpad)(texts, width)

    def fill(values: list[str]) -> list[str]:
        blanks = [" " * (width - cell_len(value)) for value in values]
        return [blank + value if left else value + blank for value, blank in zip(values, blanks, strict=True)]

    return rewrite(padded, _not_ascii(texts), fill, texts)


def _not_ascii(texts: pa.StringArray) -> pa.BooleanArray:
    return pc.not_equal(pc.utf8_length(texts), pc.binary_length(texts))


def _printable(text: str) -> str:
    return re.sub(f"[{_UNPRINTABLE}]", lambda found: repr(found[0])[1:-1], text)
