"""Times that are pushed as text, in ISO 8601."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.conversion import MisfitError
from headrace.errors import UserError, shown
from headrace.runtime.sources.rows.values import parse_texts
from headrace.schema import DATE, STRING, TIMESTAMP, Schema, sql_type

_HINT: Final = "write it as 2024-01-31T10:00:00Z, or push a STRING and compute the time from it in the query"


def read_texts(values: Sequence[object], dtype: pa.DataType) -> Sequence[object]:
    """The values of a column with texts read as times, if the column is of times.

    Args:
        values: any values; those that are not text stay.
        dtype: the column's type.

    Raises:
        MisfitError: a text is not a time, or not one of the years 1 to 9999; the first such text.
    """
    if dtype not in (TIMESTAMP, DATE):
        return values
    places = [place for place, value in enumerate(values) if isinstance(value, str)]
    if not places:
        return values
    times, wrong = parse_texts(pa.array([values[place] for place in places], STRING), dtype)
    if wrong.any():
        place = places[int(np.argmax(wrong))]
        raise MisfitError(place, f"not a {sql_type(dtype)}: {shown(values[place])}", _HINT)
    found = list(values)
    for place, time in zip(places, times, strict=True):
        try:
            found[place] = time.as_py()
        except OverflowError:
            reason = f"of a year that Python does not have: {shown(values[place])}"
            raise MisfitError(place, reason, "push it in an Arrow table") from None
    return found


def with_times(table: pa.Table, schema: Schema, label: str) -> pa.Table:
    """A table with columns of text read as times where the stream's columns are of times.

    Args:
        table: the rows.
        schema: the stream's columns.
        label: the stream's name.

    Raises:
        UserError: a text is not a time.
    """
    for place, name in enumerate(table.column_names):
        found, column = schema.find(name), table.column(place)
        if found is None or schema[found].type not in (TIMESTAMP, DATE) or column.type not in _TEXTS:
            continue
        texts = pa.concat_arrays([pa.array([], STRING), *(chunk.cast(STRING) for chunk in column.chunks)])
        times, wrong = parse_texts(texts, schema[found].type)
        if wrong.any():
            row = int(np.argmax(wrong))
            reason = f"{name} is not a {sql_type(schema[found].type)}: {shown(texts[row].as_py())}"
            raise UserError(f"these rows do not fit {label}: row {row + 1}: {reason}", hint=_HINT)
        table = table.set_column(place, name, times)
    return table


_TEXTS: Final = (pa.string(), pa.large_string())
