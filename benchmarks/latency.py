"""How long an answer takes: from the arrival of the rows that make it final to its subscriber.

    python benchmarks/latency.py --only q0 join
    python benchmarks/latency.py --runner inline --rate half
    python benchmarks/latency.py --runner inline --epoch-rows 2000

A thread pushes NEXMark bids at a fixed rate, in small batches; for a join it pushes the auctions of the same
time first. Another one subscribes to the query. A batch counts as answered when the subscriber is given a
change whose heartbeat is that of the batch's last row: everything that is final by then was in that change or
in one before. Where the query is one over windows that end together, only the batches in which a window ends
count, since the others make nothing final. The clock of a batch starts when it is due, so that a push that
has to wait is counted.

Events happen at 10,000 per second of event time, as in the other benchmarks, however fast they are pushed: at
100,000 per second a window of 60 seconds holds those of the last six.

With --epoch-rows each push waits until it is committed, and is an epoch; what is printed is its processor
time in this process, most of what an answer waits for, which varies less on a busy machine than the clock.
"""

from __future__ import annotations

import argparse
import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from bids import columns_of
from headrace import Database, Query, connect
from headrace.workloads.nexmark import TABLES, Nexmark, generate
from processes import Usage, Watch
from spellings import SPELLED

QUERIES: Final = ("q0", "tumbling", "join", "over")
EVENT_RATE: Final = 10_000
"""Events per second of event time."""
LAP_EVENTS: Final = 1_000_000
"""So many events are made; after them the same come again, at later times."""
_LAP_SECONDS: Final = LAP_EVENTS // EVENT_RATE
_SPANS: Final[Mapping[str, int]] = {"tumbling": 10}
"""The seconds after which windows end together, where a query has such windows."""
_FULL_BATCH: Final = 20_000
"""Rows of a push where as many rows are pushed as are taken."""


class Lap:
    """Events that can be repeated at later times, in batches of one size.

    Args:
        tables: which of NEXMark's streams.
        events: how many events a batch has; about 92 % of them are bids.
    """

    def __init__(self, tables: Sequence[str], events: int) -> None:
        spec = Nexmark(LAP_EVENTS, seed=1, rate=EVENT_RATE)
        self._batches = [
            {table: generate(spec, table, first, first + events, columns_of(table)) for table in tables}
            for first in range(0, LAP_EVENTS - events + 1, events)
        ]

    def batches(self) -> Iterator[Mapping[str, pa.RecordBatch]]:
        """The batches, lap after lap, without an end."""
        lap = 0
        while True:
            for batch in self._batches:
                yield {table: _later(rows, lap * _LAP_SECONDS * 1_000_000) for table, rows in batch.items()}
            lap += 1


def _later(rows: pa.RecordBatch, microseconds: int) -> pa.RecordBatch:
    place = rows.schema.get_field_index("ts")
    moved = np.asarray(rows.column(place).cast(pa.int64())) + microseconds
    return rows.set_column(
        place, rows.schema.field(place), pa.array(moved).cast(rows.schema.field(place).type)
    )


def events_of(rate: float, every: float) -> int:
    """The events of a batch with so many bids per second, and so many seconds from one to the next."""
    return max(1, round(rate * every * 50 / 46))


@dataclass(frozen=True)
class Latencies:
    """The time that the answers of one run took.

    Attributes:
        middle: half of them took so many milliseconds at most.
        high: 99 of 100.
        most: all of them.
        answers: how many there were.
    """

    middle: float
    high: float
    most: float
    answers: int

    @classmethod
    def of(cls, seconds: np.ndarray) -> Latencies:
        """Those of answers that took so long each.

        Raises:
            ValueError: there is none.
        """
        if not len(seconds):
            raise ValueError("no answer came in the time that counts")
        middle, high = np.percentile(1000 * seconds, (50, 99))
        return cls(float(middle), float(high), float(1000 * seconds.max()), len(seconds))

    def __str__(self) -> str:
        return f"p50 {self.middle:6.1f}  p99 {self.high:6.1f}  most {self.most:6.1f} ms  of {self.answers:5,}"


@dataclass
class Seen:
    """What a subscriber was given: the time, the heartbeat and the number of elements of every change."""

    times: list[float] = field(default_factory=list)
    heartbeats: list[int] = field(default_factory=list)
    elements: int = 0

    def follow(self, query: Query) -> None:
        """Note the changes of a query until its run ends."""
        for change in query.subscribe():
            self.times.append(time.perf_counter())
            self.heartbeats.append(change.heartbeat)
            self.elements += len(change.elements)


@dataclass(frozen=True)
class Pushed:
    """When batches were due, and up to which instant each of them makes the answer final (microseconds)."""

    due: np.ndarray
    instants: np.ndarray

    def latencies(self, seen: Seen, begin: float, span: int | None) -> np.ndarray:
        """The seconds from when a batch was due to the change that answers it, of those due after a time."""
        places = np.searchsorted(np.array(seen.heartbeats), self.instants)
        counted = (self.due >= begin) & (places < len(seen.times))
        if span is not None:
            windows = self.instants // (span * 1_000_000)
            counted &= np.diff(windows, prepend=windows[:1]) > 0
        found: np.ndarray = np.array(seen.times)[places[counted]] - self.due[counted]
        return found


