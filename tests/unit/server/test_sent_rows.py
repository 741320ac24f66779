"""Rows as webhooks and other programs send them: JSON of any form, packed, signed instead of with a key."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.schema import TIMESTAMP, Field, Schema
from headrace.server.bodies import inflated, table_of
from headrace.server.errors import RequestError
from headrace.server.formats import PARQUET
from headrace.server.keys import KeyFile, Role
from unit.server.serving_for_tests import running

SECRET = "It's a Secret to Everybody"
TEXT = """CREATE STREAM open (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM open"""
SIGNED = """CREATE STREAM hook (ts BIGINT, v BIGINT) FROM push
  OPTIONS (signature 'X-Hub-Signature-256', secret SECRET 'hook') TIMESTAMP BY ts;
CREATE QUERY hooked AS SELECT v FROM hook"""
ROWS = [{"ts": 1, "v": 1}, {"ts": 1, "v": 2}]
JSON = {"Content-Type": "application/json; charset=utf-8"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, str, Path]]:
    folder = tmp_path_factory.mktemp("sent")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADRACE_SECRET_HOOK", SECRET)
        with running(folder) as url, httpx.Client(base_url=url, timeout=60) as client:
            for text in (TEXT, SIGNED):
                answer = client.post("/statements", json={"text": text})
                assert answer.status_code == 200, answer.text
            yield client, url, folder


def signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {**JSON, "X-Hub-Signature-256": f"sha256={digest}"}


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (json.dumps(ROWS), 2),
        (json.dumps(ROWS, indent=2), 2),
        ("\n".join(map(json.dumps, ROWS)), 2),
        (json.dumps(ROWS[0], indent=1), 1),
    ],
)
def test_json_of_any_form(served: tuple[httpx.Client, str, Path], body: str, rows: int) -> None:
    client, *_ = served
    assert client.post("/streams/open/rows", content=body, headers=JSON).json()["rows"] == rows
    packed = {**JSON, "Content-Encoding": "gzip"}
    sent = client.post("/streams/open/rows", content=gzip.compress(body.encode()), headers=packed)
    assert sent.json()["rows"] == rows


def test_timestamps_of_old_parquet_are_not_cut_to_nanoseconds() -> None:
    """Spark wrote INT96 for long, and 9999-12-31 is a usual end of time."""
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    sink = pa.BufferOutputStream()
    table = pa.table({"at": pa.array([last], TIMESTAMP)})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    schema = Schema((Field("at", TIMESTAMP),))
    found = table_of(sink.getvalue().to_pybytes(), PARQUET, "s", schema, 10_000)
    assert found.column("at").cast(pa.int64()).to_pylist() == table.column("at").cast(pa.int64()).to_pylist()


def test_what_is_packed_is_unpacked_up_to_a_limit() -> None:
    text = b"0123456789" * 100
    assert inflated(text, "identity", 10) == text
    whole = gzip.compress(text[:300]) + gzip.compress(text[300:])
    assert inflated(whole, "gzip", len(text)) == text
    with pytest.raises(RequestError, match="more than 999 bytes"):
        inflated(whole, "gzip", len(text) - 1)
    for body in (whole[:-1], whole[:40], b"no", whole + b"more"):
        with pytest.raises(RequestError, match="cannot be unpacked"):
            inflated(body, "x-gzip", 10_000)
    with pytest.raises(RequestError) as refused:
        inflated(text, "br", 10_000)
    assert refused.value.status == 415


def test_signed_rows_need_no_key(served: tuple[httpx.Client, str, Path]) -> None:
    client, url, folder = served
    body = json.dumps({"ts": 2, "v": 3}).encode()
    wrong = [JSON, signed(body, "other"), signed(body + b" "), {**JSON, "Authorization": "Bearer x"}]
    for headers in wrong:
        refused = client.post("/streams/hook/rows", content=body, headers=headers)
        assert refused.status_code == 401, headers
    assert client.post("/streams/HOOK/rows", content=body, headers=signed(body)).json()["committed"]
    packed = gzip.compress(body)
    headers = {**signed(packed), "Content-Encoding": "gzip"}
    assert client.post("/streams/hook/rows", content=packed, headers=headers).json()["committed"]
    assert SECRET not in client.get("/streams/hook").text
    key = KeyFile(folder / "keys.json").add("w", Role.WRITE)
    with httpx.Client(base_url=url, timeout=60) as other:
        assert other.post("/streams/hook/rows", content=body, headers=signed(body)).json()["committed"]
        by_key = {**JSON, "Authorization": f"Bearer {key}"}
        assert other.post("/streams/hook/rows", content=body, headers=by_key).json()["committed"]
        for path in ("/streams/open/rows", "/streams/nothing/rows"):
            assert other.post(path, content=body, headers=signed(body)).status_code == 401
        for path in ("/streams/hook/heartbeat", "/statements", "/ask"):
            assert other.post(path, content=body, headers=signed(body)).status_code == 401
