"""What heartbeats cost in real runs: bounds per value of a column, and generation for many streams.

    python benchmarks/timed_streams.py

Runs are inline in this process; the figures are of CPU seconds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headrace as hr
from headrace.engine.access.policy import Policy
from headrace.engine.run.execution import Settings
from headrace.heartbeats import epoch as in_tasks
from headrace.heartbeats.generation import generate
from headrace.runtime.driver.clock import timekeeper as in_driver
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import TIMESTAMP
from results import Section

DEVICES: Final = 100_000
ROUNDS: Final = 20
STREAMS: Final = 100
EPOCHS: Final = 100
ROWS: Final = 10_000
SECOND: Final = 1_000_000

QUERIES: Final = {
    "filter": "SELECT {column}, ts FROM s WHERE {column} IS NULL",
    "count per device": "SELECT {column}, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY {column}",
}


def devices(folder: Path) -> str:
    """A file to which each device sends a row per second, in an order of its own, up to 2 seconds late."""
    random = np.random.default_rng(1)
    device = np.concatenate([random.permutation(DEVICES) for _ in range(ROUNDS)])
    sent = np.arange(len(device)) * (SECOND // DEVICES)
    ts = pa.array(sent + random.integers(0, 2 * SECOND, len(device))).cast(TIMESTAMP)
    name = pa.array(device).cast(pa.string())
    path = folder / "devices.parquet"
    pq.write_table(pa.table({"number": device, "name": name, "ts": ts}), path, row_group_size=100_000)
    return str(path)


def run(streams: dict[str, str], query: str, rows: int, skew: str = "") -> tuple[float, int]:
    """The CPU seconds of a run, and its number of epochs.

    Args:
        streams: by name what is said after FROM.
        query: its text.
        rows: how many an epoch takes at most.
        skew: a statement that declares one, if any.
    """
    chosen = Settings(None, RunSettings(rows), None)
    with hr.Database(lambda: InlineRunner(1), chosen, Policy.open()) as db:
        for name, said in streams.items():
            db.execute(f"CREATE STREAM {name} FROM {said}")
        if skew:
            db.execute(skew)
        db.query(query, name="q")
        begun = time.process_time()
        summary = db.run()
        used = time.process_time() - begun
        assert not summary.late
        return used, db.status.epoch


def per_device(path: str, query: str, column: str, rows: int, runs: int) -> float:
    """The speed of a stream with a bound for each device, to that of one with a bound for all."""
    said = f"parquet OPTIONS (path '{path}') TIMESTAMP BY ts DISORDER 2 SECONDS"
    found = []
    for _ in range(runs + 1):
        alone, each = (
            run({"s": f"{said} {clause}"}, query.format(column=column), rows)[0]
            for clause in ("", f"PER {column} IDLE AFTER 1 MINUTE")
        )
        found.append(alone / each)
    return statistics.median(found[1:])


@dataclass
class Spent:
    """The CPU seconds of a function."""

    seconds: float = 0.0

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added up here."""

        def call(*args: object, **named: object) -> object:
            begun = time.thread_time()
            try:
                return function(*args, **named)
            finally:
                self.seconds += time.thread_time() - begun

        return call


@contextmanager
def watched() -> Iterator[Spent]:
    """What generation takes in the driver and in tasks."""
    spent = Spent()
    counted = spent.counted(generate)
    with patch.object(in_tasks, "generate", counted), patch.object(in_driver, "generate", counted):
        yield spent


def many_streams(folder: Path) -> dict[str, str]:
    """What is said of streams, in files, that bring 10,000 rows in an epoch, all together."""
    random = np.random.default_rng(2)
    found = {}
    for number in range(STREAMS):
        ts = np.sort(random.integers(0, EPOCHS * SECOND, EPOCHS * ROWS // STREAMS))
        path = folder / f"s{number}.parquet"
        pq.write_table(pa.table({"v": ts % 10, "ts": pa.array(ts).cast(TIMESTAMP)}), path)
        found[f"s{number}"] = f"parquet OPTIONS (path '{path}') TIMESTAMP BY ts"
    return found


def share_of_generation(streams: dict[str, str], clause: str, skew: str) -> tuple[float, float]:
    """The share of generation in the CPU time of a run over many streams, and its seconds per epoch.

    Args:
        streams: by name what is said after FROM.
        clause: what is added to that.
        skew: a statement that declares one, if any.
    """
    query = " UNION ALL ".join(f"SELECT v, ts FROM {name}" for name in streams)
    with watched() as spent:
        used, epochs = run({name: f"{said} {clause}" for name, said in streams.items()}, query, ROWS, skew)
    return spent.seconds / used, spent.seconds / epochs


def devices_section(runs: int) -> Section:
    """The speed of a stream with a heartbeat for each device.

    Args:
        runs: how many are counted.
    """
    with TemporaryDirectory() as folder:
        path = devices(Path(folder))
        rows = []
        for size in (10_000, 1_000_000):
            for name, query in QUERIES.items():
                speeds = [per_device(path, query, column, size, runs) for column in ("number", "name")]
                rows.append((name, f"{size:,}", *(f"{speed:.2f}" for speed in speeds)))
    text = (
        f"{DEVICES:,} devices send {ROUNDS * DEVICES:,} rows. The speed with `PER device` to that "
        f"without, in CPU seconds, inline; medians of {runs}."
    )
    heads = ("query", "rows per epoch", "BIGINT devices", "STRING devices")
    return Section("A heartbeat for each device", heads, tuple(rows), text)


def generation_section() -> Section:
    """The share of generation in epochs of many streams."""
    rows = []
    with TemporaryDirectory() as folder:
        streams = many_streams(Path(folder))
        among = f"CREATE SKEW AMONG {', '.join(streams)} (0 SECONDS, 1 MINUTE)"
        for name, clause, skew in (
            ("disorder alone", "DISORDER 1 SECOND", ""),
            ("skew of each pair, idle streams", "DISORDER 1 SECOND IDLE AFTER 1 MINUTE", among),
            ("skew with a second wait, latencies", "LATENCY 1 SECOND", f"{among}, (1 SECOND, 1 SECOND)"),
        ):
            share, seconds = share_of_generation(streams, clause, skew)
            rows.append((name, f"{seconds * 1e3:.2f} ms", f"{share:.2%}"))
    text = f"{STREAMS} streams in files bring {EPOCHS * ROWS:,} rows in {EPOCHS} epochs, inline."
    heads = ("bounds", "CPU per epoch", "of all CPU time")
    return Section("The share of generation", heads, tuple(rows), text)


if __name__ == "__main__":
    print(devices_section(runs=1), generation_section(), sep="\n\n")
