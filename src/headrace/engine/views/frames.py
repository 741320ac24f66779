"""Answers as the data frames of other libraries."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa

from headrace.errors import UserError


def to_pandas(table: pa.Table) -> Any:
    """A pandas data frame; integers with NULLs among them stay integers, as pandas' `Int64`."""
    pandas = importlib.import_module("pandas")
    nullable = {pa.int64(): pandas.Int64Dtype()}

    def types(column: pa.ChunkedArray) -> Any:
        return nullable.get if column.null_count else None

    columns = [column.to_pandas(types_mapper=types(column)) for column in table.columns]
    return pandas.DataFrame(
        dict(zip(table.column_names, columns, strict=True)), index=pandas.RangeIndex(table.num_rows)
    )


def to_polars(table: pa.Table) -> Any:
    """A Polars data frame.

    Raises:
        UserError: Polars is not installed.
    """
    return optional("polars", "polars").from_arrow(table)


def optional(module: str, extra: str) -> Any:
    """A library that is installed only with an extra of ours.

    Args:
        module: what to import.
        extra: the name of the extra.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"{module} is not installed", hint=f"pip install {module}, or pip install 'headrace[{extra}]'"
        ) from error
