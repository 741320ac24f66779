"""Rows with columns that their stream does not have: noted once, or refused if it says so."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import headrace as hr
from headrace.runtime.intake import further_columns
from headrace.server.limits import RequestLimits
from unit.server.serving_for_tests import running

LINES = "application/x-ndjson"
BODIES: dict[str, tuple[str, Callable[[dict[str, Any]], str | bytes]]] = {
    "lines": (LINES, lambda row: json.dumps(row) + "\n"),
    "array": ("application/json", lambda row: json.dumps([row])),
    "object over lines": ("application/json", lambda row: json.dumps(row, indent=2)),
    "csv": ("text/csv", lambda row: ",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n"),
    "arrow": ("application/vnd.apache.arrow.stream", lambda row: arrow(row)),
}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with running(tmp_path, RequestLimits()) as url, httpx.Client(base_url=url, timeout=120) as made:
        yield made


def arrow(row: dict[str, Any]) -> bytes:
    table, sink = pa.Table.from_pylist([row]), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.fixture(autouse=True)
def forgotten() -> None:
    further_columns._noted.clear()


def created(client: httpx.Client, options: str) -> None:
    text = (
        f"CREATE STREAM s (ts BIGINT, v BIGINT) FROM push {options} TIMESTAMP BY ts; "
        "CREATE QUERY q AS SELECT v FROM s [RANGE UNBOUNDED]"
    )
    assert client.post("/statements", json={"text": text}).status_code == 200


@pytest.mark.parametrize("form", BODIES)
def test_they_are_left_out_and_noted_once(
    form: str, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    created(client, "")
    kind, body = BODIES[form]
    headers = {"Content-Type": kind}
    with caplog.at_level(logging.WARNING, "headrace"):
        for ts in (1, 2, 3):
            rows = body({"ts": ts, "v": ts, "colour": 5})
            assert client.post("/streams/s/rows", content=rows, headers=headers).json()["rows"] == 1
    said = [one.getMessage() for one in caplog.records if "colour" in one.getMessage()]
    assert said == [
        "rows for s come with colour, which is left out: ALTER STREAM s ADD COLUMN colour TYPE keeps it"
    ]


@pytest.mark.parametrize("form", BODIES)
def test_they_are_refused_where_the_stream_says_so(form: str, client: httpx.Client) -> None:
    created(client, "OPTIONS (unknown 'refuse')")
    kind, body = BODIES[form]
    headers = {"Content-Type": kind}
    answer = client.post("/streams/s/rows", content=body({"ts": 1, "v": 1, "colour": 5}), headers=headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["message"] == "s has no column colour"
    assert error["hint"] == "leave it out, or write ALTER STREAM s ADD COLUMN colour TYPE"
    assert (
        client.post("/statements", json={"text": "ALTER STREAM s ADD COLUMN colour BIGINT"}).status_code
        == 200
    )
    answer = client.post("/streams/s/rows", content=body({"ts": 1, "v": 1, "colour": 5}), headers=headers)
    assert answer.json()["rows"] == 1


def test_rows_of_a_program_are_looked_at_too(caplog: pytest.LogCaptureFixture) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (v BIGINT) FROM push TIMESTAMP BY ARRIVAL AS ts;"
            "CREATE STREAM t (v BIGINT) FROM push OPTIONS (unknown 'refuse') TIMESTAMP BY ARRIVAL AS ts;"
            "CREATE QUERY q AS SELECT s.v FROM s [RANGE 1 SECOND], t [RANGE 1 SECOND]"
        )
        db.start()
        with caplog.at_level(logging.WARNING, "headrace"):
            db.push("s", {"v": 1, "ts": 5})
            assert not caplog.records
            db.push("s", {"v": 1, "size": 5})
            assert "rows for s come with size" in caplog.text
        for rows in ({"v": 1, "size": 5}, pa.table({"v": [1], "size": [5]})):
            with pytest.raises(hr.UserError, match="t has no column size"):
                db.push("t", rows)
        with pytest.raises(hr.UserError, match="the option unknown is 'keep'"):
            db.execute("CREATE STREAM u (v BIGINT) FROM push OPTIONS (unknown 'keep') TIMESTAMP BY ARRIVAL")
