"""How long a row takes through the server: from its POST to its change at a client that watches.

    python benchmarks/serving.py
    python benchmarks/serving.py --runner spark --subscribers 1 200 --seconds 20
    python benchmarks/serving.py --subscribers 1 --stalled 5000 --slow 5000   # 10,000 connections
    python benchmarks/serving.py --write   # to benchmarks/RESULTS.md

A server runs as a process of its own. This one posts rows at a fixed rate, over connections that stay open,
and reads the changes as server-sent events. The clock of a row starts when its POST is due, so that one that
has to wait is counted. Further subscribers of the same query share the events; `stalled` ones never read, and
`slow` ones read a few bytes now and then. Rows are sent until what lies between the server and these is full;
those are not counted. The server's memory is that after the first rows, with the clients that keep up, that
when all the others are full, and that at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import httpx
import numpy as np

from results import RESULTS, Section, machine, write_part

TEXT: Final = """CREATE STREAM r (ts BIGINT, v BIGINT, pad STRING) FROM push TIMESTAMP BY ts DISORDER 1000;
CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v, pad FROM r"""
POSTING: Final = 32
"""So many rows may be under way at once."""
KEPT_OPEN: Final = httpx.Limits(max_keepalive_connections=POSTING, keepalive_expiry=None)
WARM_UP: Final = 1_000
"""So many rows are not counted: in its first ten seconds a JVM compiles."""
FILLING: Final = 20
"""So many large rows fill what lies between the server and a client that does not read."""


@contextmanager
def served(runner: str) -> Iterator[tuple[str, int]]:
    """A server in a process: its URL, and the process."""
    with TemporaryDirectory() as folder:
        script = Path(folder, "q.sql")
        script.write_text(TEXT)
        command = [sys.executable, "-m", "headrace", "serve", str(script), "--storage", f"{folder}/store"]
        with subprocess.Popen(
            [*command, "--port", "0", "--runner", runner, "--subscribers", "20000"],
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stderr is not None
            url = next(found[1] for line in server.stderr if (found := re.search(r"serving (\S+)", line)))
            threading.Thread(target=server.stderr.read, daemon=True).start()
            try:
                yield url, server.pid
            finally:
                server.send_signal(signal.SIGTERM)


def connected(url: str, buffer: int | None = None) -> socket.socket:
    """A connection on which the changes come; with so many bytes between the client and the network."""
    parts = urlsplit(url)
    made = socket.socket()
    if buffer is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.connect((parts.hostname or "", parts.port or 0))
    made.sendall(f"GET /queries/q/events?since=now HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return made


def let_many_connect() -> None:
    """Allow as many connections as the system does, for this process and the server that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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


def dribbled(connections: Sequence[socket.socket], over: threading.Event) -> None:
    """Read a few bytes of each connection in turn, as clients do that cannot keep up."""
    for one in connections:
        one.setblocking(False)
    while not over.wait(1.0):
        for one in connections:
            with suppress(OSError):  # nothing has come, or it is over
                one.recv(100)


