"""Text files that are compressed, in other encodings, or JSON that is not in lines: the same rows."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.inputs.inputs import format_of
from headrace.errors import SourceError
from headrace.runtime.sources import SplitSource, open_source
from headrace.runtime.sources.rows.contract import Rejected
from headrace.runtime.sources.text import blocks as blocks_module
from headrace.runtime.sources.text.layout import ARRAY, SPREAD, begun, laid_out
from headrace.schema import BIGINT, Field, Schema

ReadAll = Callable[..., tuple[pa.Table, list[Rejected]]]
TEXT = "t,s\n" + "".join(f"{number},Zürich {number}\n" for number in range(500))


def arrow_codec(name: str) -> Callable[[bytes], bytes]:
    def compress(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, name) as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    return compress


CODECS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gz": ("gzip", gzip.compress),
    "bz2": ("bz2", bz2.compress),
    "xz": ("xz", lzma.compress),
    "zst": ("zstd", arrow_codec("zstd")),
    "lz4": ("lz4", arrow_codec("lz4")),
}


def opened(folder: Path, format: str, name: str, data: bytes, **options: str) -> SplitSource:
    (folder / name).write_bytes(data)
    return open_source(format, {"path": name, **options}, None, "t", "s", folder)


@pytest.fixture
def plain(tmp_path: Path, read_all: ReadAll) -> pa.Table:
    return read_all(opened(tmp_path, "csv", "plain.csv", TEXT.encode()))[0]


@pytest.mark.parametrize("ending", CODECS)
def test_compressed_files_are_known_by_their_names_or_an_option(
    ending: str, tmp_path: Path, read_all: ReadAll, plain: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 100)
    name, compress = CODECS[ending]
    data = compress(TEXT.encode())
    source = opened(tmp_path, "csv", f"f.csv.{ending}", data)
    assert read_all(source)[0] == plain
    assert read_all(opened(tmp_path, "csv", "f.csv", data, compression=name))[0] == plain
    assert source.size == len(data)
    cut = len(data) // 2
    parts = [read.rows for piece in ((0, cut), (cut, len(data))) for read in source.read(*piece, ("t", "s"))]
    assert pa.Table.from_batches(parts) == plain, "all rows belong to the first byte, and each comes once"
    assert source.weigh(cut, len(data)) == 0 < source.weigh(0, 1)
    with pytest.raises(SourceError, match="complete, readable CSV file"):
        read_all(opened(tmp_path, "csv", f"half.csv.{ending}", data[: cut + 20]))


def test_several_members_of_one_compressed_file(tmp_path: Path, read_all: ReadAll, plain: pa.Table) -> None:
    data = TEXT.encode()
    members = gzip.compress(data[:99]) + gzip.compress(data[99:])
    assert read_all(opened(tmp_path, "csv", "f.gz", members))[0] == plain


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16-le", "UTF-16BE"])
def test_other_encodings(encoding: str, tmp_path: Path, read_all: ReadAll, plain: pa.Table) -> None:
    assert read_all(opened(tmp_path, "csv", "f.csv", TEXT.encode(encoding), encoding=encoding))[0] == plain
    packed = gzip.compress(TEXT.encode(encoding))
    assert read_all(opened(tmp_path, "csv", "f.csv.gz", packed, encoding=encoding))[0] == plain


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_say_the_encoding(
    encoding: str, tmp_path: Path, read_all: ReadAll, plain: pa.Table
) -> None:
    data = TEXT.encode(encoding)
    assert read_all(opened(tmp_path, "csv", "f.csv", data))[0] == plain
    assert read_all(opened(tmp_path, "csv", "f.csv.gz", gzip.compress(data)))[0] == plain
    lines = '{"t": 1, "s": "ü"}\n'.encode(encoding)
    assert read_all(opened(tmp_path, "json", "f.json", lines))[0].to_pylist() == [{"t": 1, "s": "ü"}]


def test_rows_that_are_not_text_in_their_encoding(tmp_path: Path, read_all: ReadAll) -> None:
    data = "t,s\n1,a\n2,".encode("utf-16-le") + b"\x00\xdc" + "b\n3,c\n".encode("utf-16-le")
    rows, rejected = read_all(opened(tmp_path, "csv", "f.csv", data, encoding="utf-16-le"))
    assert rows["t"].to_pylist() == [1, 3]
    assert [(one.place, one.reason) for one in rejected] == [("f.csv:3", "the row is not utf-16-le text")]


ROWS = [{"t": 1, "s": 'a,[{"\\'}, {"t": 2, "s": "b"}, {"t": 3, "s": None}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ending", ["", "\r\n"])
def test_json_in_arrays_and_over_several_lines(
    indent: int | None, ending: str, tmp_path: Path, read_all: ReadAll
) -> None:
    array = json.dumps(ROWS, indent=indent) + ending
    rows, rejected = read_all(opened(tmp_path, "json", "f.json", array.encode()))
    assert (rows.to_pylist(), rejected) == (ROWS, [])
    spread = ending.join(json.dumps(row, indent=2) for row in ROWS).replace("\n", ending or "\n")
    if ending:
        rows, rejected = read_all(opened(tmp_path, "json", "g.json", spread.encode()))
        assert (rows.to_pylist(), rejected) == (ROWS, [])


def test_a_bad_element_of_an_array_is_rejected_alone(tmp_path: Path, read_all: ReadAll) -> None:
    data = '[{"t": 1},\n {"t": "x"}, 7, {"t": "a\nb"}, {"t":\n 4}]'
    rows, rejected = read_all(opened(tmp_path, "json", "f.json", data.encode()))
    assert rows["t"].to_pylist() == [1, 4]
    assert [one.place for one in rejected] == ["f.json:2", "f.json:3", "f.json:4"]
    (tmp_path / "e.json").write_text(" [ ]\n")
    empty = open_source("json", {"path": "e.json"}, Schema((Field("t", BIGINT),)), None, "s", tmp_path)
    assert (read_all(empty)[0].num_rows, read_all(empty)[1]) == (0, [])


VALUES = st.recursive(
    st.integers() | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=5), st.data())
def test_no_cut_changes_how_json_is_laid_out(rows: list[dict[str, object]], data: st.DataObject) -> None:
    """Each element is on a line of its own, whatever pieces the text comes in."""
    indent = data.draw(st.sampled_from([None, 1]))
    layout = data.draw(st.sampled_from([ARRAY, SPREAD]))
    several = "\n".join(json.dumps(row, indent=indent) for row in rows)
    text = json.dumps(rows, indent=indent) if layout == ARRAY else several
    raw, state, found = text.encode(), begun(), b""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=4)))
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += laid_out(np.frombuffer(raw[start:end], np.uint8), layout, state).tobytes()
    assert len(found) == len(raw)
    assert [json.loads(line) for line in found.split(b"\n") if line.strip()] == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "zip"}, "the option compression is 'zip'"),
        ({"encoding": "klingon"}, "the option encoding is 'klingon'"),
        ({"encoding": "rot13"}, "the option encoding is 'rot13'"),
    ],
)
def test_options_that_are_refused(options: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=message) as refused:
        opened(tmp_path, "csv", "f.csv", b"t\n1\n", **options)
    assert refused.value.hint


def test_a_compressed_file_that_changes_is_noticed(tmp_path: Path, read_all: ReadAll) -> None:
    source = opened(tmp_path, "csv", "f.csv.gz", gzip.compress(TEXT.encode()))
    before = source.mark(1)
    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(b"t,s\n1,2\n"))
    with pytest.raises(SourceError, match="the file has changed since it was opened"):
        read_all(source)
    assert open_source("csv", {"path": "f.csv.gz"}, None, "t", "s", tmp_path).mark(1) != before


def test_the_format_is_that_before_the_ending_of_the_compression() -> None:
    assert format_of("in.2026/rows.csv.gz") == "csv"
