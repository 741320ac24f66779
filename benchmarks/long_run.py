"""Whether memory stays flat: one run over generated bids, as long as wanted, with what it holds meanwhile.

    python benchmarks/long_run.py --events 500000000 --query sliding

Prints for each stretch of the run its rate, the memory of all processes together, and the rows of state.
"""

from __future__ import annotations

import argparse

from headrace import Progress, connect
from processes import memory
from spellings import SPELLED

_QUERIES = ("q0", "project", "sliding", "tumbling", "distinct", "over")


class Stretches:
    """Prints a line for each stretch of a run.

    Args:
        every: rows of a stretch.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._rows, self._seconds = 0, 0.0
        self._most = 0

    def __call__(self, progress: Progress) -> None:
        """Look at the memory; print a line where a stretch ends."""
        self._most = max(self._most, memory())
        rows, seconds = progress.rows - self._rows, progress.seconds - self._seconds
        if rows >= self._every or progress.share == 1.0:
            print(
                f"{progress.rows:>13,} rows  {rows / max(seconds, 1e-9) / 1e6:6.3f} M/s  "
                f"memory {self._most / 1e6:6,.0f} MB  state {progress.buffered:>10,} rows",
                flush=True,
            )
            self._rows, self._seconds, self._most = progress.rows, progress.seconds, 0


def main() -> None:
    """Run one query over as many events as asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=500_000_000, help="NEXMark events; 92 percent are bids")
    parser.add_argument("--every", type=int, default=25_000_000, help="rows of a stretch")
    parser.add_argument("--query", choices=_QUERIES, default="sliding")
    parser.add_argument("--inline", action="store_true", help="in this process, without Spark")
    options = parser.parse_args()
    with connect(runner="inline" if options.inline else "spark", keep_results=False) as db:
        db.execute(f"CREATE STREAM bid FROM nexmark OPTIONS (events={options.events}) TIMESTAMP BY ts")
        for query in SPELLED[options.query]:
            db.query(query)
        db.run(Stretches(options.every))


if __name__ == "__main__":
    main()
