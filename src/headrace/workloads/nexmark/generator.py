"""Any stretch of the auction site's events as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.elements import record_batch
from headrace.errors import UserError
from headrace.schema import Field, Schema
from headrace.workloads.nexmark.columns import COLUMNS, TABLES, Maker
from headrace.workloads.nexmark.events import MAX_LIFE, Nexmark, arriving, closings, rank


def counts(spec: Nexmark, table: str) -> int:
    """How many rows the table has.

    Raises:
        UserError: there is no such table.
    """
    _require_table(table)
    if table != "closed":
        return rank(table, spec.events)
    early = max(spec.events - MAX_LIFE, 0)
    late = arriving(spec, "auction", early, spec.events)
    return rank("auction", early) + int(np.count_nonzero(late.closings < spec.events))


def generate(
    spec: Nexmark, table: str, first_event: int, last_event: int, columns: Sequence[str]
) -> pa.RecordBatch:
    """The rows that arrive with the events `[first_event, last_event)`, in order of arrival.

    Args:
        spec: what to generate.
        table: person, auction, bid or closed.
        first_event, last_event: event numbers; what lies outside `[0, spec.events)` is cut off.
        columns: the wanted columns of `TABLES[table]`, in the wanted order; only these are computed.

    Raises:
        UserError: there is no such table or column.
    """
    _require_table(table)
    first, last = max(first_event, 0), min(last_event, spec.events)
    makers = [_maker(table, column) for column in columns]
    last = max(first, last)
    rows = closings(spec, first, last) if table == "closed" else arriving(spec, table, first, last)
    schema = Schema(tuple(Field(name, dtype) for name, (dtype, _) in zip(columns, makers, strict=True)))
    return record_batch([make(rows) for _, make in makers], schema, len(rows.ordinals))


def _require_table(table: str) -> None:
    if table not in TABLES:
        raise UserError(f"NEXMark has no table {table}", hint=f"its tables are {', '.join(TABLES)}")


def _maker(table: str, column: str) -> tuple[pa.DataType, Maker]:
    if column not in COLUMNS[table]:
        raise UserError(
            f"NEXMark's table {table} has no column {column}", hint=f"its columns are {TABLES[table]}"
        )
    return COLUMNS[table][column]
