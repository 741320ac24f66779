from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.elements import (
    LIMB,
    Batch,
    concat,
    concat_rows,
    concat_stored,
    decode,
    decode_rows,
    empty,
    empty_columns,
    encode,
    encode_rows,
    from_rows,
    integers,
    read_rows,
    record_batch,
    take_rows,
    to_rows,
)
from headrace.schema import BIGINT, STRING, TIMESTAMP, Field, Schema
from headrace.time import INFINITY

SCHEMA = Schema((Field("k", STRING), Field("n", BIGINT)))
ROWS: list[tuple[tuple[object, ...], int, int, int]] = [
    (("a", 1), 1, 5, 1),
    (("b", None), 2, INFINITY, -1),
    ((None, 3), 2, 3, 2),
]


def batch() -> Batch:
    return from_rows(SCHEMA, ROWS)


def test_rows_there_and_back() -> None:
    assert to_rows(batch()) == ROWS
    assert len(batch()) == 3
    assert batch().nbytes > 72


def test_parts_of_a_batch() -> None:
    assert to_rows(batch().take(np.array([2, 0, 0]))) == [ROWS[2], ROWS[0], ROWS[0]]
    assert to_rows(batch().filter(np.array([False, True, True]))) == ROWS[1:]
    assert to_rows(batch().slice(1, 1)) == ROWS[1:2]
    whole = batch()
    assert whole.filter(np.ones(3, dtype=np.bool_)) is whole
    doubled = whole.with_payload(take_rows(whole.payload, np.array([0, 0, 0])))
    assert to_rows(doubled) == [(("a", 1), *row[1:]) for row in ROWS]


def test_batches_are_joined() -> None:
    assert to_rows(concat(SCHEMA, [])) == []
    assert to_rows(concat(SCHEMA, [empty(SCHEMA), batch()])) == ROWS
    assert to_rows(concat(SCHEMA, [batch(), batch().slice(0, 1)])) == [*ROWS, ROWS[0]]


def test_rows_without_columns_are_counted() -> None:
    rows: list[tuple[tuple[object, ...], int, int, int]] = [((), 1, 2, 1), ((), 1, 4, 1)]
    nothing = from_rows(Schema(()), rows)
    assert nothing.payload.num_rows == 2
    assert to_rows(nothing) == rows
    assert concat_rows([empty_columns(2), empty_columns(3)]).num_rows == 5
    assert to_rows(nothing.take(np.array([1]))) == rows[1:]
    assert record_batch([], Schema(()), 4).num_rows == 4
    assert to_rows(decode(encode(nothing))) == rows


CHRONONS = from_rows(SCHEMA, [(("a", at), at, at + 1, 1) for at in (4, 7, 5)])
TIMED = Schema((Field("t", TIMESTAMP),))


@pytest.mark.parametrize(
    "original",
    [
        batch(),
        empty(SCHEMA),
        CHRONONS,
        from_rows(SCHEMA, [(("a", 1), 3, INFINITY, 1), (("b", 1), 4, INFINITY, 1)]),
        from_rows(SCHEMA, [(("a", 1), 3, 13, -2), (("b", None), 4, 14, -2)]),
        from_rows(TIMED, [((7,), 7, 8, 1), ((9,), 9, 10, 1)]),
        batch().slice(1, 2),
    ],
)
def test_the_wire_keeps_everything(original: Batch) -> None:
    read = decode(encode(original))
    assert read.payload.equals(original.payload)
    assert [read.ts.tolist(), read.te.tolist(), read.w.tolist()] == [
        original.ts.tolist(),
        original.te.tolist(),
        original.w.tolist(),
    ]
    assert decode(bytes(encode(original))).payload.equals(original.payload)


def test_regular_times_cost_nothing_on_the_wire() -> None:
    count = 10_000
    values = np.arange(count)
    payload = record_batch([pa.array(["x"] * count), pa.array(values)], SCHEMA, count)
    regular = Batch(payload, values, values + 1, np.ones(count, dtype=np.int64))
    irregular = Batch(payload, values[::-1].copy(), values[::-1] + 1 + values % 3, 1 + values % 2)
    bare = Batch(payload, values, np.full(count, INFINITY), np.ones(count, dtype=np.int64))
    assert encode(regular).size < payload.nbytes + 2_000
    assert encode(bare).size < payload.nbytes + 2_000
    assert encode(irregular).size > encode(regular).size + 3 * count


@pytest.mark.parametrize("dtype", [BIGINT, TIMESTAMP])
@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([7, 7, 7], 0),
        ([-1, 254], 1),
        ([-1, 255], 2),
        ([10**15, 10**15 + 70_000], 4),
        ([0, 2**32 - 1], 4),
        ([0, 2**32], 8),
        ([-(2**63), 2**63 - 1], 8),
        ([-(2**63), 3 - 2**63], 1),
        ([1, None, 2], 8),
        ([], 8),
    ],
)
def test_integers_take_no_more_bytes_than_they_need(
    values: list[int | None], width: int, dtype: pa.DataType
) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(values, pa.int64()).cast(dtype)], names=["v"])
    stored = encode_rows(rows)
    assert decode_rows(stored).equals(rows)
    with pa.ipc.open_stream(stored) as reader:
        written = reader.schema.field("v").type
    assert (0 if pa.types.is_null(written) else written.bit_width // 8) == width


WIDTHS = [[7, 7], [-1, 254], [-1, 255], [10**15, 10**15 + 70_000], [-(2**63), 2**63 - 1], [1, None], []]


@given(
    st.lists(st.tuples(st.sampled_from(WIDTHS), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([BIGINT, TIMESTAMP]),
)
def test_stored_rows_are_put_together_as_they_were(
    parts: list[tuple[list[int | None], bool]], dtype: pa.DataType
) -> None:
    """Whatever widths a column has in each part; limbs may be there or not."""
    batches = []
    for values, has_limb in parts:
        texts = pa.array(["a"] * len(values), STRING)
        columns = {"v": pa.array(values, pa.int64()).cast(dtype), "s": texts}
        if has_limb:
            columns[LIMB + "0000_000"] = pa.array([3] * len(values), BIGINT)
        batches.append(pa.RecordBatch.from_pydict(columns))
    stored = [read_rows(encode_rows(rows)) for rows in batches]
    assert concat_stored(stored).equals(concat_rows(batches))


def test_other_columns_are_written_as_they_are() -> None:
    rows = pa.RecordBatch.from_pydict({"s": ["a", None], "i": pa.array([1, 2], pa.int32()), "f": [0.5, 1.0]})
    assert decode_rows(encode_rows(rows)).equals(rows)


def test_integers_of_a_timestamp() -> None:
    column = pa.array([5, 7], TIMESTAMP)
    assert integers(column).tolist() == [5, 7]
