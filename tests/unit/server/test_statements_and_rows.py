"""Statements, rows, answers and errors over HTTP."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import BusyError
from headrace.runtime.driver.endless.retries import run_epoch
from headrace.runtime.intake.push_feed import PushFeed
from headrace.server.errors import response_of
from headrace.server.guard import LOG
from headrace.server.limits import RequestLimits
from inside import core_of
from unit.server.serving_for_tests import running

LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    limits = RequestLimits(request_bytes=20_000, result_rows=50, seconds=20)
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.csv").write_text("ts,v\n1,sesame\n")
    with running(folder, limits) as url, httpx.Client(base_url=url, timeout=120) as made:
        text = """CREATE STREAM r (ts BIGINT, room STRING, v DOUBLE) FROM push TIMESTAMP BY ts;
            CREATE QUERY total AS SELECT room, SUM(v) AS v FROM r [RANGE 10] GROUP BY room;
            CREATE QUERY passed AS SELECT ISTREAM(room, v) FROM r [NOW]; SHOW STREAMS"""
        answer = made.post("/statements", json={"text": text, "base": None})
        assert answer.status_code == 200, answer.text
        kinds = [result["kind"] for result in answer.json()["results"]]
        assert kinds == ["none", "query", "query", "text"]
        yield made


def refused(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The error of a response, whose body is like that of all errors."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"kind", "message", "line", "column", "hint", "text"}
    return dict(error)


def rows_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_rows_in_every_format_are_answered_after_their_commit(client: httpx.Client) -> None:
    table = pa.table({"ts": [3, 4], "room": ["hall", "roof"], "v": [1.5, 2.0]})
    arrow, parquet = pa.BufferOutputStream(), io.BytesIO()
    with pa.ipc.new_stream(arrow, table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table.set_column(0, "ts", pa.array([5, 6])), parquet)
    bodies: dict[str, bytes] = {
        "application/x-ndjson": b'{"ts": 1, "room": "hall", "v": 1}\n{"ts": 2, "room": "roof", "v": 2}\n',
        "text/csv": b"ts,room,v\n2,hall,1.5\n2,attic,2.0\n",
        "application/vnd.apache.arrow.stream": bytes(arrow.getvalue()),
        "application/vnd.apache.parquet": parquet.getvalue(),
    }
    for kind, body in bodies.items():
        sent = client.post("/streams/r/rows", content=body, headers={"Content-Type": kind})
        assert sent.json() == {"committed": True, "rows": 2, "dead_letters": []}, kind
    history = client.get("/queries/total/history", headers={"Accept": "text/csv"})
    assert history.headers["content-type"].startswith("text/csv")
    assert history.text.splitlines()[:2] == ["room,v,valid_from,valid_to", "hall,1.0,1,2"]
    stream = client.get(
        "/queries/passed/stream", headers={"Accept": "application/vnd.apache.arrow.stream"}
    ).content
    assert pa.ipc.open_stream(stream).read_all()["ts"].to_pylist() == [1, 2, 2, 2, 4, 5]
    assert rows_of(client.get("/queries/total/snapshot", params={"at": 1})) == [{"room": "hall", "v": 1.0}]
    assert (
        rows_of(client.post("/ask", json={"sql": "SELECT COUNT(*) AS n FROM CHANGES OF passed"}))[0]["n"] > 3
    )


@pytest.mark.parametrize("what", ["RELATION v", "STREAM w"])
def test_of_a_deletion_only_the_key_counts(client: httpx.Client, what: str) -> None:
    name = what.split()[-1]
    text = f"""CREATE {what} (ts BIGINT, op STRING, id BIGINT, a BIGINT) KEY (id) FROM push
            CHANGES BY op TIMESTAMP BY ts; CREATE QUERY {name}_rows AS SELECT id, a FROM {name}"""
    assert client.post("/statements", json={"text": text}).status_code == 200
    place = f"/streams/{name}/rows"
    rows = [{"ts": 1, "op": "insert", "id": key, "a": key} for key in range(6)]
    assert client.post(place, content="\n".join(map(json.dumps, rows)), headers=LINES).status_code == 200
    deleted = client.post(place, content='{"op": "delete", "id": 1, "ts": 3}', headers=LINES)
    assert deleted.json() == {"committed": True, "rows": 1, "dead_letters": []}
    lines = "op,id,ts\nd,2,3\nDELETE,3,3\n"
    assert client.post(place, content=lines, headers={"Content-Type": "text/csv"}).status_code == 200
    table, sink = pa.table({"ID": [4], "ts": [3], "op": ["D"]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = {"Content-Type": "application/vnd.apache.arrow.stream"}
    assert client.post(place, content=sink.getvalue().to_pybytes(), headers=arrow).status_code == 200
    if what.startswith("STREAM"):
        hr.Client(str(client.base_url)).push(name, {"op": "d", "id": 5, "ts": 3})
    else:
        assert client.post(place, content='{"op": "d", "id": 5, "ts": 3}', headers=LINES).status_code == 200
    for row in ({"id": 0, "ts": 4}, {"op": "delete", "ts": 4}, {"op": "delete", "id": 0}):
        answer = client.post(place, content=json.dumps(row), headers=LINES)
        assert "there is no column" in refused(answer, 400)["message"]
    last = {"op": "insert", "id": 9, "a": 9, "ts": 9}
    assert client.post(place, content=json.dumps(last), headers=LINES).status_code == 200
    found = rows_of(client.get(f"/queries/{name}_rows/snapshot", params={"at": 8}))
    assert found == [{"id": 0, "a": 0}]
    dropped = client.post("/statements", json={"text": f"DROP {what} CASCADE"})
    assert dropped.status_code == 200, dropped.text


def test_dead_letters_of_the_request_are_in_its_answer(client: httpx.Client) -> None:
    client.post("/streams/r/rows", content='{"ts": 50, "room": "a", "v": 1}', headers=LINES)
    sent = client.post(
        "/streams/r/rows",
        content='{"ts": 7, "room": "late", "v": 1}\n{"ts": 60, "room": "b", "v": 1}',
        headers=LINES,
    ).json()
    assert (sent["rows"], [letter["reason"] for letter in sent["dead_letters"]]) == (
        2, ["late: older than the heartbeat 50"],
    )  # fmt: skip
    assert "late" in sent["dead_letters"][0]["row"]
    assert any("late" in letter["row"] for letter in rows_of(client.get("/dead-letters")))


def test_a_repeat_counts_once_and_who_does_not_wait_is_answered_at_once(client: httpx.Client) -> None:
    numbered: dict[str, str | int] = {"producer": "pi", "sequence": 7}
    body = '{"ts": 70, "room": "once", "v": 1}'
    first = client.post("/streams/r/rows", content=body, headers=LINES, params=numbered).json()
    again = client.post("/streams/r/rows", content=body, headers=LINES, params=numbered).json()
    assert (first["rows"], again["rows"], again["repeat"]) == (1, 0, True)
    later = client.post("/streams/r/rows", content=body, headers=LINES, params={"wait": False})
    assert (later.status_code, later.json()["committed"]) == (202, False)


def test_errors_have_a_place_a_hint_and_one_form(client: httpx.Client) -> None:
    wrong = client.post(
        "/statements", content="SHOW STREAMS;\nSELECT vv FROM r", headers={"Content-Type": "text/plain"}
    )
    error = refused(wrong, 400)
    assert (error["kind"], error["line"], error["column"]) == ("language", 2, 8)
    assert error["text"].startswith("2:8: ")
    assert "did you mean" in (error["hint"] or "")
    assert refused(client.get("/queries/nobody"), 404)["kind"] == "not_found"
    assert refused(client.get("/nowhere"), 404)["kind"] == "not_found"
    assert refused(client.put("/streams"), 405)["kind"] == "method"
    assert refused(client.get("/explain"), 400)["message"].startswith("query query")
    assert refused(
        client.post("/statements", content=b"[", headers={"Content-Type": "application/json"}), 400
    )
    assert refused(client.get("/queries/total/history", headers={"Accept": "image/png"}), 406)
    bad = client.post("/streams/r/rows", content='{"ts": "x", "room": "a", "v": 1}', headers=LINES)
    assert "line 1: ts is not a valid BIGINT" in refused(bad, 400)["message"]
    kind = {"Content-Type": "text/html"}
    assert refused(client.post("/streams/r/rows", content="<p>", headers=kind), 415)
    torn = {"Content-Type": "application/vnd.apache.arrow.stream"}
    assert refused(client.post("/streams/r/rows", content=b"\xff\xff\xff\xff8", headers=torn), 400)


def test_bodies_and_answers_over_a_limit_are_refused(client: httpx.Client) -> None:
    announced = client.post("/streams/r/rows", content=b" " * 20_001, headers=LINES)
    assert refused(announced, 413)["kind"] == "too_large"
    pieces = client.post("/streams/r/rows", content=iter([b" " * 15_000] * 2), headers=LINES)
    assert refused(pieces, 413)["kind"] == "too_large"
    rows = "\n".join(json.dumps({"ts": 80 + n, "room": "many", "v": n}) for n in range(60))
    client.post("/streams/r/rows", content=rows, headers=LINES)
    assert "more than 50" in refused(client.get("/queries/passed/history"), 413)["message"]
    assert (
        "more than 50 rows"
        in refused(client.post("/ask", json={"sql": "FROM HISTORY OF passed"}), 400)["message"]
    )


def test_statements_reach_no_file(client: httpx.Client) -> None:
    text = "CREATE STREAM f FROM csv OPTIONS (path 'secret.csv') TIMESTAMP BY ts"
    assert refused(client.post("/statements", json={"text": text}), 403)["kind"] == "policy"
    question = client.post("/ask", json={"sql": "FROM 'secret.csv'"})
    assert "sesame" not in question.text
    assert refused(question, 403)
    assert refused(client.post("/statements", json={"text": text, "base": "/etc"}), 400)


def test_resources_are_listed_shown_and_dropped(client: httpx.Client) -> None:
    client.post(
        "/statements",
        json={"text": "CREATE QUERY gone AS SELECT v FROM r; CREATE STREAM s AS SELECT ts, v FROM r"},
    )
    assert "gone" in [query["name"] for query in client.get("/queries").json()["queries"]]
    kinds = {stream["name"]: stream["kind"] for stream in client.get("/streams").json()["streams"]}
    assert kinds == {"r": "pushed", "s": "derived"}
    assert client.get("/queries/gone").json()["columns"] == [{"name": "v", "type": "DOUBLE"}]
    assert client.get("/streams/R").json()["status"]["name"] == "r"
    assert "CREATE QUERY gone" in client.get("/catalog").json()["text"]
    assert client.get("/why/gone").json()["query"] == "gone"
    assert "== physical ==" in client.get("/explain", params={"query": "gone"}).json()["text"]
    stages = (
        client.get("/explain", params={"query": "gone", "stage": "physical"[:n] + "PHYSICAL"[n:]})
        for n in (0, 1, 8)
    )
    assert len({stage.json()["text"] for stage in stages}) == 1
    assert client.get("/status").json()["running"] is True
    assert client.get("/relations").json() == {"relations": []}
    assert client.get("/sinks").json() == {"sinks": []}
    refused(client.delete("/streams/r"), 400)
    for path in ("/queries/gone", "/streams/s"):
        assert client.delete(path).status_code == 200
        refused(client.delete(path), 404)


def test_health_and_numbers(client: httpx.Client) -> None:
    assert client.get("/readyz").json() == {"status": "running"}
    client.post("/streams/r/rows", content='{"ts": 200, "room": "m", "v": 1}', headers=LINES)
    numbers = client.get("/metrics").text
    assert 'headrace_stream_rows_total{stream="r"}' in numbers
    assert 'headrace_requests_total{method="POST",route="/streams/{name}/rows",status="200"}' in numbers
    assert "/queries/{name}/events" in client.get("/openapi.json").json()["paths"]


def test_rows_without_room_are_refused_for_a_moment(tmp_path: Path) -> None:
    with hr.connect(runner="inline") as db:
        db.execute("CREATE STREAM r (ts BIGINT) FROM push TIMESTAMP BY ts")
        feed = core_of(db).definitions.inputs["r"].feed(tmp_path, 1, 1_000, lambda: None)
    assert isinstance(feed, PushFeed)
    waiting = [feed.put({"ts": ts}, None, None, 0.0) for ts in range(4)]
    with pytest.raises(BusyError, match="r takes no rows for now") as caught:
        feed.put({"ts": 5}, None, None, 0.0)
    status, body, headers = response_of(caught.value)
    assert (status, body["error"]["kind"], headers) == (429, "busy", {"Retry-After": "1"})
    assert not any(push.done() for push in waiting)


def test_a_fault_has_the_body_of_all_errors_and_says_nothing_of_its_inside(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = SimpleQueue[str]()
    monkeypatch.setattr(LOG, "exception", lambda *_: logged.put(repr(sys.exception())))

    def broken(*_: object) -> None:
        raise RuntimeError("the inside")

    monkeypatch.setattr("headrace.server.routes.resources.described_stream", broken)
    answer = client.get("/streams/r")
    assert refused(answer, 500)["kind"] == "internal"
    assert "the inside" not in answer.text
    # It is logged after it is answered.
    assert logged.get(timeout=60) == "RuntimeError('the inside')"
    assert logged.empty()


def test_methods_that_nobody_knows_are_counted_together(client: httpx.Client) -> None:
    for number in range(3):
        refused(client.request(f"METHOD{number}", "/streams"), 405)
    text = client.get("/metrics").text
    assert 'method="other"' in text
    assert "METHOD" not in text


def test_a_question_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with (
        running(tmp_path, RequestLimits(seconds=0.3)) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        question = "SELECT SUM(a.range * b.range) FROM range(1000000) a, range(1000000) b"
        error = refused(client.post("/ask", json={"sql": question}), 504)
        assert (error["kind"], "taken back" in error["hint"]) == ("timeout", True)
        assert "headrace_requests_at_work 1.0" in client.get("/metrics").text, "but this one itself"


def test_a_statement_that_waits_for_an_epoch_too_long_takes_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "CREATE STREAM r (ts BIGINT) FROM push TIMESTAMP BY ts; CREATE QUERY a AS SELECT ts FROM r [NOW]"
    later = {"text": "CREATE QUERY b AS SELECT ts FROM r [NOW]"}
    begun, go_on = threading.Event(), threading.Event()

    def held(*args: Any, **options: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return run_epoch(*args, **options)

    with running(tmp_path, RequestLimits(seconds=1)) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.post("/statements", json={"text": text}).status_code == 200
        monkeypatch.setattr("headrace.runtime.driver.endless.live.run_epoch", held)
        client.post("/streams/r/rows?wait=false", content='{"ts": 1}', headers=LINES)
        assert begun.wait(60)
        error = refused(client.post("/statements", json=later), 504)
        go_on.set()
        assert "taken back" in error["hint"]
        client.post("/streams/r/rows", content='{"ts": 2}', headers=LINES)
        assert [query["name"] for query in client.get("/queries").json()["queries"]] == ["a"]
        assert client.post("/statements", json=later).status_code == 200


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-ndjson", '{"ts": 100, "v": 1}'),
        ("application/x-ndjson", '{"ts": 100}\n{"ts": 101, "room": "b", "v": 2}'),
        ("text/csv", "ts,v\n100,1\n"),
    ],
)
def test_rows_may_leave_out_columns(client: httpx.Client, kind: str, body: str) -> None:
    sent = client.post("/streams/r/rows", content=body, headers={"Content-Type": kind})
    assert sent.status_code == 200, sent.text
    wrong = body.replace("ts", "when")
    answer = client.post("/streams/r/rows", content=wrong, headers={"Content-Type": kind})
    assert "there is no column ts" in refused(answer, 400)["message"]
