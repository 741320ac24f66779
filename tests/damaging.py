"""Files of every format, whole and damaged."""

from __future__ import annotations

import gzip
import io
import json
import random
from typing import Final

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

FORMATS: Final = ("parquet", "csv", "json", "arrow", "orc", "avro", "text")
ROWS: Final = 300


def rows(text: str) -> list[dict[str, object]]:
    """The rows of a whole file, each with the same text."""
    return [{"v": v, "s": text} for v in range(1, ROWS + 1)]


def written(form: str, chance: random.Random, text: str) -> bytes:
    """A whole file of a format, in one of the ways in which such files are written."""
    records, sink = rows(text), io.BytesIO()
    table = pa.Table.from_pylist(records)
    match form:
        case "parquet":
            codec = chance.choice(["none", "snappy", "gzip", "zstd"])
            pq.write_table(table, sink, compression=codec, row_group_size=chance.choice([50, 1000]))
        case "arrow":
            options = pa.ipc.IpcWriteOptions(compression=chance.choice([None, "lz4", "zstd"]))
            with pa.ipc.new_file(sink, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=chance.choice([50, 1000]))
        case "orc":
            pyarrow.orc.write_table(table, sink, compression=chance.choice(["uncompressed", "zlib", "zstd"]))
        case "avro":
            fastavro = pytest.importorskip("fastavro")
            fields = [{"name": "v", "type": "long"}, {"name": "s", "type": "string"}]
            schema = {"type": "record", "name": "r", "fields": fields}
            fastavro.writer(sink, schema, records, chance.choice(["null", "deflate"]), sync_interval=500)
        case "text":
            sink.write(b"".join(f"{row['v']},{row['s']}\n".encode() for row in records))
        case "csv":
            sink.write(b"v,s\n" + b"".join(f"{row['v']},{row['s']}\n".encode() for row in records))
        case _:
            sink.write(b"".join(json.dumps(row).encode() + b"\n" for row in records))
    return sink.getvalue()


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The same file with some of its bytes changed, or with a part of it missing."""
    found, at = bytearray(data), chance.randrange(len(data))
    match chance.choice(["bit", "zeros", "ones", "cut", "gone", "noise", "twice"]):
        case "bit":
            found[at] ^= 1 << chance.randrange(8)
        case "zeros":
            found[at : at + 16] = bytes(len(found[at : at + 16]))
        case "ones":
            found[at : at + 64] = b"\xff" * len(found[at : at + 64])
        case "cut":
            del found[at:]
        case "gone":
            del found[at : at + chance.randrange(1, 100)]
        case "noise":
            found[at : at + 32] = chance.randbytes(len(found[at : at + 32]))
        case _:
            found[at:at] = found[at : at + 50]
    return bytes(found)


def packed(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """A text as it is or compressed, damaged, and how its name ends."""
    if chance.random() < 0.5:
        return damaged(gzip.compress(data), chance), ".gz"
    return damaged(data, chance), ""
