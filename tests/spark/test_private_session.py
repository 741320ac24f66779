"""What a session that Headrace starts listens on, and to whom: seen from another process."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
"""127.0.0.1, as IPv4 and within IPv6, and ::1, as /proc writes them."""

START = """
from headrace.runtime.spark.runner import SparkRunner
runner = SparkRunner(None, "local[1]")
print("started", flush=True)
input()
runner.close()
"""


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's /proc")
def test_ports_are_this_machines_and_ask_for_the_secret() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        listening = list(listening_of(set(descendants(process.pid))))
        answers = [ask(port) for address, port in listening if address in LOOPBACK]
        process.communicate("\n")
    assert [address for address, _ in listening if address not in LOOPBACK] == []
    assert sum(b"Expected SaslMessage" in answer for answer in answers) == 2, "the driver's and its blocks'"
    assert not any(b"StreamCorrupted" in answer for answer in answers), "what we sent was read as an object"


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
