"""Headrace beside other systems: the same queries over the same bids, in one run.

    python benchmarks/peers.py                       # prints the figures
    python benchmarks/peers.py --only q0 tumbling --events 1000000
    python benchmarks/peers.py --write               # also writes them to benchmarks/RESULTS.md

`make bench-peers` sets up what it needs. Every query runs on every system in a process of its own, which
first writes its answer over few rows, then warms up, then is measured. Answers are compared; the program ends
with 1 if one differs or a query fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from answers import compare
from bids import rows_of, write_bids, write_columns
from measured import Measured
from peer import QUERIES
from peers_report import report
from results import RESULTS, write_part
from systems import FOLDER, SYSTEMS

TITLE: Final = "Beside other systems"

FILES: Final = 80
"""Into so many files the bids are cut. A part of them is the first ones."""

_FLINKS: Final = {"bid": ("auction", "bidder", "price", "channel", "ts"), "auction": ("id", "seller", "ts")}
"""The columns that Flink's source has: those that the queries read."""


class Data:
    """The rows, written where they are missing.

    Args:
        folder: below it.
        events: of NEXMark, of all kinds, for the counted runs.
        few: so many for the answers that are compared.
    """

    def __init__(self, folder: Path, events: int, few: int) -> None:
        self.folder = folder / str(events)
        self.few = folder / f"{few}-few"
        # Ten times as long for as many events, so that rows leave the windows of a minute.
        write_events(self.few, few, files=2, rate=1_000)
        write_events(self.part(1), events, files=FILES, rate=10_000)

    def part(self, part: int) -> Path:
        """Where the first 1/part of the files are; the whole must be there."""
        part = min(part, FILES)
        folder = self.folder / f"part-{part}"
        if part > 1 and not folder.exists():
            with _whole(folder) as unfinished:
                for table in ("bid", "auction"):
                    (unfinished / table).mkdir()
                    for path in sorted((self.part(1) / table).iterdir())[: FILES // part]:
                        os.link(path, unfinished / table / path.name)
        return folder


def write_columns_of(folder: Path) -> None:
    """Write the rows of a folder as Flink's source wants them, where they are missing."""
    if not (folder / "columns").exists():
        with _whole(folder / "columns") as unfinished:
            for table, names in _FLINKS.items():
                write_columns(folder / table, names, unfinished / table)


def write_events(folder: Path, events: int, *, files: int, rate: int) -> None:
    """Write bids and auctions below a folder, where it is not there; `rate` is that of their event time."""
    if not folder.exists():
        print(f"Writing {events:,} events to {folder}", flush=True)
        with _whole(folder) as unfinished:
            for table in ("bid", "auction"):
                (unfinished / table).mkdir()
                # Flink's time has milliseconds, so all get these.
                write_bids(unfinished / table, events, files, rate=rate, table=table, milliseconds=True)


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """An empty folder that gets this name when all is in it and on the disk."""
    unfinished = folder.with_name(f"{folder.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    os.sync()
    unfinished.rename(folder)


def main() -> int:
    """Measure what is asked for, compare the answers, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000_000, help="NEXMark events; 92 percent are bids")
    parser.add_argument("--few-events", type=int, default=200_000, help="events for the compared answers")
    parser.add_argument("--only", nargs="+", choices=QUERIES, default=QUERIES, help="which queries")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="which systems")
    parser.add_argument("--timeout", type=float, default=400, help="seconds for one query on one system")
    parser.add_argument("--write", action="store_true", help=f"write this part of {RESULTS.name}")
    options = parser.parse_args()
    if options.write and (set(options.only), set(options.systems)) != (set(QUERIES), set(SYSTEMS)):
        parser.error("--write is for all queries and systems together")
    if "flink" in options.systems and not Path(SYSTEMS["flink"].command[0]).exists():
        parser.error("Flink is not there; scripts/setup_peers.sh installs it below this folder")
    if "pathway" in options.systems and not Path(SYSTEMS["pathway"].command[0]).exists():
        parser.error("Pathway is not there; scripts/setup_peers.sh installs it below this folder")
    # So that the process that is measured ends with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    data = Data(FOLDER / "data", options.events, options.few_events)
    figures: dict[tuple[str, str], Measured] = {}
    problems: list[str] = []
    for query in options.only:
        for name in options.systems:
            if query in SYSTEMS[name].queries:
                print(f"{query:11} {SYSTEMS[name].title:22} ", end="", flush=True)
                found = _measure(name, query, data, options.timeout)
                print(found, flush=True)
                if isinstance(found, Measured):
                    figures[query, name] = found
                else:
                    problems.append(f"{query} on {SYSTEMS[name].title}: {found}")
        for difference in _differences(query, [name for of, name in figures if of == query], data.few):
            print(difference, flush=True)
            problems.append(difference)
    text = report(options.events, options.few_events, options.only, figures, problems)
    print(f"\n{text}")
    if options.write:
        write_part(TITLE, text)
    return int(bool(problems))


def _measure(name: str, query: str, data: Data, timeout: float) -> Measured | str:
    """Measure one query on one system; the figures, or what went wrong."""
    system = SYSTEMS[name]
    load = system.loads.get(query, system.load)
    whole, warm = data.part(load.part), data.part(load.part * 4)
    answer, report, log = _answer(name, query), FOLDER / "report.json", FOLDER / "logs" / f"{query}-{name}"
    for path in (answer, log.parent):
        path.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(answer)
    answer.mkdir()
    report.unlink(missing_ok=True)
    if name == "flink":
        for folder in (data.few, warm, whole):
            write_columns_of(folder)
    given = {
        "query": query,
        "few": data.few,
        "answer": answer,
        "warm": warm,
        "warm-ups": load.warm_ups,
        "data": whole,
        "rows": rows_of(whole / "bid"),
        "runs": load.runs,
        "report": report,
    }
    arguments = [f"--{option}={value}" for option, value in given.items()]
    with log.open("w") as output:
        ended = run([*system.command, *arguments], os.environ | system.variables, output.fileno(), timeout)
    if report.exists():
        return Measured.read(json.loads(report.read_text()))
    lines = log.read_text().strip().splitlines()
    return f"{ended}; {lines[-1] if lines else 'no output'} (all of it in {log.relative_to(FOLDER.parent)})"


def run(command: Sequence[str], variables: Mapping[str, str], output: int, timeout: float) -> str:
    """Run a process, and end it and all it started when it takes too long; how it ended."""
    with subprocess.Popen(
        command, env=variables, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    ) as process:
        try:
            return f"exit code {process.wait(timeout)}"
        except subprocess.TimeoutExpired:
            return f"ended after {timeout:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _answer(name: str, query: str) -> Path:
    # Flink does not find its way to a folder with a space.
    return FOLDER / "answers" / query.replace(" ", "-") / name


def _differences(query: str, names: Sequence[str], rows: Path) -> Iterator[str]:
    """Compare the answers of a query with the first one; a text for each that differs."""
    for name in names[1:]:
        first, system = SYSTEMS[names[0]], SYSTEMS[name]
        until = None if system.last_windows else _last(rows)
        try:
            found = compare(query, _answer(names[0], query), _answer(name, query), until)
        except duckdb.Error as error:
            yield f"{query} on {system.title}: the answer cannot be read: {error}"
            continue
        if not found.equal:
            yield (
                f"{query} on {system.title}: of {found.rows:,} rows of {first.title} "
                f"{found.missing:,} are missing, and {found.extra:,} are others"
            )


def _last(folder: Path) -> int:
    """The last bid's instant, in microseconds since 1970."""
    times = pq.read_table(folder / "bid", columns=["ts"])["ts"]
    return int(pc.max(times.cast(pa.int64())).as_py())


if __name__ == "__main__":
    sys.exit(main())
