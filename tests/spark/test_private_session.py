"""A session that Headrace starts: what others see of it, its ports and its files, and when it is stopped."""

from __future__ import annotations

import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace

pytestmark = pytest.mark.spark

LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
"""127.0.0.1, as IPv4 and within IPv6, and ::1, as /proc writes them."""

START = """
import pyarrow, headrace
from pyspark import SparkContext
from pyspark.sql import SparkSession
first, last = (headrace.connect(master="local[1]") for _ in range(2))
for db in (first, last):
    db.stream("s", pyarrow.table({"ts": [1, 2], "v": [1, 2]}), timestamp="ts")
    db.query("SELECT SUM(v) AS v FROM s [RANGE 10]")
    db.run()
first.close()
last.query("SELECT MAX(v) AS v FROM s [RANGE 10]")
last.run()
assert SparkSession._instantiatedSession is None, "epochs over splits need no session"
print("started", flush=True)
input()
last.close()
assert SparkContext._active_spark_context is None
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's /proc")
def test_a_session_answers_only_to_its_own_user() -> None:
    # Not in pytest's folder, whose path is too long for a socket.
    with (
        tempfile.TemporaryDirectory(prefix="h", dir="/tmp") as temporary,
        subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": temporary},
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        listening = list(listening_of(set(descendants(process.pid))))
        answers = [ask(port) for address, port in listening if address in LOOPBACK]
        (folder,) = Path(temporary).iterdir()
        mode, names = folder.stat().st_mode, " ".join(path.name for path in folder.iterdir())
        process.communicate("\n")
        assert process.returncode == 0, "the first database stopped the session, or the last one did not"
        left = list(Path(temporary).iterdir())
    assert [address for address, _ in listening if address not in LOOPBACK] == []
    assert sum(b"Expected SaslMessage" in answer for answer in answers) == 2, "the driver's and its blocks'"
    assert not any(b"StreamCorrupted" in answer for answer in answers), "what we sent was read as an object"
    assert stat.S_IMODE(mode) == 0o700
    assert ".sock" in names
    assert "blockmgr-" in names
    assert left == []


def test_a_session_that_was_there_before_goes_on(spark: Any) -> None:
    with headrace.connect() as db:
        db.stream("s", pa.table({"ts": [1, 2], "v": [1, 2]}), timestamp="ts")
        db.query("SELECT SUM(v) AS v FROM s [RANGE 10]")
        db.run()
    assert spark.range(3).count() == 3


def descendants(pid: int) -> Iterator[int]:
    """A process and all that it has started."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def listening_of(pids: set[int]) -> Iterator[tuple[str, int]]:
    """The addresses, in hexadecimal, and the ports of TCP on which processes listen."""
    links = [str(file.readlink()) for pid in pids for file in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A" and parts[9] in inodes:
                address, _, port = parts[1].partition(":")
                yield address, int(port, 16)


def ask(port: int) -> bytes:
    """What a port answers to a request in the protocol of Spark's network, without the secret."""
    body = b"let me in\n"
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(struct.pack(">qbqi", 21 + len(body), 3, 1, len(body)) + body)
        connection.settimeout(20)
        try:
            return connection.recv(4096)
        except ConnectionError:
            return b""
