"""Changes posted to an address: in order, again until they are taken, with a key that a repeat has too."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
import warm_processes
from headrace.errors import DeliveryError

ROWS = {"ts": [1, 2, 30, 40, 50, 60], "v": [10, 20, 30, 40, 50, 60]}
SECRET = "Bearer sesame"


@dataclass(frozen=True)
class Request:
    """What a receiver was sent."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def epoch(self) -> int:
        return int(self.headers["Headrace-Epoch"])


class Receiver:
    """A server of the web on this machine, which answers with what it is told, and with 200 then."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}/in?room=1"
        self.requests: list[Request] = []
        self.answers: list[int] = []


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.requests.append(Request(self.path, dict(self.headers), body))
            self.send_response(found.answers.pop(0) if found.answers else 200)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(f"for {self.headers['Authorization']}".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Receiver(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def begun(db: hr.Database, url: str, more: str = "") -> hr.Query:
    db.stream("s", pa.table(ROWS), timestamp="ts")
    query = db.query("SELECT SUM(v) AS total FROM s [RANGE 5]", name="totals")
    options = f"url '{url}', authorization SECRET 'hook', pause 0{more}"
    db.execute(f"CREATE SINK hook FOR totals TO webhook OPTIONS ({options})")
    return query


def rows_of(requests: Sequence[Request]) -> list[dict[str, Any]]:
    return [json.loads(line) for request in requests for line in request.body.splitlines()]


def test_each_epoch_is_posted_in_order_until_it_is_taken(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SECRET_HOOK", SECRET)
    receiver.answers = [200, 503, 301, 204]
    with hr.connect(runner="inline", epoch_rows=2) as db:
        expected = begun(db, receiver.url)
        db.run()
        requests = receiver.requests
        assert [request.epoch for request in requests] == [1, 2, 2, 2, 3]
        keys = {one.epoch: one.headers["Idempotency-Key"] for one in requests}
        assert len({*keys.values()}) == 3
        assert len({(one.headers["Idempotency-Key"], one.body) for one in requests}) == 3
        assert rows_of([requests[place] for place in (0, 3, 4)]) == expected.changes().to_pylist()
    assert {one.path for one in requests} == {"/in?room=1"}
    assert {one.headers["Authorization"] for one in requests} == {SECRET}
    assert [requests[place].headers["Headrace-Heartbeat"] for place in (0, -1)] == ["2", "infinity"]


KILLED = """
import sys
sys.path.insert(0, sys.argv[3])
import headrace as hr
from unit.runtime.delivery.test_webhook_sink import begun
with hr.connect(runner="inline", epoch_rows=2, storage=sys.argv[1]) as db:
    begun(db, sys.argv[2])
    db.run()
"""


def test_after_a_kill_the_last_epoch_comes_again_with_its_key(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SECRET_HOOK", SECRET)
    tests = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "store"), receiver.url, tests]
    env = os.environ | {"HEADRACE_FAULT": "sink.taken:2"}
    killed = warm_processes.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with hr.connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        expected = begun(db, receiver.url)
        db.run()
        assert [one.epoch for one in receiver.requests] == [1, 2, 2, 3]
        first, again = receiver.requests[1:3]
        assert (first.body, first.headers["Idempotency-Key"]) == (
            again.body,
            again.headers["Idempotency-Key"],
        )
        assert rows_of([receiver.requests[place] for place in (0, 2, 3)]) == expected.changes().to_pylist()


def test_one_that_fails_stops_no_other_and_shows_no_secret(
    receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("HEADRACE_SECRET_HOOK", SECRET)
    receiver.answers = [500] * 9
    with hr.connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        query = begun(db, receiver.url, ", attempts 2")
        db.execute(f"CREATE SINK files FOR totals TO json OPTIONS (path '{tmp_path}/out')")
        with pytest.raises(
            DeliveryError, match=r"hook of totals fails at epoch 1: .*answered 500: for \*\*\*"
        ) as caught:
            db.run()
        files = [path.read_text() for path in sorted((tmp_path / "out").glob("*.jsonl"))]
        assert [
            json.loads(line) for text in files for line in text.splitlines()
        ] == query.changes().to_pylist()
        shown = [str(one) for one in db.execute("SHOW SINKS; SHOW CREATE SINK hook; DESCRIBE SINK hook")]
        assert "answered 500" in shown[0]
        shown += [str(caught.value), str(db.problems), caplog.text, db.served.catalog]
        assert caught.value.__cause__ is None or "sesame" not in repr(caught.value.__cause__)
    assert len(receiver.requests) == 2
    assert [text for text in shown if "sesame" in text] == []
    stored = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not any(b"sesame" in content for content in stored)
    assert any(b"SECRET 'hook'" in content for content in stored)
    with hr.connect(runner="inline", epoch_rows=2, storage=tmp_path / "store") as db:
        receiver.answers = []
        begun(db, receiver.url, ", attempts 2")
        db.run()
        assert [one.epoch for one in receiver.requests[2:]] == [1, 2, 3], "it goes on where it failed"


def test_a_receiver_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SECRET_HOOK", SECRET)
    with hr.connect(runner="inline") as db:
        begun(db, "http://127.0.0.1:1/", ", attempts 1, timeout 5")
        with pytest.raises(DeliveryError, match=r"the receiver cannot be reached: .*refused"):
            db.run()
        monkeypatch.setenv("HEADRACE_SECRET_HOOK", "Bearer\nsesame")
        options = "url 'http://h', authorization SECRET 'hook'"
        with pytest.raises(hr.UserError, match="printable characters of ASCII"):
            db.execute(f"CREATE SINK other FOR totals TO webhook OPTIONS ({options})")