def megabytes(process: int) -> int:
    """The memory that a process has."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) // 1024


def processor_seconds(process: int) -> float:
    """The processor time that a process has used, which does not depend on what else the machine does."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes:
        runner: the server's.
        subscribers: clients that keep up; the changes of the first are timed.
        stalled: clients that never read.
        slow: clients that read a few bytes a second.
    """

    runner: str
    subscribers: int
    stalled: int = 0
    slow: int = 0


class Posts:
    """Rows that are sent at a fixed rate, and how long each takes.

    Args:
        client: of the server.

    Attributes:
        due: when each row was to be sent.
        taken: the seconds until each was acknowledged.
    """

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._next = 0
        self.due: dict[int, float] = {}
        self.taken: list[float] = []

    def send(self, number: int, rate: float, size: int = 200) -> None:
        """Send so many rows of about so many bytes, and wait until all are acknowledged."""
        begin, posts = time.perf_counter(), []
        with ThreadPoolExecutor(POSTING) as pool:
            for v in range(self._next, self._next + number):
                self.due[v] = begin + (v - self._next) / rate
                time.sleep(max(0.0, self.due[v] - time.perf_counter()))
                posts.append(pool.submit(self._post, v, size))
            for one in posts:
                one.result()
        self._next += number

    def forget(self) -> None:
        """Count from here on."""
        self.due.clear()
        self.taken.clear()

    def _post(self, v: int, size: int) -> None:
        row = json.dumps({"ts": v, "v": v, "pad": "x" * size})
        sent = {"Content-Type": "application/x-ndjson"}
        answer = self._client.post("/streams/r/rows", content=row, headers=sent)
        self.taken.append(time.perf_counter() - self.due[v])
        assert answer.status_code == 200, answer.text


def measured(case: Case, rate: int, seconds: int) -> tuple[str, ...]:
    """The cells of one line of figures."""
    found: dict[int, float] = {}
    over = threading.Event()
    with served(case.runner) as (url, process), ExitStack() as stack:
        stack.callback(over.set)
        watching = [stack.enter_context(connected(url)) for _ in range(case.subscribers)]
        threading.Thread(target=arrivals, args=(watching[0], found), daemon=True).start()
        threading.Thread(target=drained, args=(watching[1:],), daemon=True).start()
        posts = Posts(stack.enter_context(httpx.Client(base_url=url, timeout=120, limits=KEPT_OPEN)))
        posts.send(WARM_UP, rate)
        before = megabytes(process)
        stalled = [stack.enter_context(connected(url, 4_096)) for _ in range(case.stalled)]
        slow = [stack.enter_context(connected(url, 4_096)) for _ in range(case.slow)]
        await_clients(url, case.subscribers + len(stalled) + len(slow))
        if stalled or slow:
            posts.send(FILLING, rate, 10_000)
            await_all(found, posts.due)
        connected_size = megabytes(process)
        threading.Thread(target=dribbled, args=(slow, over), daemon=True).start()
        posts.forget()
        used = processor_seconds(process)
        posts.send(rate * seconds, rate)
        await_all(found, posts.due)
        used = 1000 * (processor_seconds(process) - used) / len(posts.due)
        after = megabytes(process)
    waits = [1000 * (found[v] - due) for v, due in posts.due.items()]
    figures = [np.percentile(part, [50, 99]) for part in ([1000 * one for one in posts.taken], waits)]
    clients = (str(case.subscribers), f"{case.stalled:,}", f"{case.slow:,}")
    times = tuple(f"{one:.0f} ms" for pair in figures for one in pair)
    return (
        case.runner,
        *clients,
        *times,
        f"{used:.1f} ms",
        *(f"{size:,} MB" for size in (before, connected_size, after)),
    )


def await_clients(url: str, number: int) -> None:
    """Wait until so many clients wait for changes."""
    until = time.monotonic() + 120
    with httpx.Client(base_url=url, timeout=120) as client:
        while f"headrace_subscribers {float(number)}" not in client.get("/metrics").text:
            assert time.monotonic() < until, "the clients were not taken"
            time.sleep(0.2)


def await_all(found: dict[int, float], due: dict[int, float]) -> None:
    """Wait until the change of every row has come."""
    until = time.monotonic() + 120
    while not due.keys() <= found.keys():
        assert time.monotonic() < until, f"{len(due.keys() - found.keys())} changes have not come"
        time.sleep(0.05)


HEADS: Final = (
    "runner", "subscribers", "stalled", "slow", "committed, median", "99 %", "change, median", "99 %",
    "processor per row", "memory with subscribers", "with all clients", "after the rows",
)  # fmt: skip
CASES: Final = (
    Case("inline", 1), Case("inline", 200), Case("inline", 1, 5_000, 5_000), Case("spark", 1),
    Case("spark", 200),
)  # fmt: skip


def main() -> None:
    """Print a line for each case."""
    form = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    options.add_argument("--runner", default="inline", choices=["inline", "spark"])
    options.add_argument("--rate", type=int, default=100, help="posts per second")
    options.add_argument("--seconds", type=int, default=10)
    options.add_argument("--subscribers", type=int, nargs="+", help="clients that keep up; else all cases")
    options.add_argument("--stalled", type=int, default=0)
    options.add_argument("--slow", type=int, default=0)
    options.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    given = options.parse_args()
    let_many_connect()
    asked = given.subscribers and [
        Case(given.runner, number, given.stalled, given.slow) for number in given.subscribers
    ]
    rows = []
    print(" | ".join(HEADS))
    for case in asked or CASES:
        rows.append(measured(case, given.rate, given.seconds))
        print(" | ".join(rows[-1]), flush=True)
    if given.write:
        text = f"{given.rate} posts of one row per second, each from when it is due; {given.seconds} seconds."
        section = Section("From a POST to its change at a client", HEADS, tuple(rows), text)
        write_part("The server", f"`python benchmarks/serving.py --write`, {machine()}.\n\n{section}")


if __name__ == "__main__":
    main()
