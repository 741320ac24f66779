"""A Python daemon that loads while the JVM starts, and takes the place of the one that Spark starts.

Spark starts its daemon for the first task that needs Python, and waits two seconds for it to load. Where a
command begins Spark ahead, one that has loaded already waits at a Unix socket: Spark's daemon hands it the
pipes over which Spark speaks to it, with its environment, and waits for its end. Nothing here is slow to
import.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.runtime.tasks.heap import keep_one_arena

PLACE: Final = "HEADRACE_STANDBY"
"""The variable of the JVM's environment that names the socket."""

_PIPES: Final = (0, 1, 2)
"""Standard input, by which Spark ends a daemon, output, by which it learns its address, and error."""


def start(place: Path, environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a daemon that waits.

    Args:
        place: of its socket, in a folder that is closed to other users.
        environment: what Spark gives its daemon besides the environment of this process.

    Returns:
        Its process, and a pipe for the JVM to hold open: it ends with the JVM unless it is taken by then.
    """
    end, held = os.pipe()
    try:
        process = subprocess.Popen(
            # Without -P, modules in the current folder would be found before Python's own.
            [sys.executable, "-P", "-m", __name__, str(place)],
            stdin=end,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | environment,
            process_group=0,
        )
    except OSError:
        os.close(held)
        raise
    finally:
        os.close(end)
    return process, held


def is_replaced(place: str) -> bool:
    """Hand this daemon's pipes to the one that waits, and wait for its end.

    Args:
        place: of the socket at which it waits.

    Returns:
        False, at once, if there is none.
    """
    told = {"words": sys.argv[1:], "path": sys.path, "environment": dict(os.environ)}
    taken = False
    with socket.socket(socket.AF_UNIX) as door, suppress(OSError):
        door.connect(place)
        socket.send_fds(door, [b"\0"], _PIPES)
        door.sendall(json.dumps(told).encode())
        door.shutdown(socket.SHUT_WR)
        taken = bool(door.recv(1))
        door.recv(1)
    return taken


def loaded() -> Callable[[], None]:
    """Load what workers need; the function that forks them."""
    keep_one_arena()
    from headrace.runtime.spark.startup.workers import load, serve

    load()
    return serve


def main() -> None:
    """Load what workers need, wait for Spark's daemon, and serve in its place."""
    gc.disable()
    place = sys.argv[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        serve = loaded()
        ready, _, _ = select.select([0, listener.fileno()], [], [])
        if 0 in ready:
            return
        door, _ = listener.accept()
        os.unlink(place)
    _, pipes, _, _ = socket.recv_fds(door, 1, len(_PIPES))
    told = json.loads(_all_of(door))
    for pipe, number in zip(pipes, _PIPES, strict=True):
        os.dup2(pipe, number)
        os.close(pipe)
    sys.argv[1:], sys.path[:] = told["words"], told["path"]
    os.environ.clear()
    os.environ.update(told["environment"])
    door.sendall(b"\0")
    # It stays open until this process ends.
    serve()


def _all_of(door: socket.socket) -> bytes:
    with door.makefile("rb") as file:
        return file.read()


if __name__ == "__main__":
    main()
