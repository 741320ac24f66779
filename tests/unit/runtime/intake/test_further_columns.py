"""Files of a followed folder with columns that nobody has declared and the first one did not have."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.runtime.intake import further_columns
from waiting import wait_until

Rows = list[dict[str, Any]]


def _csv(rows: Rows) -> bytes:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def _json(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _columnar(rows: Rows, form: str) -> bytes:
    import pyarrow as pa
    import pyarrow.orc
    import pyarrow.parquet

    table, out = pa.Table.from_pylist(rows), io.BytesIO()
    if form == "arrow":
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    else:
        {"parquet": pa.parquet.write_table, "orc": pa.orc.write_table}[form](table, out)
    return out.getvalue()


def _avro(rows: Rows) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    out, fields = io.BytesIO(), [{"name": name, "type": "long"} for name in rows[0]]
    fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows)
    return out.getvalue()


WRITERS: Mapping[str, Callable[[Rows], bytes]] = {
    "csv": _csv,
    "json": _json,
    "avro": _avro,
    **{form: partial(_columnar, form=form) for form in ("parquet", "arrow", "orc")},
}


@pytest.fixture(autouse=True)
def forgotten() -> None:
    further_columns._noted.clear()


@pytest.mark.parametrize("form", WRITERS)
def test_a_column_of_a_later_file_is_noted_with_what_keeps_it(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def add(number: int, **more: int) -> None:
        (tmp_path / f"{number}.part").write_bytes(WRITERS[form]([{"ts": number, "old": 0, **more}]))
        (tmp_path / f"{number}.part").rename(tmp_path / f"{number}.{form}")
        wait_until(lambda: db.status.streams[0].rows, number)

    def noted() -> list[str]:
        return [one.getMessage() for one in caplog.records if "which is left out" in one.getMessage()]

    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (ts BIGINT) FROM {form} OPTIONS (path '{tmp_path}/*.{form}', follow 'true', "
            "ready 'renamed', poll '10 milliseconds') TIMESTAMP BY ts"
        )
        query = db.query("SELECT * FROM s", "q")
        db.start()
        add(1)
        assert not noted(), "a column of the first file is left out on purpose"
        add(2, New=7)
        add(3, New=8)
        statement = "ALTER STREAM s ADD COLUMN new TYPE"
        what = f"{tmp_path}/2.{form}: rows for s come with New, which is left out: "
        assert [one.lower() for one in noted()] == [f"{what}{statement} keeps it".lower()]
        db.execute(noted()[0].split("left out: ")[1].replace("TYPE keeps it", "BIGINT"))
        db.execute("CREATE QUERY kept CONSISTENCY MIDDLE AS SELECT * FROM s")
        kept = db.queries["kept"]
        add(4, New=9)
        wait_until(lambda: [tuple(row.values())[1:3] for row in kept.changes().to_pylist()], [(4, 9)])
        assert kept.schema.names[-1].lower() == "new"
        assert query.schema.names == ("ts",)
