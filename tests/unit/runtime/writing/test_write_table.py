import csv
import datetime as dt
import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.runtime.sources import open_source
from headrace.runtime.writing import tables as sinks
from headrace.runtime.writing.tables import AlignedRows, write_table
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP

TABLE = pa.table(
    {
        "auction": pa.array([1001, None], BIGINT),
        "share": pa.array([0.5, float("inf")], DOUBLE),
        "name": pa.array(['say "hi", all', None], STRING),
        "ts": pa.array([1_704_067_200_500_000, 0], BIGINT).view(TIMESTAMP),
    }
)


def text_of(table: pa.Table, format: str) -> str:
    stream = io.StringIO()
    write_table(table, format, stream)
    return stream.getvalue()


def test_a_table_for_people() -> None:
    assert text_of(TABLE, "table").splitlines() == [
        "auction     share  name           ts",
        "-------  --------  -------------  ---------------------------",
        '   1001       0.5  say "hi", all  2024-01-01T00:00:00.500000Z',
        "   NULL  Infinity  NULL           1970-01-01T00:00:00Z",
        "(2 rows)",
    ]


def test_json_lines() -> None:
    lines = text_of(TABLE, "jsonl").splitlines()
    assert lines[0] == (
        '{"auction":1001,"share":0.5,"name":"say \\"hi\\", all","ts":"2024-01-01T00:00:00.500000Z"}'
    )
    assert json.loads(lines[1]) == {
        "auction": None,
        "share": "Infinity",
        "name": None,
        "ts": "1970-01-01T00:00:00Z",
    }


def test_csv() -> None:
    assert text_of(TABLE, "csv") == (
        "auction,share,name,ts\n"
        '1001,0.5,"say ""hi"", all",2024-01-01T00:00:00.500000Z\n'
        ",Infinity,,1970-01-01T00:00:00Z\n"
    )


def test_names_are_escaped_as_values_are() -> None:
    table = pa.table({'a,"b"\n': [1], "COUNT(*)": [2]})
    (row,) = text_of(table, "jsonl").splitlines()
    assert json.loads(row) == {'a,"b"\n': 1, "COUNT(*)": 2}
    assert next(csv.reader(io.StringIO(text_of(table, "csv"), newline=""))) == table.column_names
    assert text_of(table, "table").splitlines()[0] == 'a,"b"\\n  COUNT(*)'


@pytest.mark.parametrize("rows", [0, 1, 5, 70_000])
def test_all_rows_are_written(rows: int) -> None:
    table = pa.table({"n": pa.array(range(rows), BIGINT), "s": pa.array(["é"] * rows, STRING)})
    chunked = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    parsed = [json.loads(line) for line in text_of(chunked, "jsonl").splitlines()]
    assert [row["n"] for row in parsed] == list(range(rows))
    assert len(list(csv.reader(io.StringIO(text_of(chunked, "csv"))))) == rows + 1
    lines = text_of(chunked, "table").splitlines()
    assert len(lines) == rows + 3
    assert lines[-1] == ("(1 row)" if rows == 1 else f"({rows} rows)")


def test_a_table_without_columns() -> None:
    table = pa.table({"n": [1, 2]}).select([])
    assert text_of(table, "jsonl") == "{}\n{}\n"
    assert text_of(table, "table") == "(2 rows)\n"


def test_standard_output_and_binary_streams(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(TABLE, "csv", None)
    assert capsys.readouterr().out == text_of(TABLE, "csv")
    stream = io.BytesIO()
    write_table(TABLE, "csv", stream)
    assert stream.getvalue().decode() == text_of(TABLE, "csv")
    write_table(TABLE, "null", None)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("format", ["table", "jsonl", "csv"])
def test_text_files(format: str, tmp_path: Path) -> None:
    write_table(TABLE, format, tmp_path / "f")
    assert (tmp_path / "f").read_text() == text_of(TABLE, format)
    assert os.listdir(tmp_path) == ["f"]


def test_typed_files(tmp_path: Path) -> None:
    write_table(TABLE, "parquet", tmp_path / "f.parquet")
    write_table(TABLE, "arrow", tmp_path / "f.arrow")
    assert pq.read_table(tmp_path / "f.parquet") == TABLE
    with pa.ipc.open_file(str(tmp_path / "f.arrow")) as reader:
        assert reader.read_all() == TABLE
    write_table(TABLE, "null", tmp_path / "nothing")
    assert sorted(os.listdir(tmp_path)) == ["f.arrow", "f.parquet"]


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet", "arrow"])
def test_what_is_written_can_be_a_source(format: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([0, 1_500_000], BIGINT).view(TIMESTAMP),
            "n": pa.array([None, 2**62], BIGINT),
            "x": pa.array([1.0, None], DOUBLE),
            "s": pa.array(["", 'a "b", c'], STRING),
            "day": pa.array([dt.date(2024, 1, 1), None]),
        }
    )
    write_table(table, format, tmp_path / "f")
    name = {"jsonl": "json"}.get(format, format)
    source = open_source(name, {"path": "f"}, None, "ts", "s", tmp_path)
    assert source.schema.arrow() == table.schema
    (read,) = source.read(0, source.size, table.schema.names)
    assert read.rows.to_pydict() == table.to_pydict()


