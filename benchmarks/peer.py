"""What the systems that are compared have in common: a process that measures one query on one of them.

Needs the standard library alone, since each system has an environment of its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from measured import measure

QUERIES: Final = (
    "q0",
    "project",
    "over",
    "join",
    "tumbling",
    "distinct",
    "hop",
    "1 count",
    "10 counts",
    "100 counts",
)
"""The queries of `spellings.SPELLED` that others can say, too."""

CORES: Final = 2


class Peer(Protocol):
    """A system that is ready to run queries."""

    def run(self, query: str, data: Path) -> float:
        """Run one of `QUERIES` over the bids and auctions below a folder, and discard the results.

        Returns:
            The seconds by the system's own clock.
        """
        ...

    def save(self, query: str, data: Path, answer: Path) -> None:
        """Write the results to files in a folder, in the order of the query's columns."""
        ...


def serve(start: Callable[[], AbstractContextManager[Peer]]) -> None:
    """Measure one query, as the command line says.

    Args:
        start: starts the system.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--query", choices=QUERIES, required=True)
    parser.add_argument("--few", type=Path, required=True, help="the rows for an answer that is written")
    parser.add_argument("--answer", type=Path, required=True, help="an empty folder for it")
    parser.add_argument("--warm", type=Path, required=True, help="the rows of runs that warm up")
    parser.add_argument("--warm-ups", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the rows of the counted runs")
    parser.add_argument("--rows", type=int, required=True, help="how many bids these are")
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--report", type=Path, required=True, help="a file for the figures, as JSON")
    chosen = parser.parse_args()
    with start() as peer:
        peer.save(chosen.query, chosen.few, chosen.answer)
        for _ in range(chosen.warm_ups):
            peer.run(chosen.query, chosen.warm)
        found = measure(partial(peer.run, chosen.query, chosen.data), chosen.rows, chosen.runs)
    chosen.report.write_text(json.dumps(asdict(found)))
