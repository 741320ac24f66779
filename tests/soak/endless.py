"""A process that pushes rows, one epoch per push, and tells every tenth of the way what it holds.

Prints lines of JSON: epochs, files of the store, peak resident memory (MB), seconds, CPU seconds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import headrace as hr

TEXT = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 20;
CREATE QUERY sums AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 100] GROUP BY k;
CREATE QUERY pairs AS
  SELECT a.k, a.v, b.v AS w FROM s [RANGE 30] a, s [RANGE 30] b WHERE a.k = b.k AND a.v < b.v;
CREATE QUERY fresh AS ISTREAM(SELECT DISTINCT k FROM s [RANGE 50]);
"""
ROWS = 5
RETAIN = 20


def rows(epoch: int) -> list[dict[str, int]]:
    """What is pushed for an epoch: a little out of order, over a few keys."""
    return [
        {"k": (epoch * 7 + part) % 13, "v": epoch * ROWS + part, "ts": epoch * 5 + (part * 3) % 7}
        for part in range(ROWS)
    ]


def main(folder: Path, epochs: int) -> None:
    """Run that many epochs, with a subscriber that keeps up."""
    started = time.monotonic()
    with hr.connect(runner="inline", storage=folder, retain_epochs=RETAIN) as db:
        db.execute(TEXT)
        db.start()
        changes = db.queries[0].subscribe()
        for epoch in range(epochs):
            db.push("s", rows(epoch), producer="soak", sequence=epoch)
            assert next(changes).epoch == epoch + 1
            if (epoch + 1) % max(1, epochs // 20) == 0:
                report(folder, epoch + 1, started)
        summary = db.stop()
        assert (summary.rows, summary.late) == (epochs * ROWS, 0)


def report(folder: Path, epochs: int, started: float) -> None:
    """Print what is held now."""
    sample = {
        "epochs": epochs,
        "files": sum(path.is_file() for path in folder.rglob("*")),
        "resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time(), 1),
    }
    print(json.dumps(sample), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
