"""Batches of rows as a table: checked, counted with what every row holds, and without dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import SourceError
from headrace.server.packed.unpacked_size import UnpackedSize

_VALUE: Final = 8
"""Bytes that a value counts with at least, as many as a number has: NULLs and bits may come in less."""


def collected(batches: Iterable[pa.RecordBatch], schema: pa.Schema, columns: int, limit: int) -> pa.Table:
    """Batches as a table, checked so that nothing later reads beyond a buffer, and without dictionaries.

    Args:
        batches: the rows.
        schema: their columns.
        columns: how many columns they will have.
        limit: how many bytes they may have.

    Raises:
        RequestError: they have more.
        SourceError: values are written so that this is not known before they are unpacked.
    """
    found, count = list[pa.RecordBatch](), UnpackedSize(limit)
    plain = pa.schema([(field.name, _plain(field.type)) for field in schema])
    for batch in batches:
        batch.validate(full=True)
        count.add(_VALUE * batch.num_rows * max(0, columns - len(batch.columns)))
        for column in batch.columns:
            count.add(_size(column))
        found.append(
            pa.RecordBatch.from_arrays(list(map(_without_dictionaries, batch.columns)), schema=plain)
        )
    return pa.Table.from_batches(found, plain)


def _size(column: pa.Array) -> int:
    """The bytes of a column once every row has its value."""
    dtype = column.type
    if pa.types.is_run_end_encoded(dtype) or "view" in str(dtype):
        raise SourceError(f"columns of the type {dtype} are not taken", hint="send plain columns")
    if pa.types.is_dictionary(dtype):
        return _size_of_shared(column)
    least = max(_VALUE * len(column), int(column.nbytes) if dtype.num_fields == 0 else 0)
    if pa.types.is_struct(dtype):
        return least + sum(map(_size, column.flatten()))
    if pa.types.is_map(dtype):
        return least + _size(column.keys) + _size(column.items)
    if dtype.num_fields:
        return least + _size(column.flatten())
    return least


def _size_of_shared(column: pa.DictionaryArray) -> int:
    values = column.dictionary
    if len(column) == 0 or len(values) == 0:
        return _VALUE * len(column)
    if not _is_text(values.type):
        return len(column) * max(2 * _VALUE, _size(values) if values.type.num_fields else 0)
    lengths = pc.binary_length(values).cast(pa.int64())
    return _VALUE * len(column) + int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _without_dictionaries(column: pa.Array) -> pa.Array:
    plain = _plain(column.type)
    return column if plain == column.type else column.cast(plain)


def _plain(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(dtype):
        return _plain(dtype.value_type)
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(_plain(field.type)) for field in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(_plain(dtype.key_type), dtype.item_field.with_type(_plain(dtype.item_type)))
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(dtype.value_field.with_type(_plain(dtype.value_type)), dtype.list_size)
    if pa.types.is_large_list(dtype):
        return pa.large_list(dtype.value_field.with_type(_plain(dtype.value_type)))
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_plain(dtype.value_type)))
    return dtype


def _is_text(dtype: pa.DataType) -> bool:
    texts = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
    return any(dtype == one for one in texts)
