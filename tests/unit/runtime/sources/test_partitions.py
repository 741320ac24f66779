"""Columns in the names of folders, beside what Arrow and Spark write and read of them."""

from __future__ import annotations

import pickle
from contextlib import chdir
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import headrace as hr
from headrace.errors import SourceError
from headrace.runtime.sources import open_source
from headrace.runtime.sources.composed.tables import read_table
from headrace.schema import BIGINT, DATE, STRING, Field, Schema
from object_store import object_store

DECLARED = Schema((Field("shop", STRING), Field("v", BIGINT), Field("day", DATE)))


def opened(base: Path, path: str, declared: Schema | None = None, form: str = "csv", **options: str) -> Any:
    given = {"path": path, **options}
    return open_source(form, given, declared, None, "s", base, columns_above="")


def rows(base: Path, path: str, declared: Schema | None = None, form: str = "csv", **options: str) -> Any:
    source = pickle.loads(pickle.dumps(opened(base, path, declared, form, **options)))
    found = read_table(source, source.size, source.schema.names).to_pylist()
    # However it is cut, each row has the values of its own folder.
    pieces = []
    for start in range(source.size):
        for read in source.read(start, start + 1, source.schema.names):
            pieces += read.rows.to_pylist()
    assert pieces == found
    return found


def write(base: Path, **files: str) -> None:
    for place, (name, text) in enumerate(files.items()):
        path = base / name / f"part-{place}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    days = {"day=2026-01-01/shop=a": "v\n1\n2\n", "day=2026-01-02/shop=__HIVE_DEFAULT_PARTITION__": "v\n3\n"}
    write(tmp_path / "in", **days, **{"day=2026-01-02/shop=b%2Fc%3A d": "v\n4\n"})
    return tmp_path


FOUND = [("a", 1, 1), ("a", 2, 1), (None, 3, 2), ("b/c: d", 4, 2)]


@pytest.mark.parametrize("path", ["in", "in/*", "in/*/*", "in/day=2026-01-0*/shop=*/*.csv"])
def test_declared_columns_come_from_the_folders(sales: Path, path: str) -> None:
    assert rows(sales, path, DECLARED) == [
        {"shop": shop, "v": v, "day": date(2026, 1, day)} for shop, v, day in FOUND
    ]


def test_columns_that_are_not_declared_come_after_those_of_the_files(sales: Path) -> None:
    assert str(opened(sales, "in").schema) == "(v BIGINT, day DATE, shop STRING)"
    assert rows(sales, "in/day=2026-01-01") == [
        {"v": v, "day": date(2026, 1, 1), "shop": "a"} for v in (1, 2)
    ]
    write(sales / "typed", **{"n=01/x=1.5/b=true/t=2026-01-01 10%3A00%3A00": "v\n1\n"})
    assert str(opened(sales, "typed").schema) == "(v BIGINT, n BIGINT, x DOUBLE, b STRING, t TIMESTAMP)"


def test_a_folder_goes_before_the_file(tmp_path: Path) -> None:
    write(tmp_path, **{"in/day=7": "day,v\n1,2\n"})
    assert rows(tmp_path, "in") == [{"day": 7, "v": 2}]
    declared = Schema((Field("v", BIGINT), Field("DAY", STRING)))
    assert rows(tmp_path, "in", declared, header="true") == [{"v": 2, "DAY": "7"}]


def test_without_a_header_the_fields_are_the_other_columns(tmp_path: Path) -> None:
    write(tmp_path, **{"in/day=2026-01-01/shop=x": "5\n"})
    found = rows(tmp_path, "in", DECLARED, header="false")
    assert found == [{"shop": "x", "v": 5, "day": date(2026, 1, 1)}]


def test_what_arrow_has_written_is_read(tmp_path: Path) -> None:
    table = pa.table({"v": [1, 2, 3, 4], "day": ["b", "a", "b", None], "n": [1, 1, 2, 2]})
    how: Any = {"format": "parquet", "partitioning": ["day", "n"], "partitioning_flavor": "hive"}
    ds.write_dataset(table, tmp_path / "in", **how)
    found = sorted(rows(tmp_path, "in", form="parquet"), key=lambda row: row["v"])
    assert found == table.to_pylist()


@pytest.mark.parametrize(
    ("folders", "message", "hint"),
    [
        (["day=1999-09-09", "day=x"], "in/day=x/part-1.csv: the folder's day is not a valid DATE: 'x'",
         "as STRING"),
        (["day=1999-09-09", ""], "in/part-1.csv: it is in no folder day=..., as other files are", "pattern"),
        (["month=1"], "in/month=1/part-0.csv: there is no column day", "its columns are shop, v"),
    ],
)  # fmt: skip
def test_a_value_that_is_missing_or_wrong_is_named(
    tmp_path: Path, folders: list[str], message: str, hint: str
) -> None:
    write(tmp_path / "in", **dict.fromkeys(folders, "shop,v\na,1\n"))
    with pytest.raises(SourceError, match=message) as caught:
        opened(tmp_path, "in", DECLARED)
    assert hint in str(caught.value.hint)


def test_folders_above_the_path_as_written_are_no_columns(tmp_path: Path) -> None:
    write(tmp_path / "run=3", **{"in": "v\n1\n"})
    assert opened(tmp_path / "run=3", "in").schema.names == ("v",)


def test_a_bucket_has_columns_in_its_keys() -> None:
    with object_store("sales") as store:
        for day, v in ((1, 5), (2, 6)):
            store.put(f"in/day=2026-01-0{day}/shop=a/x.csv", f"v\n{v}\n".encode())
        for path in ("s3://sales/in", "s3://sales/in/day=*", "s3://sales/i*/*/*/*.csv"):
            found = opened(Path(), path, DECLARED, **store.options)
            assert read_table(found, found.size, ("v", "day", "shop")).to_pylist() == [
                {"v": v, "day": date(2026, 1, day), "shop": "a"} for day, v in ((1, 5), (2, 6))
            ]


def test_followed_folders_may_be_added(tmp_path: Path) -> None:
    (tmp_path / "run=1" / "in").mkdir(parents=True)
    with chdir(tmp_path / "run=1"), hr.connect(runner="inline", storage="store") as db:
        db.execute("""
          CREATE STREAM s (v BIGINT, day TIMESTAMP, ts AS day + INTERVAL '1' HOUR) FROM csv
            OPTIONS (path 'in', follow true, ready 'success', poll '5 ms') TIMESTAMP BY ts;
          CREATE QUERY q AS SELECT v, day FROM s""")
        db.start()
        for place, day in enumerate(("2026-01-01", "tomorrow", "2026-01-02")):
            write(Path("in"), **{f"day={day}": f"v\n{place}\n"})
        Path("in/_SUCCESS").touch()
        changes = db["q"].subscribe()
        assert next(changes).rows["v"].to_pylist() == [0]
        (letter,) = db.dead_letters().to_pylist()
        assert "the folder's day is not a valid TIMESTAMP: 'tomorrow'" in letter["reason"]
        db.heartbeat("s", datetime(2026, 2, 1, tzinfo=UTC))
        assert db["q"].stream()["day"].to_pylist() == [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
        db.stop()


def test_the_rows_of_a_table_are_its_own(tmp_path: Path) -> None:
    with hr.connect(runner="inline", storage=tmp_path / "v=9") as db:
        db.execute("CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY q AS SELECT v FROM s")
        db.start()
        db.push("s", [{"v": 1, "ts": 1}], wait=True)
        db.heartbeat("s", 2)
        assert db["q"].stream()["v"].to_pylist() == [1]
        db.stop()
