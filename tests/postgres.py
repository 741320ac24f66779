"""A PostgreSQL server of a test's own, where its programs are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

USER = "postgres"


@contextmanager
def postgres(port: int | None = None, password: str | None = None) -> Iterator[Path]:
    """A server that runs within the block; the folder of its socket.

    Args:
        port: the one of this machine's loopback address by which it is reached too, or None.
        password: that of the user, which the server then asks for, or None.
    """
    initdb, pg_ctl, user = _program("initdb"), _program("pg_ctl"), _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="headrace-postgres-"))
    secret = folder / "password"
    secret.write_text(password or "")
    if user is not None:
        shutil.chown(folder, user)
        shutil.chown(secret, user)

    def run(*command: str) -> None:
        done = subprocess.run(
            command, cwd=folder, user=user, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    data = str(folder / "data")
    asking = ["-A", "trust"] if password is None else ["-A", "scram-sha-256", f"--pwfile={secret}"]
    reached = "" if port is None else f"127.0.0.1 -p {port}"
    try:
        run(initdb, "-D", data, "-U", USER, *asking, "-N", "-E", "UTF8", "--locale=C")
        options = f"-c listen_addresses={reached} -c unix_socket_directories={folder} -c fsync=off"
        run(pg_ctl, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield folder
        finally:
            run(pg_ctl, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} of PostgreSQL on the PATH")
    return found


def _unprivileged() -> str | None:
    """A user that the server may run as: PostgreSQL refuses to run as root."""
    if os.geteuid():
        return None
    try:
        return pwd.getpwnam(USER).pw_name
    except KeyError:
        return "nobody"
