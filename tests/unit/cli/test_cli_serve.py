"""`headrace serve` as a process: what it prints, that it goes on, and how it stops."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from typer.testing import CliRunner

import headrace as hr
import warm_processes
from headrace.cli import app
from headrace.cli.serve import policy_of

STREAM = "CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts; "
LINES = {"Content-Type": "application/x-ndjson"}
QUERY = "CREATE QUERY q AS SELECT v FROM r"


def started(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A server over the store in a folder, and its URL."""
    command = [sys.executable, "-m", "headrace", "serve", "--storage", str(folder / "store")]
    server = warm_processes.Popen(
        [*command, "--port", "0", "--runner", "inline", *options], stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    for line in server.stderr:
        found = re.match(r"headrace: serving (http\S+)", line)
        if found is not None:
            return server, found[1]
    raise AssertionError("the server has ended")


def ended(server: subprocess.Popen[str]) -> list[dict[str, object]]:
    """What a server has logged, after SIGTERM."""
    server.send_signal(signal.SIGTERM)
    _, log = server.communicate(timeout=60)
    return [json.loads(line) for line in log.splitlines()]


def test_a_server_goes_on_where_sigterm_ended_it(tmp_path: Path) -> None:
    keys = ["keys", "add", "ann", "--role", "write", "--storage", str(tmp_path / "store")]
    key = {"Authorization": f"Bearer {CliRunner().invoke(app, keys).stdout.strip()}"}
    script = tmp_path / "q.sql"
    script.write_text(STREAM + QUERY)
    server, url = started(tmp_path, str(script))
    with httpx.Client(base_url=url, timeout=120, headers=key) as client:
        sent = client.post(
            "/streams/r/rows", content='{"ts": 1, "v": 7}', headers={"Content-Type": "application/x-ndjson"}
        )
        assert sent.json()["committed"] is True
    log = ended(server)
    assert server.returncode == 0
    request = next(line for line in log if line["message"] == "request")
    assert (request["method"], request["path"], request["status"]) == ("POST", "/streams/r/rows", 200)
    assert any(str(line["message"]).startswith("stopped: 1 row") for line in log)
    again, url = started(tmp_path)
    assert httpx.get(f"{url}/queries/q", timeout=60).status_code == 401
    assert httpx.get(f"{url}/queries/q", timeout=60, headers=key).json()["status"]["name"] == "q"
    ended(again)


def test_sigterm_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text(STREAM + QUERY + " [NOW]")
    server, url = started(tmp_path, str(script))
    acknowledged, enough = list[int](), threading.Event()

    def post(begin: int) -> None:
        with httpx.Client(base_url=url, timeout=60) as client, suppress(httpx.TransportError):
            for v in count(begin, 4):
                row = f'{{"ts": 1, "v": {v}}}'
                answer = client.post("/streams/r/rows", content=row, headers=LINES)
                if answer.status_code != 200:
                    break
                acknowledged.append(v)
                if len(acknowledged) >= 20:
                    enough.set()

    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as stalled:
        stalled.sendall(f"GET /queries/q/events HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        posting = [threading.Thread(target=post, args=(begin,)) for begin in range(4)]
        for one in posting:
            one.start()
        assert enough.wait(60)
        log = ended(server)
        for one in posting:
            one.join(60)
    assert server.returncode == 0
    assert not [line for line in log if line["level"] == "error"]
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.start()
        db.push("r", {"ts": 2, "v": -1})
        assert set(acknowledged) <= set(db["q"].history()["v"].to_pylist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached by others, and there are no keys"),
        (["--tls-cert", "c.pem"], "a certificate needs its key"),
        (["--host", "192.0.2.1"], "192.0.2.1 can be reached by others"),
    ],
)
def test_what_is_not_safe_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    told = CliRunner().invoke(
        app, ["serve", "--storage", str(tmp_path / "s"), "--runner", "inline", *options]
    )
    assert told.exit_code == 2
    assert message in told.stderr


def test_sinks_of_clients_write_into_the_folders_that_are_given(tmp_path: Path) -> None:
    begin = f"{STREAM}{QUERY}"
    for folders, path, allowed in (((), "a", False), (("a",), "a/b", True), (("a",), "b", False)):
        policy = policy_of((), [tmp_path / folder for folder in folders])
        with hr.connect(runner="inline", policy=policy) as db:
            db.execute(begin)
            sink = f"CREATE SINK out FOR q TO json OPTIONS (path '{tmp_path}/{path}')"
            with nullcontext() if allowed else pytest.raises(hr.PolicyError):
                db.execute(sink)
            with pytest.raises(hr.PolicyError):
                db.execute("CREATE SINK hook FOR q TO webhook OPTIONS (url 'http://127.0.0.1/')")
