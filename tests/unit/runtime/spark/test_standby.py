"""The daemon that loads while the JVM starts; the test takes the JVM's place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headrace.runtime.spark.startup import standby

pytest.importorskip("pyspark", reason="Spark is not installed")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a short name, since that of a socket may have some 100 bytes."""
    with TemporaryDirectory() as name:
        yield Path(name)


def spark_starts_its_own(place: Path) -> subprocess.Popen[bytes]:
    """Spark's daemon, as the JVM starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "headrace.runtime.spark.startup.daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ
        | {
            standby.PLACE: str(place),
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_DIR": str(place.parent),
        },
    )


def address_of(daemon: subprocess.Popen[bytes]) -> Path:
    """The socket at which workers are asked for: a length of 4 bytes and its name."""
    assert daemon.stdout is not None
    return Path(daemon.stdout.read(int.from_bytes(daemon.stdout.read(4), "big")).decode())


def close(daemon: subprocess.Popen[bytes]) -> int:
    """End a daemon as Spark does; its exit code."""
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    daemon.stdin.close()
    with daemon.stdout:
        return daemon.wait(60)


def test_the_one_that_waits_serves_in_place_of_spark_s(folder: Path) -> None:
    waits, held = standby.start(folder / "door", {})
    while not (folder / "door").exists():
        assert waits.poll() is None
    daemon = spark_starts_its_own(folder / "door")
    assert address_of(daemon).is_socket()
    # Only the one that serves is the leader of a group of its own.
    assert os.getpgid(daemon.pid) == os.getpgid(0)
    assert waits.poll() is None
    # It belongs to Spark's pipes now, and no longer to the JVM that was begun.
    os.close(held)
    assert close(daemon) == 0
    waits.wait(60)  # with 1, as PySpark's does in any case


def test_the_second_daemon_of_a_jvm_loads_by_itself(folder: Path) -> None:
    daemon = spark_starts_its_own(folder / "door")
    assert address_of(daemon).is_socket()
    assert os.getpgid(daemon.pid) == daemon.pid
    close(daemon)


def test_one_that_ends_before_it_has_taken_over_is_not_waited_for(folder: Path) -> None:
    waits, held = standby.start(folder / "door", {})
    while not (folder / "door").exists():
        assert waits.poll() is None
    waits.kill()
    waits.wait(60)
    os.close(held)
    assert not standby.is_replaced(str(folder / "door"))


def test_it_ends_with_a_jvm_that_never_needs_it(folder: Path) -> None:
    waits, held = standby.start(folder / "door", {})
    os.close(held)
    assert waits.wait(60) == 0
