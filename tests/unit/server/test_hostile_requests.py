"""Requests as the description allows them and as it does not: no fault, and errors of one form."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from headrace.schema import BIGINT, STRING, Field, Schema
from headrace.server.bodies import table_of
from headrace.server.errors import RequestError
from headrace.server.limits import RequestLimits
from unit.server.serving_for_tests import running

TEXT = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r [NOW]"""
ROWS = (
    "application/x-ndjson",
    "text/csv",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.parquet",
    "application/json",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        running(tmp_path_factory.mktemp("hostile"), RequestLimits(request_bytes=50_000)) as url,
        httpx.Client(base_url=url, timeout=60) as made,
    ):
        assert made.post("/statements", json={"text": TEXT}).status_code == 200
        yield made


def check(answer: httpx.Response) -> None:
    """No fault; errors have one form, and show nothing of the server's inside."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert set(answer.json()["error"]) == {"kind", "message", "line", "column", "hint", "text"}
        assert "Traceback" not in answer.text


def test_requests_made_from_the_description(client: httpx.Client) -> None:
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    made = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    # Streams of events do not end; test_paths_that_were_thought_of has them.
    chosen = [one for one in made if not one.path.endswith("events")]
    assert len(chosen) > 25

    for operation in chosen:

        @settings(
            max_examples=2,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            sent = case.as_transport_kwargs(base_url=str(client.base_url))
            sent.pop("cookies", None)
            if isinstance(sent.get("data"), bytes | str):
                sent["content"] = sent.pop("data")
            check(client.request(**sent))

        ask()


@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(body=st.binary(max_size=300) | st.text(max_size=80).map(str.encode), kind=st.sampled_from(ROWS))
def test_bodies_of_any_bytes(client: httpx.Client, body: bytes, kind: str) -> None:
    check(client.post("/streams/r/rows", content=body, headers={"Content-Type": kind}))


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/streams/r/rows", ROWS[0], b'{"ts": 1' + b"0" * 400 + b', "v": 1}'),
        ("/streams/r/rows", ROWS[0], b"[" * 40_000),
        ("/streams/r/rows", ROWS[0], b'{"ts": 1, "v": "\\ud800"}'),
        ("/streams/r/rows", ROWS[0], b"\xff\xfe"),
        ("/streams/r/rows", ROWS[0], b'{"ts": null, "v": 1}'),
        ("/streams/r/rows", ROWS[1], b'ts,v\n"1,2\n'),
        ("/streams/r/rows", ROWS[1], b"\0"),
        ("/streams/r/rows", ROWS[3], b"PAR1" * 20),
        ("/streams/r/rows?sequence=99999999999999999999&producer=p", ROWS[0], b'{"ts": 1, "v": 1}'),
        ("/streams/r/rows?sequence=1", ROWS[0], b'{"ts": 1, "v": 1}'),
        ("/streams/%00/rows", ROWS[0], b'{"ts": 1, "v": 1}'),
        ("/streams/..%2f..%2fetc/rows", ROWS[0], b"{}"),
        ("/streams/r/heartbeat", "application/json", b'{"at": 1e400}'),
        ("/streams/r/heartbeat", "application/json", b'{"at": 99999999999999999999999}'),
        ("/statements", "application/json", b"[" * 40_000),
        ("/statements", "application/json", b'{"text": "\\ud800"}'),
        ("/statements", "application/json", b'{"text": 1}'),
        ("/statements", "text/plain", b"\xff"),
        ("/statements", "text/plain", b"(" * 5_000),
        ("/statements", "text/plain", b"SELECT '\0' FROM r"),
        ("/ask", "text/plain", b"SELECT '\0'"),
        ("/ask", "text/plain", b"ATTACH 'x'; SELECT 1"),
        ("/ask", "text/plain", gzip.compress(b"SELECT 1", mtime=0)),
    ],
)
def test_bodies_that_were_thought_of(client: httpx.Client, path: str, kind: str, body: bytes) -> None:
    check(client.post(path, content=body, headers={"Content-Type": kind}))
    assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/queries/q/snapshot?at=99999999999999999999",
        "/queries/q/snapshot?at=%00",
        "/queries/q/snapshot?as_of=1",
        "/queries/q/history?as_of=-5",
        "/queries/q/history?as_of=2024-99-99",
        "/queries/q/nothing",
        "/queries/q/events?since=1.2",
        "/explain?query=q&stage=none",
        "/queries/%F0%9F%92%A9",
        "/dead-letters/r",
    ],
)
def test_paths_that_were_thought_of(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    check(answer)
    assert answer.status_code >= 400


@pytest.mark.parametrize("kind", [ROWS[2], ROWS[3]])
def test_rows_that_unpack_to_too_much_are_refused_before_they_do(kind: str) -> None:
    """A text of 10 KB that 20,000 rows share has 200 MB."""
    schema = Schema((Field("ts", BIGINT), Field("v", STRING)))
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int8()), ["x" * 10_000])
    for texts, refused in ((shared, True), (shared.slice(0, 4), False)):
        body = packed(pa.table({"ts": list(range(len(texts))), "v": texts}), kind)
        assert len(body) < 500_000
        before = pa.total_allocated_bytes()
        if refused:
            with pytest.raises(RequestError, match="more than 500,000 bytes"):
                table_of(body, kind, "r", schema, 500_000)
            assert pa.total_allocated_bytes() - before < 50 * 2**20
        else:
            assert table_of(body, kind, "r", schema, 500_000)["v"].to_pylist() == ["x" * 10_000] * 4


def packed(table: pa.Table, kind: str) -> bytes:
    """A table as a body."""
    out = pa.BufferOutputStream()
    if kind == ROWS[3]:
        pq.write_table(table, out)
    else:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    return bytes(out.getvalue())
