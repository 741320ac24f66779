"""Bodies that unpack to more than they say or than is taken: refused before any memory is taken for them."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import SourceError
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.server.bodies import inflated, table_of
from headrace.server.errors import RequestError
from headrace.server.formats import ARROW, PARQUET

SCHEMA = Schema((Field("ts", BIGINT), Field("v", STRING)))
LIMIT = 1_000_000
ROWS = 20_000_000


def arrow(table: pa.Table, compression: str | None = "zstd") -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        out, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(table, out, store_schema=False, **options)
    return bytes(out.getvalue())


def zeros(rows: int = ROWS) -> pa.Table:
    numbers = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(bytes(8 * rows))])
    return pa.table({"ts": numbers})


def nulls(rows: int = ROWS) -> pa.Table:
    return pa.table({"ts": pa.nulls(rows, pa.int64())})


def texts(rows: int, size: int = 10_000) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(bytes(rows), pa.int8()), ["x" * size])


def nothing(rows: int, dtype: pa.DataType) -> pa.Table:
    """Rows that take no bytes at all."""
    return pa.table({"ts": pa.Array.from_buffers(dtype, rows, [None])})


def lists(rows: int) -> pa.Table:
    return pa.table({"v": pa.ListArray.from_arrays(range(rows + 1), texts(rows))})


def one_list(values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "arrow, zstd": (ARROW, lambda: arrow(zeros())),
    "arrow, lz4": (ARROW, lambda: arrow(zeros(), "lz4")),
    "arrow, of nothing": (ARROW, lambda: arrow(nothing(2**31 - 1, pa.null()), None)),
    "arrow, lists of nothing": (ARROW, lambda: arrow(pa.table({"v": one_list(pa.nulls(2**31 - 1))}), None)),
    "arrow, a dictionary": (ARROW, lambda: arrow(pa.table({"v": texts(20_000)}))),
    "arrow, a dictionary in lists": (ARROW, lambda: arrow(lists(20_000))),
    "parquet, zeros": (PARQUET, lambda: parquet(zeros(), compression="zstd")),
    "parquet, nulls": (PARQUET, lambda: parquet(nulls())),
    "parquet, a long list": (PARQUET, lambda: parquet(pa.table({"v": one_list(pa.nulls(ROWS, pa.int64()))}))),
    "parquet, plain pages": (PARQUET, lambda: parquet(zeros(), compression="gzip", use_dictionary=False)),
    "parquet, a text": (PARQUET, lambda: parquet(pa.table({"v": texts(20_000)}))),
    "parquet, a text in lists": (PARQUET, lambda: parquet(lists(20_000))),
    "parquet, beginnings": (
        PARQUET,
        lambda: parquet(
            pa.table({"v": ["x" * 10_000] * 20_000}),
            use_dictionary=False,
            column_encoding={"v": "DELTA_BYTE_ARRAY"},
        ),
    ),
    "parquet, steps": (
        PARQUET,
        lambda: parquet(
            zeros(), use_dictionary=False, column_encoding={"ts": "DELTA_BINARY_PACKED"}, compression=None
        ),
    ),
}


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    return {name: made() for name, (_, made) in BOMBS.items()}


@pytest.mark.parametrize("name", BOMBS)
def test_a_body_that_unpacks_to_too_much_is_refused(name: str, bombs: dict[str, bytes]) -> None:
    assert len(bombs[name]) < LIMIT
    with pytest.raises(RequestError, match="more than 1,000,000 bytes") as refused:
        table_of(bombs[name], BOMBS[name][0], "r", SCHEMA, LIMIT)
    assert refused.value.status == 413


LOOK = """
import re, sys
from pathlib import Path
from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.server.bodies import table_of
from headrace.server.errors import RequestError
schema = Schema((Field("ts", BIGINT), Field("v", STRING)))
table_of(Path("plain").read_bytes(), sys.argv[1], "r", schema, 1_000_000)
def most():
    # What getrusage says begins with the memory of the process that started this one.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = most()
