"""Queries that may be behind: a light one beside a heavy one, shares by weight, and what lanes cost.

    python benchmarks/lanes.py [--runner inline|spark] [--pushes 60] [--only latency weights many minutes]

*latency*: rows are pushed to one stream, one after the other, and each push waits for its commit, while
another thread keeps a second stream full for a query that works long on each row. First without that query,
then with it in front, then with a weight, so that it is behind.

*weights*: three queries over one stream that have always rows to take, with weights 1, 2 and 5: the shares of
the processor that they had over some 100 turns.

*many*: 1,000 queries over one stream in front; and in 1, 10 and 100 lanes. CPU seconds of a push of 100 rows
until all queries have it.

*minutes*: three queries over one stream, an alarm with a bound of latency and two with weights 1 and 4, for
five minutes of which the second brings more than they can take: how many rows wait for each (`--svg` for the
picture).
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import headrace as hr

STREAMS = """
CREATE STREAM light (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM heavy (k BIGINT, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY counts AS SELECT k, COUNT(*) AS n, SUM(v) AS x FROM light [RANGE 100] GROUP BY k
"""
WORK: Final = 1_500
"""So many steps of a loop are done for each row of a heavy query: some 100 microseconds."""
RATE: Final = 12_000
"""So many rows a second come for it, which is more than it can take."""


def slow(values: pa.Array) -> pa.Array:
    """A function that takes a while for each row."""
    found = []
    for value in values.to_pylist():
        for step in range(WORK):
            value = (value * 31 + step) % 1_000_003
        found.append(value)
    return pa.array(found, pa.int64())


def opened(runner: str) -> hr.Database:
    """A database with the function."""
    db = hr.connect(runner="spark" if runner == "spark" else "inline")
    db.function("slow", slow, arguments=["BIGINT"], returns="BIGINT")
    return db


class Filling:
    """Keeps a stream full until it is stopped.

    Args:
        db: the database.
        stream: the stream.
        rows: so many rows are pushed at once.
    """

    def __init__(self, db: hr.Database, stream: str, rows: int) -> None:
        self._db, self._stream, self._rows = db, stream, rows
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._fill)

    def __enter__(self) -> Filling:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _fill(self) -> None:
        at = 0
        while not self._stopping.is_set():
            at += 1
            rows = [{"k": row % 100, "v": row, "ts": at} for row in range(self._rows)]
            self._db.push(self._stream, rows, wait=False)
            self._stopping.wait(self._rows / RATE)


def latencies(db: hr.Database, pushes: int, begin: int) -> list[float]:
    """The seconds that each of some pushes takes until it is committed; fewer after a minute."""
    found, until = [], time.perf_counter() + 60
    for at in range(begin, begin + pushes):
        if time.perf_counter() > until:
            break
        begun = time.perf_counter()
        db.push("light", [{"k": row % 10, "v": row, "ts": at} for row in range(100)])
        found.append(time.perf_counter() - begun)
        time.sleep(0.02)
    return found


def told(name: str, seconds: Sequence[float], alone: Sequence[float] | None = None) -> list[float]:
    """Print the median and the 99th percentile of some seconds, and as multiples of those alone."""
    figures = [statistics.median(seconds), float(np.percentile(seconds, 99))]
    name = f"{name} ({len(seconds)})"
    text = "  ".join(f"{one * 1e3:8.1f} ms" for one in figures)
    ratio = (
        ""
        if alone is None
        else "  " + "  ".join(f"{one / was:6.2f}" for one, was in zip(figures, alone, strict=True))
    )
    print(f"{name:<28}{text}{ratio}", flush=True)
    return figures


def measure_latency(runner: str, pushes: int) -> None:
    """Print what a push of a light query takes beside a heavy one."""
    print(f"{'a push of 100 rows':<28}{'median':>11}  {'p99':>9}    times alone")
    alone: list[float] | None = None
    for name, clause in (("alone", None), ("beside a heavy query", ""), ("with it behind", "WEIGHT 0.2 ")):
        with opened(runner) as db:
            db.execute(STREAMS)
            db.start()
            latencies(db, 5, 0)
            if clause is None:
                alone = told(name, latencies(db, pushes, 5))
                continue
            db.execute(
                f"CREATE QUERY slowly {clause}AS SELECT k, SUM(slow(v)) AS x FROM heavy [RANGE 10] GROUP BY k"
            )
            with Filling(db, "heavy", 2_000):
                time.sleep(2)
                told(name, latencies(db, pushes, 5), alone)
                if clause:
                    print(db.execute("SHOW LANES")[0])


def measure_weights(runner: str) -> None:
    """Print the shares that queries with weights had."""
    with opened(runner) as db:
        db.execute(STREAMS)
        weights = {"one": 1, "two": 2, "five": 5}
        for name, weight in weights.items():
            db.execute(
                f"CREATE QUERY {name} WEIGHT {weight} AS "
                f"SELECT k, SUM(slow(v)) AS x FROM heavy [RANGE 10] GROUP BY k"
            )
        db.start()
        with Filling(db, "heavy", 4_000):
            time.sleep(20)
            lanes = {one.queries[0]: one for one in db.status.lanes if one.lane}
        whole = sum(one.seconds for one in lanes.values())
        print("weight  wanted  had   turns")
        for name, weight in weights.items():
            one = lanes[name]
            print(f"{weight:>6}  {weight / 8:6.1%}  {one.seconds / whole:6.1%}  {one.turns:,}")


def measure_many(runner: str, pushes: int) -> None:
    """Print what a push costs with many queries in front, and in lanes."""
    first: float | None = None
    for lanes in (0, 1, 10, 100):
        with opened(runner) as db:
            db.execute(STREAMS)
            for number in range(1_000):
                clause = f"WEIGHT {1 + number % lanes} " if lanes else ""
                db.execute(
                    f"CREATE QUERY q{number} {clause}AS SELECT COUNT(*) AS n "
                    f"FROM light [RANGE {2 + number // 100}] WHERE k = {number % 100}"
                )
            db.start()
            seconds = [pushed(db, at) for at in range(pushes + 5)][5:]
        found = statistics.median(seconds)
        first = first or found
        print(f"{lanes:>4} lanes: {found * 1e3:8.1f} ms of CPU, {found / first:5.2f} times", flush=True)


MINUTE: Final = 60
CALM: Final = 600
BUSY: Final = 4_000
"""So many rows a second come in a minute that is calm, and in one that is not."""


def measure_minutes(runner: str, svg: Path | None) -> None:
    """Print, and draw, how many rows wait for each of three queries."""
    waiting: dict[str, list[tuple[float, int]]] = {"alarm": [], "one": [], "four": []}
    with opened(runner) as db:
        db.execute(STREAMS)
        db.execute(
            "CREATE QUERY alarm LATENCY 500 MILLISECONDS AS SELECT MAX(v) AS x FROM heavy [RANGE 10];"
            "CREATE QUERY one WEIGHT 1 AS SELECT k, SUM(slow(v)) AS x FROM heavy [RANGE 10] GROUP BY k;"
            "CREATE QUERY four WEIGHT 4 AS SELECT k, AVG(slow(v)) AS x FROM heavy [RANGE 10] GROUP BY k"
        )
        db.start()
        db.push("heavy", [{"k": 0, "v": 0, "ts": 0}])
        begun, at, late = time.perf_counter(), 0, 0.0
        while (now := time.perf_counter() - begun) < 5 * MINUTE:
            at += 1
            rate = BUSY if MINUTE <= now < 2 * MINUTE else CALM
            rows = [{"k": row % 100, "v": row, "ts": at} for row in range(rate // 5)]
            asked = time.perf_counter()
            db.push("heavy", rows)
            late = max(late, time.perf_counter() - asked)
            for one in db.status.lanes:
                if (name := one.queries[-1]) in waiting:
                    waiting[name].append((now, one.rows))
            time.sleep(max(0.0, begun + at / 5 - time.perf_counter()))
    for name, found in waiting.items():
        print(f"{name:<6} at most {max((rows for _, rows in found), default=0):>8,} rows wait")
    print(f"the alarm is {late:.2f} s late at most")
    if svg is not None:
        svg.write_text(drawn(waiting))


COLOURS: Final = {"alarm": "#c33", "one": "#36c", "four": "#393"}


def drawn(waiting: Mapping[str, Sequence[tuple[float, int]]]) -> str:
    """The picture of rows that wait over time."""
    most = max((rows for found in waiting.values() for _, rows in found), default=1) or 1
    parts = []
    for place, (name, found) in enumerate(waiting.items()):
        points = " ".join(f"{60 + at * 2:.1f},{260 - 220 * rows / most:.1f}" for at, rows in found[::8])
        colour = COLOURS[name]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        parts.append(f'<text x="{480 + 70 * place}" y="24" fill="{colour}">{name}</text>')
    for minute in range(6):
        x = 60 + minute * 120
        parts.append(f'<line x1="{x}" y1="260" x2="{x}" y2="265" stroke="#333"/>')
        parts.append(f'<text x="{x}" y="280" text-anchor="middle">{minute} min</text>')
    parts.append('<line x1="60" y1="260" x2="660" y2="260" stroke="#333"/>')
    parts.append(f'<text x="55" y="44" text-anchor="end">{most:,}</text>')
    parts.append('<text x="55" y="264" text-anchor="end">0</text><text x="60" y="24">rows that wait</text>')
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="700" height="300" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def pushed(db: hr.Database, at: int) -> float:
    """The CPU seconds of a push until all queries have it."""
    begun = time.process_time()
    db.push("light", [{"k": row, "v": row, "ts": at} for row in range(100)])
    while any(one.rows for one in db.status.lanes):
        time.sleep(0.001)
    return time.process_time() - begun


def main() -> None:
    """Measure what is asked for."""
    parts: dict[str, Callable[[str, int], None]] = {
        "latency": measure_latency,
        "weights": lambda runner, _: measure_weights(runner),
        "many": measure_many,
        "minutes": lambda runner, _: measure_minutes(runner, given.svg),
    }
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--runner", choices=("inline", "spark"), default="inline")
    asked.add_argument("--pushes", type=int, default=60)
    asked.add_argument("--only", nargs="+", choices=tuple(parts), default=("latency", "weights"))
    asked.add_argument("--svg", type=Path, help="where the picture of *minutes* goes")
    given = asked.parse_args()
    for name in given.only:
        parts[name](given.runner, given.pushes)


if __name__ == "__main__":
    main()