class Session:
    """A query that runs and is subscribed to.

    Args:
        name: one of `QUERIES`.
        options: for `connect`.
    """

    def __init__(self, name: str, options: Mapping[str, object]) -> None:
        text = SPELLED[name][0]
        self.tables = ("auction", "bid") if name == "join" else ("bid",)
        self.db: Database = connect(**options)  # type: ignore[arg-type]
        for table in self.tables:
            self.db.execute(f"CREATE STREAM {table} ({_columns(table)}) FROM push TIMESTAMP BY ts")
        self.query = self.db.query(text, name="q")
        self.seen = Seen()
        self.db.start()
        self._subscriber = threading.Thread(target=self.seen.follow, args=(self.query,), daemon=True)
        self._subscriber.start()

    def push(self, batch: Mapping[str, pa.RecordBatch]) -> Future[bool]:
        """Push a batch; the future of its last table."""
        last: Future[bool] = Future()
        for table in self.tables:
            found = self.db.push(table, batch[table], wait=False)
            assert isinstance(found, Future)
            last = found
        return last

    def stop(self) -> None:
        """End the run, and wait until the subscriber has been given everything."""
        self.db.stop()
        self._subscriber.join()
        self.db.close()


def _columns(table: str) -> str:
    kinds = {pa.int64(): "BIGINT", pa.string(): "STRING"}
    types = {part.name: kinds.get(part.type, "TIMESTAMP") for part in TABLES[table]}
    return ", ".join(f"{name} {types[name]}" for name in columns_of(table))


def full_rate(name: str, options: Mapping[str, object], warm_up: float, seconds: float) -> float:
    """Bids per second where they are pushed as fast as they are taken."""
    session = Session(name, options)
    lap = Lap(session.tables, _FULL_BATCH)
    begin = time.perf_counter() + warm_up
    end = begin + seconds
    marks: list[tuple[float, int]] = []
    rows, waiting = 0, []
    for batch in lap.batches():
        waiting.append((session.push(batch), batch["bid"].num_rows))
        while waiting and waiting[0][0].done():
            rows += waiting.pop(0)[1]
            marks.append((time.perf_counter(), rows))
        if time.perf_counter() > end:
            break
    session.stop()
    counted = [mark for mark in marks if mark[0] >= begin]
    (first, before), (last, after) = counted[0], counted[-1]
    return (after - before) / (last - first)


def measure(
    name: str, options: Mapping[str, object], rate: float, every: float, warm_up: float, seconds: float
) -> Latencies:
    """Push so many bids per second, and print how long their answers take, which is returned."""
    session = Session(name, options)
    lap = Lap(session.tables, events_of(rate, every))
    due, instants = [], []
    start = time.perf_counter() + 0.1
    begin = start + warm_up
    before = None
    for number, batch in enumerate(lap.batches()):
        at = start + number * every
        if at >= begin and before is None:
            before, epochs = Usage.now(), len(session.seen.times)
        if at > begin + seconds:
            break
        if (left := at - time.perf_counter()) > 0:
            time.sleep(left)
        due.append(at)
        instants.append(min(_last(rows) for rows in batch.values()))
        session.push(batch)
    after, epochs = Usage.now(), len(session.seen.times) - epochs
    session.stop()
    pushed = Pushed(np.array(due), np.array(instants))
    found = Latencies.of(pushed.latencies(session.seen, begin, _SPANS.get(name)))
    assert before is not None
    print(
        f"{name:10} {rate:>11,.0f}/s  {found}  {epochs / seconds:5.1f} epochs/s  "
        f"{(after.seconds - before.seconds) / seconds:.2f} cores  {session.seen.elements:,} elements",
        flush=True,
    )
    return found


def cost(name: str, options: Mapping[str, object], rows: int, epochs: int) -> None:
    """Push so many events at a time, each push an epoch, and print what the last two thirds of them cost."""
    session = Session(name, options)
    lap = Lap(session.tables, rows)
    used = []
    for batch in itertools.islice(lap.batches(), epochs):
        before = time.process_time()
        session.push(batch).result()
        used.append(1000 * (time.process_time() - before))
    session.stop()
    counted = np.array(used[epochs // 3 :])
    middle, high = np.percentile(counted, (50, 99))
    print(
        f"{name:10} epochs of {rows:,} events  mean {counted.mean():5.1f}  p50 {middle:5.1f}  "
        f"p99 {high:5.1f}  most {counted.max():5.1f} ms of processor time",
        flush=True,
    )


def _last(rows: pa.RecordBatch) -> int:
    return int(rows.column("ts")[-1].value)


def main() -> None:
    """Measure the queries that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SPELLED, default=list(QUERIES))
    parser.add_argument("--runner", choices=("spark", "inline"), default="spark")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--rate", default="100000", help="bids per second, or half of what can be pushed")
    parser.add_argument("--every", type=float, default=0.01, help="seconds between two pushes")
    parser.add_argument("--warm-up", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--storage", help="a folder that makes the runs durable; one is made in it for each")
    parser.add_argument("--report", type=Path, help="a file for the figures of each query, as JSON")
    parser.add_argument("--epoch-rows", type=int, help="the events of a push that is an epoch of its own")
    parser.add_argument("--epochs", type=int, default=300, help="so many of them")
    asked = parser.parse_args()
    options: dict[str, object] = {"runner": asked.runner}
    if asked.runner == "spark":
        options["master"] = asked.master
    found: dict[str, object] = {}
    for name in asked.only:
        if asked.storage:
            options["storage"] = f"{asked.storage}/{name.replace(' ', '-')}"
        if asked.epoch_rows:
            cost(name, options, asked.epoch_rows, asked.epochs)
            continue
        rate = (
            full_rate(name, options, asked.warm_up, asked.seconds) / 2
            if asked.rate == "half"
            else float(asked.rate)
        )
        # A look at the memory of a process may hold it up.
        with Watch(interval=3600) as watch:
            latencies = measure(name, options, rate, asked.every, asked.warm_up, asked.seconds)
        found[name] = {"found": asdict(latencies), "foreign": watch.used.foreign}
    if asked.report:
        asked.report.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
