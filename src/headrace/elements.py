"""Batches of signed, interval-stamped tuples, and their wire format.

An element is `(payload, [ts, te), w)`: see `docs/concepts.md`. A batch keeps its payload as Arrow columns and
its three time columns as NumPy arrays. On the wire a time column that follows a simple rule (all `w = 1`,
all chronons, all open for ever, `ts` equal to a payload column) is written as the rule, not as data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.nested import arrow_value
from headrace.schema import BIGINT, TIMESTAMP, Schema
from headrace.time import INFINITY

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
BytesArray = npt.NDArray[np.uint8]

LIMB = "__x"
"""Columns of such names are limbs of exact sums; rows without one have 0 in it."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Elements of one stream, in no particular order.

    Attributes:
        payload: n rows of payload columns.
        ts: int64[n], first instant of validity.
        te: int64[n], the instant after the last one, or INFINITY; always `ts < te`.
        w: int64[n], signed multiplicity, never 0.
    """

    payload: pa.RecordBatch
    ts: Int64Array
    te: Int64Array
    w: Int64Array

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def nbytes(self) -> int:
        """Bytes of the payload and the time columns."""
        return int(self.payload.nbytes + self.ts.nbytes + self.te.nbytes + self.w.nbytes)

    def take(self, indices: npt.NDArray[np.integer]) -> Batch:
        """The elements at those positions, in that order."""
        payload = take_rows(self.payload, indices)
        return Batch(payload, self.ts[indices], self.te[indices], self.w[indices])

    def filter(self, mask: BoolArray) -> Batch:
        """The elements where the mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def negated(self) -> Batch:
        """The same elements, taken back where they were there."""
        return Batch(self.payload, self.ts, self.te, -self.w)

    def slice(self, start: int, length: int) -> Batch:
        """A view of `length` elements from position `start`."""
        end = start + length
        return Batch(
            self.payload.slice(start, length), self.ts[start:end], self.te[start:end], self.w[start:end]
        )

    def with_payload(self, payload: pa.RecordBatch) -> Batch:
        """The same intervals and multiplicities with another payload of as many rows."""
        return Batch(payload, self.ts, self.te, self.w)


def take_rows(rows: pa.RecordBatch, indices: npt.NDArray[np.integer]) -> pa.RecordBatch:
    """The rows at those positions, in that order; keeps the row count where there are no columns."""
    if rows.num_columns == 0:
        return empty_columns(len(indices))
    return rows.take(pa.array(indices))


def empty_columns(count: int) -> pa.RecordBatch:
    """A record batch without columns that still counts its rows."""
    rows = pa.StructArray.from_buffers(pa.struct([]), count, [None])
    return pa.RecordBatch.from_struct_array(rows)


def record_batch(columns: Sequence[pa.Array], schema: Schema, count: int) -> pa.RecordBatch:
    """A record batch of `count` rows from columns that match the schema."""
    if not columns:
        return empty_columns(count)
    return pa.RecordBatch.from_arrays(list(columns), schema=schema.arrow())


def empty(schema: Schema) -> Batch:
    """A batch of no elements."""
    none = np.empty(0, dtype=np.int64)
    payload = record_batch([pa.array([], field.type) for field in schema], schema, 0)
    return Batch(payload, none, none, none)


def from_rows(schema: Schema, rows: Iterable[tuple[tuple[object, ...], int, int, int]]) -> Batch:
    """A batch from Python rows `(payload, ts, te, w)`; for tests and examples."""
    listed = list(rows)
    columns = [
        pa.array([arrow_value(payload[index], field.type) for payload, *_ in listed], field.type)
        for index, field in enumerate(schema)
    ]
    times = [np.array([row[place] for row in listed], dtype=np.int64) for place in (1, 2, 3)]
    return Batch(record_batch(columns, schema, len(listed)), *times)


def to_rows(batch: Batch) -> list[tuple[tuple[object, ...], int, int, int]]:
    """The elements as Python rows `(payload, ts, te, w)`; for tests and the reference."""
    columns = [column.to_pylist() for column in batch.payload.columns]
    payloads = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
    return list(zip(payloads, batch.ts.tolist(), batch.te.tolist(), batch.w.tolist(), strict=True))


def concat(schema: Schema, batches: Sequence[Batch]) -> Batch:
    """All elements of the batches, in order."""
    filled = [batch for batch in batches if len(batch)]
    if not filled:
        return empty(schema)
    if len(filled) == 1:
        return filled[0]
    ts, te, w = (np.concatenate([getattr(batch, name) for batch in filled]) for name in ("ts", "te", "w"))
    return Batch(concat_rows([batch.payload for batch in filled]), ts, te, w)


