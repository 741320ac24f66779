"""The time that answers take on Flink: one query over bids that come at a steady pace; see `latencies.py`.

Rows are in memory before the job starts, and are emitted when they are due (`PreloadedRows.java`); the sink
notes when the answer of each batch is complete (`NotedAnswers.java`). Rows of one millisecond may be in both
instances of a source, so a watermark is a millisecond behind, and a row of OVER is final at the next one.

Mini-batches are off, since rows wait for them. By default the source says at the end of a batch that it is
over, and what is sent waits a millisecond for more: nothing was found to be faster. Without any wait, OVER
does not keep up with 100,000 rows per second on two cores. See `--watermarks` and `--buffers`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from peer_flink import SETTINGS, TEXTS, environment, insert
from processes import Watch

_OVER: Final = TEXTS["over"][0].replace("SELECT ", "SELECT ts, ", 1)
_JOIN: Final = TEXTS["join"][0].replace("SELECT ", "SELECT b.ts, ", 1)
_ANSWERS: Final[Mapping[str, tuple[str, str, int]]] = {
    "q0": (TEXTS["q0"][0], "ts", 0),
    "over": (_OVER, "ts", 1),
    "join": (_JOIN, "ts", 0),
    "tumbling": (TEXTS["tumbling"][0], "window_end", 0),
}
"""The queries, with the instants of their rows: how many milliseconds later a row makes them final."""


def main() -> None:
    """Run a query to its end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--query", choices=_ANSWERS, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the rows")
    parser.add_argument("--answer", type=Path, required=True, help="a folder for what the sink notes")
    parser.add_argument("--report", type=Path, required=True, help="a file for the load of others, as JSON")
    parser.add_argument("--origin", required=True, help="where the first batch begins, in milliseconds")
    parser.add_argument("--length", required=True, help="of a batch, in microseconds of event time")
    parser.add_argument("--every", required=True, help="microseconds between two batches")
    parser.add_argument(
        "--watermarks",
        type=int,
        default=0,
        help="milliseconds between Flink's own; 0: from the source",
    )
    parser.add_argument("--buffers", type=int, default=1, help="milliseconds for which rows wait to be sent")
    chosen = parser.parse_args()
    pace = {f"pace.{name}": getattr(chosen, name) for name in ("origin", "length", "every")}
    settings = {
        **SETTINGS,
        "table.exec.mini-batch.enabled": "false",
        "pipeline.auto-watermark-interval": f"{chosen.watermarks or 200} ms",
        "execution.buffer-timeout.interval": f"{chosen.buffers} ms",
    }
    watermark = "ts - INTERVAL '0.001' SECOND" if chosen.watermarks else "SOURCE_WATERMARK()"
    text, column, later = _ANSWERS[chosen.query]
    sink = {"connector": "noted", "path": str(chosen.answer), "column": column, "later": str(later), **pace}
    # A look at the memory of a process may hold it up.
    with Watch(interval=3600) as watch:
        insert(environment(chosen.data, settings, watermark, pace), [text], sink)
    chosen.report.write_text(json.dumps({"foreign": watch.used.foreign}))


if __name__ == "__main__":
    main()
