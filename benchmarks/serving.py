"""How long a row takes through the server: from its POST to its change at a client that watches.

    python benchmarks/serving.py
    python benchmarks/serving.py --runner spark --subscribers 1 200 --seconds 20

A server runs as a process of its own. This one posts rows at a fixed rate, over connections that stay open,
and reads the changes as server-sent events. The clock of a row starts when its POST is due, so that one that
has to wait is counted. Further subscribers of the same query share the events; `stalled` ones never read.
"""

from __future__ import annotations

import argparse
import json
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import httpx
import numpy as np

TEXT: Final = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts DISORDER 1000;
CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM r"""
WARM_UP: Final = 100
"""So many rows are not counted."""


@contextmanager
def served(runner: str) -> Iterator[tuple[str, int]]:
    """A server in a process: its URL, and the process."""
    with TemporaryDirectory() as folder:
        script = Path(folder, "q.sql")
        script.write_text(TEXT)
        command = [sys.executable, "-m", "headrace", "serve", str(script), "--storage", f"{folder}/store"]
        with subprocess.Popen(
            [*command, "--port", "0", "--runner", runner], stderr=subprocess.PIPE, text=True
        ) as server:
            assert server.stderr is not None
            url = next(found[1] for line in server.stderr if (found := re.search(r"serving (\S+)", line)))
            threading.Thread(target=server.stderr.read, daemon=True).start()
            try:
                yield url, server.pid
            finally:
                server.send_signal(signal.SIGTERM)


def connected(url: str) -> socket.socket:
    """A connection on which the changes come."""
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 0))
    made.sendall(f"GET /queries/q/events?since=now HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return made


def arrivals(connection: socket.socket, found: dict[int, float]) -> None:
    """Note when each row's change comes."""
    rest = b""
    while piece := connection.recv(65_536):
        now = time.perf_counter()
        *events, rest = (rest + piece).split(b"\n\n")
        for event in events:
            data = event.partition(b"data: ")[2]
            for row in json.loads(data)["rows"] if data else ():
                found.setdefault(row["v"], now)


def drained(connections: Sequence[socket.socket]) -> None:
    """Read whatever comes, as clients do that keep up."""
    chosen = selectors.DefaultSelector()
    for one in connections:
        chosen.register(one, selectors.EVENT_READ)
    while chosen.get_map():
        for key, _ in chosen.select(1.0):
            if isinstance(key.fileobj, socket.socket) and not key.fileobj.recv(65_536):
                chosen.unregister(key.fileobj)


def measured(runner: str, rate: int, seconds: int, subscribers: int, stalled: int) -> str:
    """One line of figures."""
    found: dict[int, float] = {}
    due: dict[int, float] = {}
    taken: list[float] = []
    with served(runner) as (url, process), ExitStack() as stack:
        watching = [stack.enter_context(connected(url)) for _ in range(subscribers)]
        for _ in range(stalled):
            stack.enter_context(connected(url))
        threading.Thread(target=arrivals, args=(watching[0], found), daemon=True).start()
        threading.Thread(target=drained, args=(watching[1:],), daemon=True).start()
        client = stack.enter_context(httpx.Client(base_url=url, timeout=120))
        pool = stack.enter_context(ThreadPoolExecutor(32))

        def post(v: int) -> None:
            sent = {"Content-Type": "application/x-ndjson"}
            answer = client.post("/streams/r/rows", content=f'{{"ts": {v}, "v": {v}}}', headers=sent)
            taken.append(time.perf_counter() - due[v])
            assert answer.status_code == 200, answer.text

        for v in range(WARM_UP):
            due[v] = time.perf_counter()
            post(v)
        taken.clear()
        begin, posts = time.perf_counter(), []
        for number in range(rate * seconds):
            v = WARM_UP + number
            due[v] = begin + number / rate
            time.sleep(max(0.0, due[v] - time.perf_counter()))
            posts.append(pool.submit(post, v))
        for one in posts:
            one.result()
        time.sleep(2.0)
        late = json.loads(client.get("/status").text)["streams"][0]["late"]
        memory = int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) // 1024
    waits = [1000 * (found[v] - due[v]) for v in due if v >= WARM_UP and v in found]
    median, most = np.percentile(waits, [50, 99])
    answered = np.percentile([1000 * one for one in taken], [50, 99])
    return (
        f"{runner:7} {rate:5} {subscribers:11} {stalled:7} {len(waits):6} {late:4} {answered[0]:9.1f} "
        f"{answered[1]:9.1f} {median:9.1f} {most:9.1f} {memory:7}"
    )


def main() -> None:
    """Print a line for each number of subscribers."""
    form = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    options.add_argument("--runner", default="inline", choices=["inline", "spark"])
    options.add_argument("--rate", type=int, default=100, help="posts per second")
    options.add_argument("--seconds", type=int, default=10)
    options.add_argument("--subscribers", type=int, nargs="+", default=[1, 200])
    options.add_argument("--stalled", type=int, default=0)
    given = options.parse_args()
    print("times in ms")
    print("runner  posts/s subscribers stalled  rows late  ack 50 %  ack 99 %  chg 50 %  chg 99 %      MB")
    for subscribers in given.subscribers:
        print(measured(given.runner, given.rate, given.seconds, subscribers, given.stalled), flush=True)


if __name__ == "__main__":
    main()
