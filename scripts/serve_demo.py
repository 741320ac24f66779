"""A server with queries over an auction site, and the bids that it gets as if they happened now.

Ctrl-C stops both. `make serve-demo` runs it. The store is a temporary folder, unless `--storage` names one.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

import headrace as hr
from headrace.errors import BusyError
from headrace.workloads.nexmark import Nexmark, generate

ROOT: Final = Path(__file__).resolve().parent.parent
COLUMNS: Final = ("auction", "bidder", "price", "channel", "ts")
BETWEEN: Final = 0.2
"""Seconds between two requests with bids."""
PATIENCE: Final = 30
"""Seconds that the server has to stop."""
LINES: Final = 100
"""Of the server's log so many lines are shown if it fails."""
SERVING: Final = re.compile(r"headrace: serving (\S+)")


def main() -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code."""
    options = _options()
    stopped = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stopped.set())
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        storage = options.storage or Path(folder, "store")
        with serving(storage, options.port, options.runner) as server:
            log: deque[str] = deque(maxlen=LINES)
            url = url_of(server, log)
            if url is None:
                return server.wait(PATIENCE)
            print(f"serving {url}, with {options.rate} bids per second; Ctrl-C stops it", flush=True)
            print(f"look with: headrace shell --url {url}, and then \\watch hottest", flush=True)
            try:
                send_bids(hr.Client(url), options.rate, stopped)
            except hr.UserError as error:
                if not stopped.is_set():
                    print("the server's log:", *log, f"\n{error}", sep="", file=sys.stderr)
                    return 2
    print("stopped", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7878, help="0 for a free one")
    parser.add_argument("--rate", type=int, default=100, help="bids per second, about")
    parser.add_argument("--runner", choices=("inline", "spark"), default="inline")
    parser.add_argument("--storage", type=Path, help="the folder of the store, which is kept")
    return parser.parse_args()


@contextmanager
def serving(storage: Path, port: int, runner: str) -> Iterator[subprocess.Popen[str]]:
    """A server in a process of its own, which is stopped at the end of the block.

    Args:
        storage: the folder of its store.
        port: 0 for a free one.
        runner: inline or spark.
    """
    words = [sys.executable, "-m", "headrace", "serve", str(ROOT / "examples" / "serve.sql")]
    words += ["--storage", str(storage), "--port", str(port), "--runner", runner]
    # In a session of its own: Ctrl-C is for this process, which stops the server once.
    server = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def url_of(server: subprocess.Popen[str], log: deque[str] | None = None) -> str | None:
    """The server's URL, once it takes requests; None where it has ended before. Its log goes on to `log`."""
    kept: deque[str] = deque(maxlen=LINES) if log is None else log
    assert server.stderr is not None
    for line in server.stderr:
        if found := SERVING.search(line):
            threading.Thread(target=kept.extend, args=[server.stderr], daemon=True).start()
            return found[1]
        print(line, end="", file=sys.stderr)
    return None


def send_bids(client: hr.Client, rate: int, stopped: threading.Event) -> None:
    """Send bids at the pace at which they happen, until that is stopped.

    Args:
        client: of the server.
        rate: events per second, nearly all of which are bids.
        stopped: ends it.
    """
    begun = time.time()
    spec = Nexmark(2**40, rate=rate, start=int(begun * 1_000_000))
    sent = 0
    while not stopped.wait(BETWEEN):
        due = int((time.time() - begun) * rate)
        bids = generate(spec, "bid", sent, due, COLUMNS)
        if bids.num_rows:
            _send(client, bids, due, stopped)
        sent = due


def _send(client: hr.Client, bids: pa.Table, sequence: int, stopped: threading.Event) -> None:
    """Send rows, again and again while a busy machine does not get to them; they are taken once."""
    while not stopped.is_set():
        try:
            client.push("bid", bids, producer="demo", sequence=sequence)
        except hr.UserError as error:
            if not isinstance(error, BusyError) and "takes longer" not in str(error):
                raise
            print(f"the machine is busy, sending again: {error}", file=sys.stderr, flush=True)
            stopped.wait(BETWEEN)
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
