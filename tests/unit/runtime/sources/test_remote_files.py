"""Files in object stores and on web servers, against servers of our own."""

from __future__ import annotations

import gzip
import io
import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import PolicyError, SourceError
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.files.files import stamps_of
from headrace.runtime.sources.rows.contract import Rejected
from object_store import SECRET, ObjectStore, object_store

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]
TABLE = pa.table({"t": [1, 2, 3], "s": ["a", "b", "c"]})
CSV = b"t,s\n1,a\n2,b\n3,c\n"
JSON = b'{"t": 1, "s": "a"}\n{"t": 2, "s": "b"}\n{"t": 3, "s": "c"}\n'


def in_memory(format: str) -> bytes:
    if format == "parquet":
        sink = io.BytesIO()
        pq.write_table(TABLE, sink, row_group_size=2)
        return sink.getvalue()
    if format == "arrow":
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=2)
        return sink.getvalue()
    if format == "avro":
        fastavro = pytest.importorskip("fastavro")
        sink = io.BytesIO()
        fields = [{"name": "t", "type": "long"}, {"name": "s", "type": "string"}]
        schema = {"type": "record", "name": "r", "fields": fields}
        fastavro.writer(sink, schema, TABLE.to_pylist(), sync_interval=1)
        return sink.getvalue()
    return {"csv": CSV, "json": JSON}[format]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store("sales") as found:
        yield found


@pytest.fixture(scope="module")
def website(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("site")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


def opened(format: str, path: str, options: dict[str, str]) -> SplitSource:
    return open_source(format, {"path": path, **options}, None, "t", "s", Path("/nowhere"))


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "arrow"])
def test_objects_are_read_as_files_are(format: str, store: ObjectStore, read_all: ReadAll) -> None:
    url = store.put(f"one/rows.{format}", in_memory(format))
    source = opened(format, url, store.options)
    assert read_all(source)[0].to_pylist() == TABLE.to_pylist()
    middle = source.size // 2
    pieces = [read.rows for cut in ((0, middle), (middle, source.size)) for read in source.read(*cut, ("s",))]
    assert [row["s"] for piece in pieces for row in piece.to_pylist()] == ["a", "b", "c"]
    assert read_all(pickle.loads(pickle.dumps(source)))[0].num_rows == 3
    assert SECRET not in repr(source)


def test_folders_and_patterns_of_objects(store: ObjectStore, read_all: ReadAll) -> None:
    for name in ("b.csv", "a.csv", "_hidden.csv", ".part.csv", "deep/c.csv"):
        store.put(f"many/{name}", f"t\n{ord(name[0])}\n".encode())
    store.put("many/z.csv.gz", gzip.compress(b"t\n0\n"))
    for path, expected in {
        "many": [97, 98, 0],
        "many/": [97, 98, 0],
        "many/*.csv": [97, 98],
        "m*/d*": [100],
        "many/*/*.csv": [100],
        "*/[ab].csv": [97, 98],
    }.items():
        rows = read_all(opened("csv", f"s3://sales/{path}", store.options))[0]
        assert rows["t"].to_pylist() == expected, path


def test_what_is_not_in_the_store(store: ObjectStore) -> None:
    for path, message in {
        "s3://sales/none": "s3://sales/none: there are no files",
        "s3://sales/none/*.csv": r"s3://sales/none/\*.csv: there are no files",
        "s3://sale/none": "s3://sale/none: there is no bucket sale",
        "s3://sale/*/x.csv": r"s3://sale/\*/x.csv: there is no bucket sale",
        "s3://sales/**/x.csv": r"\*\* is not supported",
        "gs://b/x.csv": "the option access_key is for s3://",
        "x.csv": "the option access_key is for object stores",
    }.items():
        with pytest.raises(SourceError, match=message) as refused:
            opened("csv", path, store.options)
        assert refused.value.hint
        assert SECRET not in str(refused.value)
    with pytest.raises(SourceError, match=r"s3://other/x\.csv: ") as refused:
        opened("csv", "s3://other/x.csv", {**store.options, "endpoint": "http://127.0.0.1:9"})
    assert refused.value.hint is not None
    assert "AWS_" in refused.value.hint


def test_an_object_that_is_written_again_is_noticed(store: ObjectStore, read_all: ReadAll) -> None:
    url = store.put("again/rows.csv.gz", gzip.compress(CSV))
    source = opened("csv", url, store.options)
    before = stamps_of(source.paths)
    assert stamps_of(source.paths) == before
    store.put("again/rows.csv.gz", gzip.compress(b"t,s\n7,x\n"))
    assert stamps_of(source.paths) != before
    with pytest.raises(SourceError, match="has changed since it was opened"):
        read_all(source)
    store.remove("again/rows.csv.gz")
    assert stamps_of(source.paths)[0].size == -1
    with pytest.raises(SourceError, match=r"rows.csv.gz"):
        read_all(source)


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "arrow", "avro"])
def test_files_of_web_servers(format: str, website: tuple[str, Path], read_all: ReadAll) -> None:
    address, folder = website
    (folder / f"my rows ä.{format}").write_bytes(in_memory(format))
    source = opened(format, f"{address}/my rows ä.{format}", {})
    assert read_all(source)[0].to_pylist() == TABLE.to_pylist()
    middle = source.size // 2
    found = [
        read.rows.num_rows
        for cut in ((0, middle), (middle, source.size))
        for read in source.read(*cut, ("t",))
    ]
    assert sum(found) == 3
    with pytest.raises(SourceError, match=rf"{address}/none: .*404"):
        opened(format, f"{address}/none", {})


def test_other_file_systems_come_from_fsspec(read_all: ReadAll) -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/box/rows.csv", CSV)
    assert read_all(opened("csv", "memory://box/rows.csv", {}))[0].to_pylist() == TABLE.to_pylist()
    with pytest.raises(SourceError, match="files of nosuch:// cannot be read"):
        opened("csv", "nosuch://box/rows.csv", {})


@pytest.mark.parametrize(
    "path", ["s3://sales/one/rows.csv", "http://127.0.0.1/x.csv", "memory://box/x", "s3://a/*"]
)
def test_where_folders_are_listed_nothing_elsewhere_may_be_read(path: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="may not be read"):
        open_source("csv", {"path": path}, None, "t", "s", tmp_path, (tmp_path,))
