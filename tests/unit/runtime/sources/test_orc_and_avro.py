"""ORC and Avro files: the same rows as those of Arrow, however they are cut."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.orc
import pytest

from headrace.errors import HeadraceWarning, SourceError
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.rows.contract import Rejected
from headrace.schema import BIGINT, DOUBLE, Field, Schema

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {
        "ts": BEGIN + timedelta(microseconds=number),
        "n": None if number % 5 == 0 else number,
        "small": number % 100,
        "part": number / 4,
        "name": f"Zürich {number}",
        "yes": number % 2 == 0,
        "day": date(2024, 1, 1) + timedelta(days=number % 9),
        "price": Decimal(number) / 100,
        "tags": [f"t{number % 3}"],
        "raw": bytes([number % 256]),
    }
    for number in range(1_000)
]
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.int64()),
        ("small", pa.int32()),
        ("part", pa.float64()),
        ("name", pa.string()),
        ("yes", pa.bool_()),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("tags", pa.list_(pa.string())),
        ("raw", pa.binary()),
    ]
)
AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "n", "type": ["null", "long"]},
        {"name": "small", "type": "int"},
        {"name": "part", "type": "double"},
        {"name": "name", "type": "string"},
        {"name": "yes", "type": "boolean"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "raw", "type": "bytes"},
    ],
}


def written(path: Path, rows: list[dict[str, Any]] = ROWS) -> None:
    if path.suffix == ".orc":
        table = pa.Table.from_pylist(rows, SCHEMA)
        pyarrow.orc.write_table(table, path, stripe_size=1, batch_size=64)
    else:
        with path.open("wb") as file:
            fastavro.writer(file, AVRO, rows, codec="deflate", sync_interval=2_000)


def opened(path: Path, declared: Schema | None = None, timestamp: str = "ts") -> SplitSource:
    return open_source(path.suffix[1:], {"path": path.name}, declared, timestamp, "s", path.parent)


@pytest.mark.parametrize("ending", ["orc", "avro"])
def test_the_rows_are_those_that_were_written(ending: str, tmp_path: Path, read_all: ReadAll) -> None:
    path = tmp_path / f"rows.{ending}"
    written(path)
    source = opened(path)
    assert len(source.borders) > 2
    assert source.size == source.rows == 1_000
    assert read_all(source)[0].to_pylist() == ROWS
    cuts = sorted([0, 1, 130, source.borders[1], 700, 1_000])
    for names in (("name", "n"), ("raw",), ()):
        pieces = [read.rows for start, end in pairwise(cuts) for read in source.read(start, end, names)]
        assert sum(piece.num_rows for piece in pieces) == 1_000
        if names:
            expected = [{name: row[name] for name in names} for row in ROWS]
            assert pa.Table.from_batches(pieces).to_pylist() == expected


@pytest.mark.parametrize("ending", ["orc", "avro"])
def test_columns_may_be_declared_and_must_be_there(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    written(path)
    declared = Schema((Field("SMALL", BIGINT), Field("part", DOUBLE)))
    found = next(iter(opened(path, declared, "SMALL").read(3, 4, ("SMALL", "part")))).rows
    assert found.to_pylist() == [{"SMALL": 3, "part": 0.75}]
    with pytest.raises(SourceError, match="column name is STRING, not BIGINT"):
        opened(path, Schema((Field("name", BIGINT),)), "name")


@pytest.mark.parametrize("ending", ["orc", "avro"])
def test_damaged_and_changed_files(ending: str, tmp_path: Path, read_all: ReadAll) -> None:
    path = tmp_path / f"rows.{ending}"
    written(path)
    source = opened(path)
    written(path, ROWS[:500])
    with pytest.raises(SourceError, match="the file has changed since it was opened"):
        read_all(source)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(SourceError, match=f"(?i)complete, readable {ending} file"):
        opened(path)
    path.write_bytes(b"t\n1\n")
    with pytest.raises(SourceError, match=f"rows.{ending}: ") as refused:
        opened(path)
    assert refused.value.hint


def test_types_of_avro_that_have_names_or_none(tmp_path: Path, read_all: ReadAll) -> None:
    point = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}
    colour = {"type": "enum", "name": "C", "symbols": ["RED", "BLUE"]}
    fields = [
        {"name": "t", "type": "long"},
        {"name": "a", "type": ["null", point]},
        {"name": "b", "type": "P"},
        {"name": "c", "type": colour},
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "id", "type": {"type": "string", "logicalType": "unheard-of"}},
    ]
    row = {"t": 1, "a": None, "b": {"x": 2}, "c": "BLUE", "m": {"k": 3}, "id": "i"}
    with (tmp_path / "f.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "R", "fields": fields}, [row])
    found = read_all(opened(tmp_path / "f.avro", timestamp="t"))[0].to_pylist()
    assert found == [{**row, "m": [("k", 3)]}]
    for bad in (["int", "string"], "R"):
        field = {"name": "t", "type": ["null", bad] if bad == "R" else bad}
        schema = {"type": "record", "name": "R", "fields": [field]}
        sink = io.BytesIO()
        fastavro.writer(sink, schema, [])
        (tmp_path / "f.avro").write_bytes(sink.getvalue())
        with pytest.raises(SourceError, match="a stream cannot have a column of Avro's type"):
            opened(tmp_path / "f.avro", timestamp="t")


UUID_TEXT = {"type": "string", "logicalType": "uuid"}


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_uuids_and_times_of_day_are_texts_by_any_codec(codec: str, tmp_path: Path, read_all: ReadAll) -> None:
    inner = [{"name": "x", "type": "bytes"}, {"name": "y", "type": {"type": "map", "values": UUID_TEXT}}]
    fields = [
        {"name": "t", "type": "long"},
        {"name": "u", "type": ["null", UUID_TEXT]},
        {"name": "f", "type": {"type": "fixed", "size": 16, "name": "F", "logicalType": "uuid"}},
        {"name": "ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "us", "type": ["null", {"type": "long", "logicalType": "time-micros"}]},
        {"name": "list", "type": {"type": "array", "items": UUID_TEXT}},
        {"name": "o", "type": {"type": "record", "name": "O", "fields": inner}},
    ]
    row = {
        "t": 1, "u": UUID(int=5), "f": UUID(int=6).bytes, "ms": time(1, 2, 3), "us": time(1, 2, 3, 4),
        "list": [UUID(int=7)], "o": {"x": b"0" * 16, "y": {"k": UUID(int=8)}},
    }  # fmt: skip
    with (tmp_path / "f.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "R", "fields": fields}, [row], codec=codec)
    (found,) = read_all(opened(tmp_path / "f.avro", timestamp="t"))[0].to_pylist()
    zeros = "00000000-0000-0000-0000-00000000000"
    assert found == {
        "t": 1, "u": f"{zeros}5", "f": f"{zeros}6", "ms": "01:02:03", "us": "01:02:03.000004",
        "list": [f"{zeros}7"], "o": {"x": b"0" * 16, "y": [("k", f"{zeros}8")]},
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["old", "new"])
def test_the_default_of_a_later_field_does_not_reach_back(
    ending: str, tmp_path: Path, read_all: ReadAll
) -> None:
    old = [{"name": "ts", "type": "long"}]
    new = [*old, {"name": "unit", "type": "string", "default": "C"}]
    for name, fields, row in (("old", old, {"ts": 1}), ("new", new, {"ts": 2, "unit": "F"})):
        written = io.BytesIO()
        fastavro.writer(written, {"type": "record", "name": "r", "fields": fields}, [row])
        # Whichever comes first.
        (tmp_path / f"{'1' if name == ending else '2'}{name}.avro").write_bytes(written.getvalue())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeadraceWarning)
        source = open_source("avro", {"path": "."}, None, "ts", "s", tmp_path)
    rows, rejected = read_all(source)
    assert sorted(rows.select(["ts", "unit"]).to_pylist(), key=lambda row: row["ts"]) == [
        {"ts": 1, "unit": None},
        {"ts": 2, "unit": "F"},
    ]
    assert rejected == []