def test_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: pa.Table) -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    (tmp_path / "f").write_text("old")
    monkeypatch.setattr(sinks, "_csv_lines", fail)
    with pytest.raises(UserError, match="f cannot be written: No space left on device"):
        write_table(TABLE, "csv", tmp_path / "f")
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_keeps_pointing_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_table(TABLE, "csv", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == text_of(TABLE, "csv")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_table(TABLE, "csv", tmp_path / "pipe")
    reader.join(timeout=10)
    assert received == [text_of(TABLE, "csv")]
    assert (tmp_path / "pipe").is_fifo()


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        write_table(TABLE, "csv", tmp_path)
    with pytest.raises(UserError, match=r"there is no folder .*none"):
        write_table(TABLE, "parquet", tmp_path / "none" / "f")
    with pytest.raises(UserError, match="parquet cannot be printed"):
        write_table(TABLE, "parquet", None)
    with pytest.raises(UserError, match="there is no format xml"):
        write_table(TABLE, "xml", None)


def test_rows_that_come_bit_by_bit_keep_heading_and_widths() -> None:
    aligned = AlignedRows()
    parts = [["vase", "a"], [], ["a longer name"], ["b"]]
    told = [
        b"".join(aligned.lines(pa.table({"item": pa.array(part, pa.string()), "n": list(range(len(part)))})))
        for part in parts
    ]
    assert [text.decode() for text in told] == [
        "item  n\n----  -\nvase  0\na     1\n",
        "",
        "a longer name  0\n",
        "b              0\n",
    ]


LONG = pa.table(
    {
        "id": [1, 2],
        "text": ["short", "a long text of 30 columns, all"],
        "words": [["ab", "cd"], ["efg", "hij", "k"]],
        "valid_to": ["2024-01-01T00:00:00.500000Z", ""],
    }
)


def fitted(table: pa.Table, width: int) -> list[str]:
    text = io.StringIO()
    write_table(table, "table", text, width)
    return text.getvalue().splitlines()[:-1]


def test_a_table_is_fitted_to_its_width() -> None:
    assert fitted(LONG, 70) == [
        "id  text                words              valid_to",
        "--  ------------------  -----------------  ---------------------------",
        ' 1  short               ["ab","cd"]        2024-01-01T00:00:00.500000Z',
        ' 2  a long text of 30…  ["efg","hij","k"]  ',
    ]
    assert fitted(LONG, 60)[3] == ' 2  a long text…  ["efg","hij…  '
    assert fitted(LONG, 82) == fitted(LONG, 200) == text_of(LONG, "table").splitlines()[:-1]
    assert fitted(LONG, 81)[3].startswith(" 2  a long text of 30 columns, a…  [")
    # No narrower than 8, so that something is left to be read.
    assert fitted(LONG, 10) == fitted(LONG, 51)
    assert len(fitted(LONG, 51)[1]) == 51


def test_wide_characters_and_headings_are_shortened_too() -> None:
    table = pa.table({"a long name of a column": ["日本語の長い文章です", "é" * 9, "é" * 10]})
    assert fitted(table, 10) == ["a long na…", "-" * 10, "日本語の …", "é" * 9, "é" * 10]
    assert fitted(table, 9)[2:] == ["日本語の…", "é" * 9, "é" * 8 + "…"]


def test_rows_that_come_bit_by_bit_are_fitted() -> None:
    aligned = AlignedRows(12)
    parts = [
        b"".join(aligned.lines(pa.table({"item": [text], "n": [1]}))) for text in ("vase", "x" * 20, "y")
    ]
    assert [part.decode() for part in parts] == [
        "item  n\n----  -\nvase  1\n",
        f"{'x' * 8}…  1\n",
        f"{'y':9}  1\n",
    ]


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=6).flatmap(
        lambda widths: st.tuples(
            st.just(widths), st.lists(st.booleans(), min_size=len(widths), max_size=len(widths))
        )
    ),
    st.integers(0, 400),
)
def test_no_column_is_shortened_more_than_it_has_to_be(made: tuple[list[int], list[bool]], room: int) -> None:
    widths, may_be_cut = made
    found = sinks._fitted(widths, may_be_cut, room)

    def of(bound: int) -> list[int]:
        return [min(width, bound) if cut else width for width, cut in zip(widths, may_be_cut, strict=True)]

    gaps = 2 * (len(widths) - 1)
    fitting = [bound for bound in range(8, 301) if sum(of(bound)) + gaps <= room]
    assert found == of(max(fitting, default=8))
