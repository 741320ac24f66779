"""A server that is killed between the commit of an epoch and the sending of its changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx

import warm_processes
from unit.server.serving_for_tests import running
from unit.server.sse_for_tests import Received, read_events

LINES = {"Content-Type": "application/x-ndjson"}
TEXT = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r [NOW]"""
EVENTS = "/queries/q/events"

KILLED = """
import os, signal, sys, threading
from pathlib import Path
from headrace.server.tails import Tail
from unit.server.serving_for_tests import running

share = Tail._share
def share_or_die(tail, epoch, parts):
    if epoch == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    share(tail, epoch, parts)
Tail._share = share_or_die
with running(Path(sys.argv[1]), runner=sys.argv[2]) as url:
    print(url, flush=True)
    threading.Event().wait()
"""


def check_a_kill(folder: Path, runner: str) -> None:
    """See that the next server sends each change once: none is lost, and none comes twice.

    Args:
        folder: an empty one.
        runner: of the server that is killed; the next one is inline.
    """
    command = [sys.executable, "-c", KILLED, str(folder), runner]
    with warm_processes.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        got = Received()
        with httpx.Client(base_url=url, timeout=120) as client:
            assert client.post("/statements", json={"text": TEXT}).status_code == 200
            push(client, 1)
            push(client, 2)
            with client.stream("GET", EVENTS) as changes:
                received, pieces = b"", changes.iter_raw()
                for piece in pieces:
                    received += piece
                    if b'"v":1' in received and received.endswith(b"\n\n"):
                        break
                got.take(received)
                # Somebody still waits for changes, so the server makes the events of the epoch, and dies.
                sent = False
                with suppress(httpx.TransportError):
                    sent = push(client, 3)
                with suppress(httpx.TransportError):
                    got.take(b"".join(pieces))
        try:
            assert server.wait(60) == -signal.SIGKILL
        finally:
            server.kill()
    assert [row["v"] for row in got.rows] == [1]
    with running(folder) as url, httpx.Client(base_url=url, timeout=120) as client:
        # Its answer may have been lost, so the rows are sent once more, under the same number.
        assert push(client, 3) is False or not sent
        push(client, 4)
        rest = read_events(url, EVENTS, lambda body: b'"v":3' in body and body.endswith(b"\n\n"), got.last_id)
        got.take(rest)
    assert [row["v"] for row in got.rows] == [1, 2, 3]


def push(client: httpx.Client, ts: int) -> bool:
    """Send a row; whether it counts now and not already before."""
    numbered: dict[str, str | int] = {"producer": "p", "sequence": ts}
    body = f'{{"ts": {ts}, "v": {ts}}}'
    answer = client.post("/streams/r/rows", content=body, headers=LINES, params=numbered).json()
    return bool(answer["rows"])


def environment() -> dict[str, str]:
    """The variables of this process, with the modules that it has found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
