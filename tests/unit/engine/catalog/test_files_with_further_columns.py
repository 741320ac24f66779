"""Stores over folders whose columns are not declared, and that get files with further columns."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import headrace as hr

FORMS = ("csv", "json", "parquet")


def add(folder: Path, form: str, name: str, **row: int) -> None:
    import pyarrow as pa

    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.{form}"
    if form == "csv":
        path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
    elif form == "json":
        path.write_text(json.dumps(row) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)


def text(folder: Path, form: str) -> str:
    stream = f"CREATE STREAM s FROM {form} OPTIONS (path '{folder}', missing 'some') TIMESTAMP BY ts"
    return f"{stream}; CREATE QUERY q AS SELECT * FROM s"


def made_half(base: Path, form: str) -> Path:
    """The folder of two files, of which a store has read a part of the first; the second one is gone."""
    files = base / "in"
    add(files, form, "a", ts=1, v=1)
    add(files, form, "b", ts=2, v=2)
    with hr.connect(runner="inline", storage=base / "store", epoch_rows=1) as db:
        db.execute(text(files, form))
        (files / f"b.{form}").unlink()
        with pytest.raises(hr.HeadraceError):
            db.run()
        assert db.status.streams[0].position > 0
    return files


@pytest.mark.parametrize("with_text", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_the_columns_are_those_that_the_store_knows(form: str, with_text: bool, tmp_path: Path) -> None:
    files = made_half(tmp_path, form)
    add(files, form, "b", new=7, ts=2, v=2)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with hr.connect(runner="inline", storage=tmp_path / "store") as db:
            if with_text:
                db.execute(text(files, form))
            db.run()
            found = db["q"].history().select(["ts", "v"]).to_pylist()
            assert found == [{"ts": 1, "v": 1}, {"ts": 2, "v": 2}]
            assert db["q"].schema.names == ("ts", "v")
    assert any("s goes on without new, which its files did not have" in str(one.message) for one in warned)


def test_what_was_read_to_its_end_says_that_it_has_grown(tmp_path: Path) -> None:
    files = tmp_path / "in"
    add(files, "csv", "a", ts=1, v=1)
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(text(files, "csv"))
        db.run()
    add(files, "csv", "b", ts=2, v=2, new=7)
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        with pytest.warns(hr.HeadraceWarning, match="s goes on without new"):
            assert db["q"].schema.names == ("ts", "v")
        with pytest.raises(hr.HeadraceError, match="the input of s has grown"):
            db.run()


def test_a_column_of_another_type_is_not_taken_for_the_known_one(tmp_path: Path) -> None:
    files = made_half(tmp_path, "csv")
    (files / "b.csv").write_text("ts,v,new\n2,x,3\n")
    again = hr.connect(runner="inline", storage=tmp_path / "store")
    with again as db, pytest.raises(hr.HeadraceError, match="for another stream s"):
        db.run()