def concat_rows(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of record batches, one after the other.

    Their schemas are the same but for limbs; the result has those that some part has, by name.
    """
    if len(parts) == 1:
        return parts[0]
    if parts[0].num_columns == 0:
        return empty_columns(sum(part.num_rows for part in parts))
    if any(part.schema.names != parts[0].schema.names for part in parts):
        limbs = sorted({name for part in parts for name in limbs_of(part)})
        parts = [_with_limbs(part, limbs) for part in parts]
    return pa.concat_batches(parts)


def limbs_of(rows: pa.RecordBatch) -> tuple[str, ...]:
    """The names of the columns that are limbs."""
    return tuple(name for name in rows.schema.names if name.startswith(LIMB))


def _with_limbs(rows: pa.RecordBatch, limbs: Sequence[str]) -> pa.RecordBatch:
    """The rows with those limbs after all other columns."""
    names = [name for name in rows.schema.names if not name.startswith(LIMB)]
    columns, known = rows.select(names).columns, set(rows.schema.names)
    zeros = pa.array(np.zeros(rows.num_rows, dtype=np.int64))
    columns += [rows.column(name) if name in known else zeros for name in limbs]
    return pa.RecordBatch.from_arrays(columns, names=[*names, *limbs])


# --- wire format -----------------------------------------------------------------------------------------

_RULES = b"headrace"
_BASE = b"base"


def encode(batch: Batch) -> pa.Buffer:
    """An Arrow IPC stream of one batch; regular time columns become a rule in its schema's metadata."""
    rules: dict[str, int] = {"rows": len(batch)}
    columns = list(batch.payload.columns)
    fields = list(batch.payload.schema)
    for name, rule, data in _time_columns(batch):
        if rule is not None:
            rules[rule[0]] = rule[1]
        else:
            fields.append(pa.field(f"__{name}", pa.int64()))
            columns.append(pa.array(data))
    schema = pa.schema(fields, metadata={_RULES: json.dumps(rules).encode()})
    if not columns:
        return _stream(schema)
    return encode_rows(pa.RecordBatch.from_arrays(columns, schema=schema))


def decode(buffer: pa.Buffer | bytes) -> Batch:
    """The batch that `encode` wrote; payload columns are views into the buffer."""
    with pa.ipc.open_stream(buffer) as reader:
        rules = json.loads(reader.schema.metadata[_RULES])
        rows = widened(reader.read_next_batch()) if len(reader.schema) else empty_columns(rules["rows"])
    names = [name for name in rows.schema.names if name not in ("__ts", "__te", "__w")]
    payload = rows.select(names) if names else empty_columns(rules["rows"])
    payload = payload.replace_schema_metadata(None)
    ts = integers(payload.column(rules["ts"]) if "ts" in rules else rows.column("__ts"))
    if "duration" in rules:
        te = ts + rules["duration"]
    elif "te" in rules:
        te = np.full(len(ts), rules["te"], dtype=np.int64)
    else:
        te = integers(rows.column("__te"))
    w = np.full(len(ts), rules["w"], dtype=np.int64) if "w" in rules else integers(rows.column("__w"))
    return Batch(payload, ts, te, w)


def encode_rows(rows: pa.RecordBatch) -> pa.Buffer:
    """An Arrow IPC stream of one record batch, in which integers take no more bytes than they need.

    A column of integers or timestamps without NULLs is written as what its values exceed the smallest by, in
    1, 2 or 4 bytes where that is enough; a constant takes none.
    """
    columns, fields = [], []
    for column, field in zip(rows.columns, rows.schema, strict=True):
        narrow = _narrowed(column) if column.type in (BIGINT, TIMESTAMP) and not column.null_count else None
        if narrow is not None:
            column, base = narrow
            kind = b"t" if field.type == TIMESTAMP else b"i"
            field = pa.field(field.name, column.type, metadata={_BASE: b"%d %s" % (base, kind)})
        columns.append(column)
        fields.append(field)
    schema = pa.schema(fields, metadata=rows.schema.metadata)
    return _stream(schema, pa.RecordBatch.from_arrays(columns, schema=schema))


def decode_rows(buffer: pa.Buffer | bytes) -> pa.RecordBatch:
    """The record batch that `encode_rows` wrote."""
    return widened(read_rows(buffer))


def read_rows(buffer: pa.Buffer | bytes) -> pa.RecordBatch:
    """What `encode_rows` wrote, without a copy; `widened` gives all or some of it back."""
    with pa.ipc.open_stream(buffer) as reader:
        return reader.read_next_batch()


def _stream(schema: pa.Schema, rows: pa.RecordBatch | None = None) -> pa.Buffer:
    # Into as many bytes as it takes: a sink that grows copies what it has.
    size = pa.MockOutputStream()
    _write(size, schema, rows)
    buffer = pa.allocate_buffer(size.size())
    _write(pa.FixedSizeBufferWriter(buffer), schema, rows)
    return buffer


def _write(sink: pa.NativeFile, schema: pa.Schema, rows: pa.RecordBatch | None) -> None:
    with pa.ipc.new_stream(sink, schema) as writer:
        if rows is not None:
            writer.write_batch(rows)


def _narrowed(column: pa.Array) -> tuple[pa.Array, int] | None:
    """The values' distances from the smallest one, and that; None where they take eight bytes."""
    values = integers(column)
    if not len(values):
        return None
    low, high = int(values.min()), int(values.max())
    if low == high:
        return pa.nulls(len(values)), low
    for dtype in (np.uint8, np.uint16, np.uint32):
        if high - low <= np.iinfo(dtype).max:
            return pa.array((values - low).astype(dtype)), low
    return None


def widened(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows that were read, with their integers as they were; others unchanged."""
    columns, fields = [], []
    for column, field in zip(rows.columns, rows.schema, strict=True):
        if field.metadata is not None and _BASE in field.metadata:
            base, kind = field.metadata[_BASE].split()
            if pa.types.is_null(column.type):
                values = np.full(len(column), int(base), dtype=np.int64)
            else:
                values = np.add(column.to_numpy(), int(base), dtype=np.int64)
            column = pa.array(values)
            column = column.cast(TIMESTAMP) if kind == b"t" else column
            field = pa.field(field.name, column.type)
        columns.append(column)
        fields.append(field)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=rows.schema.metadata))


def concat_stored(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of record batches that were read, one after the other, with their integers as they were.

    As `concat_rows` of what `widened` gives, without a copy between them.
    """
    if len(parts) == 1 or any(part.schema.names != parts[0].schema.names for part in parts):
        return concat_rows([widened(part) for part in parts])
    names = parts[0].schema.names
    return pa.RecordBatch.from_arrays([_concat_column(parts, name) for name in names], names=names)


def _concat_column(parts: Sequence[pa.RecordBatch], name: str) -> pa.Array:
    columns = [part.column(name) for part in parts]
    bases = [(part.schema.field(name).metadata or {}).get(_BASE) for part in parts]
    if any(
        base is None and (column.type != BIGINT or column.null_count)
        for base, column in zip(bases, columns, strict=True)
    ):
        return pa.concat_arrays([widened(part.select([name])).column(0) for part in parts])
    values = np.empty(sum(map(len, columns)), dtype=np.int64)
    end, kinds = 0, set()
    for column, base in zip(columns, bases, strict=True):
        start, end = end, end + len(column)
        least, kind = (b"0", b"i") if base is None else base.split()
        kinds.add(kind)
        if pa.types.is_null(column.type):
            values[start:end] = int(least)
        else:
            np.add(column.to_numpy(), int(least), out=values[start:end], dtype=np.int64)
    return pa.array(values).cast(TIMESTAMP) if b"t" in kinds else pa.array(values)


def integers(column: pa.Array) -> Int64Array:
    """The values of a column of integers or timestamps without NULLs, as a view where Arrow allows it."""
    if column.type == TIMESTAMP:
        column = column.view(BIGINT)
    elif column.type != BIGINT:
        # Even where nothing has to be changed a cast takes as long as ten views.
        column = column.cast(BIGINT)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _time_columns(batch: Batch) -> list[tuple[str, tuple[str, int] | None, Int64Array]]:
    """Each time column with the rule it follows, or None where it has to be written out."""
    return [
        ("ts", _timestamp_rule(batch), batch.ts),
        ("te", _end_rule(batch), batch.te),
        ("w", _constant("w", batch.w), batch.w),
    ]


def _timestamp_rule(batch: Batch) -> tuple[str, int] | None:
    for index, column in enumerate(batch.payload.columns):
        if column.type in (BIGINT, TIMESTAMP) and column.null_count == 0:
            values = integers(column)
            if len(values) and values[0] == batch.ts[0] and np.array_equal(values, batch.ts):
                return "ts", index
    return None


def _end_rule(batch: Batch) -> tuple[str, int] | None:
    constant = _constant("te", batch.te)
    if constant is not None and constant[1] == INFINITY:
        return constant
    return _constant("duration", batch.te - batch.ts)


def _constant(name: str, values: Int64Array) -> tuple[str, int] | None:
    if len(values) and (values == values[0]).all():
        return name, int(values[0])
    return None