for name in sys.argv[2:]:
    kind, _, number = name.partition("@")
    try:
        table_of(Path(number).read_bytes(), kind, "r", schema, 1_000_000)
    except RequestError:
        print(number, most() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it says how much memory was most")
def test_no_memory_is_taken_for_what_is_refused(bombs: dict[str, bytes], tmp_path: Path) -> None:
    """Each would take 160 MB at least; a process that is given them all grows by a part of that."""
    (tmp_path / "plain").write_bytes(parquet(PLAIN))
    for number, body in enumerate(bombs.values()):
        (tmp_path / str(number)).write_bytes(body)
    kinds = [f"{kind}@{number}" for number, (kind, _) in enumerate(BOMBS.values())]
    found = subprocess.run(
        [sys.executable, "-c", LOOK, PARQUET, *kinds],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    grown = {
        list(BOMBS)[int(line.split()[0])]: int(line.split()[1]) // 1024 for line in found.stdout.splitlines()
    }
    assert len(grown) == len(BOMBS)
    assert max(grown.values()) < 80, grown


PLAIN = pa.table(
    {
        "ts": [1, None, 3],
        "v": ["x", None, "y" * 50],
        "l": [["a", "b"], None, []],
        "s": [{"f": "a", "g": 1}, None, {"f": None, "g": 2}],
    }
)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ARROW, arrow(PLAIN)),
        (ARROW, arrow(PLAIN, "lz4")),
        (ARROW, arrow(PLAIN, None)),
        (PARQUET, parquet(PLAIN)),
        (PARQUET, parquet(PLAIN, data_page_version="2.0", compression="zstd")),
        (PARQUET, parquet(PLAIN, use_dictionary=False, column_encoding={"v": "DELTA_BYTE_ARRAY"})),
        (PARQUET, parquet(PLAIN, use_dictionary=False, column_encoding={"v": "DELTA_LENGTH_BYTE_ARRAY"})),
        (PARQUET, parquet(PLAIN, row_group_size=1, write_page_index=True)),
    ],
)
def test_rows_that_fit_are_taken_however_they_are_packed(kind: str, body: bytes) -> None:
    assert table_of(body, kind, "r", SCHEMA, LIMIT).to_pylist() == PLAIN.to_pylist()


@settings(max_examples=200, deadline=None, database=None)
@given(
    kind=st.sampled_from([ARROW, PARQUET]),
    places=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4
    ),
)
def test_damaged_bodies_are_errors_of_the_request(kind: str, places: list[tuple[float, int]]) -> None:
    body = bytearray(arrow(PLAIN) if kind == ARROW else parquet(PLAIN, compression="zstd"))
    for place, byte in places:
        body[int(place * len(body))] = byte
    with suppress(SourceError, RequestError):
        table_of(bytes(body), kind, "r", SCHEMA, LIMIT)


@pytest.mark.parametrize("declared", [2**40, -5, 2**62])
def test_a_buffer_that_says_too_much_of_itself_is_refused(declared: int) -> None:
    body = arrow(pa.table({"ts": pa.array(range(1_000), pa.int64())}))
    place = body.index(struct.pack("<q", 8_000))
    with pytest.raises((RequestError, SourceError)):
        table_of(body[:place] + struct.pack("<q", declared) + body[place + 8 :], ARROW, "r", SCHEMA, LIMIT)


def test_gzip_is_unpacked_up_to_the_limit_in_any_number_of_members() -> None:
    members = [bytes([65 + number % 26]) * number for number in range(200)]
    packed = b"".join(gzip.compress(one) for one in members)
    assert inflated(packed, "gzip", 50_000) == b"".join(members)
    with pytest.raises(RequestError, match="more than 500 bytes"):
        inflated(packed, "gzip", 500)
    with pytest.raises(RequestError, match="breaks off"):
        inflated(packed[:-3], "gzip", 50_000)
    with pytest.raises(RequestError, match="cannot be unpacked"):
        inflated(packed + b"xx", "gzip", 50_000)
    empty = BytesIO()
    for _ in range(60_000):
        empty.write(gzip.compress(b""))
    assert inflated(empty.getvalue(), "gzip", 10) == b""
