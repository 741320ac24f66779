"""Files of a folder that have more or fewer columns than others: NULL where there is none, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
import pytest

from headrace.errors import HeadraceWarning, SourceError
from headrace.runtime.sources import open_source
from headrace.schema import BIGINT, STRING, Field, Schema

fastavro = pytest.importorskip("fastavro")
DECLARED = Schema((Field("t", BIGINT), Field("s", STRING), Field("n", BIGINT)))
FORMATS = ["csv", "parquet", "orc", "arrow", "avro"]


def write(path: Path, form: str, rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows)
    match form:
        case "csv":
            pyarrow.csv.write_csv(table, path)
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "orc":
            pyarrow.orc.write_table(table, path)
        case "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        case _:
            kinds = {pa.int64(): "long", pa.string(): "string"}
            fields = [{"name": field.name, "type": kinds[field.type]} for field in table.schema]
            with path.open("wb") as file:
                fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, rows)


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
