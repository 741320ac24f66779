"""The experiments of chapter 24 of the PIPES thesis, run again here.

    python benchmarks/papers/chapter24.py [--rate 20] [--plot docs/assets/chapter24.svg]

- 24.1, window sizes: the windows of a join become shorter, from 60 s to 30 s at 80 s, and longer again at
  150 s. The thesis says when that is to be seen and when it is whole: at 110 and 140, and at 180 and 210 s.
- 24.2, granularity: how many rows a COUNT over ten minutes yields for each row that it takes, by granule,
  beside equation 22.6. The thesis has traffic of 1993, here cars come at random.
- 24.3, windows against shedding: a join of 100 rows/s each, with values from 0 to 49 and windows of 10 s, in
  half of its memory: by windows of 5 s, and by leaving out every other row at random. Results by how far
  apart their rows are. In the thesis the windows keep all results of close rows, and shedding a quarter.
- 24.4, many queries: `benchmarks/manager.py` has an hour with arrivals and a burst, of other queries.

In this process, without Spark. The figures of the thesis are pictures; what its text says is printed beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.cli.illustrations.spectrum_chart import saved
from headrace.time import MICROSECONDS

SECOND: Final = MICROSECONDS["SECOND"]
CHANGES: Final = ((80, 30), (150, 60))
"""At which second the windows of 24.1 get which size (seconds)."""
UNTIL: Final = 230
"""So long 24.1 goes on (seconds)."""
THESIS: Final = ((110, 140), (180, 210))
"""When each change is to be seen, and when it is complete, in the thesis (seconds)."""
GRANULES: Final = ("100 MILLISECONDS", "1 SECOND", "10 SECONDS", "60 SECONDS")
TRAFFIC: Final = 4.0
"""Seconds between two cars, on average."""
_LENGTH: Final = 600.0
"""The window of 24.2 (seconds)."""
VALUES: Final = 50
"""The values of 24.3."""
WINDOW: Final = 10
"""The window of 24.3 (seconds)."""


@dataclass(frozen=True)
class JoinAtSecond:
    """A join at a second of 24.1.

    Attributes:
        second: when.
        valid: how many rows are in both windows then.
        kept: how many rows the join keeps when the epoch of that second is committed.
        size: their bytes.
    """

    second: int
    valid: int
    kept: int
    size: int


@contextmanager
def _connected() -> Iterator[hr.Database]:
    with hr.connect(runner="inline", buckets=1) as db:
        yield db


def window_sizes(rate: int, step: int = 1) -> list[JoinAtSecond]:
    """24.1: a join of two streams while its windows change.

    Args:
        rate: rows per second of each stream.
        step: rows of so many seconds are pushed at once; windows change between two of these.
    """
    bounds = "WINDOW(RANGE MIN 30 SECONDS, MAX 60 SECONDS)"
    sides, state = ("a", "b"), list[tuple[int, int]]()
    with _connected() as db:
        for name in sides:
            db.execute(f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP) FROM push TIMESTAMP BY ts")
        db.execute(f"CREATE QUERY joined AS SELECT a.k FROM a {bounds} JOIN b {bounds} ON a.k = b.k")
        for name in sides:
            db.execute(f"CREATE QUERY in_{name} AS SELECT COUNT(*) AS n FROM {name} {bounds}")
        db.start()
        for second in range(0, UNTIL + step, step):
            for at, size in CHANGES:
                if second == at:
                    db.execute(f"ALTER QUERY joined SET (WINDOW {size} SECONDS)")
            ticks = range(second * rate, (second + step) * rate)
            begun = datetime.fromtimestamp(0, UTC)
            for name in sides:
                rows = [{"k": at % 97, "ts": begun + timedelta(seconds=at / rate)} for at in ticks]
                db.push(name, rows)
            joins = [part for part in db.status.operators if part.text.startswith("Join")]
            kept = sum(part.state_rows for part in joins), sum(part.state_bytes for part in joins)
            state += [kept] * step
        valid = [sum(_count(db, f"in_{name}", second) for name in sides) for second in range(UNTIL)]
    return [JoinAtSecond(second, valid[second], *state[second]) for second in range(UNTIL)]


def _count(db: hr.Database, query: str, second: int) -> int:
    (row,) = db[query].snapshot(second * SECOND).to_pylist()
    return int(row["n"])


def seen(found: Sequence[JoinAtSecond]) -> list[tuple[int, int]]:
    """When each change of 24.1 is to be seen, and when it is complete (seconds).

    It is complete when as many rows are valid as there will be until the next change.
    """
    valid = [one.valid for one in found]
    ends = [*(at for at, _ in CHANGES[1:]), len(valid)]
    times = []
    for (at, _), end in zip(CHANGES, ends, strict=True):
        first = next(second for second in range(at, end) if valid[second] != valid[at])
        whole = next(second for second in range(at, end) if valid[second] == valid[end - 1])
        times.append((first, whole))
    return times


def granularity(rows: int, granules: Sequence[str] = GRANULES) -> dict[str, tuple[float, float]]:
    """24.2: per granule how many rows a COUNT yields for each row that it takes, and by equation 22.6.

    Args:
        rows: how many cars there are.
        granules: as the language writes them.
    """
    gaps = np.random.default_rng(24).exponential(TRAFFIC * SECOND, rows)
    instants = np.cumsum(gaps).astype(np.int64)
    table = pa.table({"ts": pa.array(instants).cast(pa.timestamp("us"))})
    found = {}
    for granule in granules:
        with _connected() as db:
            db.stream("traffic", table, timestamp="ts")
            query = db.query(
                f"SELECT COUNT(*) AS n FROM traffic WINDOW(RANGE 10 MINUTES) GRANULARITY({granule})"
            )
            db.run()
            number, unit = granule.split()
            size = float(number) * MICROSECONDS[unit.removesuffix("S")] / SECOND
            yielded = len(query.history())
        hit = 1 - (1 - size / _LENGTH) ** (2 * _LENGTH / TRAFFIC)
        found[granule] = yielded / rows, TRAFFIC * hit / size
    return found


@dataclass(frozen=True)
class Reduction:
    """A join in less memory, beside the whole one.

    Attributes:
        kept: the rows that it keeps, on average, by those that the whole one keeps.
        results: the part of the results of the whole one that it has, by how far apart rows are (seconds).
    """

    kept: float
    results: tuple[float, ...]


def reductions(seconds: int, rate: int) -> dict[str, Reduction]:
    """24.3: half of the memory by shorter windows, and by leaving out rows.

    Args:
        seconds: how long the streams are.
        rate: rows per second of each.
    """
    random = np.random.default_rng(243)
    tables = [_uniform(seconds, rate, random) for _ in range(2)]
    half = [table.filter(pa.array(random.random(len(table)) < 0.5)) for table in tables]
    whole, state = _joined(tables, WINDOW)
    found = {}
    for name, (given, length) in {
        "windows of 5 s": (tables, WINDOW // 2),
        "every other row": (half, WINDOW),
    }.items():
        counts, kept = _joined(given, length)
        found[name] = Reduction(kept / state, tuple((counts / whole).tolist()))
    return found


def _uniform(seconds: int, rate: int, random: np.random.Generator) -> pa.Table:
    instants = np.sort(random.integers(0, seconds * SECOND, seconds * rate))
    ts = pa.array(instants).cast(pa.timestamp("us"))
    return pa.table({"ts": ts, "k": random.integers(0, VALUES, len(instants))})


def _joined(tables: Sequence[pa.Table], length: int) -> tuple[np.ndarray, float]:
    """The number of results by the distance of their rows in seconds, and the rows kept on average."""
    kept: list[int] = []
    with hr.connect(runner="inline", buckets=1, epoch_rows=max(1, len(tables[0]) // 10)) as db:
        for name, table in zip("ab", tables, strict=True):
            db.stream(name, table, timestamp="ts")
        window = f"[RANGE {length} SECONDS]"
        query = db.query(f"SELECT a.ts AS one, b.ts AS other FROM a {window} JOIN b {window} ON a.k = b.k")
        db.run(lambda _: kept.append(sum(part.state_rows for part in db.status.operators)))
        rows = query.history()
    one, other = (np.asarray(rows[name].cast(pa.int64())) for name in ("one", "other"))
    counts = np.bincount(np.abs(one - other) // SECOND, minlength=WINDOW)[:WINDOW]
    return counts, float(np.mean(kept[len(kept) // 3 : -1]))


def specification(sizes: Sequence[JoinAtSecond], reduced: dict[str, Reduction]) -> dict[str, Any]:
    """24.1 and 24.3 as a Vega-Lite chart."""
    lines = [{"second": one.second, "rows": one.valid, "what": "in the windows"} for one in sizes]
    lines += [{"second": one.second, "rows": one.kept, "what": "kept by the join"} for one in sizes]
    bars = [
        {"seconds apart": f"{at}", "part": part, "how": name}
        for name, one in reduced.items()
        for at, part in enumerate(one.results)
    ]
    over = {"field": "second", "type": "quantitative", "title": "seconds"}
    return {
        "hconcat": [
            {
                "title": "24.1: 60 s, 30 s from 80 on, 60 s from 150 on",
                "width": 360,
                "data": {"values": lines},
                "mark": "line",
                "encoding": {"x": over, "y": _measured("rows"), "color": {"field": "what", "title": None}},
            },
            {
                "title": "24.3: results in half of the memory",
                "width": 300,
                "data": {"values": bars},
                "mark": "bar",
                "encoding": {
                    "x": {"field": "seconds apart", "type": "ordinal"},
                    "xOffset": {"field": "how"},
                    "y": _measured("part"),
                    "color": {"field": "how", "title": None},
                },
            },
        ],
        "resolve": {"scale": {"color": "independent"}},
    }


def _measured(name: str) -> dict[str, str]:
    return {"field": name, "type": "quantitative"}


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", type=int, default=20, help="rows per second of each stream of 24.1")
    parser.add_argument("--plot", type=Path, help="the picture goes there")
    asked = parser.parse_args()
    sizes = window_sizes(asked.rate)
    print("24.1  second  rows in the windows  rows kept  bytes")
    for at in sizes[50::10]:
        print(f"      {at.second:6}  {at.valid:19,}  {at.kept:9,}  {at.size:,}")
    for (begin, size), found, said in zip(CHANGES, seen(sizes), THESIS, strict=True):
        print(f"      {size} s from {begin} on: seen at {found[0]}, whole at {found[1]}; the thesis: {said}")
    print("24.2  granule           rows out for one in   equation 22.6")
    for granule, (yielded, expected) in granularity(5_000).items():
        print(f"      {granule:16}  {yielded:19.3f}  {expected:14.3f}")
    print("24.3  half of the memory by  rows kept  results, by seconds between their rows")
    reduced = reductions(60, 100)
    for name, one in reduced.items():
        print(f"      {name:21}  {one.kept:9.2f}  " + " ".join(f"{part:.2f}" for part in one.results))
    if asked.plot is not None:
        saved(specification(sizes, reduced), asked.plot)


if __name__ == "__main__":
    main()
