"""Files of a folder that have more or fewer columns than others: NULL where there is none, said once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest

from headrace.errors import HeadraceWarning, SourceError
from headrace.runtime.sources import open_source
from headrace.schema import BIGINT, DOUBLE, STRING, TIMESTAMP, Field, Schema

fastavro = pytest.importorskip("fastavro")
DECLARED = Schema((Field("t", BIGINT), Field("s", STRING), Field("n", BIGINT)))
FORMATS = ["csv", "parquet", "orc", "arrow", "avro"]


def write(path: Path, form: str, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows)
    if form != "avro":
        write_table(path, form, table)
        return
    kinds = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double"}
    fields = [{"name": field.name, "type": kinds[field.type]} for field in table.schema]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, rows)


def write_table(path: Path, form: str, table: pa.Table) -> None:
    match form:
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "orc":
            pyarrow.orc.write_table(table, path)
        case _:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)


def read(form: str, base: Path, declared: Schema | None, columns: tuple[str, ...], **options: str) -> Any:
    source = open_source(form, {"path": "in", **options}, declared, "t", "s", base)
    some = source.read(0, source.size, columns)
    return [tuple(row.values()) for one in some for row in one.rows.to_pylist()]


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    found: str = request.param
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a", found, [{"t": 1, "s": "x"}])
    write(folder / "b", found, [{"t": 2, "s": "y", "N": 7, "more": 1}])
    write(folder / "c", found, [{"t": 3}])
    return found


def test_columns_that_are_not_declared_are_those_of_all_files(form: str, tmp_path: Path) -> None:
    with pytest.warns(HeadraceWarning, match="in/a has no column N, more, and 1 other files"):
        rows = read(form, tmp_path, None, ("t", "s", "N", "more"))
    assert rows == [(1, "x", None, None), (2, "y", 7, 1), (3, None, None, None)]


def test_later_files_may_lack_declared_columns(form: str, tmp_path: Path) -> None:
    two = DECLARED.select((0, 1))
    with pytest.warns(HeadraceWarning, match=r"in/c has no column s: NULL there"):
        assert read(form, tmp_path, two, ("s", "t")) == [("x", 1), ("y", 2), (None, 3)]
    with pytest.raises(SourceError, match=r"in/a: there is no column n"):
        read(form, tmp_path, DECLARED, ("t",))


def test_the_first_file_may_with_an_option(form: str, tmp_path: Path) -> None:
    assert read(form, tmp_path, DECLARED, ("n", "s"), missing="some") == [(None, "x"), (7, "y"), (None, None)]
    assert read(form, tmp_path, DECLARED, ("n",), missing="some") == [(None,), (7,), (None,)]
    write(tmp_path / "in" / "d", form, [{"other": 3}])
    with pytest.raises(SourceError, match=r"in/d: there is no column t"):
        read(form, tmp_path, DECLARED, ("t",), missing="some")
    assert read(form, tmp_path, DECLARED, ("t",), missing="null") == [(1,), (2,), (3,), (None,)]


D = Decimal
WIDER = {
    "int32, int64": ((pa.int32(), 1), (pa.int64(), 2**40), BIGINT, [1, 2**40]),
    "int64, double": ((pa.int64(), 2**53), (pa.float64(), 2.5), DOUBLE, [2.0**53, 2.5]),
    "double, int8": ((pa.float64(), 2.5), (pa.int8(), 1), DOUBLE, [2.5, 1.0]),
    "float, double": ((pa.float32(), 0.5), (pa.float64(), 0.1), DOUBLE, [0.5, 0.1]),
    "decimals": (
        (pa.decimal128(12, 2), D("1234567890.25")),
        (pa.decimal128(10, 4), D("1.2345")),
        pa.decimal128(14, 4),
        [D("1234567890.2500"), D("1.2345")],
    ),
    "int64, decimal": (
        (pa.int64(), 2**63 - 1),
        (pa.decimal128(9, 2), D("0.25")),
        pa.decimal128(21, 2),
        [D(2**63 - 1), D("0.25")],
    ),
    "date, timestamp": (
        (pa.date32(), date(2024, 5, 1)),
        (pa.timestamp("us", "UTC"), datetime(2024, 5, 1, 8, tzinfo=UTC)),
        TIMESTAMP,
        [datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1, 8, tzinfo=UTC)],
    ),
    "lists": ((pa.list_(pa.int32()), [1]), (pa.list_(pa.float64()), [2.5]), pa.list_(DOUBLE), [[1.0], [2.5]]),
}


@pytest.mark.parametrize("is_declared", [False, True])
@pytest.mark.parametrize("case", WIDER)
@pytest.mark.parametrize("form", ["parquet", "arrow", "orc"])
def test_columns_may_be_wider_in_other_files(form: str, case: str, is_declared: bool, tmp_path: Path) -> None:
    *given, wide, expected = WIDER[case]
    (tmp_path / "in").mkdir()
    for number, (dtype, value) in enumerate(given):
        columns = {"t": pa.array([number]), "v": pa.array([value], dtype)}
        write_table(tmp_path / "in" / str(number), form, pa.table(columns))
    declared = Schema((Field("t", BIGINT), Field("v", wide))) if is_declared else None
    source = open_source(form, {"path": "in"}, declared, "t", "s", tmp_path)
    assert [field.type for field in source.schema] == [BIGINT, wide]
    assert [row for (row,) in read(form, tmp_path, declared, ("v",))] == expected


TEXTS: Final = {
    "whole numbers, then fractions": (["1", "2.5"], DOUBLE, [1.0, 2.5]),
    "fractions, then whole numbers": (["2.5", "1"], DOUBLE, [2.5, 1.0]),
    "a number that no DOUBLE is": (
        ["1", "9007199254740993", "0.5"],
        pa.decimal128(38, 18),
        [D(1), D(2**53 + 1), D("0.5")],
    ),
    "more digits": (["1", "18446744073709551615"], pa.decimal128(20, 0), [D(1), D(2**64 - 1)]),
    "nothing, then numbers": (["", "", "7"], BIGINT, [None, None, 7]),
    "dates, then times": (
        ["2024-05-01", "2024-05-01 08:00:00"],
        TIMESTAMP,
        [datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 1, 8, tzinfo=UTC)],
    ),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("form", ["csv", "json"])
def test_columns_of_texts_have_types_that_hold_all_files(form: str, case: str, tmp_path: Path) -> None:
    texts, wide, expected = TEXTS[case]
    (tmp_path / "in").mkdir()
    for number, text in enumerate(texts):
        quoted = f'"{text}"' if "-" in text else text or "null"
        line = f"t,v\n{number},{text}\n" if form == "csv" else f'{{"t": {number}, "v": {quoted}}}\n'
        (tmp_path / "in" / str(number)).write_text(line)
    source = open_source(form, {"path": "in"}, None, "t", "s", tmp_path)
    assert [field.type for field in source.schema] == [BIGINT, wide]
    assert [row for (row,) in read(form, tmp_path, None, ("v",))] == expected


def test_a_first_file_may_have_nothing_but_null_in_a_column(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_table(tmp_path / "in" / "a", "parquet", pa.table({"t": [1], "v": pa.nulls(1)}))
    write_table(tmp_path / "in" / "b", "parquet", pa.table({"t": [2], "v": ["x"]}))
    assert read("parquet", tmp_path, None, ("t", "v")) == [(1, None), (2, "x")]


def test_types_that_have_none_in_common_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_table(tmp_path / "in" / "a", "parquet", pa.table({"t": [1], "v": [1]}))
    write_table(tmp_path / "in" / "b", "parquet", pa.table({"t": [2], "v": ["x"]}))
    with pytest.raises(SourceError, match="in/b: column v is STRING, not BIGINT"):
        read("parquet", tmp_path, None, ("t", "v"))


def test_a_whole_number_between_two_doubles_is_no_other_number(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    whole = [2**53 + 1, 2**63 - 1, -(2**63), None, 7]
    write_table(tmp_path / "in" / "a", "parquet", pa.table({"t": range(5), "v": pa.array(whole, pa.int64())}))
    write_table(tmp_path / "in" / "b", "parquet", pa.table({"t": [5], "v": [0.5]}))
    source = open_source("parquet", {"path": "in"}, None, "t", "s", tmp_path)
    (found,) = source.read(0, 6, ("v",))
    assert found.rows.column("v").to_pylist() == [-(2.0**63), None, 7.0, 0.5]
    assert [(one.text, one.reason, one.place) for one in found.rejected] == [
        ('{"v": "9007199254740993"}', "v has more digits than a DOUBLE", "in/a:1"),
        ('{"v": "9223372036854775807"}', "v has more digits than a DOUBLE", "in/a:2"),
    ]


def test_columns_of_avro_may_be_wider_in_other_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "a", "avro", [{"t": 1, "v": 1}])
    write(tmp_path / "in" / "b", "avro", [{"t": 2, "v": 2.5, "more": "x"}])
    with pytest.warns(HeadraceWarning, match="in/a has no column more"):
        assert read("avro", tmp_path, None, ("v", "more")) == [(1.0, None), (2.5, "x")]
