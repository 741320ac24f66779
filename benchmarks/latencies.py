"""The time that answers take on Headrace and on Flink, with the same bids at the same pace.

    python benchmarks/latencies.py                            # prints the figures
    python benchmarks/latencies.py --only over --systems inline flink --runs 1 --seconds 5
    python benchmarks/latencies.py --write                    # also writes them to benchmarks/RESULTS.md

`latency.py` says what an answer is and when its clock starts. On Flink batches are due at the same times; its
source has their rows in memory. Its answer for a batch is complete with the last row that the batch makes
final: at once for q0 and the join, for OVER when there is a later row, and for a window in the batch with the
first row behind it. Every run is a process of its own, and the systems take turns. The rows that Flink's sink
is given are counted; the program ends with 1 if they are too few or too many, or a run fails.
`scripts/setup_peers.sh` puts Flink where it is looked for.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from headrace.workloads.nexmark import Nexmark
from latencies_report import WAYS, Measured, report
from latency import EVENT_RATE, QUERIES
from paced import Pace, read_notes
from peer_duckdb import DuckDB
from peers import run
from results import RESULTS, write_part
from systems import FOLDER, SYSTEMS

TITLE: Final = "How long an answer takes"
_FLINK: Final = SYSTEMS["flink"]
_HERE: Final = Path(__file__).parent
_LONGEST: Final = 120
"""The seconds that starting and ending a run may take."""


def main() -> int:
    """Measure what is asked for, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=QUERIES, help="which queries")
    parser.add_argument("--systems", nargs="+", choices=WAYS, default=list(WAYS), help="which systems")
    parser.add_argument("--runs", type=int, default=5, help="of each; other settings of Flink have one")
    parser.add_argument("--rate", type=float, default=100_000, help="bids per second")
    parser.add_argument("--every", type=float, default=0.01, help="seconds between two batches")
    parser.add_argument("--warm-up", type=float, default=10, help="seconds that are not counted")
    parser.add_argument("--seconds", type=float, default=15, help="those that are")
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    asked = parser.parse_args()
    if asked.write and (set(asked.only), set(asked.systems)) != (set(QUERIES), set(WAYS)):
        parser.error("--write is for all queries and systems together")
    if any(WAYS[name].flink for name in asked.systems) and not Path(_FLINK.command[0]).exists():
        parser.error("Flink is not there; scripts/setup_peers.sh installs it below this folder")
    # So that the process that is measured ends with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    # In a run nothing is to be compiled for the first time.
    subprocess.run([sys.executable, "-m", "headrace.kernels"], check=True)
    pace = Pace(asked.rate, asked.every, asked.warm_up, asked.seconds)
    if any(WAYS[name].flink for name in asked.systems):
        pace.data()
    figures: dict[tuple[str, str], list[Measured]] = {}
    problems: list[str] = []
    for query in asked.only:
        for number in range(asked.runs):
            for name in asked.systems:
                if number and WAYS[name].once:
                    continue
                print(f"{query:9} {WAYS[name].title:31} ", end="", flush=True)
                found = _measure(query, name, pace)
                print(found, flush=True)
                if isinstance(found, Measured):
                    figures.setdefault((query, name), []).append(found)
                else:
                    problems.append(f"{query} on {WAYS[name].title}: {found}")
    text = report(pace, asked.only, figures, problems)
    print(f"\n{text}")
    if asked.write:
        write_part(TITLE, text)
    return int(bool(problems))


def _measure(query: str, name: str, pace: Pace) -> Measured | str:
    """One run; the figures, or what went wrong."""
    way, log = WAYS[name], FOLDER / "logs" / f"latency-{query}-{name}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER) as folder, log.open("w") as output:
        report = Path(folder) / "report.json"
        command = _flinks(query, pace, Path(folder)) if way.flink else _ours(query, pace)
        ended = run(
            [*command, *way.options, f"--report={report}"],
            os.environ | (_FLINK.variables if way.flink else {}),
            output.fileno(),
            pace.warm_up + pace.seconds + _LONGEST,
        )
        if report.exists():
            found = json.loads(report.read_text())
            return _noted(query, pace, Path(folder), found) if way.flink else Measured.read(found[query])
    lines = log.read_text().strip().splitlines()
    return f"{ended}; {lines[-1] if lines else 'no output'} (all of it in {log.relative_to(FOLDER.parent)})"


def _ours(query: str, pace: Pace) -> Sequence[str]:
    """The command for Headrace."""
    times = {name: getattr(pace, name) for name in ("rate", "every", "warm_up", "seconds")}
    given = [f"--{name.replace('_', '-')}={value}" for name, value in times.items()]
    return [sys.executable, str(_HERE / "latency.py"), f"--only={query}", *given]


def _flinks(query: str, pace: Pace, folder: Path) -> Sequence[str]:
    """The command for Flink, with a folder for what the sink notes."""
    given = {
        "query": query,
        "data": pace.data(),
        "answer": folder,
        "origin": Nexmark.start // 1000,
        "length": pace.events * 1_000_000 // EVENT_RATE,
        "every": round(pace.every * 1e6),
    }
    script = str(_HERE / "latency_flink.py")
    return [_FLINK.command[0], script, *(f"--{name}={value}" for name, value in given.items())]


def _noted(query: str, pace: Pace, folder: Path, report: Mapping[str, float]) -> Measured | str:
    """The figures of what Flink's sink has noted, or that these are not the rows of the answer."""
    notes = read_notes(folder)
    with DuckDB() as duckdb:
        expected = duckdb.count(query, pace.data())
    if (rows := int(notes[:, 1].sum())) != expected:
        return f"{rows:,} rows, and not {expected:,}"
    try:
        return Measured(pace.latencies(notes), report["foreign"])
    except ValueError as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main())
