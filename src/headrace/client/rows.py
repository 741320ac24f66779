"""Rows in the JSON of events, as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import HeadraceError
from headrace.nested import is_nested
from headrace.runtime.sources.rows.values import parse_texts
from headrace.runtime.sources.text.json_values import Object, decode, texts_of
from headrace.runtime.sources.text.nested_json import column_of_json
from headrace.schema import BIGINT, BINARY, TIMESTAMP, Field

_COUNTED: Final = r"^-?\d+$"
"""An instant that no calendar text has: the number of microseconds since 1970."""


def rows_of(data: str, types: Sequence[pa.DataType]) -> tuple[dict[str, object], pa.Table]:
    """The rows of an event, and all else in it.

    Args:
        data: a JSON object with `rows`, each an object with the same keys.
        types: those of the columns, in their order.

    Raises:
        HeadraceError: the rows do not have such columns.
    """
    found = dict(decode(data))
    rows = found.pop("rows", None)
    if not isinstance(rows, list) or not all(
        isinstance(row, Object) and len(row) == len(types) for row in rows
    ):
        raise HeadraceError("the server has sent rows of other columns", hint="has the query been replaced?")
    names = [key for key, _ in rows[0]] if rows else []
    columns = [
        _column([row[place][1] for row in rows], dtype) for place, dtype in enumerate(types if names else ())
    ]
    return found, pa.table(columns, names=names)


def _column(values: list[Any], dtype: pa.DataType) -> pa.Array:
    if is_nested(dtype) or dtype == BINARY:
        found, wrong = column_of_json(values, Field("value", dtype))
        if wrong:
            raise HeadraceError(f"the server has sent values that are not of the type {dtype}")
        return found
    texts, wrong = texts_of(values, Field("value", dtype))
    if dtype == TIMESTAMP:
        return _timestamps(texts)
    parsed, bad = parse_texts(texts, dtype)
    if wrong or bad.any():
        raise HeadraceError(f"the server has sent values that are not of the type {dtype}")
    return parsed


def _timestamps(texts: pa.StringArray) -> pa.Array:
    """TIMESTAMPs; those before the year 1 and after 9999 are written as numbers."""
    counted = pc.match_substring_regex(texts, _COUNTED)
    parsed, bad = parse_texts(pc.if_else(counted, None, texts), TIMESTAMP)
    if bad.any():
        raise HeadraceError("the server has sent instants that are not TIMESTAMPs")
    far = pc.if_else(counted, texts, None).cast(BIGINT)
    return pc.coalesce(parsed.view(BIGINT), far).view(TIMESTAMP)
