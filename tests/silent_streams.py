"""Three streams that are joined: one is silent, one is filtered to nothing, one is 10 minutes behind.

As a program it runs them over a durable store, and is killed in the middle of the silence.
"""

from __future__ import annotations

import os
import signal
import sys

import headrace as hr
from headrace.runtime.driver.endless import live
from watched_clock import Clock

IDLE = 10
"""After so many seconds without rows the silent stream no longer holds the others back."""

MINUTES = 600
"""How far the one that is behind is (instants)."""

PUSHED = "CREATE STREAM {name} (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts {said};"
STREAMS = PUSHED.format(name="filtered", said="") + PUSHED.format(name="behind", said="DISORDER 5")
SILENT = PUSHED.format(name="silent", said=f"IDLE AFTER {IDLE} SECONDS")
QUERY = """
CREATE QUERY joined {clause} AS SELECT b.v, s.v AS other
FROM behind [RANGE 1] b, filtered [RANGE 10000] f, silent [RANGE 10000] s
WHERE b.v = f.v AND f.v = s.v AND f.v < 100
"""

CLAUSES = ("", "HEARTBEATS COMMON")
"""How far the first join of the query runs ahead of the last."""


def begin(db: hr.Database) -> None:
    """Rows of all of them at the instant 0, from the silent one only if it is pushed."""
    db.start()
    if "silent" in db.pushed:
        db.push("silent", {"v": 1, "ts": 0})
    db.push("filtered", {"v": 1, "ts": 0})
    db.push("behind", {"v": 1, "ts": 0})


def push(db: hr.Database, at: int) -> None:
    """A row that is filtered out, and one that is 10 minutes older and finds partners."""
    db.push("filtered", {"v": 100 + at, "ts": at + MINUTES})
    db.push("behind", {"v": 1, "ts": at})


def main(store: str, clause: str) -> None:
    """Be silent for more than half of the time that it takes, with a commit before the end."""
    live._LOOK = 0.005
    clock = Clock()
    db = hr.connect(runner="inline", storage=store, clock=clock)
    db.execute(STREAMS + SILENT + QUERY.format(clause=clause))
    begin(db)
    clock.let_pass(IDLE - 3)
    push(db, 50)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
